"""The paid answers of a recording or a continuation, in a file until its run is in the history. After a crash or
`kill -9`, the same command uses them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.recording.cassette import Volatile, left_in
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question, encoded, to_json
from agenteval_tui.agents.recording.playback import PaidAnswers
from agenteval_tui.core.atomic_write import PRIVATE, append_whole, write_whole
from agenteval_tui.core.directories import data_dir
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.private_files import make_private
from agenteval_tui.history.process_liveness import is_alive, owner_name

KEPT_S = 24 * 3600
"""The age at which the answers are removed: models and tools may answer differently by then."""
_OWNER = "owner"
_SUFFIX = ".jsonl"


class UnfinishedRecording:
    """The answers of one run. A session takes its `paid` answers and adds new ones; call `done` when the run is stored.
    If the file can't be written, nothing is kept.

    `what`: JSON data that is the same for a recording and the one that it continues, such as the command. `volatile`:
    the parts of its requests that vary.
    """

    def __init__(self, what: Sequence[Any], volatile: Sequence[Volatile] = ()) -> None:
        key = content_hash(list(what))
        # A random part in the name: two equal recordings at the same time must not share a file.
        self._path = data_dir() / "recordings" / f"{key}.{token_hex(8)}{_SUFFIX}"
        leftovers = _left(self._path.parent, key)
        self._left = tuple(leftover.path for leftover in leftovers)
        self.paid = PaidAnswers([exchange for leftover in leftovers for exchange in leftover.exchanges], volatile)

    def add(self, exchange: Exchange) -> None:
        """Keep a server's answer. If it does not fit onto the disk, the run continues without."""
        text = encoded(to_json(exchange)) + "\n"
        with suppress(OSError):
            make_private(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, PRIVATE), "wb", buffering=0) as file:
                head = "" if os.fstat(file.fileno()).st_size else json.dumps({_OWNER: owner_name()}) + "\n"
                # Owner and answer in one write: no other process may see a file without its owner.
                append_whole(file.fileno(), (head + text).encode())

    def take(self, question: Question) -> Answer | None:
        """One of the `paid` answers."""
        return self.paid.take(question)

    def leave(self) -> None:
        """Leave the answers for the next recording, also one of this process: the run was stopped."""
        with suppress(OSError):
            _, _, rest = self._path.read_bytes().partition(b"\n")
            head = json.dumps({_OWNER: ""}).encode() + b"\n"
            write_whole(self._path, (head, rest), mode=PRIVATE, durable=False)

    def done(self) -> None:
        """Remove the answers: the run is in the history."""
        for path in (self._path, *self._left):
            with suppress(OSError):
                path.unlink(missing_ok=True)


class _Left(Struct, frozen=True):
    path: Path
    exchanges: tuple[Exchange, ...]


def _left(folder: Path, key: str) -> list[_Left]:
    """The files that ended processes left of such a recording, the oldest first. Removes files that are too old."""
    leftovers, paths = [], list[Path]()
    with suppress(OSError):
        paths = list(folder.glob(f"*{_SUFFIX}"))
    for path in paths:
        with suppress(OSError):  # another process may have ended, and taken its file away
            changed = path.stat().st_mtime
            if time.time() - changed > KEPT_S:
                path.unlink(missing_ok=True)
            elif path.name.startswith(f"{key}."):
                first, _, rest = path.read_text(encoding="utf-8", errors="replace").partition("\n")
                # Those of a living process are its own: it may still be asking.
                if not is_alive(_owner(first)):
                    leftovers.append((changed, _Left(path, left_in(rest))))
    return [leftover for _, leftover in sorted(leftovers, key=lambda pair: pair[0])]


def _owner(line: str) -> str:
    try:
        return str(json.loads(line)[_OWNER])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
