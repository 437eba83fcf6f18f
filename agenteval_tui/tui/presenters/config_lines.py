"""The colours of a config text by line: tokens, problems, brackets; for any text, broken or not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.errors import Severity
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.status_style import WARNING, glyph
from agenteval_tui.tui.presenters.wrapped_lines import shown_line
from agenteval_tui.tui.styled_text import LONGEST, Cell, Line, hanging
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.tokens import Token, tokenize

Layer = tuple[int, int, str]  # columns start..end of a line, style token

TOO_LONG = 400_000  # characters: longer texts are shown without colours
_FARTHEST = 20_000  # tokens: a bracket's partner is not looked for further away

_STYLES = {
    "key": "json-key",
    "string": "json-string",
    "number": "json-number",
    "literal": "json-literal",
    "comment": "comment",
    "error": "error",
}
SIGNS: dict[Severity, tuple[str, str]] = {
    "error": (glyph("error"), "failed"),
    "warning": (WARNING, "error"),
    "info": ("i", "running"),
}
_UNDERLINES: dict[Severity, str] = {
    "error": "failed underline",
    "warning": "error underline",
    "info": "running underline",
}
_RANK: dict[Severity, int] = {"error": 2, "warning": 1, "info": 0}


class HighlightedLines(Struct, frozen=True):
    """The offsets where the lines of a text start, in characters. A line break has `newline` characters."""

    starts: tuple[int, ...]
    newline: int

    @classmethod
    def of(cls, lines: Sequence[str], newline: int) -> HighlightedLines:
        """The offsets for lines that are joined by `newline` characters."""
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + newline)
        return cls(tuple(starts), newline)

    def place(self, offset: int) -> tuple[int, int]:
        """Row and column of an offset."""
        last = len(self.starts) - 2
        row = min(max(bisect_right(self.starts, offset) - 1, 0), last)
        return row, min(max(offset - self.starts[row], 0), self.starts[row + 1] - self.newline - self.starts[row])

    def offset(self, row: int, column: int) -> int:
        """The offset of a row and column."""
        return self.starts[row] + column

    def layers(self, start: int, end: int, style: str) -> list[tuple[int, Layer]]:
        """The characters `start`..`end` as a layer in each row that they are in."""
        first, column = self.place(start)
        last, end_column = self.place(end)
        if first == last:
            # What has no characters gets one cell, to be seen.
            return [(first, (column, max(end_column, column + 1), style))]
        spans: list[tuple[int, Layer]] = [(first, (column, self._width(first), style))]
        spans += [(row, (0, self._width(row), style)) for row in range(first + 1, last)]
        spans.append((last, (0, end_column, style)))
        return [(row, layer) for row, layer in spans if layer[1] > layer[0]]

    def _width(self, row: int) -> int:
        return self.starts[row + 1] - self.newline - self.starts[row]


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text that is not too long for colours."""
    return tokenize(text) if len(text) <= TOO_LONG else []


def token_layers(tokens: Sequence[Token], start: int, end: int) -> list[Layer]:
    """The colours of the characters `start`..`end` of the text, counted from `start`."""
    # The token before may reach into them.
    index = max(bisect_right(tokens, start, key=lambda token: token.start) - 1, 0)
    layers: list[Layer] = []
    while index < len(tokens) and tokens[index].start < end:
        kind, first, last = tokens[index]
        style = _STYLES.get(kind)
        if style is not None and last > start:
            layers.append((max(first, start) - start, min(last, end) - start, style))
        index += 1
    return layers


def coloured_lines(text: str, width: int) -> list[Line]:
    """A config to read: its lines in their colours, long ones in several rows; of a very long text the beginning."""
    tokens, more = tokens_of(text[:LONGEST]), len(text) - LONGEST
    lines: list[Line] = []
    at = 0
    for row in text[:LONGEST].split("\n"):
        displayed, offsets = shown_line(row)
        lines += hanging(painted(displayed, offsets, token_layers(tokens, at, at + len(row))), width)
        at += len(row) + 1
    return lines if more <= 0 else [*lines, ((f"… {count(more, 'more character')}", "dim"),)]


def changed_lines(saved: list[str], lines: list[str]) -> frozenset[int]:
    """Which lines differ from the saved ones; where some were removed, the current line."""
    start = common_start(saved, lines)
    if start == len(saved) == len(lines):
        return frozenset()
    end = common_end(saved, lines, start)
    changed: set[int] = set()
    # Frequent lines (brackets) don't take part in the search: it stays quick in long texts.
    matcher = SequenceMatcher(None, saved[start : len(saved) - end], lines[start : len(lines) - end])
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag != "equal":
            changed.update(range(start + first, start + max(last, first + 1)))
    return frozenset(min(line, len(lines) - 1) for line in changed)


def problem_layers(
    problems: Sequence[Diagnostic], lines: HighlightedLines
) -> tuple[dict[int, list[Layer]], dict[int, tuple[str, str]]]:
    """The underlines of the problems by row, and the sign in the margin of each row (of the gravest problem)."""
    layers: dict[int, list[Layer]] = {}
    gravest: dict[int, Severity] = {}
    for problem in sorted(problems, key=lambda p: _RANK[p.severity]):
        for row, layer in lines.layers(problem.start, problem.end, _UNDERLINES[problem.severity]):
            layers.setdefault(row, []).append(layer)
        gravest[lines.place(problem.start)[0]] = problem.severity
    return layers, {row: SIGNS[severity] for row, severity in gravest.items()}


def moved(problems: Sequence[Diagnostic], old: str, new: str) -> tuple[Diagnostic, ...]:
    """The problems of `old` where their text is in `new`, without their fixes. One of a text that was edited within is
    on all of what that became; what was edited more than that has none until it was checked."""
    start = common_start(old, new)
    end = len(old) - common_end(old, new, start)
    shift = len(new) - len(old)
    diagnostics: list[Diagnostic] = []
    for problem in problems:
        if problem.end <= start:
            diagnostics.append(replace(problem, fix=None))
        elif problem.start >= end:
            diagnostics.append(replace(problem, start=problem.start + shift, end=problem.end + shift, fix=None))
        elif problem.start <= start and end <= problem.end and problem.end + shift > problem.start:
            diagnostics.append(replace(problem, end=problem.end + shift, fix=None))
    return tuple(diagnostics)


def partner(tokens: Sequence[Token], text: str, offset: int) -> tuple[int, int] | None:
    """The bracket at `offset` or right before it, and the one that belongs to it, as offsets."""
    index = bisect_right(tokens, offset, key=lambda token: token.start) - 1
    for candidate in (index, index - 1):
        if candidate < 0:
            continue
        token = tokens[candidate]
        if token.kind in ("brace", "bracket") and token.start in (offset, offset - 1):
            other_end = _partner(tokens, text, candidate)
            if other_end is not None:
                return token.start, other_end
    return None


def _partner(tokens: Sequence[Token], text: str, index: int) -> int | None:
    opens = text[tokens[index].start] in "{["
    depth = 0
    step = 1 if opens else -1
    position = index
    for _ in range(_FARTHEST):
        if not 0 <= position < len(tokens):
            return None
        token = tokens[position]
        if token.kind in ("brace", "bracket"):
            depth += 1 if (text[token.start] in "{[") == opens else -1
            if depth == 0:
                return token.start
        position += step
    return None


def painted(text: str, offsets: Sequence[int] | None, layers: Sequence[Layer]) -> tuple[Cell, ...]:
    """A line as it is shown in its colours. Layers are in columns of the raw line; later ones lie above."""
    if not layers:
        return ((text, ""),)
    size = len(text)
    spans: list[Layer] = []
    edges = {0, size}
    for start, end, style in layers:
        if offsets is not None:
            start = offsets[start] if start < len(offsets) else size
            end = offsets[end] if end < len(offsets) else size
            end = max(end, start + 1)
        end = min(end, size)
        if start < end:
            spans.append((start, end, style))
            edges.update((start, end))
    bounds = sorted(edges)
    styles: list[list[str]] = [[] for _ in bounds]
    where = {edge: index for index, edge in enumerate(bounds)}
    for start, end, style in spans:
        for index in range(where[start], where[end]):
            styles[index].append(style)
    return tuple((text[bounds[index] : bounds[index + 1]], " ".join(styles[index])) for index in range(len(bounds) - 1))
