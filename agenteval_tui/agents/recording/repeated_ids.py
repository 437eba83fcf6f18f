"""Ids that a program makes anew in each run, and that the model repeats: a recorded answer gets those of now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.recording.cassette import PATTERNS
from agenteval_tui.agents.recording.exchange import Answer, Question, encoded
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.json_values import is_too_deep, parsed_json, with_texts

IDS = ("uuid", "hex", "id")
"""The patterns of what a model repeats. A date or a number in its answer is its own word."""
_ID = re.compile("|".join(PATTERNS[name].pattern for name in IDS))
_DATA = re.compile(r"^(?:data: ?)?(\{.*\})[ \t\r]*$", re.MULTILINE)
"""The JSON data of an event, alone in its line."""


def with_ids(value: object, ids: Mapping[str, str]) -> object:
    """The value with other ids in its texts: `ids` are those of now by the recorded ones."""
    pattern = _any_of(ids)
    return with_texts(value, lambda text: pattern.sub(lambda match: ids[match.group()], text))


def ids_between(recorded: Question, now: Question) -> dict[str, str]:
    """The ids of now by the recorded ones, from the texts of two requests that are equal but for what varies."""
    ids: dict[str, str] = {}
    ambiguous = set()
    for text, other in _texts_that_differ(recorded.body, now.body):
        names, others = _ID.findall(text), _ID.findall(other)
        for name, other_name in zip(names, others, strict=True) if len(names) == len(others) else ():
            if ids.setdefault(name, other_name) != other_name:
                ambiguous.add(name)
    return {name: other for name, other in ids.items() if name != other and name not in ambiguous}


def answer_with_ids(answer: Answer, ids: Mapping[str, str]) -> Answer:
    """A recorded answer with the ids of now. Events of a stream in which none of the ids is stay as they were sent."""
    if not ids or answer.body is None:
        return answer
    body = _with_ids_in_stream(answer.body, ids) if answer.streamed else with_ids(answer.body, ids)
    return replace(answer, body=body)


def _any_of(ids: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ids))})(?!\w)")


def _texts_that_differ(value: object, other: object) -> Iterator[tuple[str, str]]:
    if value == other:
        return
    if isinstance(value, str) and isinstance(other, str):
        yield value, other
    elif isinstance(value, Mapping) and isinstance(other, Mapping):
        for key in value.keys() & other.keys():
            yield from _texts_that_differ(value[key], other[key])
    elif isinstance(value, list) and isinstance(other, list):
        for item, other_item in zip(value, other, strict=False):
            yield from _texts_that_differ(item, other_item)


def _with_ids_in_stream(events: Sequence[str], ids: Mapping[str, str]) -> tuple[str, ...]:
    """A stream cuts texts into pieces, and so ids: pieces at the same place of the events are one text."""
    pattern = _any_of(ids)
    matches = [_DATA.search(event) for event in events]
    data = [None if match is None or is_too_deep(value := parsed_json(match[1])) else value for match in matches]
    by_place = grouped(
        (place, (number, holder, key)) for number, value in enumerate(data) for place, holder, key in _places(value)
    )
    changed = set()
    for pieces in by_place.values():
        texts = [holder[key] for _, holder, key in pieces]
        for (number, holder, key), text, new in zip(pieces, texts, _replaced(texts, pattern, ids), strict=True):
            if text != new:
                holder[key] = new
                changed.add(number)
    return tuple(
        event[: match.start(1)] + encoded(value) + event[match.end(1) :] if match and number in changed else event
        for number, (event, match, value) in enumerate(zip(events, matches, data, strict=True))
    )


def _places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any, str | int]]:
    """Where the texts of a value are: the place, and what holds the text by which key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, str):
            yield (*place, key), value, key
        else:
            yield from _places(item, (*place, key))


def _replaced(pieces: Sequence[str], pattern: re.Pattern[str], ids: Mapping[str, str]) -> list[str]:
    """The pieces of a text with other ids in it. The piece in which an id begins gets the whole id of now."""
    matches = list(pattern.finditer("".join(pieces)))
    ends = list(accumulate(map(len, pieces)))
    new = []
    for piece, end in zip(pieces, ends, strict=True):
        start, text = end - len(piece), ""
        place = start
        for match in matches:
            if match.start() >= end or match.end() <= start:
                continue
            text += piece[place - start : max(0, match.start() - start)]
            text += ids[match.group()] if match.start() >= start else ""
            place = min(match.end(), end)
        new.append(text + piece[place - start :])
    return new
