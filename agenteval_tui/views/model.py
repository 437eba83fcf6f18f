"""What a view is made of. A view says what is shown and what it means; a renderer decides how that looks.

A text is spans of (words, tokens). Tokens say what the words mean, never a colour: several are separated by a space, as
in `bold bad`. Renderers make foreign text displayable, so that a view may hold any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

Span = tuple[str, str]
Text = tuple[Span, ...]

TOKENS = frozenset(
    {"good", "bad", "broken", "warn", "flaky", "near", "dim", "bold", "accent", "added", "removed", "code"}
)
"""good, bad, broken (an error), warn (look at it), flaky, near (a near miss), added and removed are meanings; dim, bold
and accent are weights; code keeps its characters: what people copy, and what is quoted."""

OUTCOMES: dict[str, Span] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "error": ("!", "broken"),
    "cancelled": ("–", "dim"),
    "skipped": ("·", "dim"),
    "needs_review": ("?", "warn"),
}
"""How a run ended: its sign, and what that means."""

LEVELS = "▁▂▃▄▅▆▇█"
"""Bars from low to high."""

ASCII = str.maketrans(
    {
        "→": "->",
        "✗": "x",
        "✓": "+",
        "↕": "%",
        "±": "~",
        "≈": "~",
        "·": ".",
        "–": "-",
        "─": "-",
        "●": "o",
        "╌": "-",
        "░": ".",
        "−": "-",
        "…": "...",
        "×": "x",
        "≥": ">=",
    }
    | {"▲": "^", "◆": "*", "◇": "o", "○": ".", "◐": "*"}
    | dict(zip(LEVELS, "_.-:=+*#", strict=True))
)
"""The signs of views and states where a medium has ASCII only."""


def outcome_sign(outcome: str) -> Span:
    """The sign of how a run ended, with what it means; a dot for a run that has not ended."""
    return OUTCOMES.get(outcome, ("·", "dim"))


def outcome_text(outcome: str) -> Span:
    """An outcome with what it means."""
    return outcome, outcome_sign(outcome)[1]


def text(*parts: str | Span) -> Text:
    """A text of words, and of words with tokens; parts without words are left out."""
    spans = ((part, "") if isinstance(part, str) else part for part in parts)
    return tuple(span for span in spans if span[0])


def plain(words: Text) -> str:
    """The words without their tokens."""
    return "".join(part for part, _ in words)


def sentence(words: str) -> str:
    """`words` with a capital first letter and a full stop; "" stays empty."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


class Heading(Struct, frozen=True):
    """The head of what follows. `level` 1 is the title of the view."""

    words: Text
    level: int = 2


class Paragraph(Struct, frozen=True):
    """One text. `indent` is the depth at which lines show it; where it is wrapped, the next lines are `hang` cells
    further in, under what follows a label."""

    words: Text
    indent: int = 0
    hang: int = 0


class Column(Struct, frozen=True):
    """A column of a table. It takes `least` cells: to keep the columns of several tables in place, or not to be cut
    before others are."""

    head: str
    align: Literal["left", "right"] = "left"
    least: int = 0


class Row(Struct, frozen=True):
    """A row of a table: a text for each column, or a single one across all. A screen selects the row
    by its `key`."""

    cells: tuple[Text, ...]
    key: str = ""


class Table(Struct, frozen=True):
    """Rows under columns. `more` says what is not listed."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    more: str = ""


def text_table(heads: Iterable[str | Column], rows: Iterable[Sequence[str]], more: str = "") -> Table:
    """A table of words without tokens. A row is known by its first text."""
    columns = tuple(Column(head) if isinstance(head, str) else head for head in heads)
    return Table(columns, tuple(Row(tuple(map(text, cells)), cells[0]) for cells in rows), more)


class Node(Struct, frozen=True):
    """A node of a tree, with the sign before it (an empty span: none).

    `block`: lines below its words whose characters are below each other, as code.
    """

    words: Text
    children: tuple[Node, ...] = ()
    sign: Span = ("", "")
    block: tuple[str, ...] = ()


class Tree(Struct, frozen=True):
    """Nodes with what belongs to each below it. `more` says what is not listed; `indent` is as for a paragraph."""

    nodes: tuple[Node, ...]
    more: str = ""
    indent: int = 0


class List(Struct, frozen=True):
    """Texts of one kind. `inline`: short ones, which are beside each other while there is room."""

    items: tuple[Text, ...]
    inline: bool = False


class Difference(Struct, frozen=True):
    """Lines of a unified difference: `+` was added, `-` was removed, `@` says where, a space is context."""

    lines: tuple[str, ...]


class Fact(Struct, frozen=True):
    """A value with its label. A fact without a label continues the one before it."""

    label: str
    value: Text


class Facts(Struct, frozen=True):
    """Labelled values, one below the other."""

    facts: tuple[Fact, ...]


Element = Heading | Paragraph | Table | Tree | List | Difference | Facts
View = tuple[Element, ...]


def row_key(*parts: str) -> str:
    """What a screen knows a row by: the kind of thing that it is, and which one."""
    return "\x1f".join(parts)


def paragraphs(lines: Iterable[Text], indent: int = 0, hang: int = 0) -> View:
    """A paragraph for each text that has words."""
    return tuple(Paragraph(line, indent, hang) for line in lines if line)
