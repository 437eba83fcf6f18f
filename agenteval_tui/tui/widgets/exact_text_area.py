"""A text area that gives back exactly the text it was given.

Textual's `TextArea` reads text in a way that changes it (`str.splitlines`). The document here does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal

from textual.events import Paste
from textual.geometry import Offset, Size
from textual.widgets import TextArea
from textual.widgets.text_area import (
    Document,
    DocumentBase,
    DocumentNavigator,
    Edit,
    EditResult,
    Location,
    Selection,
    WrappedDocument,
)

from agenteval_tui.tui.presenters.wrapped_lines import TAB, WrappedLines, shown_line
from agenteval_tui.tui.styled_text import cell_len

_versions = count(1)


class ExactDocument(Document):
    """A document that gives back exactly the text that it was given.

    Lines end at `\\n` only (at `\\r\\n` where all do); other line separators are characters like others.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        # One counter for all documents: a new text never has the number of an old one.
        self.version = next(_versions)
        # A file in which both occur keeps its `\r` as characters: only so it comes back as it was.
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
        # Without `\r` only where it ends lines: elsewhere it is a character, as in a text that an undo puts back.
        inserted = (text.replace("\r\n", "\n") if self._separator == "\r\n" else text).split("\n")
        before = self._exact[top_row][:top_column] if top_row < len(self._exact) else ""
        after = self._exact[bottom_row][bottom_column:] if bottom_row < len(self._exact) else ""
        column = len(inserted[-1]) + (len(before) if len(inserted) == 1 else 0)
        inserted[0] = before + inserted[0]
        inserted[-1] += after
        self._exact[top_row : bottom_row + 1] = inserted
        return EditResult((top_row + len(inserted) - 1, column), replaced)

    def get_size(self, tab_width: int) -> Size:
        """Cells of the longest line as it is shown, and the number of lines."""
        return Size(max((cell_len(shown_line(line)[0]) for line in self._exact), default=0), len(self._exact))


class HangingWrap(WrappedDocument):
    """A document in rows, with a hanging indent. Cells count from the left edge of the text, indents included."""

    def __init__(self, document: DocumentBase) -> None:
        # Not the library's own: it wraps in a way of its own, of which nothing is used.
        self.document = document
        self.rows = WrappedLines()
        self.wrap(0)

    @property
    def lines(self) -> list[list[str]]:
        """The rows of each line."""
        return [self.get_sections(line) for line in range(self.document.line_count)]

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.rows.height

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        """Wrap everything in rows of `width` cells; 0: a row for each line."""
        self.rows.wrap(self.document.lines, width)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Wrap what was edited. What that is, is found by comparing: it holds for edits of several places, too."""
        self.rows.edit(self.document.lines)

    def offset_to_location(self, offset: Offset) -> Location:
        """Line and column of the character at a cell of a row."""
        return self.rows.place_at(*offset)

    def location_to_offset(self, location: Location) -> Offset:
        """Cell and row of a character."""
        return Offset(*self.rows.cell_of(*location))

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        """The character at a cell of a line's row; a `y_offset` below 0 counts from the line's last row."""
        part = y_offset if y_offset >= 0 else len(self.rows.breaks(line_index)) + 1 + y_offset
        return self.rows.column_of(line_index, part, x_offset)

    def get_sections(self, line_index: int) -> list[str]:
        """The texts of a line's rows."""
        line = self.document.get_line(line_index)
        parts = range(len(self.rows.breaks(line_index)) + 1)
        return [line[slice(*self.rows.part(line_index, part))] for part in parts]

    def get_offsets(self, line_index: int) -> list[int]:
        """The columns at which a line's rows begin, but for the first."""
        return list(self.rows.breaks(line_index))

    def get_tab_widths(self, line_index: int) -> list[int]:
        """How wide each tab of a line is."""
        return [TAB] * self.document.get_line(line_index).count("\t")


class RowNavigator(DocumentNavigator):
    """Where keys lead the cursor: up and down by rows, in the cell that it was moved to last."""

    def __init__(self, wrapped: HangingWrap) -> None:
        super().__init__(wrapped)
        self._wrapped = wrapped

    def get_location_above(self, location: Location) -> Location:
        """One row up; from the first to the start of the text."""
        _, row = self._wrapped.rows.cell_of(*location)
        return self._wrapped.rows.place_at(self.last_x_offset, row - 1) if row else (0, 0)

    def get_location_below(self, location: Location) -> Location:
        """One row down; from the last to the end of the text."""
        rows = self._wrapped.rows
        _, row = rows.cell_of(*location)
        if row == rows.height - 1:
            return location[0], len(self._wrapped.document.get_line(location[0]))
        return rows.place_at(self.last_x_offset, row + 1)

    def get_location_end(self, location: Location) -> Location:
        """The end of the row; there, the end of the line."""
        line, column = location
        breaks, size = self._wrapped.rows.breaks(line), len(self._wrapped.document.get_line(line))
        end = next((place - 1 for place in breaks if place > column), size)
        return line, size if end == column else end

    def get_location_home(self, location: Location, smart_home: bool = False) -> Location:
        """The start of the row; of a line's first row (or where it is that already) where its text begins, then 0."""
        line, column = location
        start = next((place for place in reversed(self._wrapped.rows.breaks(line)) if place < column), 0)
        if start:
            return line, start
        text = self._wrapped.document.get_line(line)
        first = len(text) - len(text.lstrip())
        return line, first if smart_home and (column == 0 or column > first) else 0

    def get_location_at_y_offset(self, location: Location, vertical_offset: int) -> Location:
        """This many rows down, or up."""
        rows = self._wrapped.rows
        return rows.place_at(self.last_x_offset, rows.cell_of(*location)[1] + vertical_offset)


LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")
"""What terminals, files and web pages end lines with, but for `\\n`."""


class ExactTextArea(TextArea):
    """Tells its subclass when the text has changed."""

    def text_changed(self) -> None:
        """The text has changed."""

    def watch_selection(self, previous: Selection, selection: Selection) -> None:
        """The cursor moved, and with it what belongs to it in other lines."""
        self.refresh()

    def on_paste(self, event: Paste) -> None:
        """Put in what the terminal pasted."""
        event.stop()
        event.prevent_default()
        self._put(event.text)

    def action_paste(self) -> None:
        """Put in what was copied here last."""
        self._put(self.app.clipboard)

    def _put(self, text: str) -> None:
        """Put a text in place of the selection. Whatever ends its lines ends lines here."""
        if self.read_only:
            return
        # What is put in is undone by itself, not with what was typed around it.
        self.history.checkpoint()
        self.replace(LINE_ENDS.sub("\n", text), *sorted(self.selection), maintain_selection_offset=False)
        self.history.checkpoint()
        self._follow_cursor()

    def action_undo(self) -> None:
        """Undo the last batch of edits."""
        super().action_undo()
        self._follow_cursor()

    def action_redo(self) -> None:
        """Redo what was undone last."""
        super().action_redo()
        self._follow_cursor()

    def _follow_cursor(self) -> None:
        """Scroll to the cursor after many lines have come or gone: Textual does so while the height is the old one."""
        self.call_after_refresh(self.scroll_cursor_visible)

    def action_delete_to_end_of_line(self) -> None:
        """Delete to the end of the line, not only of the row."""
        row, _ = self.cursor_location
        if self.read_only:
            return
        self.delete(self.cursor_location, (row, len(self.document.get_line(row))), maintain_selection_offset=False)

    def action_delete_to_start_of_line(self) -> None:
        """Delete to the start of the line, not only of the row; there, the line break before it."""
        row, column = self.cursor_location
        if self.read_only:
            return
        before = (row, 0) if column else self.get_cursor_left_location()
        self.delete(before, self.cursor_location, maintain_selection_offset=False)

    def _wrap(self, document: ExactDocument) -> None:
        """Show this document, in rows."""
        wrapped = HangingWrap(document)
        self.document, self.wrapped_document, self.navigator = document, wrapped, RowNavigator(wrapped)

    @property
    def rows(self) -> WrappedLines:
        """The rows that the lines are shown in."""
        wrapped = self.wrapped_document
        assert isinstance(wrapped, HangingWrap)
        return wrapped.rows

    @property
    def revision(self) -> int:
        """Another value after each change of the text."""
        document = self.document
        # 0: Textual has made an empty one of its own, which is about to be replaced.
        return document.version if isinstance(document, ExactDocument) else 0

    @property
    def cursor_cell(self) -> Offset:
        """Cell and row of the cursor in the wrapped text."""
        return self.wrapped_document.location_to_offset(self.cursor_location)

    def __init__(self, text: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._show(text)

    def load_text(self, text: str) -> None:
        """Show another text; the undo goes no further back. No `Changed` is posted."""
        # Textual gets no text: its own document would end lines at more than a line break.
        with self.prevent(self.Changed):
            super().load_text("")
        self._show(text)

    def _show(self, text: str) -> None:
        document = ExactDocument(text)
        self._wrap(document)
        self.wrapped_document.wrap(self.wrap_width)
        self.virtual_size = Size(0, self.wrapped_document.height)
        self.text_changed()
        self.refresh()

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
        before = self.revision
        yield
        if self.revision != before:
            self.text_changed()
            self.refresh()
