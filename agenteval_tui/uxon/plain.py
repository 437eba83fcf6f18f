"""Names and plain values: what the tokens say that are neither bracket nor separator."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval_tui.uxon import mistakes
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.strings import read_string
from agenteval_tui.uxon.tokens import Token
from agenteval_tui.uxon.tree import Node, NodeKind
from agenteval_tui.uxon.words import NUMBER, read_number, read_word

_LITERALS = {"true": True, "false": False, "null": None}
_QUOTES = "\"'`“”„‟"
_TEMPLATE = re.compile(r"\{\{[ \t]*\w[\w.\- \t|]*\}\}(?![ \t]*:)")
_NONE: tuple[Diagnostic, ...] = ()


def read_name(text: str, token: Token) -> tuple[str, Sequence[Diagnostic]]:
    """A property name, and what is wrong with how it is written."""
    start, end = token.start, token.end
    source = text[start:end]
    if source[0] == '"' and end - start > 1 and source[-1] == '"' and "\\" not in source and source.isprintable():
        return source[1:-1], _NONE
    if source[0] in _QUOTES:
        return read_string(text, start, end)
    return source, (mistakes.bare_name(source, start),)


def read_plain(text: str, tokens: Sequence[Token], index: int) -> tuple[Node, int, Sequence[Diagnostic]]:
    """The string, number, literal or bare words at `tokens[index]`; the index behind it; what is wrong with it."""
    token = tokens[index]
    start, end = token.start, token.end
    source = text[start:end]
    if source[0] == '"' and source[-1] == '"' and "\\" not in source and end - start > 1 and source.isprintable():
        return Node("string", start, end, source[1:-1]), index + 1, _NONE
    if source[0] in _QUOTES:
        value, problems = read_string(text, start, end)
        return Node("string", start, end, value), index + 1, problems
    index, end = _words(text, tokens, index)
    if end == token.end and token.kind != "error":
        if source in _LITERALS:
            return Node("literal", start, end, _LITERALS[source]), index, _NONE
        if NUMBER.fullmatch(source):
            number, problem = read_number(source, start)
            return Node("number", start, end, number), index, (problem,) if problem else _NONE
    kind, meant, problem = read_word(text[start:end], start)
    node_kind: NodeKind = "literal" if kind == "literal" else "number" if kind == "number" else "string"
    return Node(node_kind, start, end, meant), index, (problem,)


def _words(text: str, tokens: Sequence[Token], index: int) -> tuple[int, int]:
    """All bare words up to the end of the line are one value: the index behind them, and where they end."""
    kind, end = tokens[index].kind, tokens[index].end
    index += 1
    while index < len(tokens):
        follows = tokens[index]
        if follows.kind not in ("error", "number", "literal") or "error" not in (kind, follows.kind):
            break
        between = text[end : follows.start]
        if text[follows.start] == ";" or "\n" in between or "/" in between:
            break
        kind, end = "error", follows.end
        index += 1
    return index, end


def template_end(text: str, start: int) -> int | None:
    """Where the `{{name}}` ends that stands outside of a string at `start`; None if there is none."""
    found = _TEMPLATE.match(text, start)
    return found.end() if found else None
