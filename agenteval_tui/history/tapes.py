"""What the programs of runs asked of models, as a proxy kept it: for a replay up to the first change."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import inflated
from agenteval_tui.history.import_validation import LARGEST_VALUE

_SIDES = ("request", "answer")
"""Both may have lists that the next exchange repeats: messages, tools."""


def pack_tape(tape: Sequence[Mapping[str, Any]]) -> bytes:
    """Exchanges as JSON, compressed. A conversation is sent again and again, so that the objects in lists of requests
    and answers are in a pool, each once; the lists are stretches of it, as (first, behind the last)."""
    pool = _Pool()
    exchanges = [pool.packed(exchange) for exchange in tape]
    return zlib.compress(json.dumps({"pool": pool.items, "exchanges": exchanges}).encode(), 6)


def tape_of(connection: sqlite3.Connection, run_id: str) -> list[dict[str, Any]]:
    """The exchanges of a run, as JSON; [] where none were kept, or they can't be read any more."""
    row = connection.execute(
        "SELECT t.data FROM tapes t JOIN runs r ON r.id = t.run WHERE r.uid = ?", (storable(run_id),)
    ).fetchone()
    if row is None:
        return []
    try:
        packed = json.loads(inflated(row[0], LARGEST_VALUE, words=False))
        return list(_unpacked(packed["pool"], packed["exchanges"]) if isinstance(packed, dict) else _whole(packed))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _whole(packed: Any) -> Iterator[dict[str, Any]]:
    """A tape without a pool."""
    return (exchange for exchange in packed if isinstance(exchange, dict))


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


class _Pool:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[str, int] = {}

    def packed(self, exchange: Mapping[str, Any]) -> dict[str, Any]:
        """The exchange with an empty list for each that is in `lists`: {request or answer: {key: stretches}}."""
        reduced = dict(exchange)
        lists: dict[str, dict[str, list[list[int]]]] = {}
        for side in _SIDES:
            part = exchange.get(side)
            body = part.get("json") if isinstance(part, Mapping) else None
            if not isinstance(part, Mapping) or not isinstance(body, Mapping):
                continue
            listed = {
                key: value for key, value in body.items() if isinstance(value, list) and all(map(_is_object, value))
            }
            if listed:
                lists[side] = {key: self._stretches(listed_values) for key, listed_values in listed.items()}
                reduced[side] = {**part, "json": {key: [] if key in listed else value for key, value in body.items()}}
        return {**reduced, "lists": lists} if lists else reduced

    def _stretches(self, values: Sequence[Any]) -> list[list[int]]:
        stretches: list[list[int]] = []
        for value in values:
            key = json.dumps(value)
            place = self._places.setdefault(key, len(self.items))
            if place == len(self.items):
                self.items.append(value)
            # A request repeats the conversation before it, so a list is mostly one long stretch and the new end.
            if stretches and stretches[-1][1] == place:
                stretches[-1][1] = place + 1
            else:
                stretches.append([place, place + 1])
        return stretches


def _unpacked(pool: Sequence[Any], exchanges: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for exchange in _whole(exchanges):
        for side, lists in exchange.pop("lists", {}).items():
            for key, stretches in lists.items():
                exchange[side]["json"][key] = [item for first, end in stretches for item in pool[first:end]]
        yield exchange
