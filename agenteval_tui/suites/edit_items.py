"""The items of a YAML list as pieces of text: moving, copying and removing them with the comments that are theirs.

A comment that stands directly above an item, no deeper than its dash, belongs to it; a deeper one below it belongs to
the item before. What stands apart (behind an empty line) belongs to nobody and stays where it is, as do the empty
lines between items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval_tui.suites.source import body_start
from agenteval_tui.suites.yaml_edit import Edit, apply, content_end, line_end
from agenteval_tui.suites.yaml_tree import Alias, Mapping, Node, Scalar, resolve
from agenteval_tui.suites.yaml_tree import Sequence as SequenceNode

Span = tuple[int, int]


def item_column(text: str, listed: SequenceNode) -> int:
    """The column of a block list's dashes."""
    dash = text.rfind("-", 0, listed.items[0].start)
    return dash - (text.rfind("\n", 0, dash) + 1)


def spans(text: str, listed: SequenceNode) -> list[Span] | None:
    """Where each item stands in the text, with its comments; None when they can't be told apart (`- - a`)."""
    if listed.flow:
        return [(item.start, content_end(item, text)) for item in listed.items]
    found: list[Span] = []
    before = 0
    for item in listed.items:
        dash = text.rfind("-", 0, item.start)
        start = text.rfind("\n", 0, dash) + 1
        if text[start:dash].strip(" ") or start < before:
            return None
        column = dash - start
        while (
            (above := _line_above(text, start)) is not None
            and above >= before
            and _comment(text, above) in (range(column + 1))
        ):
            start = above
        end = line_end(text, _whole_end(item, text))
        while (below := text.find("\n", end)) >= 0 and _comment(text, below + 1) > column:
            end = line_end(text, below + 1)
        found.append((start, end))
        before = end
    return found


def _line_above(text: str, start: int) -> int | None:
    return text.rfind("\n", 0, start - 1) + 1 if start > 0 else None


def _comment(text: str, start: int) -> int:
    """The column of a line's comment, if the line is nothing else; -1 otherwise."""
    line = text[start : line_end(text, start)]
    bare = line.lstrip(" ")
    return len(line) - len(bare) if bare.startswith("#") else -1


def _whole_end(node: Node, text: str) -> int:
    """Where an item ends; a block that keeps the empty lines behind it ends behind them."""
    end = content_end(node, text)
    last = node
    while not isinstance(last, Alias) and not isinstance(last, Scalar) and not last.flow:
        children = (
            last.items
            if isinstance(last, SequenceNode)
            else [value for key, value in last.pairs if last.start <= key.start <= last.end]
        )
        if not children:
            break
        last = children[-1]
    if isinstance(last, Scalar) and last.style in ("|", ">") and last.text.endswith("\n\n"):
        return max(end, len(text[: last.end].rstrip(" ").removesuffix("\n").removesuffix("\r")))
    return end


def arranged(text: str, listed: SequenceNode, order: Sequence[int]) -> Iterator[str]:
    """The text with its items in another order; what stands between them stays between them."""
    where = spans(text, listed)
    if where is None:
        return
    parts = [text[: where[0][0]]]
    for place, index in enumerate(order):
        start, end = where[index]
        behind = where[place + 1][0] if place + 1 < len(where) else len(text)
        parts += [text[start:end], text[where[place][1] : behind]]
    yield "".join(parts)


def removed(text: str, listed: SequenceNode, index: int) -> Iterator[str]:
    """The text without an item (there are others); comments that are nobody's stay."""
    where = spans(text, listed)
    if where is None:
        return
    start, end = where[index]
    behind = text[end : where[index + 1][0]] if index + 1 < len(where) else None
    before = text[where[index - 1][1] : start] if index else None
    if behind is not None and "#" not in behind:
        yield apply(text, [Edit(start, where[index + 1][0], "")])
    if before is not None and "#" not in before:
        yield apply(text, [Edit(where[index - 1][1], end, "")])
    if not listed.flow:
        following = text.find("\n", end)
        yield apply(text, [Edit(start, len(text) if following < 0 else following + 1, "")])


def inserted(text: str, listed: SequenceNode, at: int, item: str, eol: str, *, apart: bool) -> Iterator[str]:
    """The text with `item` (as it is written there: a block item from its line's start) as number `at`.

    Items of a block list are as far apart as those that are there; `apart`: where there is only one yet.
    """
    where = spans(text, listed)
    if where is None:
        return
    if listed.flow:
        gap = ", "
    else:
        between = text[where[0][1] : where[1][0]] if len(where) > 1 else "\n\n" if apart else "\n"
        gap = eol * 2 if between.replace("\r", "").replace(" ", "").startswith("\n\n") else eol
    if at <= 0:
        yield apply(text, [Edit(where[0][0], where[0][0], item + gap)])
        return
    end = where[min(at, len(where)) - 1][1]
    yield apply(text, [Edit(end, end, gap + item)])
    if at >= len(where) and not listed.flow:
        # A text that owns the blank lines behind it can only be followed at the very end.
        yield (text if text.endswith("\n") else text + eol) + item + eol


def has_anchor(node: Node, text: str) -> bool:
    """Whether something in here has a name that aliases use: a copy of it would take the name away."""
    if isinstance(node, Alias):
        return False
    if "&" in text[node.start : body_start(node, text)]:
        return True
    real = resolve(node)
    if isinstance(real, SequenceNode):
        return any(has_anchor(item, text) for item in real.items)
    if isinstance(real, Mapping):
        return any(has_anchor(one, text) for key, one in real.pairs if real.start <= key.start <= real.end)
    return False
