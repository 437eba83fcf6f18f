"""Views as Markdown. Nothing that an agent, a suite or a server said can act in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.grading.explain import on_one_line
from agenteval_tui.views.model import (
    Difference,
    Element,
    Facts,
    Heading,
    List,
    Node,
    Paragraph,
    Table,
    Text,
    Tree,
    View,
    plain,
    sentence,
)

LONGEST = 1_000  # characters of a text
LONGEST_PARAGRAPH = 8_000
_BACKTICKS = re.compile(r"`+")
# Beside Markdown's own signs: `@` and `#` mention people and issues, `$` begins a formula, and bare addresses become
# links.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]|(?<=\w)://|(?<=www)\.")


def markdown(view: View) -> str:
    """The view as Markdown, with an empty line after each element."""
    return "".join(f"{line}\n" for element in view for line in (*_lines(element), ""))


def escaped(words: str, longest: int = LONGEST) -> str:
    """`words` on one line, where nothing of it is markup."""
    return _MARKUP.sub(r"\\\g<0>", one_line(words, longest))


def code_span(words: str) -> str:
    """`words` as code, every character kept: fenced by more backticks than it has in a row."""
    displayed = displayable(on_one_line(words))
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(displayed)), default=0))
    # CommonMark takes one space off on both sides, and a backtick at the edge would be part of the fence.
    pad = " " if not displayed or displayed[0] in "` " or displayed[-1] in "` " else ""
    return f"{fence}{pad}{displayed}{pad}{fence}"


def _text(words: Text, longest: int = LONGEST, *, in_table: bool = False) -> str:
    if not any("code" in tokens.split() for _, tokens in words):
        return escaped(plain(words), longest)
    parts = []
    for part, tokens in words:
        if "code" in tokens.split():
            # In a table a bar ends the cell, also within code.
            parts.append(code_span(part).replace("|", r"\|") if in_table else code_span(part))
        else:
            # `escaped` trims its text: a space at the edge of a span keeps words apart.
            start, end = (" " if edge.isspace() else "" for edge in (part[0], part[-1]))
            parts.append(f"{start}{escaped(part, longest)}{end}")
    return "".join(parts)


def _lines(element: Element) -> Iterator[str]:
    match element:
        case Heading(words, level):
            yield f"{'#' * (level + 1)} {_text(words)}"
        case Paragraph(words):
            yield _text(words, LONGEST_PARAGRAPH)
        case Table(columns, rows, more):
            yield _cells([escaped(column.head) for column in columns])
            yield "|" + "|".join("--:" if column.align == "right" else "---" for column in columns) + "|"
            for row in rows:
                yield _cells(
                    [_text(cell, in_table=True) for cell in row.cells] + [""] * (len(columns) - len(row.cells))
                )
            if more:
                yield from ("", escaped(sentence(more)))
        case Tree(nodes, more):
            for node in nodes:
                yield from _node(node, 0)
            if more:
                yield f"- {escaped(more)}"
        case List(items, inline):
            rendered = [_text(item) for item in items]
            yield from ["; ".join(rendered)] if inline else [f"- {item}" for item in rendered]
        case Difference(changed):
            yield from fenced(displayable("\n".join(changed)), "diff")
        case Facts(facts):
            for fact in facts:
                label = f"**{escaped(fact.label)}:** " if fact.label else ""
                yield f"- {label}{_text(fact.value)}"


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fenced(whole: str, language: str) -> Iterator[str]:
    """A block of code; its fence is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", whole)), default=0))
    yield from (f"{fence}{language}", *whole.split("\n"), fence)


def _node(node: Node, depth: int) -> Iterator[str]:
    words = _text(node.words)
    if words and all("bold" in tokens.split() for _, tokens in node.words):
        words = f"**{words}**"
    yield f"{'  ' * depth}- {node.sign[0]} {words}" if node.sign[0] else f"{'  ' * depth}- {words}"
    if node.block:
        whole = displayable("\n".join(node.block))
        below = "  " * (depth + 1)
        yield from (f"{below}{line}".rstrip() for line in ("", *fenced(whole, "text"), ""))
    for child in node.children:
        yield from _node(child, depth + 1)
