"""`agenteval export`: runs, or a suite's tests, in other tools' formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import json_text
from agenteval_tui.cli.prompts import agree_to_overwrite
from agenteval_tui.core import entry_points
from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.display import command_line
from agenteval_tui.core.entry_points import EXPORTERS, SUITE_EXPORTERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.export import Losses, exporter_named, listed, own_exporters, stored_runs
from agenteval_tui.formats.exporters.suite_exporter import SuiteExporter, own_suite_exporters, suite_exporter_named
from agenteval_tui.history.records import RunRow
from agenteval_tui.suites.load import load_suite

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")  # occurs only in JSON's strings


def _formats() -> tuple[str, ...]:
    return (*entry_points.names(EXPORTERS), *entry_points.names(SUITE_EXPORTERS))


@click.command("export", epilog="\b\nWhat each format leaves out:\n" + listed())
@click.argument("what", metavar="[WHAT]", default="last", shell_complete=shell_completion.executions_and_files)
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "format_name",
    default="openai",
    show_default=True,
    metavar="NAME",
    shell_complete=shell_completion.choice(_formats),
    help=f"{', '.join(exporter.name for exporter in own_exporters())}; "
    f"{', '.join(exporter.name for exporter in own_suite_exporters())} for the tests of a suite.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, what: str, file: Path, format_name: str, force: bool) -> int:
    """Export WHAT to FILE (default: `-`, standard output).

    WHAT is an execution or a run, by its id or a part of it, or a test by its id (its newest run); `last`, the default,
    is the newest execution. For a format of tests, it is a suite's file.
    """
    # The format says what WHAT is: a suite's file, or something in the history.
    suite_exporter = suite_exporter_named(format_name)
    if suite_exporter is not None:
        return _tests(invocation, what, file, suite_exporter, force)

    exporter = exporter_named(format_name)
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).either(what)
        rows = [row] if isinstance(row, RunRow) else store.runs_of_execution(row.id)
        ended = [row for row in rows if row.status not in ("queued", "running", "grading")]
        if not ended:
            raise AgentevalError("no run of this execution has ended yet", where=what)
        losses = Losses(exporter)
        _write(invocation, file, exporter.pieces(losses.over(stored_runs(store, ended))), force)
    for line in losses.lines():
        invocation.note(line)
    if str(file) != "-":
        unended = f"; {count(len(rows) - len(ended), 'run')} had not ended" if len(rows) > len(ended) else ""
        invocation.out.line(f"{file}: {count(len(ended), 'run')} as {exporter.about}{unended}")
    return 0


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _tests(invocation: Invocation, what: str, file: Path, exporter: SuiteExporter, force: bool) -> int:
    path = Path(what)
    if not path.is_file():
        raise AgentevalError("there is no such suite", where=what, fix="name the file of a suite")
    loaded = load_suite(path)
    if loaded.suite is None or not loaded.ok:
        raise AgentevalError("this suite has errors", where=what, fix=command_line("agenteval", "validate", what))
    exported = exporter.export(loaded.suite, path.name)
    _write(invocation, file, iter([json_text(exported.document, ascii_only=False) + "\n"]), force)
    for note in exported.notes:
        invocation.note(note)
    if str(file) != "-":
        invocation.out.line(f"{file}: {count(exported.number, 'test')} as {exporter.about}")
    return 0


def _write(invocation: Invocation, file: Path, pieces: Iterator[str], force: bool) -> None:
    if str(file) == "-":
        rest = ""
        for piece in pieces:
            # What is only ASCII can neither act on a terminal nor be lost by its encoding.
            *lines, rest = (rest + _NOT_ASCII.sub(_escaped, piece)).split("\n")
            for line in lines:
                invocation.out.plain_line(line)
        if rest:
            invocation.out.plain_line(rest)
        return

    force = force or agree_to_overwrite(invocation, file)
    write_pieces(file, pieces, force=force)
