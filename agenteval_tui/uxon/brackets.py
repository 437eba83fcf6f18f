"""Which bracket was forgotten, and which is wrong? Decided by what the rest of the text closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agenteval_tui.uxon.tokens import Token

_OPENING = {"}": "{", "]": "["}
_AHEAD = 4000  # tokens


def skip(text: str, tokens: Sequence[Token], index: int) -> int:
    """The index behind the bracket that closes the one at `index`; the end when nothing does."""
    depth = 0
    for position in range(index, len(tokens)):
        if tokens[position].kind in ("brace", "bracket"):
            depth += 1 if text[tokens[position].start] in "{[" else -1
            if depth == 0:
                return position + 1
    return len(tokens)


def unmatched(text: str, tokens: Sequence[Token], index: int) -> str | None:
    """The openings that the closing brackets from `index` on still want, in their order; None: too far to look."""
    if len(tokens) - index > _AHEAD:
        return None
    depth: list[str] = []
    wanted: list[str] = []
    for position in range(index, len(tokens)):
        if tokens[position].kind not in ("brace", "bracket"):
            continue
        char = text[tokens[position].start]
        if char in "{[":
            depth.append(char)
        elif depth and depth[-1] == _OPENING[char]:
            depth.pop()
        elif not depth:
            wanted.append(_OPENING[char])
    return "".join(wanted)


def closes_one_more(text: str, tokens: Sequence[Token], index: int, char: str) -> bool:
    """Whether exactly one bracket `char` from `index` on has no partner."""
    return unmatched(text, tokens, index) == _OPENING[char]


def judge(
    text: str, tokens: Sequence[Token], index: int, stack: Sequence[str], *, ahead: bool
) -> Literal["insert", "replace", "remove"]:
    """What to do about the closing bracket at `index` that does not fit the innermost of `stack`."""
    opening = _OPENING[text[tokens[index].start]]
    can_insert = opening in stack
    rest = unmatched(text, tokens, index + 1) if ahead else None
    if rest is not None and stack[-1]:
        outer = "".join(reversed(stack[:-1]))
        if rest == outer:
            return "replace"
        if rest == outer[1:] and can_insert and outer[:1] == opening:
            return "insert"
        if not can_insert and rest.startswith(stack[-1]):
            return "remove"
    if can_insert:
        return "insert"
    return "remove"
