"""A document as JSON over the screen, in parts that are laid out when they are seen: scrolls, folds, its text can be
selected and copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.arguments import Body, json_body, json_styles
from agenteval_tui.tui.presenters.block_document import BlockColumn
from agenteval_tui.tui.presenters.block_layout import Range
from agenteval_tui.tui.presenters.transcript_blocks import Block
from agenteval_tui.tui.styled_text import Line, fit, left
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.blocks_view import BlocksView
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

LABEL = 7  # cells of the names of parts: `[1234]`
_NARROW = 46  # cells, below which the name of a part is above it
FOLDED = 40  # rows of a part that is longer


class JsonDocument(BlockColumn):
    """Parts of a document, one below the other: (name, its value)."""

    def __init__(self, parts: Sequence[tuple[str, Any]], width: int = 80):
        self._parts = tuple(parts)
        super().__init__({}, *self._columns(width))
        self._replace(0, [self._block(number, name, value) for number, (name, value) in enumerate(self._parts)])

    @staticmethod
    def _block(number: int, name: str, value: Any) -> Block:
        def make() -> Body:
            return json_body(value)

        # Only a guess at its height, made exact when it is seen.
        lines = 2 + (len(value) if isinstance(value, Mapping | list) else 0)
        return Block(("raw", number), name, "dim", "", FOLDED, hint=(lines, lines * 30), make=make)

    @staticmethod
    def _columns(width: int) -> tuple[int, bool]:
        heads = width < _NARROW
        return max(width - (2 if heads else LABEL), 4), heads

    def set_width(self, width: int) -> None:
        self._reshape(*self._columns(width))

    def line(self, row: int) -> Line:
        """Row `row`: the part's name, its text."""
        spot = self.spot(row)
        if spot is None:
            return ()
        block = self.blocks[spot.block]
        if spot.row is None:
            return ((block.label, "dim"),)
        if self._heads:
            return (("  ", ""), *spot.row.cells)
        return ((left(block.label if spot.first else "", LABEL), "dim"), *spot.row.cells)

    def ranges_in(self, block: int, start: int, end: int) -> Sequence[Range]:
        """The colours of JSON."""
        return json_styles(self.text(block), start, end)

    @property
    def margin(self) -> int:
        """Cells before the text of a row."""
        return 2 if self._heads else LABEL


def parts_of(document: Mapping[str, Any], listed: str) -> list[tuple[str, Any]]:
    """A document in parts: the members beside its list `listed`, then each of the list's entries."""
    head = {name: value for name, value in document.items() if name != listed}
    return [("", head), *((f"[{number}]", value) for number, value in enumerate(document.get(listed, ())))]


class JsonView(BlocksView[JsonDocument], can_focus=True):
    """Shows a document in parts."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("folds")

    def __init__(self, parts: Sequence[tuple[str, Any]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts = tuple(parts)

    def _make_document(self, width: int) -> JsonDocument:
        return JsonDocument(self._parts, width)


class JsonViewerScreen(Sheet[None]):
    """`command`: the one that prints the same."""

    SCOPE = "json"
    BINDINGS: ClassVar[list[BindingType]] = bindings("json")

    def __init__(self, title: str, parts: Sequence[tuple[str, Any]], command: str) -> None:
        super().__init__()
        self._title = title
        self._parts = parts
        self._command = command

    def compose(self) -> ComposeResult:
        keys = self.edge(("j k", "move"), ("f", "fold"), "copy")
        with SheetFrame(self._title, keys, width="large"):
            yield JsonView(self._parts, id="json")
            yield LineBlock(lambda width: [fit(((one_line(self._command, 200), "dim"),), width)], id="command")

    def action_copy(self) -> None:
        """What is selected, else the part under the cursor."""
        text = self.query_one("#json", JsonView).selected_text
        self.agenteval.copy(displayable(text), f"{len(text):,} characters of JSON.")
