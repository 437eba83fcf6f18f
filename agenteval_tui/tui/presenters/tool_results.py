"""A tool's result as text to read: JSON as a line a key, like the arguments of a call; what is nested folds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agenteval_tui.tui.presenters.arguments import Body, Writer
from agenteval_tui.tui.presenters.block_layout import Fold
from agenteval_tui.tui.styled_text import cell_len

LONGEST = 100_000
"""Characters of a result that is formatted; a longer one is shown as it came."""
_MOST_KEYS = 4_000  # entries that get a line each
_KEY = 24  # cells that a key may take before its value
_SHORT = 60  # characters of a nested value that fits on one line
_LINE = 90  # characters of an entry of a nested value that fits on one line
_WITH_LINES = 8_000  # characters of a nested value whose texts are shown with their lines: that is slower
_NAMED = 3  # keys of nested objects that are named


def is_formatted(text: str) -> bool:
    """May the result be one that `result_body` formats? Looks at its start and length only."""
    return text[:64].lstrip()[:1] in ("{", "[") and len(text) <= LONGEST


def result_body(text: str) -> Body:
    """The result with its colours. A JSON object or list has a line for each entry, `key  value`; longer nested values
    are in `folds`, each with a summary ("2 × {sku, name, …}"). Anything else is shown as it is."""
    value = _read(text) if is_formatted(text) else None
    if isinstance(value, Mapping):
        entries = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        entries = [(f"[{number}]", item) for number, item in enumerate(value)]
    else:
        return Body(text)
    if not entries or len(entries) > _MOST_KEYS:
        return Body(text)
    writer = Writer()
    width = min(max(cell_len(key) for key, _ in entries), _KEY)
    for number, (key, item) in enumerate(entries):
        writer.add("\n" if number else "", "")
        start = writer.size
        writer.add(key, "json-key")
        writer.add(" " * (width - cell_len(key) + 2), "")
        _write(writer, key, item)
        writer.body.places.setdefault(key, (start, writer.size))
    return writer.done()


def _read(text: str) -> object:
    """The value; None for what is not JSON, or what a value does not hold as it was written."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_number)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key appears twice, so one of its values would be hidden")
    return mapping


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is too large to show")
    return number


_encode = json.JSONEncoder(ensure_ascii=False).encode  # made once: `json.dumps` makes one a call


def _write(writer: Writer, key: str, item: Any) -> None:
    if not (isinstance(item, Mapping | list) and item):
        writer.value(item, "", key)
        return
    if isinstance(item, Mapping):
        texts = [f"{_encode(str(name))}: {_encode(member)}" for name, member in item.items()]
    else:
        texts = list(map(_encode, item))
    size = sum(map(len, texts)) + 2 * len(texts)
    if size <= _SHORT:
        writer.compact(item)
        return
    start = writer.size
    # Texts with lines are shown with them; NaN is no JSON, but a result may hold it.
    slowly = size <= _WITH_LINES and any("\\n" in text for text in texts)
    formatted = "" if slowly else _formatted(item, texts)
    if formatted:
        writer.add(formatted, "")
    else:
        writer.value(item, "", key)
    writer.body.folds.append(Fold(start, writer.size, summary(item), styled=not formatted))


def _formatted(item: Mapping[str, Any] | Sequence[Any], texts: Sequence[str]) -> str:
    """The value as JSON, a line an entry (`texts`); longer entries indented. "" where it holds what msgspec does not
    write as it is."""
    named = isinstance(item, Mapping)
    lines: list[str] = []
    for (key, member), text in zip(item.items() if isinstance(item, Mapping) else enumerate(item), texts, strict=True):
        if len(text) > _LINE:
            if "NaN" in text or "Infinity" in text:
                return ""
            try:
                long = msgspec.json.format(msgspec.json.encode(member), indent=2).decode().replace("\n", "\n  ")
            # msgspec refuses half a character, which JSON may hold escaped: the result is shown as it came.
            except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
                return ""
            text = f"{_encode(str(key))}: {long}" if named else long
        lines.append(f"  {text}")
    opening, closing = "{}" if named else "[]"
    return opening + "\n" + ",\n".join(lines) + "\n" + closing


def summary(item: Mapping[str, Any] | Sequence[Any]) -> str:
    """A nested value in a few words: "{city, street, …}", "2 × {sku, name, …}", "12 numbers"."""
    if isinstance(item, Mapping):
        return _keys(item)
    if all(isinstance(member, Mapping) for member in item):
        return f"{len(item):,} × {_keys(item[0])}"
    kinds = {type(member) for member in item}
    what = "texts" if kinds == {str} else "numbers" if kinds <= {int, float} else "entries"
    return f"{len(item):,} {what}"


def _keys(item: Mapping[str, Any]) -> str:
    names = [str(name) for name in list(item)[:_NAMED]]
    return "{" + ", ".join([*names, "…"] if len(item) > _NAMED else names) + "}"


def moved(raw: str, formatted: str, start: int, end: int) -> tuple[int, int]:
    """Where characters `start`..`end` of the raw result are in the result as shown: the same piece of text, with the
    same number among equal pieces; the first line if it is written differently."""
    piece = raw[start:end]
    if piece:
        for text in (piece, _unescaped(piece)):
            at = -1
            for _ in range(raw.count(piece, 0, start) + 1):
                at = formatted.find(text, at + 1)
                if at < 0:
                    break
            if at >= 0:
                return at, at + len(text)
    return 0, len(formatted.partition("\n")[0])


def _unescaped(piece: str) -> str:
    try:
        unescaped = json.loads(f'"{piece}"')
    except ValueError:
        # The piece begins or ends within an escape.
        return piece
    return str(unescaped)
