"""A foreign file as its reader gets it: opened as often as needed, never read as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from agenteval_tui.exchange.json_reader import JsonReader, reduced
from agenteval_tui.exchange.json_stream import Broken, Item, read_values
from agenteval_tui.text.problems import AgentevalError

LARGEST_DOCUMENT = 32_000_000
"""Bytes of a file that is read as a whole (YAML, and JSON that holds tests)."""


class Source:
    """The file at `path`. A context manager: what was opened through it is closed with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self._open: list[IO[bytes]] = []
        self._furthest = 0

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in self._open:
            one.close()

    @property
    def done(self) -> int:
        """The bytes that were read so far, as far as a bar of progress needs to know."""
        now = max((one.tell() for one in self._open[-1:] if not one.closed), default=0)
        self._furthest = max(self._furthest, now)
        return self._furthest

    def open(self) -> IO[bytes]:
        """The file's bytes, from the beginning."""
        handle = self.path.open("rb")
        self._open.append(handle)
        return handle

    def values(self) -> Iterator[Item | Broken]:
        """The elements of the file's list, or its values one after another (JSON Lines). What was shortened in one is a
        note behind it."""
        for one in read_values(self.open(), reduce=reduced):
            yield one
            if isinstance(one, Item):
                for place, said in one.shortened:
                    yield Broken(f"`{place}` was {said}", one.number, one.line, note=True, container=one.container)

    def reader(self) -> JsonReader:
        """The file as one large JSON document."""
        return JsonReader(self.open())

    def document(self) -> bytes:
        """The whole file. Raises `AgentevalError` when it is larger than `LARGEST_DOCUMENT`."""
        with self.open() as handle:
            data = handle.read(LARGEST_DOCUMENT + 1)
        if len(data) > LARGEST_DOCUMENT:
            raise AgentevalError(
                f"this file is larger than {LARGEST_DOCUMENT // 1_000_000} MB: too large for one that holds tests",
                where=str(self.path),
                mend="split it",
            )
        return data
