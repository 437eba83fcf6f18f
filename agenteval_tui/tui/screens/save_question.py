"""Asks before a suite is saved that could not be run then."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.styled_text import Line

MOST = 6
"""How many errors are named."""


def save_question(errors: Sequence[str], fix_key: str = "") -> ConfirmScreen:
    """Dismissed with "save", "fix" or None. `errors`: what is wrong, each in a sentence; `fix_key` fixes the first of
    them, "" if that is impossible."""

    def lines(width: int) -> list[Line]:
        rows = [line for error in errors[:MOST] for line in paragraph(error, width)]
        more = len(errors) - MOST
        return [*rows, ((f"… {more} more", "dim"),)] if more > 0 else rows

    answers = [("y", "save", "save anyway")]
    if fix_key:
        answers.append((fix_key, "fix", "fix"))
    return ConfirmScreen(f"{count(len(errors), 'error')}: the suite can't run", lines, answers, leave="keep editing")
