"""`agenteval causes`: failures grouped by what is wrong."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.analysis.causes import Scope, execution_scope, filter_scope, group_failures, newest_scope
from agenteval_tui.analysis.triage import statuses
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import selected_tests
from agenteval_tui.cli.invocation import (
    Invocation,
    all_projects,
    allow_one_of,
    common_options,
    json_option,
    pass_invocation,
)
from agenteval_tui.cli.named_tests import paths_and_tests
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.causes import causes_document
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.references import References
from agenteval_tui.suites.discover import discover
from agenteval_tui.views.causes import causes_page, causes_view
from agenteval_tui.views.markdown import markdown


@click.command("causes")
@click.argument(
    "references", metavar="[EXECUTION | PATH...]", nargs=-1, shell_complete=shell_completion.executions_and_files
)
@selected_tests("Only this test.")
@click.option("--all", "everything", is_flag=True, help="All runs in the history.")
@json_option
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown.")
@all_projects()
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    references: tuple[str, ...],
    tests: tuple[str, ...],
    everything: bool,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Group failures by cause, worst first: "212 failures = 6 causes".

    They are those of an execution (default: the newest), or of the newest runs of each test in the suites at PATH.
    Causes are compared with the baseline of each test, or with the previous execution if it has none: a cause is new,
    known or gone. `agenteval triage` decides about one.
    """
    allow_one_of("as_json", "as_markdown")
    with invocation.store(to_look=True) as store:
        causes = group_failures(store, scope_of(invocation.references(store), references, tests, everything))
        decided = statuses(store, causes)
        if as_json:
            invocation.out.json(causes_document(causes, decided))
        elif as_markdown:
            page = causes_page(causes, decided, 1)
            invocation.out.line(markdown(page).rstrip("\n") if page else "No failures.")
        else:
            invocation.out.view(causes_view(causes, decided, invocation.db_option))
    return 0


def scope_of(find: References, references: tuple[str, ...], tests: tuple[str, ...], everything: bool = False) -> Scope:
    """The runs that EXECUTION or PATHs name. Raises `AgentevalError`."""
    store = find.store
    if everything:
        if references or tests:
            raise click.UsageError("--all means everything: do not name executions, suites or tests with it")
        return filter_scope(store, RunFilter())
    whole, one_test = paths_and_tests([Path(reference) for reference in references], tests)
    if one_test != tests:
        references, tests = tuple(map(str, whole)), one_test
    paths = [reference for reference in references if Path(reference).exists()]
    if not paths:
        if len(references) > 1:
            raise AgentevalError(
                "causes belong to one execution, or to suites", where=" ".join(references), fix="name one execution"
            )
        return execution_scope(store, find.execution(references[0] if references else "").id, tests)
    if len(paths) < len(references):
        other = next(reference for reference in references if reference not in paths)
        raise AgentevalError("there is no such file or folder", where=other, fix="check the path")
    keys = [str(path.resolve()) for path in discover(paths)]
    scope = newest_scope(store, keys, tests) if keys else None
    if scope is None or not scope.runs:
        raise AgentevalError("these suites have no stored runs", where=" ".join(paths), fix="run them first")
    return scope
