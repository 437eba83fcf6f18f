"""What needs trust, as lines: what a person reads before a program runs or a secret is sent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.tui.presenters.status_style import WARNING
from agenteval_tui.tui.styled_text import Line, indented, paragraph

MOST = 200
"""Lines of one repository; how many more there are is said."""


class TrustQuestion(Struct, frozen=True):
    """What needs trust, and why it has none (a sentence)."""

    need: TrustRequirement
    reason: str


def trust_lines(trust_questions: Sequence[TrustQuestion], width: int) -> list[Line]:
    """What would run and be sent, repository by repository."""
    lines: list[Line] = []
    for trust_question in trust_questions:
        if lines:
            lines.append(())
        lines += paragraph(str(trust_question.need.folder), width, "bold")
        lines += paragraph(trust_question.reason, width, "dim")
        for what in trust_question.need.what[:MOST]:
            # Whole: who is asked must see all of what would run.
            written = paragraph(what.replace("\n", " ⏎ "), width - 4)
            for number, line in enumerate(written):
                lines.append((("  ", ""), ("  " if number else f"{WARNING} ", "error"), *line))
        if len(trust_question.need.what) > MOST:
            lines += indented([((f"… and {len(trust_question.need.what) - MOST} more", "error"),)], 4)
    return lines
