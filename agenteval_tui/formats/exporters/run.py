"""One run as a file: its transcript in our form or another tool's, or why it ended as it did."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.formats.exporters.explanation import as_markdown, explanation_of
from agenteval_tui.formats.exporters.export import exporter_named, exporters, stored_runs

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

MARKDOWN = "markdown"


def forms() -> dict[str, tuple[str, str]]:
    """What a run can be written as, by name: the words of a choice, and what such a file is."""
    exported = sorted(exporters().values(), key=attrgetter("name"))
    return {
        MARKDOWN: ("Markdown: why it ended so", "why it ended so, as Markdown for a bug report"),
        **{one.name: (one.title, one.about) for one in exported},
    }


def export_run(store: Store, run_id: str, form: str, path: Path, *, force: bool = False) -> int:
    """Write a run to a file; the number of characters. Raises `AgentevalError`, also where there is a file already."""
    row = store.run(run_id)
    pieces: Iterable[str]
    if form == MARKDOWN:
        transcript, labels = store.transcript(row.id), store.labels([row.id])
        explained = explanation_of(row, store.results(row.id), transcript.error, labels=labels, transcript=transcript)
        pieces = (as_markdown(explained),)
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


def file_name(test_id: str, repetition: int, form: str) -> str:
    """A name for the file: `order-status-run3.md`."""
    safe = "".join(char if char.isalnum() or char in "-_." else "-" for char in test_id)[:60].strip(".-") or "run"
    suffix = ".md" if form == MARKDOWN else exporter_named(form).suffix
    return f"{safe}-run{repetition}{suffix}"
