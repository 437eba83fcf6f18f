"""Where two JSON values differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading.json_text import dotted
from agenteval_tui.grading.metrics.matchers import same_json, type_of
from agenteval_tui.grading.words import shown

Path = tuple[str | int, ...]


def differences(expected: Any, found: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The places where `found` is not what is expected, with a reason each. Numbers compare by value (1 is 1.0)."""
    where = dotted(path)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key, item in expected.items():
            if key in found:
                yield from differences(item, found[key], (*path, key))
            else:
                yield path, f"`{key}` is missing in {where} (expected {shown(item, 40)})"
        for key, item in found.items():
            if key not in expected:
                yield (*path, key), f"{dotted((*path, key))} = {shown(item, 40)} is not expected"
    elif isinstance(expected, list) and isinstance(found, list):
        for number, (item, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(item, other, (*path, number))
        if len(expected) > len(found):
            yield path, f"{where} has {len(found)} items, expected {len(expected)}"
        for number in range(len(expected), len(found)):
            at = (*path, number)
            yield at, f"{dotted(at)} = {shown(found[number], 40)} is not expected"
    elif not same_json(expected, found):
        yield path, f"{where} is {shown(found, 40)}{_type(expected, found)}, expected {shown(expected, 40)}"


def _type(expected: Any, found: Any) -> str:
    return f" ({type_of(found)})" if type_of(expected) != type_of(found) else ""
