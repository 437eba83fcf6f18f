"""The last notifications; enter goes to what one was about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import age
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.notifications import Notice, NotificationSource
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Line, fit, left, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

_WORDS = {"information": ("", ""), "warning": ("note", "error"), "error": ("error", "failed")}
_GOES = "→" if UNICODE else ">"


def _line(notice: Notice, width: int, at_ms: int) -> Line:
    """When, what kind, the first words, and whether it leads anywhere."""
    word, token = _WORDS.get(notice.severity, ("", ""))
    sign = _GOES if notice.place is not None else " "
    return fit(
        (
            (left(age(notice.at_ms, at_ms), 13), "dim"),
            (f"{sign} ", "accent"),
            (f"{word}  " if word else "", f"bold {token}"),
            (f"×{notice.times}  " if notice.times > 1 else "", "bold"),
            (one_line(notice.text, 400), ""),
        ),
        width,
    )


class NotificationLogScreen(Sheet[NotificationSource | None]):
    """Dismissed with where to go, or None."""

    SCOPE = "notices"
    BINDINGS: ClassVar[list[BindingType]] = bindings("notices")

    def __init__(self, notices: Sequence[Notice]) -> None:
        super().__init__()
        self._notices = tuple(notices)

    def compose(self) -> ComposeResult:
        leads = any(notice.place is not None for notice in self._notices)
        keys = self.edge(*((("enter", f"go there ({_GOES})"),) if leads else ()))
        with SheetFrame("Notifications", keys, width="large"):
            yield VirtualList(
                Rows(self._notices, partial(_line, at_ms=now_ms())),
                id="notices",
                empty=[((" There are no notifications yet.", "dim"),)],
            )
            if self._notices:
                yield Section("all of it")
                yield LinesView(id="whole")

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """All of what was said, below."""
        event.stop()
        self.query_one("#whole", LinesView).show(self._whole, keep_place=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Go there, when there is a there."""
        event.stop()
        place = self._notices[event.index].place
        if place is not None:
            self.dismiss(place)

    def _whole(self, width: int) -> list[Line]:
        view = self.query_one("#notices", VirtualList)
        if not 0 <= view.cursor < len(self._notices):
            return []
        lines: list[Line] = []
        for part in displayable(self._notices[view.cursor].text).split("\n"):
            lines += paragraph(part, width)
        return lines
