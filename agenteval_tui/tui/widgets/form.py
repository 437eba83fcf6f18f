"""A form of a few fields: a label, a value, and what is wrong with it, beside it or below it. Every key of it works
anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, TextArea

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import ELLIPSIS, Cell, Line, cell_len, fit, fit_text, pad, paragraph
from agenteval_tui.tui.terminal.mounting import drop_messages, is_too_late
from agenteval_tui.tui.widgets.line_block import LineBlock

MOST_OF_AN_ERROR = 400  # characters
NOTE_GAP = 2  # columns between a field and the note beside it
BEFORE, BEHIND = ("‹", "›") if UNICODE else ("<", ">")


class Field(Struct, frozen=True):
    """`choices` are (value, words for people); without any it is a text. `hint` is beside it in a few words. `rows`
    above 0: a text over several lines, this many rows high.
    """

    name: str
    label: str
    value: str = ""
    hint: str = ""
    placeholder: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    rows: int = 0


class ChoiceField(Widget, can_focus=True):
    """One of several: left and right (or space) change it, a click too."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("choice")

    @dataclass
    class Changed(Message):
        """Another one is chosen."""

        field: ChoiceField
        value: str

    @dataclass
    class Submitted(Message):
        """Enter."""

        field: ChoiceField

    def __init__(self, choices: Sequence[tuple[str, str]], value: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices = tuple(choices)
        self._place = next((place for place, (choice, _) in enumerate(self._choices) if choice == value), 0)

    @property
    def value(self) -> str:
        """What is chosen."""
        return self._choices[self._place][0] if self._choices else ""

    def offer(self, choices: Sequence[tuple[str, str]]) -> None:
        """Offer other choices; what is chosen stays, where it is among them."""
        value = self.value
        self._choices = tuple(choices)
        self._place = next((place for place, (choice, _) in enumerate(self._choices) if choice == value), 0)
        self.refresh()

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """What there is to choose from."""
        return self._choices

    def choose(self, value: str, *, tell: bool = False) -> None:
        """Choose a value; one that is not offered is offered too. No `Changed` unless `tell`."""
        # A file may have a value that nobody offers: it must not be changed by being shown.
        if value not in (choice for choice, _ in self._choices):
            self._choices = (*self._choices, (value, f"{value} (unknown)"))
        self._place = next(place for place, (choice, _) in enumerate(self._choices) if choice == value)
        self.refresh()
        if tell:
            self.post_message(self.Changed(self, value))

    def render_line(self, y: int) -> Strip:
        here = self.has_focus
        sign = "bold accent" if here else "dim"
        number = f"  {self._place + 1} of {len(self._choices)}" if len(self._choices) > 2 and here else ""
        # Its edges say that there is something to choose: it is the words that are cut.
        room = max(self.size.width - len(number) - cell_len(f"{BEFORE}  {BEHIND}"), 1)
        words = fit_text(one_line(self._choices[self._place][1]), room) if self._choices else ""
        cells: tuple[Cell, ...] = ((BEFORE, sign), (f" {words} ", "bold" if here else ""), (BEHIND, sign))
        cells = (*cells, (number, "dim"))
        return palette_of(self).strip(fit(cells, self.size.width), self.size.width).apply_style(self.rich_style)

    def on_click(self, event: Click) -> None:
        self.action_step(-1 if event.x == 0 else 1)

    def action_step(self, by: int) -> None:
        if len(self._choices) > 1:
            self._place = (self._place + by) % len(self._choices)
            self.refresh()
            self.post_message(self.Changed(self, self.value))

    def action_submit(self) -> None:
        self.post_message(self.Submitted(self))


class TextField(Input):
    """One line of text. While something else has the keys, what does not fit ends in `…`."""

    def render_line(self, y: int) -> Strip:
        strip, width = super().render_line(y), self.size.width
        if y or self.has_focus or cell_len(self.value or self.placeholder) <= width:
            return strip
        last = next((segment.style for segment in reversed(list(strip)) if segment.text.strip()), self.rich_style)
        return Strip.join([strip.adjust_cell_length(width - 1), Strip([Segment(ELLIPSIS, last)], 1)])


@drop_messages(is_too_late)
class Form(Vertical):
    """The fields below each other. `values()` is their content, `say(name, text)` the note beside one."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = bindings("form")

    @dataclass
    class Changed(Message):
        """Something was changed."""

        form: Form
        name: str

    @dataclass
    class Submitted(Message):
        """Enter, in a field (but not in one over several lines)."""

        form: Form
        name: str = ""

    def __init__(self, fields: Sequence[Field], *, below: bool = False, id: str | None = None) -> None:
        """`below`: the hint of a field is below it, not beside it, and so is its error. Beside it, an error that has no
        room goes below."""
        super().__init__(id=id, classes="below" if below else None)
        self._below = below
        self._fields = tuple(fields)
        self._errors: dict[str, str] = {}  # by field
        # What was put into texts over several lines, and what they made of it: they know one kind of line end.
        self._filled: dict[str, tuple[str, str]] = {}
        self._drawn: dict[int, Line] = {}

    def compose(self) -> ComposeResult:
        for field in self._fields:
            control: Widget
            if field.choices:
                control = ChoiceField(field.choices, field.value, id=f"field-{field.name}")
            elif field.rows:
                control = self._area(field)
            else:
                name = f"field-{field.name}"
                # Not `compact`, which gives each field its styles twice: the stylesheet says what that would. Nor
                # validated: without a validator, too, each look gives the field its styles once more.
                control = TextField(
                    field.value, placeholder=field.placeholder, id=name, select_on_focus=False, validate_on=()
                )
            control.add_class("field", update=False)  # it gets its styles when it is mounted
            yield control
            if self._below and field.hint:
                yield self._note(field)

    # Labels and the notes beside fields are drawn, and are no widgets: each of those costs a millisecond, and a test
    # has thirty fields.

    def render_lines(self, crop: Region) -> list[Strip]:
        self._drawn = self._lines_beside()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        line, width = self._drawn.get(y + self.scroll_offset.y, ()), self.size.width
        return palette_of(self).strip(line, width).apply_style(self.rich_style)

    def _lines_beside(self) -> dict[int, Line]:
        """What is drawn beside the fields, by row."""
        labels = {f"field-{field.name}": field for field in self._fields}
        lines, row = {}, 0
        for widget in self.displayed_children:
            field = labels.get(widget.id or "")
            if field is not None:
                width = widget.styles.margin.left
                lines[row] = fit(((field.label, "dim"),), width)
                if not self._below:
                    note = fit(self._note_beside(field), self._room_beside(widget))
                    used = width + widget.outer_size.width
                    lines[row] = (*pad(lines[row], used + NOTE_GAP), *note)
            row += widget.outer_size.height
        return lines

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def on_resize(self) -> None:
        """The fields may be in other rows now, and their errors beside or below them. A placeholder that has no room
        ends in `…`: in a field of one row the rest would be out of sight."""
        self.refresh()
        placeholders = {f"field-{field.name}": field.placeholder for field in self._fields if field.rows == 1}
        for area in self.query(TextArea):
            if area.id in placeholders:
                area.placeholder = fit_text(placeholders[area.id], area.size.width)
        for field in self._fields if not self._below else ():
            if self._error_of(field):
                self._show_note(field)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.refresh()

    @staticmethod
    def _area(field: Field) -> TextArea:
        area = TextArea(
            field.value,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=field.placeholder,
            id=f"field-{field.name}",
        )
        # A cursor that blinks repaints the field twice in a second, also over a slow line.
        area.cursor_blink = False
        area.styles.height = field.rows
        return area

    def focus_first(self) -> None:
        """Go to the first field."""
        self.query_one(f"#field-{self._fields[0].name}").focus()

    def values(self) -> dict[str, str]:
        """The content of the fields, by name; texts without white space around them."""
        return {field.name: self._value(field) for field in self._fields}

    def fill(self, values: Mapping[str, str]) -> None:
        """Put texts into the fields that differ; no message is sent."""
        for field in self._fields:
            if field.name not in values:
                continue
            widget, value = self.query_one(f"#field-{field.name}"), values[field.name]
            if isinstance(widget, ChoiceField):
                if widget.value != value:
                    widget.choose(value)
            elif isinstance(widget, TextArea):
                if self._value(field) != value:
                    with widget.prevent(TextArea.Changed):
                        widget.load_text(value)
                # A file may have other ends of lines: shown and not edited, the value stays as it was.
                self._filled[field.name] = (value, widget.text)
            elif isinstance(widget, Input) and widget.value != value:
                with widget.prevent(Input.Changed):
                    widget.value = value

    def offer(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        """Other choices for a field."""
        self.query_one(f"#field-{name}", ChoiceField).offer(choices)

    def hold(self, name: str, placeholder: str) -> None:
        """The placeholder of an empty text field."""
        self.query_one(f"#field-{name}", Input).placeholder = placeholder

    def grow(self, name: str, rows: int) -> None:
        """How high a text over several lines is."""
        area = self.query_one(f"#field-{name}")
        if area.styles.height is None or area.styles.height.value != rows:
            area.styles.height = rows
            self.refresh()

    def complain(self, problems: dict[str, str]) -> None:
        """What is wrong, by field; nothing about those that are not named."""
        for field in self._fields:
            message = problems.get(field.name, "")
            if self._error_of(field) != message:
                self._errors[field.name] = message
                self._show_note(field)

    def _value(self, field: Field) -> str:
        widget = self.query_one(f"#field-{field.name}")
        if isinstance(widget, ChoiceField):
            return widget.value
        if isinstance(widget, TextArea):
            filled, displayed = self._filled.get(field.name, ("", ""))
            return filled if widget.text == displayed else widget.text
        return widget.value.strip() if isinstance(widget, Input) else ""

    def _show_note(self, field: Field) -> None:
        self.refresh()
        line_blocks = self.query(f"#note-{field.name}").results(LineBlock)
        note = next(line_blocks, None)
        if note is not None:
            note.show(self._words_below(field))
            note.display = self._is_below(field)
        elif self._is_below(field):
            # Few fields are ever wrong: the others have no widget for it.
            self.mount(self._note(field), after=f"#field-{field.name}")

    def _is_below(self, field: Field) -> bool:
        """Whether something is said below the field: its error or hint, or its error where there is no room beside."""
        message = self._error_of(field)
        if self._below:
            return bool(message or field.hint)
        return bool(message) and cell_len(_error_words(message)) > self._room_beside(
            self.query_one(f"#field-{field.name}")
        )

    def _room_beside(self, control: Widget) -> int:
        """Cells beside a field."""
        return max(self.size.width - control.styles.margin.left - control.outer_size.width - NOTE_GAP, 0)

    def _error_of(self, field: Field) -> str:
        return self._errors.get(field.name, "")

    def _note(self, field: Field) -> LineBlock:
        return LineBlock(self._words_below(field), id=f"note-{field.name}", classes="note")

    def _words_below(self, field: Field) -> Callable[[int], list[Line]]:
        message = self._error_of(field)
        if not self._is_below(field):
            return lambda width: []
        words, style = (_error_words(message), "error") if message else (field.hint, "dim")
        return lambda width: paragraph(words, width, style)

    def _note_beside(self, field: Field) -> Line:
        message = self._error_of(field)
        return ((_error_words(message), "error"),) if message and not self._is_below(field) else ((field.hint, "dim"),)

    def on_input_changed(self, event: Input.Changed) -> None:
        """A letter more or less."""
        event.stop()
        self.post_message(self.Changed(self, (event.input.id or "").removeprefix("field-")))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in a text."""
        event.stop()
        self.post_message(self.Submitted(self, (event.input.id or "").removeprefix("field-")))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """A text over several lines has changed."""
        event.stop()
        self.post_message(self.Changed(self, (event.text_area.id or "").removeprefix("field-")))

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        """Another choice."""
        event.stop()
        self.post_message(self.Changed(self, (event.field.id or "").removeprefix("field-")))

    def on_choice_field_submitted(self, event: ChoiceField.Submitted) -> None:
        """Enter in a choice."""
        event.stop()
        self.post_message(self.Submitted(self, (event.field.id or "").removeprefix("field-")))

    def action_move(self, by: int) -> None:
        """The next field, or the one before."""
        (self.screen.focus_next if by > 0 else self.screen.focus_previous)()


def _error_words(message: str) -> str:
    return f"! {one_line(message, MOST_OF_AN_ERROR)}"
