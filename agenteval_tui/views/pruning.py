"""What is shown of a pruning before it is done: how much would be removed, and what stays all the same."""

from __future__ import annotations

from agenteval_tui.core.numbers import count, file_size
from agenteval_tui.history.pruning import PrunableCounts
from agenteval_tui.views.model import Paragraph, View, paragraphs, text

_REASONS = {
    "running": "running now",
    "baseline": "a baseline",
    "labelled": "labelled",
    "quarantine": "in quarantine",
    "triage": "an example of a triage decision",
}


def pruning_view(prunable: PrunableCounts, runs: int) -> View:
    """How many `runs` would be removed, with which executions, and a line for each reason for which others stay."""
    size = f", about {file_size(prunable.bytes)}" if prunable.bytes else ""
    removed = (
        f"{runs:,} of {count(prunable.of_runs, 'run')} and {prunable.executions:,} of "
        f"{count(prunable.of_executions, 'execution')} would be removed{size} (all projects)"
    )
    stay = (
        text(("stays: ", "dim"), f"{count(number, 'run')}, {_REASONS.get(why, why)}")
        for why, number in prunable.kept.items()
    )
    return (Paragraph(text((removed, "bold"))), *paragraphs(stay, indent=2))
