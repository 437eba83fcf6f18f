"""A document as JSON over the screen: scrolls, folds, its text can be selected and copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.json_document import JsonDocument
from agenteval_tui.tui.styled_text import fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.blocks_view import BlocksView
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


class JsonView(BlocksView, can_focus=True):
    """Shows a document in parts."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("folds")

    def __init__(self, parts: Sequence[tuple[str, Any]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts = tuple(parts)
        self._document: JsonDocument | None = None

    @property
    def document(self) -> JsonDocument:
        """The lines; laid out for 80 cells while the widget has no size."""
        if self._document is None:
            self._document = JsonDocument(self._parts, self._width() or 80)
            self.set_reactive(JsonView.cursor, 0 if self._parts else -1)
        return self._document

    def _known(self) -> JsonDocument | None:
        return self._document


class JsonViewerScreen(Sheet[None]):
    """`command`: the one that prints the same."""

    SCOPE = "json"
    BINDINGS: ClassVar[list[BindingType]] = bindings("json")

    def __init__(self, title: str, parts: Sequence[tuple[str, Any]], command: str) -> None:
        super().__init__()
        self._title = title
        self._parts = parts
        self._said = command

    def compose(self) -> ComposeResult:
        keys = self.edge(("j k", "move"), ("f", "fold"), "copy")
        with SheetFrame(self._title, keys, width="large"):
            yield JsonView(self._parts, id="json")
            yield LineBlock(lambda width: [fit(((one_line(self._said, 200), "dim"),), width)], id="said")

    def action_copy(self) -> None:
        """What is selected, else the part under the cursor."""
        text = self.query_one("#json", JsonView).selected_text
        self.agenteval.copy(displayable(text), f"{len(text):,} characters of JSON.")
