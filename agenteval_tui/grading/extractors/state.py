"""`State`: what a probe read before or after the run, or what changed in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.ids import canonical_json
from agenteval_tui.core.json_values import with_leaves
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import PROBE_NAME
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.json_reading import JsonSource, NotJsonError, SpanMap, UnreadableJsonError, read_json
from agenteval_tui.grading.metrics.matchers import same_json
from agenteval_tui.grading.results import Span
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading, value_text


class State(Prototype):
    """What the run left behind: the value of a probe of the test's `state`, such as a row of a database or a file.

    Metrics on text get a text as it is, and any other value as compact JSON. If the probe could not be read, the
    criterion is not checked.
    """

    probe: str = Field(
        min_length=1, description="The name of a probe in `state` of the test or suite.", json_schema_extra=PROBE_NAME
    )
    of: Literal["after", "before", "change"] = Field(
        "after",
        description="after: its value after the run; before: its value before it; change: what changed, {} if "
        "nothing did (added, removed and changed of objects and lists, else before and after).",
    )

    def extract(self, transcript: Transcript) -> Value | None:
        number, state = self._state(transcript)
        if self.of == "change":
            before, after = self._read(state, "before"), self._read(state, "after")
            change = change_between(before.value, after.value)
            return JsonValue(transcript, change, JsonSource(value_text(change), _spans_of(number, "change")))
        reading = self._read(state, self.of)
        if isinstance(reading.value, str):
            return Value(transcript, reading.value, _spans_of(number, self.of))
        return JsonValue(transcript, reading.value, JsonSource(reading.text, _spans_of(number, self.of)))

    def _state(self, transcript: Transcript) -> tuple[int, ProbeState]:
        for number, state in enumerate(transcript.state):
            if state.name == self.probe:
                return number, state
        names = [probe_state.name for probe_state in transcript.state]
        fields: dict[str, Any] = {"probe": self.probe, "probes": names}
        if (near := closest(self.probe, names)) is not None:
            fields["nearest"] = near
        raise ExtractionError(code=Code.NO_STATE, **fields)

    def _read(self, state: ProbeState, moment: str) -> Reading:
        reading = state.before if moment == "before" else state.after
        if reading is None:
            raise ExtractionError(code=Code.NO_STATE, probe=self.probe, of=moment, probes=[])
        if reading.problem:
            about: dict[str, Any] = {
                "probe": self.probe,
                "of": moment,
                "problem": reading.problem,
                "about": dict(reading.fields),
            }
            raise ExtractionError(code=Code.STATE_UNREAD, **about)
        return reading


def _spans_of(number: int, moment: str) -> SpanMap:
    def spans(start: int, end: int) -> tuple[Span, ...]:
        return (Span("state", number, start, end, moment),)

    return spans


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
    whole = with_leaves(value, lambda leaf: int(leaf) if isinstance(leaf, float) and leaf.is_integer() else leaf)
    return canonical_json(json_like(whole))
