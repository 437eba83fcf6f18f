"""Ids that sort by time, and hashes that say whether two things are the same."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from typing import Any

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(one + other for one in _CROCKFORD for other in _CROCKFORD)  # two digits at once: half the work
_SHIFTS = tuple(range(120, -1, -10))
# Made once: `json.dumps` with options makes one a call.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A ULID: 26 characters, 48 bits of milliseconds and 80 random ones; sorts by time of making.

    Ids made by one process are strictly increasing, also within a millisecond and when the clock steps back.
    """
    global _last
    with _lock:
        value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
        if value <= _last:
            value = _last + 1
        _last = value
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text. NaN is written as Python does."""
    return _canonical(value)


def content_hash(value: Any) -> str:
    """The first 128 bits of SHA-256 over `canonical_json(value)`, as 32 hexadecimal digits."""
    data = canonical_json(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def now_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
