"""Which pane of a screen has the focus: its title is tinted, and it can have the room of all panes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from agenteval_tui.tui.widgets.titled_pane import PaneTitle

PANE, ZOOMED, BESIDE = "pane", "zoomed", "beside-zoomed"


class PaneFocus:
    """The panes of a screen are its containers with the class `pane`; `pane` is the one that has the focus, or had it
    last. While it is `zoomed`, the others are hidden, with the containers that hold only others; everything that is not
    a pane (the title of the screen, its last line) stays. The zoom follows the focus."""

    def __init__(self, screen: Screen[Any], changed: Callable[[], None]) -> None:
        """`changed` is called when panes were zoomed or given back."""
        self._screen = screen
        self._changed = changed
        self.pane: Widget | None = None
        self.zoomed = False

    def follow(self, focused: Widget | None) -> None:
        """The focus is here now. None (as while another program's window has it) changes nothing."""
        if focused is None:
            return
        pane = _pane_of(focused)
        if pane is self.pane:
            return
        self.pane = pane
        for title in self._screen.query(PaneTitle):
            title.active = pane is not None and _pane_of(title) is pane
            title.retell()
        if self.zoomed:
            self.zoomed = pane is not None
            self._show()

    def toggle(self) -> None:
        """Give the focused pane the room of all panes, or give it back."""
        self.zoomed = not self.zoomed and self.pane is not None
        self._show()

    def leave(self) -> bool:
        """Give the room back; False when no pane is zoomed."""
        if not self.zoomed:
            return False
        self.toggle()
        return True

    def _show(self) -> None:
        grown = set(self._chain(self.pane)) if self.zoomed and self.pane is not None else set()
        beside = {self._outermost(pane, grown) for pane in self._screen.query(f".{PANE}") if pane not in grown}
        before = set(self._screen.query(f".{ZOOMED}, .{BESIDE}"))
        changed = []
        for node in before | grown | (beside if grown else set()):
            classes = node.classes
            # Without an update of what is in it, which looks the same: a form has a lot of parts.
            node.set_class(node in grown, ZOOMED, update=False)
            node.set_class(bool(grown) and node in beside, BESIDE, update=False)
            if node.classes != classes:
                changed.append(node)
        # All at once: a style that is half changed would lay the screen out twice.
        self._screen.app.stylesheet.update_nodes(changed)
        self._changed()

    def _chain(self, node: DOMNode) -> Iterator[Widget]:
        """The node and what holds it, up to the screen."""
        for ancestor in node.ancestors_with_self:
            if ancestor is self._screen or not isinstance(ancestor, Widget):
                return
            yield ancestor

    def _outermost(self, pane: Widget, grown: set[Widget]) -> Widget:
        """The pane, or the largest container of it that does not hold the zoomed pane as well."""
        outermost = pane
        for ancestor in self._chain(pane):
            if ancestor in grown:
                break
            outermost = ancestor
        return outermost


def _pane_of(node: Widget) -> Widget | None:
    return next(
        (
            ancestor
            for ancestor in node.ancestors_with_self
            if isinstance(ancestor, Widget) and ancestor.has_class(PANE)
        ),
        None,
    )
