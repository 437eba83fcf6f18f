"""`agenteval open`: the app at one place: a run, a criterion of it, an execution, a test."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import click

from agenteval_tui.analysis.explanation import criterion_named
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, on_a_terminal, pass_invocation
from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store

PAGES = (".html", ".htm")


@click.command("open")
@click.argument("address", metavar="[ADDRESS]", default="", shell_complete=shell_completion.references)
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, address: str) -> int:
    """Open the app at ADDRESS; without one, at the newest run that failed.

    ADDRESS is a run or an execution (an id or a part of it, or `last`), a test's id (its newest run; FILE::ID if
    several suites have it), or RUN/CRITERION as `y` copies it on the Inspect screen. It can also be a FILE.html from
    `agenteval share`: its runs are imported (once), and the app opens at them.
    """
    page = Path(address)
    start = start_at_page(invocation, page) if page.suffix.lower() in PAGES else start_at(invocation, address)
    if not on_a_terminal():
        raise AgentevalError(
            "the app needs a terminal, and this is not one",
            fix=f"`agenteval show {start.target}{invocation.db_option}` prints it",
        )
    return invocation.launch_app(start)


def start_at_page(invocation: Invocation, page: Path) -> AppStart:
    """The runs of a page, in the history now. Raises `AgentevalError` when it can't be read."""
    with invocation.store() as store:
        report = import_file(page, store)
        runs = store.runs_of_execution(report.execution_id)
    for line in (*(f"left out {line}" for line in report.left_out()), *report.notes):
        invocation.note(line)
    if len(runs) == 1:
        return AppStart(db=invocation.db, screen="inspect", target=runs[0].id)
    return AppStart(db=invocation.db, screen="history", target=report.execution_id)


def start_at(invocation: Invocation, address: str) -> AppStart:
    """Where the app opens. Raises `AgentevalError` when there is no such run or execution."""
    with invocation.store(to_look=True) as store:
        references = invocation.references(store)
        if not address:
            return AppStart(db=invocation.db, screen="inspect", target=references.run(failure=True).id)
        try:
            row, criterion_name = references.either(address), ""
        # Several have this name, so the name is right: it is not RUN/CRITERION.
        except AmbiguousError:
            raise
        except AgentevalError:
            if "/" not in address:
                raise
            row, criterion_name = references.address(address)
        if isinstance(row, ExecutionRow):
            return AppStart(db=invocation.db, screen="history", target=row.id)
        criterion = _criterion(store, row, criterion_name) if criterion_name else ""
    return AppStart(db=invocation.db, screen="inspect", target=row.id, criterion=criterion)


def _criterion(store: Store, run: RunRow, name: str) -> str:
    """The name of the criterion that is meant: of those that judged the run, by number, name or the beginning of a
    name; else of those in the suite's file now, by name. Raises `AgentevalError` when there is none."""
    results = store.results(run.id)
    refused: AgentevalError | None = None
    for text in dict.fromkeys((name, unquote(name))):  # an address out of a browser or a report is escaped
        try:
            _, result = criterion_named(run.id, results, text)
        except AgentevalError as error:
            refused = refused or error
            if text in (names := [criterion.name for criterion in Workbench.open(store, run.id).criteria]):
                return names[names.index(text)]
        else:
            return result.criterion
    assert refused is not None
    raise refused
