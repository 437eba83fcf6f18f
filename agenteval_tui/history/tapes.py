"""What the programs of runs asked of models, as a proxy kept it: for a replay up to the first change."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.history.blobs import clean, inflated
from agenteval_tui.history.import_validation import LARGEST_VALUE


def pack_tape(tape: Sequence[Mapping[str, Any]]) -> bytes:
    """Exchanges as JSON, compressed."""
    return zlib.compress(json.dumps(list(tape)).encode(), 6)


def tape_of(connection: sqlite3.Connection, run_id: str) -> list[dict[str, Any]]:
    """The exchanges of a run, as JSON; [] where none were kept, or they can't be read any more."""
    row = connection.execute(
        "SELECT t.data FROM tapes t JOIN runs r ON r.id = t.run WHERE r.uid = ?", (clean(run_id),)
    ).fetchone()
    if row is None:
        return []
    try:
        found = json.loads(inflated(row[0], LARGEST_VALUE, words=False))
    except (ValueError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
