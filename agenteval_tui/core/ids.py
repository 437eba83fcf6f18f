"""Ids that sort by time, and hashes that say whether two things are the same."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(digit + other for digit in _CROCKFORD for other in _CROCKFORD)  # two digits at once: half the work
_SHIFTS = tuple(range(120, -1, -10))
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_lock = threading.Lock()
_last = 0
_DRAWN = 64
_random: list[bytes] = []
"""What was drawn ahead: who asks the system lets other threads go first."""


def _be_another() -> None:
    """In a process that was forked: what was drawn is the other's, and so are the ids that follow its last one (within
    a millisecond, or when the clock stepped back). A lock that one of its threads held is never released here."""
    global _lock, _last
    _lock = threading.Lock()
    _random.clear()
    _last += int.from_bytes(os.urandom(9))


os.register_at_fork(after_in_child=_be_another)


def new_id() -> str:
    """A ULID: 26 characters, 48 bits of milliseconds and 80 random ones; sorts by time of making.

    Ids made by one process are strictly increasing, also within a millisecond and when the clock steps back.
    """
    global _last
    with _lock:
        if not _random:
            drawn = os.urandom(10 * _DRAWN)
            _random.extend(drawn[at : at + 10] for at in range(0, len(drawn), 10))
        value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(_random.pop(), "big")
        if value <= _last:
            value = _last + 1
        _last = value
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def short_id(uid: str) -> str:
    """The last 8 characters of an id: what people read and type. The first ones are the time, and of ids made one after
    the other they are alike."""
    return uid[-8:]


def free_name(name: str, is_taken: Callable[[str], object], between: str = "-") -> str:
    """`name`, or where that is taken the first of `name-2`, `name-3` and so on that is not."""
    free, number = name, 1
    while is_taken(free):
        number += 1
        free = f"{name}{between}{number}"
    return free


def short_hash(content: str) -> str:
    """The first 8 digits of a hash, as people read and type it."""
    return content[:8]


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text. NaN is written as Python does."""
    return _canonical(value)


def content_hash(value: object) -> str:
    """The first 128 bits of SHA-256 over `canonical_json(value)`, as 32 hexadecimal digits."""
    data = canonical_json(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def now_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def criterion_names(names: Iterable[str]) -> tuple[str, ...]:
    """What tells the criteria of one test apart: the name of each, made unique.

    A criterion without a name is called by its position (`criterion 3`). Where two have one name, position decides:
    the first keeps the name, the others are `NAME (2)`, `NAME (3)`. Unique names come back as they are, so names that
    were made unique stay the same when this is called again.
    """
    filled = [name if name.strip() else f"criterion {number}" for number, name in enumerate(names, 1)]
    if len(set(filled)) == len(filled):
        return tuple(filled)
    used, counts = set(filled), dict[str, int]()
    unique_names: list[str] = []
    for name in filled:
        counts[name] = counts.get(name, 0) + 1
        unique = name
        if counts[name] > 1:
            unique = f"{name} ({counts[name]})"
            while unique in used:
                unique += "'"
            used.add(unique)
        unique_names.append(unique)
    return tuple(unique_names)
