"""How verdicts agree with what people said of the same runs."""

from __future__ import annotations

from agenteval_tui.analysis.workbench import Agreement
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, fit

WARNING = "⚠" if UNICODE else "!"


def against_labels(labels: Agreement | None, edited: bool, width: int) -> list[Line]:
    """How many labelled runs the criterion agrees with, now and with the edit; nothing where nobody labelled any."""
    if labels is None or not labels.labelled:
        return []
    cells: list[Cell] = [(" labels: ", "dim"), (f"{labels.now} of {labels.labelled} agree", "")]
    if edited:
        cells.append((f", {labels.then} with this edit", ""))
    if labels.against:
        cells.append((f"  {WARNING} {count(len(labels.against), 'flip')} against a label", "error"))
    return [fit(cells, width)]
