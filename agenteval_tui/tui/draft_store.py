"""Edits that were not saved, kept in the data folder a moment after each change: a crash loses none."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import PRIVATE, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private, read_small

VERSION = 1
WRITE_AFTER_S = 0.5
"""How long after an edit its draft is written."""
MOST = 200  # drafts that are kept; the oldest go
LARGEST = 32 << 20  # bytes of one, as of a suite
"""How many are kept; the oldest go first."""


class StoredDraft(Struct, frozen=True):
    """One draft. `kind`: "test" or "config"; `suite` and `test` say of what, `part` of which part of the test.

    `when_ms`: when it was written, milliseconds since 1970. `data` is what the screen that made it needs again.
    """

    kind: str
    suite: str
    test: str
    part: str
    when_ms: int
    data: Mapping[str, Any]


class Drafts:
    """The drafts of one data folder. Every method may take a moment; a failed read or write is not an error: a draft is
    only a safety net, and the editor holds the text itself."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or directories.data_dir() / "drafts"
        self._waiting: dict[tuple[str, str, str, str], Mapping[str, Any] | None] = {}
        self._writing = threading.Lock()

    def put(self, kind: str, suite: str, test: str, part: str, data: Mapping[str, Any] | None) -> bool:
        """What `write` keeps of this; None: it forgets the draft. Of each draft the newest state waits.

        Takes no time. True: nothing else was waiting, so `write` must be called, in a moment.
        """
        self._waiting[kind, suite, test, part] = data
        return len(self._waiting) == 1

    def write(self) -> None:
        """Write all that waits: in a thread, and at the end. An older state never lands on a newer one."""
        with self._writing:
            while self._waiting:
                place, data = self._waiting.popitem()
                if data is None:
                    self._forget(*place)
                else:
                    self.keep(*place, data)

    def keep(self, kind: str, suite: str, test: str, part: str, data: Mapping[str, Any]) -> bool:
        """Write a draft in place of the one before; False when it can't be written."""
        now = time.time_ns() // 1_000_000
        header = {"version": VERSION, "kind": kind, "suite": suite, "test": test, "part": part, "when_ms": now}
        path = self._path(kind, suite, test, part)
        try:
            make_private(self.folder.parent)
            make_private(self.folder)
            # A text may contain half a character; JSON can hold it escaped.
            encoded = json.dumps({**header, "data": data}).encode("ascii")
            write_whole(path, (encoded,), mode=PRIVATE, durable=False)
            self._forget_oldest()
        except OSError:
            return False
        return True

    def drop(self, kind: str, suite: str, test: str, part: str = "") -> None:
        """Forget a draft, also one that waits to be written."""
        with self._writing:
            self._waiting.pop((kind, suite, test, part), None)
            self._forget(kind, suite, test, part)

    def _forget(self, kind: str, suite: str, test: str, part: str) -> None:
        try:
            self._path(kind, suite, test, part).unlink(missing_ok=True)
        except OSError:
            # It stays, and is offered once more: a person decides about it then.
            return

    def find(self, kind: str, suite: str, test: str, part: str = "") -> StoredDraft | None:
        """The draft of this, if there is one."""
        return _read(self._path(kind, suite, test, part))

    def listed(self, kind: str) -> list[StoredDraft]:
        """All drafts of a kind, the newest first."""
        try:
            paths = list(self.folder.glob(f"{kind}-*.json"))
        except OSError:
            return []
        stored_drafts = [stored_draft for stored_draft in map(_read, paths) if stored_draft is not None]
        return sorted(stored_drafts, key=lambda stored_draft: stored_draft.when_ms, reverse=True)

    def _path(self, kind: str, suite: str, test: str, part: str) -> Path:
        name = "\x1f".join((suite, test, part)).encode("utf-8", "surrogatepass")
        return self.folder / f"{kind}-{hashlib.sha256(name).hexdigest()[:32]}.json"

    def _forget_oldest(self) -> None:
        paths = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in paths[: max(len(paths) - MOST, 0)]:
            path.unlink(missing_ok=True)


def _read(path: Path) -> StoredDraft | None:
    try:
        data = json.loads(read_small(path, "a draft", LARGEST) or "")
        if data["version"] != VERSION or not isinstance(data["data"], dict):
            return None
        kind, suite, test, part = (data[key] for key in ("kind", "suite", "test", "part"))
        if not all(isinstance(text, str) for text in (kind, suite, test, part)):
            return None
        return StoredDraft(kind, suite, test, part, int(data["when_ms"]), data["data"])
    # A damaged draft is none: the test is in the suite's file.
    except (AgentevalError, ValueError, TypeError, KeyError, RecursionError):
        return None
