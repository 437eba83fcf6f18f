"""Markdown as lines for a terminal: headings, paragraphs, lists, code and tables, wrapped to a width.

What is written between backquotes keeps them: a reader tells a command from a word by them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agenteval_tui.cli.output import Style
from agenteval_tui.views.terminal import cells

TextLine = tuple[str, Style]
_GAP = "  "
_SPACE = "\x1f"  # stands for a space at which no line may end
_TITLE = re.compile(r'\btitle="([^"]+)"')
_CODE = re.compile(r"`[^`]*`")
_SHORT = 30  # characters of cells that share a line
_PLAIN = ("", "meaning", "means", "what it does")  # columns whose cells are clear without their names
_LEAST = 16  # columns for the last cell of a row; with less, the row becomes a paragraph


def text_lines(markdown: str, width: int, place: Callable[[str], str]) -> Iterator[TextLine]:
    """The lines of a page. `place` says where a link's target is found by a reader of the terminal ("" for nowhere)."""
    tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(markdown))
    return _TextWriter(place).blocks(tree.children, max(width, 20))


class _TextWriter:
    def __init__(self, place: Callable[[str], str]) -> None:
        self._place = place

    def blocks(self, nodes: Sequence[SyntaxTreeNode], width: int) -> Iterator[TextLine]:
        first = True
        for node in nodes:
            lines = list(self._block(node, width))
            if lines and not first:
                yield "", ""
            yield from lines
            first = first and not lines

    def _block(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        if node.type == "heading":
            for line in _wrap(self._inline(node), width):
                yield line, "bold"
                if node.tag in ("h1", "h2"):
                    yield ("=" if node.tag == "h1" else "-") * cells(line), "dim"
        elif node.type == "paragraph":
            yield from ((line, "") for line in _wrap(self._inline(node), width))
        elif node.type in ("fence", "code_block"):
            if title := _TITLE.search(node.info or ""):
                yield f"{title[1]}:", ""  # the block is this file
            yield from ((f"    {line}".rstrip(), "") for line in node.content.rstrip("\n").split("\n"))
        elif node.type in ("bullet_list", "ordered_list"):
            yield from self._list(node, width)
        elif node.type == "blockquote":
            yield from ((f"> {line}".rstrip(), style) for line, style in self.blocks(node.children, width - 2))
        elif node.type == "table":
            yield from self._table(node, width)
        elif node.type == "hr":
            yield "-" * width, "dim"
        # What is left is HTML: comments of the scripts that make pages.

    def _list(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        for number, item in enumerate(node.children):
            mark = "- " if start is None else f"{start + number}. "
            tight = all(child.type != "paragraph" or child.hidden for child in item.children)
            inner = width - len(mark)
            lines = (
                (line for child in item.children for line in self._block(child, inner))
                if tight
                else self.blocks(item.children, inner)
            )
            for at, (line, style) in enumerate(lines):
                yield f"{' ' * len(mark) if at else mark}{line}".rstrip(), style

    def _table(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        rows = [[self._inline(cell) for cell in row.children] for part in node.children for row in part.children]
        if not rows or not rows[0]:
            return
        widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        room = width - before
        if widths[-1] > room < max(_LEAST, width // 3):
            yield from self._rows_as_paragraphs(rows, width)
            return
        for number, row in enumerate(rows):
            if number == 0 and not any(row):
                continue
            lead = _GAP.join(_padded(cell, column) for cell, column in zip(row[:-1], widths[:-1], strict=True))
            for at, line in enumerate(_wrap(row[-1], room) or [""]):
                head = lead if at == 0 else " " * cells(lead)
                yield f"{head}{_GAP if len(row) > 1 else ''}{line}".rstrip(), "" if number else "bold"

    def _rows_as_paragraphs(self, rows: list[list[str]], width: int) -> Iterator[TextLine]:
        """The rows of a table that is too wide: the first cell, below it the others with their columns' names."""
        header = rows[0]
        for number, row in enumerate(rows[1:]):
            if number:
                yield "", ""
            yield from ((line, "bold") for line in _wrap(row[0], width))
            cells_of_row = [(name, cell) for name, cell in zip(header[1:], row[1:], strict=True) if cell]
            short = [f"{name}: {cell}" for name, cell in cells_of_row if _is_short(name, cell)]
            long = [
                cell if name in _PLAIN else f"{name}: {cell}"
                for name, cell in cells_of_row
                if not _is_short(name, cell)
            ]
            for text in (", ".join(short), *long):
                yield from ((f"    {line}", "") for line in _wrap(text, width - 4))

    def _inline(self, node: SyntaxTreeNode) -> str:
        return "".join(
            self._words(token) for child in node.children if child.type == "inline" for token in child.children
        )

    def _words(self, node: SyntaxTreeNode) -> str:
        if node.type == "text":
            return node.content
        if node.type == "code_inline":
            return f"`{node.content}`"
        if node.type in ("softbreak", "hardbreak"):
            return " "
        if node.type == "image":
            return f"[picture: {node.content}]"
        inner = "".join(self._words(child) for child in node.children)
        if node.type != "link":
            return inner
        place = self._place(str(node.attrs.get("href", "")))
        if inner.strip("`").endswith(".md") and place:
            return f"`{place}`"  # the file's name says nothing to who has no files
        return f"{inner} ({place})" if place and place != inner else inner


def _is_short(name: str, cell: str) -> bool:
    return name not in _PLAIN and len(cell) <= _SHORT and not cell.endswith(".")


def _wrap(text: str, width: int) -> list[str]:
    """Lines of a text. What is between backquotes stays on one line if it fits: it may be a command to copy."""
    width = max(width, 8)
    protected = _CODE.sub(lambda match: match[0] if len(match[0]) > width else match[0].replace(" ", _SPACE), text)
    lines = textwrap.wrap(protected, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_SPACE, " ") for line in lines]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
