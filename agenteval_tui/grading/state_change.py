"""What changed between two values of a probe, as JSON: {} where nothing did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.ids import canonical_json
from agenteval_tui.grading.json_reading import NotJsonError, UnreadableJsonError, read_json
from agenteval_tui.grading.metrics.matchers import same_json
from agenteval_tui.grading.spec import json_like


def change_between(before: object, after: Any) -> dict[str, Any]:
    """The change from one JSON value to another.

    Of objects: `added` and `removed` with their keys, and `changed` with `before` and `after` of each key. Of lists:
    what was `added` and `removed`, wherever it is in them. Of two texts that are JSON objects or lists: the change of
    these. Of anything else, and of lists that differ only in their order: `before` and `after`.
    """
    if same_json(before, after):
        return {}
    was, now = _structure(before), _structure(after)
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return _of_objects(was, now)
    if isinstance(was, list) and isinstance(now, list):
        change = _of_lists(was, now)
        if change:
            return change
    return {"before": before, "after": after}


def _structure(value: object) -> object:
    """The object or list that a text holds; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return read_json(value)
        except (NotJsonError, UnreadableJsonError):
            return value
    return value


def _of_objects(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] = {
        "added": {key: value for key, value in after.items() if key not in before},
        "removed": {key: value for key, value in before.items() if key not in after},
        "changed": {
            key: {"before": value, "after": after[key]}
            for key, value in before.items()
            if key in after and not same_json(value, after[key])
        },
    }
    return {name: part for name, part in change.items() if part}


def _of_lists(before: list[Any], after: list[Any]) -> dict[str, Any]:
    was, now = [_key(item) for item in before], [_key(item) for item in after]
    change = {"added": _beyond(after, now, was), "removed": _beyond(before, was, now)}
    return {name: part for name, part in change.items() if part}


def _beyond(items: list[Any], keys: list[str], others: list[str]) -> list[Any]:
    """The items of one list that the other does not have, or not so often."""
    remaining = Counter(others)
    beyond = []
    for item, key in zip(items, keys, strict=True):
        if remaining[key]:
            remaining[key] -= 1
        else:
            beyond.append(item)
    return beyond


def _key(value: object) -> str:
    """Equal for values that are equal as JSON: 1 is 1.0."""
    return canonical_json(json_like(_plain(value)))


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
