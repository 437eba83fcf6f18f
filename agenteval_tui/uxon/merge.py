"""One config that was edited on both sides: the changes of both, in one text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import Fix
from agenteval_tui.uxon.edit import Path, node_of, remove, set_value
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tree import Document

_GONE = object()


class BothChanged(Struct, frozen=True):
    """A value that the two sides changed to different ones. None where a side took it out."""

    path: Path
    mine: Any
    theirs: Any


class MergedText(Struct, frozen=True):
    """Both edits in one text. Where both changed the same value, the text has mine."""

    text: str
    both: tuple[BothChanged, ...] = ()


def merge(base: str, mine: str, theirs: str) -> MergedText:
    """Make my edit of `base` in `theirs`. What I changed in comments and layout alone is not in it.

    If one of the texts can't be read, or has no such place any more, my whole text stands against theirs.
    """
    # Before anything is read: with one side alone there is nothing to merge, and comments are kept as well.
    if theirs in (base, mine):
        return MergedText(mine)
    if mine == base:
        return MergedText(theirs)
    documents = [parse(text) for text in (base, mine, theirs)]
    whole = MergedText(mine, (BothChanged((), mine, theirs),))
    if any(document.broken or document.root is None for document in documents):
        return whole
    before, now, other = (document.value for document in documents)
    text, both = theirs, list[BothChanged]()
    # From the end of lists: taking one entry out moves those behind it.
    for path in reversed(list(_changed(before, now))):
        if not _lists_fit(before, other, path):
            return whole
        changed, there, was = (_at(value, path) for value in (now, other, before))
        if _same(there, changed):
            continue
        if not _same(there, was):
            both.append(BothChanged(path, None if changed is _GONE else changed, None if there is _GONE else there))
        # Read anew: each change moves the places of the others.
        fix = _edit(parse(text), path, changed)
        if fix is None:
            return whole
        text = fix.apply(text)
    return MergedText(text, tuple(reversed(both)))


def _changed(before: object, now: Any, path: Path = ()) -> Iterator[Path]:
    """The places that differ, as deep as both have the same shape."""
    if _same(before, now):
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _changed(before.get(key, _GONE), now.get(key, _GONE), (*path, key))
    # Of lists that grew or shrank it is not known which entry is which: such a list is one value.
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _changed(old, new, (*path, place))
    else:
        yield path


def _same(value: object, other: object) -> bool:
    return value is other or (
        value is not _GONE and other is not _GONE and type(value) is type(other) and bool(value == other)
    )


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _GONE
        elif not isinstance(value, dict) or step not in value:
            return _GONE
        value = value[step]
    return value


def _lists_fit(before: object, other: object, path: Path) -> bool:
    """Whether a place in lists is the same one on the other side: no entry came or went there."""
    for place, step in enumerate(path):
        lists = _at(before, path[:place]), _at(other, path[:place])
        if isinstance(step, int) and (not isinstance(lists[1], list) or len(lists[0]) != len(lists[1])):
            return False
    return True


def _edit(document: Document, path: Path, value: object) -> Fix | None:
    if value is _GONE:
        return remove(document, path) if node_of(document, path) is not None else None
    return set_value(document, path, value)
