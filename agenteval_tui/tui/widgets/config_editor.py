"""The editor of a criterion's config: colours from the parser's own tokens, problems in the margin, completion and help
in a popup, cheap keys.

Text is stored as it is and shown as `core.display` allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Location, Selection

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import Fix
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.completion_rows import completion_lines
from agenteval_tui.tui.presenters.config_lines import (
    HighlightedLines,
    Layer,
    changed_lines,
    moved,
    painted,
    partner,
    problem_layers,
    token_layers,
    tokens_of,
)
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.wrapped_lines import shown_line
from agenteval_tui.tui.style_tokens import Palette, palette_of
from agenteval_tui.tui.styled_text import Cell, Line, width_of
from agenteval_tui.tui.terminal.strips import minimal_strip
from agenteval_tui.tui.widgets.exact_text_area import ExactDocument, ExactTextArea
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.uxon.complete import Completion
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.format import format_text
from agenteval_tui.uxon.tokens import Token

ROOM = 60
"""Cells that a popup needs to be worth reading."""
BAR = "▌" if UNICODE else "|"
INDENT = 2
AROUND = 2
"""So many rows are seen above and below an edit that was made from elsewhere."""
CHANGED = "~"


class ConfigEditor(ExactTextArea):
    """A text area for UXON, whose lines wrap."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    BINDINGS: ClassVar[list[BindingType]] = bindings("config")

    class Changed(Message):
        """The text was edited: the text as it is now."""

        # Textual's own `Changed` is posted with the area that it is of, and so is this one in its place.
        def __init__(self, editor: ConfigEditor) -> None:
            super().__init__()
            self.text = editor.text

    class Asked(Message):
        """The person wants to know what can be written at `offset` of `text`; answer with `offer`.

        `typed`: not asked for by a key, but by typing: a list that is not needed should not appear.
        """

        def __init__(self, editor: ConfigEditor, typed: bool) -> None:
            super().__init__()
            self.editor = editor
            self.text = editor.text
            self.offset = editor.cursor_offset
            self.revision = editor.revision
            self.typed = typed

    def __init__(
        self,
        text: str = "",
        *,
        read_only: bool = False,
        id: str | None = None,
    ) -> None:
        """`read_only`: the text can be read and selected, not edited."""
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._known = ""  # the text that the diagnostics are about
        self._checked: tuple[str, tuple[Diagnostic, ...]] = ("", ())  # the text that was checked, and its problems
        self._tokens: list[Token] = []
        self._underlines: dict[int, list[Layer]] = {}
        self._signs: dict[int, tuple[str, str]] = {}
        self._lines = HighlightedLines((0, 1), 1)
        self._saved: list[str] | None = None
        self._changed: frozenset[int] = frozenset()
        self._text = ""
        self._seen = 0  # the revision that all of this is about
        self._pair: tuple[object, tuple[int, int] | None] = (None, None)
        self._palette: Palette | None = None
        self._base: Style | None = None
        self._popup: Popup | None = None
        self._offered: tuple[Completion, ...] = ()
        self._chosen = 0
        self._enter_takes = False
        self._typed = False
        self._term: str | None = None  # what is searched for; None: nothing is
        super().__init__(
            text,
            soft_wrap=True,
            tab_behavior="focus",
            read_only=read_only,
            show_line_numbers=True,
            highlight_cursor_line=False,
            max_checkpoints=200,
            id=id,
        )
        self.cursor_blink = False
        self.indent_width = INDENT

    # Text

    def load_text(self, text: str) -> None:
        """Show another text: no undo back to the one before, no problems, no `Changed`."""
        self._diagnostics, self._checked = (), ("", ())
        self._saved = None
        super().load_text(text)

    def compare_with(self, saved: str | None) -> None:
        """Mark the lines that differ from this text; None: no line is marked."""
        lines = None if saved is None else ExactDocument(saved).lines
        if lines != self._saved:
            self._refreshed()
            self._saved = lines
            self._changed = changed_lines(lines, self.document.lines) if lines is not None else frozenset()
            self.refresh()

    def replace_all(self, text: str) -> None:
        """Put `text` in place of everything, as an edit that can be undone; only what differs is replaced.

        The cursor goes to where it differs, and all that differs comes into view, as far as there is room.
        """
        old = self.text
        if old == text:
            return
        start = common_start(old, text)
        end = common_end(old, text, start)
        self._edit_range(start, len(old) - end, text[start : len(text) - end])
        self._refreshed()
        self.move_cursor(self._lines.place(start))
        self._bring_into_view(start, len(text) - end)

    def _bring_into_view(self, start: int, end: int) -> None:
        """Scroll the characters `start`..`end` into view, with some lines around them if they fit."""
        top = self.rows.cell_of(*self._lines.place(start))[1]
        bottom = self.rows.cell_of(*self._lines.place(end))[1] + 1
        height, top_row = self.scrollable_content_region.height, self.scroll_offset.y
        around = min(AROUND, max(height - (bottom - top), 0) // 2)
        first, last = max(top - around, 0), min(bottom + around, self.rows.height)
        if not top_row <= first < last <= top_row + height:
            self.scroll_to(y=max(top - max(height - (bottom - top), 0) // 2, 0), animate=False, force=True)

    def apply_fix(self, fix: Fix) -> None:
        """Make the edits of a fix, as one step of undo; the cursor goes behind the last edit."""
        if fix.edits:
            self._make_edits(fix)

    def apply_first_fix(self) -> bool:
        """Apply the fix of the problem at the cursor, else the first one that there is. False: there is none, or the
        text was edited and not checked since: fixes are for places in the text that was checked."""
        problems = (self.diagnostic_at_cursor(), *self._diagnostics)
        fix = next((problem.fix for problem in problems if problem is not None and problem.fix is not None), None)
        if fix is not None:
            self.apply_fix(fix)
        return fix is not None

    def go_to(self, offset: int) -> None:
        """Put the cursor on character `offset` of the text and show it."""
        self._refreshed()
        self.move_cursor(self._lines.place(offset), center=True)

    @property
    def cursor_offset(self) -> int:
        """The offset of the cursor in the text."""
        self._refreshed()
        row, column = self.cursor_location
        return self._lines.offset(row, column)

    # Problems

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The problems that are shown."""
        return self._diagnostics

    def set_diagnostics(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Show these problems of the text."""
        self._refreshed()
        self._diagnostics = tuple(diagnostics)
        self._checked = self._text, self._diagnostics
        self._underlines, self._signs = problem_layers(self._diagnostics, self._lines)
        self.refresh()

    def diagnostic_at_cursor(self) -> Diagnostic | None:
        """The problem under the cursor, else the nearest one in its line, else None."""
        offset = self.cursor_offset
        inside = [d for d in self._diagnostics if d.start <= offset <= d.end]
        if inside:
            return min(inside, key=lambda d: d.end - d.start)
        row = self.cursor_location[0]
        near = [d for d in self._diagnostics if self._lines.place(d.start)[0] == row]
        return min(near, key=lambda d: abs(d.start - offset), default=None)

    def action_start(self) -> None:
        """The start of the text."""
        self.move_cursor(self.document.start)

    def action_end(self) -> None:
        """The end of the text."""
        self.move_cursor(self.document.end)

    def action_next_problem(self) -> None:
        """Go to the next problem; round at the end. Without one the key is the screen's: others may have some."""
        starts = sorted({d.start for d in self._diagnostics})
        if not starts:
            raise SkipAction
        here = self.cursor_offset
        self.go_to(next((start for start in starts if start > here), starts[0]))

    # Search

    def action_search(self) -> None:
        """Search from here on while the person types: the selected text at first."""
        self._term = self.selected_text if "\n" not in self.selected_text else ""
        self._show_hit(min(self._places()))

    def action_select_all(self) -> None:
        """All of the text."""
        self.selection = Selection(self.document.start, self.document.end)

    def _places(self) -> tuple[int, int]:
        """The offsets between which the selection is."""
        start, end = (self._lines.offset(*place) for place in sorted(self.selection))
        return start, end

    def _show_hit(self, begin: int, step: int = 0) -> None:
        """Select the first hit at or behind `begin`, or `step` hits further, round at the end; say which it is."""
        self._refreshed()
        term = self._term or ""
        hits = [match.start() for match in re.finditer(re.escape(term), self.text, re.IGNORECASE)] if term else []
        number = next((number for number, hit in enumerate(hits) if hit >= begin), 0)
        if hits:
            number = (number + step) % len(hits)
            start, end = self._lines.place(hits[number]), self._lines.place(hits[number] + len(term))
            self.selection = Selection(start, end)
            self.scroll_cursor_visible()
        which = f"{number + 1} of {len(hits)}" if hits else "not found" if term else "type what to find"
        keys = "  enter next   up previous   esc done" if hits else "  esc done"
        line: Line = (
            ("find ", "dim"),
            (one_line(term), "bold"),
            (f"  {which}", "dim" if hits or not term else "warning"),
        )
        self.tell(lambda room: [(*line, (keys, "dim"))])

    def _search_key(self, event: events.Key) -> bool:
        """Do what a key means in a search; False: it ends the search, and means what it always does."""
        assert self._term is not None
        start = self._places()[0]
        if event.key in ("enter", "down", "ctrl+f"):
            self._show_hit(start, 1)
        elif event.key == "up":
            self._show_hit(start, -1)
        elif event.key == "backspace":
            self._term = self._term[:-1]
            self._show_hit(start)
        elif event.is_printable and event.character:
            self._term += event.character
            self._show_hit(start)
        else:
            self._term = None
            self.close_popup()
            return event.key == "escape"
        return True

    # Completion

    def offer(self, items: Sequence[Completion], *, revision: int, typed: bool) -> None:
        """List what can be written, if the text is still the one of `revision`. What changes nothing is left out."""
        if revision != self.revision or not self.has_focus:
            return
        text = self.text
        there = len(items)
        items = [item for item in items if item.apply(text) != text]
        if not items:
            self.close_popup()
            return
        # Where what was typed is whole already, enter begins a new line.
        whole = typed and (len(items) < there or self._typed_a_number())
        self._offered, self._chosen, self._enter_takes = tuple(items), 0, not whole
        self._show_offer()

    def _typed_a_number(self) -> bool:
        """Whether a number is before the cursor."""
        offset = self.cursor_offset
        return any(token.kind == "number" and token.end == offset for token in self._tokens)

    def tell(self, make: Callable[[int], Sequence[Line]]) -> None:
        """Show lines beside the cursor until the next key."""
        self._offered = ()
        self._popup_there().open_at(self.cursor_screen_offset, make)

    def close_popup(self) -> bool:
        """Take the list or the words away; was there something?"""
        was = self._popup is not None and self._popup.display
        self._offered = ()
        if self._popup is not None:
            self._popup.close()
        return was

    def action_complete(self) -> None:
        """What can be written here?"""
        if not self.read_only:
            self.post_message(self.Asked(self, typed=False))

    def action_tidy(self) -> None:
        """Lay the text out anew; comments stay."""
        if not self.read_only:
            self.replace_all(format_text(self.text))

    def _popup_there(self) -> Popup:
        if self._popup is None or not self._popup.is_attached:
            self._popup = Popup()
            self.screen.mount(self._popup)
        return self._popup

    def _show_offer(self) -> None:
        items, chosen = self._offered, self._chosen
        self._popup_there().open_at(self.cursor_screen_offset, lambda room: completion_lines(items, chosen, room))

    def _take(self, item: Completion) -> None:
        if not item.edits:
            return
        self._make_edits(item)
        self.close_popup()
        self.go_to(item.cursor)

    def _popup_key(self, key: str) -> bool:
        """Do what a key means while the list is open; False: it means what it always does."""
        if not self._offered:
            self.close_popup()
            return key == "escape"
        if key in ("down", "up", "pagedown", "pageup"):
            step = {"down": 1, "up": -1, "pagedown": 7, "pageup": -7}[key]
            last = len(self._offered) - 1
            self._chosen = (
                (self._chosen + step) % (last + 1) if abs(step) == 1 else max(0, min(last, self._chosen + step))
            )
            # Who has moved in the list means to take something from it.
            self._enter_takes = True
            self._show_offer()
            return True
        if key == "tab" or (key == "enter" and self._enter_takes):
            self._take(self._offered[self._chosen])
            return True
        self.close_popup()
        return key == "escape"

    # Keys and mouse

    def on_key(self, event: events.Key) -> None:
        """Enter keeps the indentation, and deepens it behind an opening bracket."""
        if self._term is not None and self._search_key(event):
            event.stop()
            event.prevent_default()
            return
        # What begins or goes on a name asks for completions, once it is in the text.
        self._typed = event.character is not None and (event.character.isalnum() or event.character in '_"-.')
        if self._popup is not None and self._popup.display and self._popup_key(event.key):
            event.stop()
            event.prevent_default()
            return
        if event.key != "enter" or self.read_only:
            return
        event.stop()
        event.prevent_default()
        start, end = sorted(self.selection)
        line = self.document.get_line(start[0])[: start[1]]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        opened = line.rstrip().endswith(("{", "["))
        after = self.document.get_line(end[0])[end[1] :].lstrip()
        deeper = indent + " " * INDENT if opened else indent
        if opened and after[:1] in ("}", "]"):
            self.replace(f"\n{deeper}\n{indent}", start, end, maintain_selection_offset=False)
            self.move_cursor((start[0] + 1, len(deeper)))
        else:
            self.replace(f"\n{deeper}", start, end, maintain_selection_offset=False)

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """The partner of the bracket under or before the cursor; found among the tokens, not in the characters."""
        self._refreshed()
        pair = partner(self._tokens, self._text, self._lines.offset(*search_from))
        return None if pair is None else self._lines.place(pair[1])

    # Painting

    def text_changed(self) -> None:
        """The text has changed."""
        self._offered = ()
        if self._typed and self.has_focus and not self.read_only:
            self._typed = False
            self.call_next(self._ask_typed, self.revision)
        elif self._popup is not None and self._popup.display:
            self.call_next(self._popup.close)

    def _ask_typed(self, revision: int) -> None:
        """Ask once the cursor is after the typed text."""
        if revision == self.revision:
            self.post_message(self.Asked(self, typed=True))

    def on_focus(self) -> None:
        """The cursor is there with the focus, and in sight."""
        self.refresh()
        # Not at once: a click that gives the focus means the character that is under the mouse now.
        self.call_after_refresh(self.scroll_cursor_visible)

    def on_resize(self) -> None:
        """Who types sees the cursor, also where what is below took rows."""
        if self.has_focus:
            self.call_after_refresh(self.scroll_cursor_visible)

    def on_blur(self) -> None:
        """The cursor goes with the focus."""
        self._term = None
        self.close_popup()
        self.refresh()

    def notify_style_update(self) -> None:
        """The theme or the styles changed."""
        self._palette = self._base = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Several lines: what they all need is looked up once."""
        self._base = self.rich_style
        # Not TextArea's, which first makes the colours of its own theme: lines are painted in those of ours.
        return super(TextArea, self).render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Line `y` of the widget."""
        self._refreshed()
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self._base or self.rich_style
        if row >= self.rows.height:
            return Strip.blank(width, base)
        line, part = self.rows.at(row)
        start, end = self.rows.part(line, part)
        displayed, offsets = shown_line(self.document.get_line(line)[start:end])
        indent = " " * self.rows.indent(line, part)
        text = painted(displayed + " ", offsets, self._layers(line, start, end))
        cells = (*self._gutter(line, part), (indent, ""), *text)
        if self._palette is None:
            self._palette = palette_of(self)
        palette = self._palette
        segments = [Segment(text, base + palette.style(style)) for text, style in cells if text]
        wide = width_of(cells)
        segments.append(Segment(" " * max(width - wide, 0), base))
        # Before its size is told for the first time, the lines are not wrapped.
        return minimal_strip(segments, max(wide, width)).crop(0, width)

    def _gutter(self, line: int, part: int) -> tuple[Cell, ...]:
        if part:
            return ((" " * self.gutter_width, ""),)
        changed = line in self._changed
        sign = self._signs.get(line) or ((CHANGED, "accent") if changed else (" ", "dim"))
        here = line == self.cursor_location[0] and self.has_focus
        number = str(line + 1).rjust(self.gutter_width - 2)
        behind = CHANGED if changed and sign[0] != CHANGED else " "
        return sign, (number, "bold" if here else "accent" if changed else "dim"), (behind, "accent")

    def _layers(self, line: int, first: int, end: int) -> list[Layer]:
        """The colours of the characters `first`..`end` of a line, counted from `first`."""
        offset = self._lines.offset(line, first)
        layers = token_layers(self._tokens, offset, offset + end - first)
        # A position after the last character is after the last row.
        last = end + (end == len(self.document.get_line(line)))
        marks = list(self._underlines.get(line, ()))
        selection = sorted(self.selection)
        if selection[0] != selection[1] and selection[0][0] <= line <= selection[1][0]:
            start = selection[0][1] if line == selection[0][0] else 0
            stop = selection[1][1] if line == selection[1][0] else last
            marks.append((start, stop, "on-block-cursor-background"))
        marks += self._cursor_layers(line)
        layers += [
            (max(start, first) - first, min(stop, last) - first, style)
            for start, stop, style in marks
            if max(start, first) < min(stop, last)
        ]
        return layers

    def _cursor_layers(self, line: int) -> list[Layer]:
        """The cursor, and the brackets that belong to it, as far as they are in a line."""
        if not self.has_focus or (self.read_only and not self.show_cursor):
            return []
        layers: list[Layer] = []
        cursor_line, column = self.cursor_location
        if self.selection.is_empty:
            here = (self._seen, cursor_line, column)
            # For each row that is painted, the same pair is asked for.
            if self._pair[0] != here:
                self._pair = (here, partner(self._tokens, self._text, self._lines.offset(cursor_line, column)))
            places = map(self._lines.place, self._pair[1] or ())
            layers = [(place[1], place[1] + 1, "bold underline accent") for place in places if place[0] == line]
        if line == cursor_line:
            layers.append((column, column + 1, "reverse"))
        return layers

    def _refreshed(self) -> None:
        """Make tokens and line starts those of the text."""
        if self._seen == self.revision:
            return
        self._seen = self.revision
        self._text = self.text
        self._lines = HighlightedLines.of(self.document.lines, len(self.document.newline))
        self._tokens = tokens_of(self._text)
        if self._known != self._text:
            checked, problems = self._checked
            # What is again as it was checked is not checked again.
            moves = self._text != checked
            self._diagnostics = moved(self._diagnostics, self._known, self._text) if moves else problems
        self._known = self._text
        self._underlines, self._signs = problem_layers(self._diagnostics, self._lines)
        self._changed = changed_lines(self._saved, self.document.lines) if self._saved is not None else frozenset()

    def _make_edits(self, edited: Fix | Completion) -> None:
        """Make edits of several places as one: replace everything from the first place to the last."""
        old, new = self.text, edited.apply(self.text)
        start = min(edit.start for edit in edited.edits)
        end = max(edit.end for edit in edited.edits)
        self._edit_range(start, end, new[start : len(new) - (len(old) - end)])

    def _edit_range(self, start: int, end: int, text: str) -> None:
        self._refreshed()
        self.history.checkpoint()
        self.replace(text, self._lines.place(start), self._lines.place(end), maintain_selection_offset=False)
        self.history.checkpoint()
        self.scroll_cursor_visible()

    @property
    def cursor_screen_offset(self) -> Offset:
        """Where the cursor is on the screen: for completions and input methods."""
        place = self.cursor_cell + self.content_region.offset - self.scroll_offset
        return place + Offset(self.gutter_width, 0)


class Popup(LineBlock):
    """Shows lines under a place of the screen, or above it where there is no room below. Takes no focus."""

    DEFAULT_CSS = Path(__file__).with_name("popup.tcss").read_text(encoding="utf-8")

    def __init__(self) -> None:
        super().__init__()
        self.display = False

    def open_at(self, place: Offset, make: Callable[[int], Sequence[Line]]) -> None:
        """Show what `make(room)` gives, its first column at `place` (of the screen), the line there left free.

        It stays right of the place where it can be read there, so that it covers what is being worked on the least.
        """
        screen = self.screen.size
        content = make(max(screen.width - place.x, min(ROOM, screen.width)) - 1)
        lines: list[Line] = [((BAR, "accent"), *line) for line in content]
        if not lines:
            self.close()
            return
        width, height = max(map(width_of, lines)), len(lines)
        x = max(0, min(place.x, screen.width - width))
        y = place.y + 1 if place.y + 1 + height <= screen.height else max(0, place.y - height)
        self.styles.width, self.styles.height = width, height
        self.absolute_offset = Offset(x, y)
        self.show(lambda _: lines)
        self.display = True

    def close(self) -> None:
        """Show nothing."""
        self.display = False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(super().get_content_height(container, viewport, width), 1)
