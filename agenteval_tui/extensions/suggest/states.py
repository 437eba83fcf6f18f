"""What runs left behind: the value of a probe after the run, and what changed in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from agenteval_tui.core.phrasing import shown
from agenteval_tui.extensions.suggest.conditions import Family, Pool, bits
from agenteval_tui.extensions.suggest.examples import Examples, most_frequent, numbers
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue
from agenteval_tui.grading.extractors.state import State
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.grading.type_names import STATE

_LONGEST = 400
"""Characters of a value that is expected as a whole."""
_SHORT = 60
_MOST_VALUES = 3
_MOST_KEYS = 10
_CHANGES = {"type": "Json", "schema": {"minProperties": 1}}

Moment = Literal["change", "after"]


def state_families(examples: Examples) -> list[Family]:
    """A family for each probe of labelled runs."""
    names = {state.name for number in numbers(examples.labelled) for state in examples.runs[number].transcript.state}
    cost = bits(2 * len(names))
    return [_family(examples, name, cost) for name in sorted(names)]


def _family(examples: Examples, name: str, cost: float) -> Family:
    pool = Pool(examples)
    moments: tuple[Moment, ...] = ("change", "after")
    for moment in moments:
        for title, metric, source, more in _metrics(examples, name, moment):
            pool.add(
                title,
                metric,
                cost + more,
                source=source,
                prototype=STATE,
                extraction={"probe": name} if moment == "after" else {"probe": name, "of": moment},
                about=f"state {name} {moment}",
            )
    return pool


def _metrics(examples: Examples, name: str, moment: Moment) -> Iterator[tuple[str, dict[str, Any], int, float]]:
    """(title, metric, the runs that it was made from, bits) of what is true of good runs."""
    sources: dict[str, int] = {}
    values: dict[str, Any] = {}
    for number in numbers(examples.good):
        for value in _value(examples, number, name, moment):
            key = json.dumps(value, sort_keys=True, ensure_ascii=False)
            values[key] = value
            sources[key] = sources.get(key, 0) | 1 << number
    changed = sum(mask for key, mask in sources.items() if key != "{}") if moment == "change" else 0
    if changed:
        yield f"{name} changes", _CHANGES, changed, 1.0
    for key, mask in most_frequent(sources, _MOST_VALUES):
        value, size = values[key], len(key) / _SHORT
        if key == "{}" and moment == "change":
            yield f"{name} does not change", {"type": "Json", "equals": {}}, mask, 0.0
        elif isinstance(value, str) and len(value) <= _LONGEST:
            yield (
                f"{name} is {shown(value, 40)} afterwards",
                {"type": "TextMatch", "equals": literally(value)},
                mask,
                size,
            )
        elif not isinstance(value, str) and len(key) <= _LONGEST:
            words = "changes as expected" if moment == "change" else f"is {shown(value, 40)} afterwards"
            yield f"{name} {words}", {"type": "Json", "equals": value}, mask, 2.0 + size
        if moment == "after" and isinstance(value, dict) and value and all(key and "." not in key for key in value):
            keys = sorted(value)[:_MOST_KEYS]
            yield f"{name} has {', '.join(keys)}", {"type": "Json", "required_keys": keys}, mask, 1.0 + 0.5 * len(keys)


def _value(examples: Examples, number: int, name: str, moment: Moment) -> Iterator[Any]:
    try:
        value = State(probe=name, of=moment).extract(examples.runs[number].transcript)
    except ExtractionError:
        return
    if value is not None:
        yield value.data if isinstance(value, JsonValue) else value.text
