"""A text area that gives back exactly the text it was given, and repaints only what looks different.

Textual's `TextArea` repaints itself whole for each key (20 KB) and reads text in a way that changes it
(`str.splitlines`). The document mends the second in public. For the first, private methods are replaced; with a Textual
in which they are not known (`textual_support.py`), the area repaints itself as Textual does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, Literal

from rich.cells import cell_len
from textual.geometry import Size
from textual.reactive import Reactive, reactive
from textual.widgets import TextArea
from textual.widgets.text_area import (
    Document,
    DocumentNavigator,
    Edit,
    EditResult,
    Location,
    Selection,
    WrappedDocument,
)

from agenteval_tui.core.display import displayable_map
from agenteval_tui.tui.terminal.textual_support import is_known

# What is replaced or relied on, with the first digits of the SHA-256 of its source.
STANDS_ON: dict[str, str] = {
    "textual.widgets._text_area:TextArea.__init__": "d73d584ef628",
    "textual.widgets._text_area:TextArea._build_highlight_map": "08a9cc360a6c",
    "textual.widgets._text_area:TextArea._recompute_cursor_offset": "b927c32809e8",
    "textual.widgets._text_area:TextArea._redo_batch": "617241443293",
    "textual.widgets._text_area:TextArea._refresh_size": "dddf5bc75815",
    "textual.widgets._text_area:TextArea._rewrap_and_refresh_virtual_size": "32725265da6e",
    "textual.widgets._text_area:TextArea._set_document": "3bea23d1becf",
    "textual.widgets._text_area:TextArea._undo_batch": "56c81dd074b9",
    "textual.widgets._text_area:TextArea._watch_selection": "79fbab0aa225",
    "textual.widgets._text_area:TextArea.edit": "21cc90872992",
    "textual.widgets._text_area:TextArea.load_text": "b1f5b1b2be3b",
    "textual.widgets._text_area:TextArea.render_line": "0fab1cf6e049",
    "textual.widgets._text_area:TextArea.render_lines": "5a3931b3e86a",
    "textual.widgets._text_area:TextArea.scroll_cursor_visible": "44534aee0858",
}
IS_KNOWN = is_known(STANDS_ON, {"textual.widgets._text_area:TextArea._set_document": "text language"})

_versions = count(1)

WIDTH_STEP = 40  # the width of the text grows in steps: each change of it repaints everything


class ExactDocument(Document):
    """A document that gives back exactly the text that it was given.

    Lines end at `\\n` only (at `\\r\\n` where all do); other line separators are characters like others.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        self.version = next(_versions)
        windows = "\r\n" in text and text.count("\n") == text.count("\r\n")
        self._separator: Literal["\r\n", "\n"] = "\r\n" if windows else "\n"
        self._exact = text.split(self._separator)

    @property
    def text(self) -> str:
        """All of it."""
        return self._separator.join(self._exact)

    @property
    def newline(self) -> Literal["\r\n", "\n"]:
        """What is between two lines."""
        return self._separator

    @property
    def lines(self) -> list[str]:
        """The lines, without what is between them."""
        return self._exact

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._exact)

    @property
    def end(self) -> Location:
        """Behind the last character."""
        return len(self._exact) - 1, len(self._exact[-1])

    def __getitem__(self, line_index: Any) -> Any:
        return self._exact[line_index]

    def get_line(self, index: int) -> str:
        """One line."""
        return self._exact[index]

    def get_text_range(self, start: Location, end: Location) -> str:
        """The text between two places. A last row that is none (as Textual asks for it) ends after the last line."""
        (top_row, top_column), (bottom_row, bottom_column) = sorted((start, end))
        if top_row == bottom_row:
            return self._exact[top_row][top_column:bottom_column] if top_row < len(self._exact) else ""
        rows = self._exact[top_row : bottom_row + 1]
        rows[0] = rows[0][top_column:]
        if bottom_row < len(self._exact):
            rows[-1] = rows[-1][:bottom_column]
        return self._separator.join(rows)

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Put `text` in place of what is between `start` and `end`."""
        self.version = next(_versions)
        (top_row, top_column), (bottom_row, bottom_column) = sorted((start, end))
        replaced = self.get_text_range(start, end)
        inserted = text.replace("\r\n", "\n").split("\n")
        before = self._exact[top_row][:top_column] if top_row < len(self._exact) else ""
        after = self._exact[bottom_row][bottom_column:] if bottom_row < len(self._exact) else ""
        column = len(inserted[-1]) + (len(before) if len(inserted) == 1 else 0)
        inserted[0] = before + inserted[0]
        inserted[-1] += after
        self._exact[top_row : bottom_row + 1] = inserted
        return EditResult((top_row + len(inserted) - 1, column), replaced)

    def get_size(self, tab_width: int) -> Size:
        """Cells of the longest line as it is shown, and the number of lines."""
        return Size(max(map(_shown_width, self._exact), default=0), len(self._exact))


@lru_cache(maxsize=4096)
def shown_line(line: str, tab: int = 2) -> tuple[str, tuple[int, ...] | None]:
    """A line as it is shown (tabs are `tab` spaces), and where each of its characters went; None: where it was."""
    shown, offsets = displayable_map(line)
    shown = shown.replace("\n", "␊")
    if "\t" not in shown:
        return shown, None if offsets is None else tuple(offsets)
    moved: list[int] = []
    total = 0
    for char in shown:
        moved.append(total)
        total += tab if char == "\t" else 1
    moved.append(total)
    shown = shown.replace("\t", " " * tab)
    return shown, tuple(moved if offsets is None else [moved[offset] for offset in offsets])


def _shown_width(line: str) -> int:
    """Cells of a line as it is shown."""
    return len(line) if line.isascii() and line.isprintable() else cell_len(shown_line(line)[0])


def shown_cells(line: str, column: int) -> int:
    """Cells left of character `column` of a line."""
    shown, offsets = shown_line(line)
    return cell_len(shown[: column if offsets is None else offsets[min(column, len(line))]])


class QuietTextArea(TextArea):
    """A text area that repaints nothing by itself: subclasses paint, and refresh what changed (`looks_changed`)."""

    def text_changed(self) -> None:
        """The text is another one now; called before `Changed` is posted."""

    def looks_changed(self) -> None:
        """Something may look different: the text, the cursor, the selection."""

    def watch_selection(self, previous: Selection, selection: Selection) -> None:
        """The cursor moved."""
        self.looks_changed()

    @property
    def state(self) -> int:
        """Another value after each change of the text."""
        document = self.document
        # 0: Textual has made its own, which is about to be replaced.
        return document.version if isinstance(document, ExactDocument) else 0

    @property
    def cursor_cell(self) -> tuple[int, int]:
        """Column (in cells) and row of the cursor in the text."""
        row, column = self.cursor_location
        return shown_cells(self.document.get_line(row), column), row

    if IS_KNOWN:
        # As in TextArea, but without the repaint of everything.
        selection: Reactive[Selection] = reactive(Selection(), init=False, always_update=True, repaint=False)

        def _set_document(self, text: str, language: str | None) -> None:
            self._highlight_query = None
            document = ExactDocument(text)
            self.document = document
            self.wrapped_document = WrappedDocument(document, tab_width=self.indent_width)
            self.navigator = DocumentNavigator(self.wrapped_document)
            self._build_highlight_map()
            self.move_cursor((0, 0))
            self._rewrap_and_refresh_virtual_size()

        def _build_highlight_map(self) -> None:
            # Called whenever the text was changed, right before the message that says so.
            self.text_changed()
            self.looks_changed()

        def _recompute_cursor_offset(self) -> None:
            self._cursor_offset = self.cursor_cell

        def _refresh_size(self) -> None:
            width, height = self.document.get_size(self.indent_width)
            width += self.gutter_width + 1
            room = self.scrollable_content_region.width
            if width <= room:
                width = room
            else:
                width += -width % WIDTH_STEP
            if self.virtual_size == (width, height):
                return
            view = self.scrollable_content_region
            bars = (width > view.width, height > view.height)
            if bars == (self.show_horizontal_scrollbar, self.show_vertical_scrollbar):
                # Nothing has to be laid out again: only the scrollbars that are there learn of it.
                self.set_reactive(TextArea.virtual_size, Size(width, height))
                if bars[0]:
                    self.horizontal_scrollbar.window_virtual_size = width
                if bars[1]:
                    self.vertical_scrollbar.window_virtual_size = height
            else:
                self.virtual_size = Size(width, height)
                self._refresh_scrollbars()

    else:

        def __init__(self, text: str = "", **options: Any) -> None:
            super().__init__(text, **options)
            self._show(text)

        def load_text(self, text: str) -> None:
            """Show another text; the undo goes no further back."""
            super().load_text(text)
            self._show(text)

        def _show(self, text: str) -> None:
            document = ExactDocument(text)
            self.document = document
            self.wrapped_document = WrappedDocument(document, tab_width=self.indent_width)
            self.navigator = DocumentNavigator(self.wrapped_document)
            width, height = document.get_size(self.indent_width)
            self.virtual_size = Size(width + self.gutter_width + 1, height)
            self.text_changed()
            self.looks_changed()

        def edit(self, edit: Edit) -> EditResult:
            """Perform an edit."""
            with self._noticing():
                return super().edit(edit)

        def undo(self) -> None:
            """Undo the last batch of edits."""
            with self._noticing():
                super().undo()

        def redo(self) -> None:
            """Redo what was undone last."""
            with self._noticing():
                super().redo()

        @contextmanager
        def _noticing(self) -> Iterator[None]:
            before = self.state
            yield
            if self.state != before:
                self.text_changed()
                self.looks_changed()
