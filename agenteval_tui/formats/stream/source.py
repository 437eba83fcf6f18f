"""A foreign file as its reader gets it: opened as often as needed, never read as a whole."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from msgspec import Struct

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import PACKINGS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.stream.json_reader import JsonReader, reduced
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement, read_values

LARGEST_UNPACKED, ALWAYS, TIMES = 4_000_000_000, 50_000_000, 500
"""The most bytes that a packed file may unpack to: this many always, and this many times its size. More is a bomb."""
LARGEST_DOCUMENT = 32_000_000
"""Bytes of a file that is read as a whole (YAML, and JSON that holds tests)."""


class Packing(Struct, frozen=True):
    """How runs lie in another file. `unpack` writes what is in the file at a path into another, and gives why it is not
    complete ("" where it is); it raises `AgentevalError` for a file that holds nothing."""

    is_packed: Callable[[Path], bool]
    unpack: Callable[[Path, IO[bytes]], str]


class Source:
    """The file at `path`. A context manager: what was opened through it is closed with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_off = ""
        """Why what is packed in the file could not be unpacked to its end; "" when it could, or nothing is packed."""
        self.decoded_badly = False
        """Whether bytes of the document that are not UTF-8 were replaced, where it was decoded as a whole."""
        self._open: list[IO[bytes]] = []
        self._readers: list[JsonReader] = []
        self._furthest = 0
        self._unpacked: IO[bytes] | None = None
        self._read_from = path
        # Unpacked once, onto the disk: it is read more than once, and an archive in it from its end.
        for packing in _packings():
            if packing.is_packed(path):
                self._unpacked = tempfile.NamedTemporaryFile(prefix="agenteval-")  # noqa: SIM115 - closed at the exit
                self._read_from = Path(self._unpacked.name)
                try:
                    self.cut_off = packing.unpack(path, self._unpacked)
                # Closing deletes it. `__exit__` is not called for what could not be made.
                except BaseException:
                    self._unpacked.close()
                    raise
                break
        self.size = self._read_from.stat().st_size

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self._open:
            file.close()
        if self._unpacked is not None:
            self._unpacked.close()

    @property
    def done(self) -> int:
        """The bytes that were read so far, as far as a bar of progress needs to know."""
        # The file that was opened last is the one that is being read.
        now = max((file.tell() for file in self._open[-1:] if not file.closed), default=0)
        self._furthest = max(self._furthest, now)
        return self._furthest

    def open(self) -> IO[bytes]:
        """The file's bytes, from the beginning."""
        handle = self._read_from.open("rb")
        self._open.append(handle)
        return handle

    def values(self) -> Iterator[JsonElement | BrokenElement]:
        """The elements of the file's list, or its values one after another (JSON Lines). What was shortened in one is a
        note behind it."""
        for element in read_values(self.open(), reduce=reduced):
            yield element
            if isinstance(element, JsonElement):
                for place, problem in element.shortened:
                    yield BrokenElement(
                        f"`{place}` was {problem}", element.number, element.line, note=True, container=element.container
                    )

    def reader(self) -> JsonReader:
        """The file as one large JSON document."""
        reader = JsonReader(self.open())
        self._readers.append(reader)
        return reader

    @property
    def replaced(self) -> bool:
        """Whether a reader of the whole document met bytes that are not UTF-8; they were replaced."""
        return self.decoded_badly or any(reader.replaced for reader in self._readers)

    def document(self) -> bytes:
        """The whole file. Raises `AgentevalError` when it is larger than `LARGEST_DOCUMENT`."""
        with self.open() as handle:
            # One more than may be there: so its size is known without a look at the whole.
            data = handle.read(LARGEST_DOCUMENT + 1)
        if len(data) > LARGEST_DOCUMENT:
            raise AgentevalError(
                f"this file is larger than {LARGEST_DOCUMENT // 1_000_000} MB: too large for one that holds tests",
                where=str(self.path),
                fix="split it",
            )
        return data


def _packings() -> Iterator[Packing]:
    yield Packing(_is_gzip, _unpack)
    yield from entry_points.loaded_own(PACKINGS, "packing")


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        # The third byte is the method: there is no other than deflate.
        return file.read(3) == b"\x1f\x8b\x08"


def _unpack(path: Path, into: IO[bytes]) -> str:
    """Unpack a gzip file; why that could not be done to its end, "" when it could. Raises `AgentevalError`: a bomb."""
    most = min(LARGEST_UNPACKED, ALWAYS + TIMES * path.stat().st_size)
    room = most
    problem = ""
    with gzip.open(path) as packed:
        while True:
            try:
                block = packed.read1(1 << 18)  # what is whole of a file that is cut off
            except EOFError:
                problem = "it is cut off"
                break
            except (zlib.error, gzip.BadGzipFile) as error:
                problem = f"it is damaged ({error})"
                break
            if not block:
                break
            room -= len(block)
            if room < 0:
                raise AgentevalError(
                    f"this file unpacks to more than {most:,} bytes", where=str(path), fix="unpack it yourself"
                )
            into.write(block)
    into.flush()
    return problem
