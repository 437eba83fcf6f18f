"""Runs of the history in other tools' formats, written run by run; one run as a file, also as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path

from agenteval_tui.analysis.explanation import stored_explanation
from agenteval_tui.core import entry_points
from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.entry_points import EXPORTERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.exporter import Exporter, Loss, StoredRun
from agenteval_tui.formats.exporters.suite_exporter import own_suite_exporters
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.views.evidence import explanation_page
from agenteval_tui.views.markdown import markdown

MARKDOWN = "markdown"


def own_exporters() -> list[Exporter]:
    """agenteval's own, in the order of lists. No plug-in is looked for."""
    return sorted(map(exporter_named, entry_points.own(EXPORTERS)), key=attrgetter("rank"))


@cache
def exporters() -> dict[str, Exporter]:
    """All exporters by name, in the order of lists. A plug-in's that can't be loaded is left out; `exporter_named`
    says what is wrong with it."""
    loaded = []
    for name in entry_points.names(EXPORTERS):
        try:
            loaded.append(exporter_named(name))
        except AgentevalError:
            # One of ours that can't be loaded is a fault of this program, and no plug-in's.
            if name in entry_points.own(EXPORTERS):
                raise
    return {exporter.name: exporter for exporter in sorted(loaded, key=attrgetter("rank", "name"))}


def exporter_named(name: str) -> Exporter:
    """The exporter of that name. Raises `AgentevalError`."""
    point = entry_points.find(EXPORTERS, name)
    if point is None:
        raise AgentevalError(f"there is no format {name!r} to export", fix=f"formats: {', '.join(exporters())}")
    loaded = point.load_as("exporter")
    if not isinstance(loaded, Exporter) or loaded.name != name:
        raise AgentevalError(
            f"the exporter {name!r} is not an Exporter of that name",
            where=point.target,
            fix="an exporter is an `Exporter` (see formats/exporters/exporter.py)",
        )
    return loaded


def stored_runs(store: Store, rows: Iterable[RunRow]) -> Iterator[StoredRun]:
    """The runs of `rows` that have a transcript."""
    executions: dict[str, ExecutionRow] = {}
    for row in rows:
        if row.execution_id not in executions:
            executions[row.execution_id] = store.execution(row.execution_id)
        yield StoredRun(
            row,
            store.transcript(row.id),
            store.results(row.id),
            tuple(store.labels([row.id])),
            tuple(store.feedback([row.id])),
            executions[row.execution_id],
        )


def export_run(store: Store, run_id: str, form: str, path: Path, *, force: bool = False) -> int:
    """Write a run to a file; the number of characters. Raises `AgentevalError`, also where there is a file already."""
    row = store.run(run_id)
    pieces: Iterable[str]
    if form == MARKDOWN:
        pieces = (markdown(explanation_page(stored_explanation(store, row))).rstrip("\n") + "\n",)
    else:
        pieces = exporter_named(form).pieces(stored_runs(store, [row]))
    written = 0

    def counted() -> Iterable[str]:
        nonlocal written
        for piece in pieces:
            written += len(piece)
            yield piece

    write_pieces(path, counted(), force=force)
    return written


def forms() -> dict[str, tuple[str, str]]:
    """What a run can be written as, by name: the words of a choice, and what such a file is."""
    exported = sorted(exporters().values(), key=attrgetter("name"))
    return {
        MARKDOWN: ("Markdown: a bug report", "why it passed or failed, as Markdown for a bug report"),
        **{exporter.name: (exporter.title, exporter.about) for exporter in exported},
    }


def file_name(test_id: str, repetition: int, form: str) -> str:
    """A name for the file: `order-status-run3.md`."""
    safe = "".join(char if char.isalnum() or char in "-_." else "-" for char in test_id)[:60].strip(".-") or "run"
    suffix = ".md" if form == MARKDOWN else exporter_named(form).suffix
    return f"{safe}-run{repetition}{suffix}"


class Losses:
    """Counts what a format loses of the runs that pass by on their way out."""

    def __init__(self, exporter: Exporter) -> None:
        self._losses = exporter.losses
        self._runs_losing: Counter[Loss] = Counter()

    def over(self, runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
        """The runs, as they are."""
        for run in runs:
            self._runs_losing.update(loss for loss in self._losses if loss.of(run))
            yield run

    def lines(self) -> Iterator[str]:
        """A line for each kind of thing that was lost: `not kept: the test's tags (2 runs)`."""
        for loss in self._losses:
            if runs := self._runs_losing[loss]:
                yield f"not kept: {loss.description} ({count(runs, 'run')})"


def listed() -> str:
    """All losses in words, a line a format: for the help and the page."""
    lines = [
        f"{own_exporter.name}: {'; '.join(loss.description for loss in own_exporter.losses)}."
        for own_exporter in own_exporters()
        if own_exporter.losses
    ]
    lines += [f"{each.name}: {', '.join(each.not_kept)}." for each in own_suite_exporters() if each.not_kept]
    return "\n".join(lines)
