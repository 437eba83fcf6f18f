"""What the programs of runs asked of models, as a proxy kept it: for a replay up to the first change."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.history.blobs import clean, inflated
from agenteval_tui.history.import_validation import LARGEST_VALUE

_SIDES = ("request", "answer")
"""Both may have lists that the next exchange repeats: messages, tools."""


def pack_tape(tape: Sequence[Mapping[str, Any]]) -> bytes:
    """Exchanges as JSON, compressed. A conversation is sent again and again, so that the objects in lists of requests
    and answers stand in a pool, each once; the lists are stretches of it, as (first, behind the last)."""
    pool = _Pool()
    exchanges = [pool.packed(one) for one in tape]
    return zlib.compress(json.dumps({"pool": pool.items, "exchanges": exchanges}).encode(), 6)


def tape_of(connection: sqlite3.Connection, run_id: str) -> list[dict[str, Any]]:
    """The exchanges of a run, as JSON; [] where none were kept, or they can't be read any more."""
    row = connection.execute(
        "SELECT t.data FROM tapes t JOIN runs r ON r.id = t.run WHERE r.uid = ?", (clean(run_id),)
    ).fetchone()
    if row is None:
        return []
    try:
        found = json.loads(inflated(row[0], LARGEST_VALUE, words=False))
        return list(_unpacked(found["pool"], found["exchanges"]) if isinstance(found, dict) else _whole(found))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _whole(found: Any) -> Iterator[dict[str, Any]]:
    """A tape without a pool."""
    return (one for one in found if isinstance(one, dict))


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


class _Pool:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[str, int] = {}

    def packed(self, exchange: Mapping[str, Any]) -> dict[str, Any]:
        """The exchange with an empty list for each that is in `lists`: {request or answer: {key: stretches}}."""
        made = dict(exchange)
        lists: dict[str, dict[str, list[list[int]]]] = {}
        for side in _SIDES:
            given = exchange.get(side)
            body = given.get("json") if isinstance(given, Mapping) else None
            if not isinstance(given, Mapping) or not isinstance(body, Mapping):
                continue
            listed = {key: one for key, one in body.items() if isinstance(one, list) and all(map(_is_object, one))}
            if listed:
                lists[side] = {key: self._stretches(one) for key, one in listed.items()}
                made[side] = {**given, "json": {key: [] if key in listed else one for key, one in body.items()}}
        return {**made, "lists": lists} if lists else made

    def _stretches(self, values: Sequence[Any]) -> list[list[int]]:
        found: list[list[int]] = []
        for value in values:
            key = json.dumps(value)
            place = self._places.setdefault(key, len(self.items))
            if place == len(self.items):
                self.items.append(value)
            if found and found[-1][1] == place:
                found[-1][1] = place + 1
            else:
                found.append([place, place + 1])
        return found


def _unpacked(pool: Sequence[Any], exchanges: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for one in _whole(exchanges):
        for side, lists in one.pop("lists", {}).items():
            for key, stretches in lists.items():
                one[side]["json"][key] = [item for first, end in stretches for item in pool[first:end]]
        yield one
