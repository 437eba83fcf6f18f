"""Where two JSON values differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.matchers import same_json, type_of
from agenteval_tui.grading.metrics.verdicts import kept_value

Path = tuple[str | int, ...]


def differences(expected: Any, found: Any, path: Path = ()) -> Iterator[tuple[Path, Code, dict[str, Any]]]:
    """The places where `found` is not what is expected, with code and fields. Numbers compare by value (1 is 1.0)."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key, item in expected.items():
            if key in found:
                yield from differences(item, found[key], (*path, key))
            else:
                yield path, Code.MISSING, {"path": list(path), "keys": [key], "value": kept_value(item)}
        for key, item in found.items():
            if key not in expected:
                yield (*path, key), Code.UNEXPECTED, {"path": [*path, key], "value": kept_value(item)}
    elif isinstance(expected, list) and isinstance(found, list):
        for number, (item, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(item, other, (*path, number))
        if len(expected) > len(found):
            yield path, Code.TOO_FEW, {"path": list(path), "count": len(found), "least": len(expected)}
        for number in range(len(expected), len(found)):
            yield (*path, number), Code.UNEXPECTED, {"path": [*path, number], "value": kept_value(found[number])}
    elif not same_json(expected, found):
        fields = {"path": list(path), "value": kept_value(found), "wanted": kept_value(expected)}
        if type_of(expected) != type_of(found):
            fields["type"] = type_of(found)
        yield path, Code.DIFFERS, fields
