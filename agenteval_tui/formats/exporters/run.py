"""One run as a file: its transcript in our form or another tool's, or why it ended as it did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.formats.exporters.explanation import as_markdown, explanation_of
from agenteval_tui.formats.exporters.export import EXPORTERS, exporter_named, stored_runs

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

MARKDOWN = "markdown"
EXPORTS: dict[str, tuple[str, str]] = {
    MARKDOWN: ("why it ended so, as Markdown for a bug report", ".md"),
    "agenteval": (EXPORTERS["agenteval"].about, ".jsonl"),
    "openai": (EXPORTERS["openai"].about, ".messages.jsonl"),
    "otel": (EXPORTERS["otel"].about, ".otlp.jsonl"),
    "tau-bench": (EXPORTERS["tau-bench"].about, ".tau.json"),
    "tau2-bench": (EXPORTERS["tau2-bench"].about, ".tau2.json"),
}
"""What a run can be written as: what that is, and how such a file's name ends."""


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
    return f"{safe}-run{repetition}{EXPORTS[form][1]}"
