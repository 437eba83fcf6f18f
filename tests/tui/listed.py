"""Rows of lists whose lines exist already."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.virtual_list import Rows


def listed(rows: Iterable[tuple[str, Line]] = ()) -> Rows[tuple[str, Line]]:
    """Rows of these keys and lines."""
    return Rows(list(rows), lambda row, width: row[1], lambda row: row[0])
