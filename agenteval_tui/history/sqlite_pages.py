"""The pages of an SQLite file and the rows on them, read without SQLite: a page that is destroyed costs no other.

The file format is https://www.sqlite.org/fileformat2.html. Whatever a page says is checked before it is followed: the
bytes may be anything. Pages are read one by one, so memory does not grow with the file, but for a few bytes a page.
"""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agenteval_tui.history.errors import MAGIC

INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
_KINDS = frozenset((INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF))
_SIZES = tuple(1 << power for power in range(9, 17))
_PROBED = 400  # pages that are looked at for the page size
_LOG_MAGIC = 0x377F0682  # the last bit says how the checksums of the log are made
_LOG_HEADER, _FRAME_HEADER = 32, 24
_JOURNAL_MAGIC, _JOURNAL_HEADER = bytes.fromhex("d9d505f920a163d7"), 28

Value = int | float | str | bytes | None


class Cut:
    """Stands for the values of a row whose end is lost."""


CUT = Cut()


class Row(NamedTuple):
    """`key`: the rowid; None in index pages. `values`: those stored; CUT from the first that is not whole."""

    key: int | None
    values: tuple[Value | Cut, ...]
    whole: bool


class Node(NamedTuple):
    """A page of a b-tree: its rows (of table pages only leaves have some), and the pages below it."""

    kind: int
    rows: list[Row]
    children: list[int]
    broken: int
    """Cells that can't be read."""

    @property
    def leaf(self) -> bool:
        """Whether no page is below it."""
        return self.kind in (INDEX_LEAF, TABLE_LEAF)


class Pages:
    """The pages (from 1) of a file, as its log or rollback journal has them where there is one. A context manager."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._file = path.open("rb")
        try:
            self._length = os.fstat(self._file.fileno()).st_size
            self._head = self._file.read(100)
            log = _Log(Path(f"{path}-wal"))
            self._log: _PagesBeside = log
            if not log.there:
                log.close()
                self._log = _Journal(Path(f"{path}-journal"))
            self.size = self._find_size()
            self._log.read(self.size)
            self._in_file = self._length // self.size
            self.count = max(self._in_file, self._log.last)
            if self._log.pages:
                self.count = min(self.count, self._log.pages)
            reserved = self.header[20] if self.header else 0
            self.usable = self.size - reserved if self.size - reserved >= 480 else self.size
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        with suppress(AttributeError):
            self._log.close()

    def numbers(self) -> Iterator[int]:
        """The existing pages except the first."""
        for number in range(2, min(self._in_file, self.count) + 1):
            yield number
        for number in self._log.numbers():
            if self._in_file < number <= self.count:
                yield number

    @property
    def header(self) -> bytes:
        """The first 100 bytes; b"" where they are not those of an SQLite file."""
        head = self.page(1)[:100]
        size = int.from_bytes(head[16:18], "big")
        return head if head.startswith(MAGIC) and (65536 if size == 1 else size) == self.size else b""

    def page(self, number: int) -> bytes:
        """The bytes of a page; b"" for one that is not there, or not all of it."""
        if not number >= 1:
            return b""
        found = self._log.page(number)
        if found is None:
            self._file.seek((number - 1) * self.size)
            found = self._file.read(self.size)
        return found if len(found) == self.size else b""

    def _find_size(self) -> int:
        if self._head.startswith(MAGIC):
            size = int.from_bytes(self._head[16:18], "big")
            size = 65536 if size == 1 else size
            if size in _SIZES:
                return size
        if self._log.size in _SIZES:
            return self._log.size
        return max(_SIZES, key=lambda size: (self._bytes_fit(size), size == 4096))

    def _bytes_fit(self, size: int) -> int:
        """How much of the file reads as b-tree pages of this size whose content reaches to their ends."""
        total, fitting = self._length // size, 0
        step = max(total // _PROBED, 1)
        for index in range(0, total, step):
            self._file.seek(index * size)
            data = self._file.read(size)
            if len(data) == size and data[0] in _KINDS and _reaches_end(data):
                fitting += size
        return fitting * step

    def node(self, number: int) -> Node | None:
        """The page as a part of a b-tree; None where it is none."""
        data = self.page(number)
        at = 100 if number == 1 else 0
        if not data or data[at] not in _KINDS:
            return None
        kind = data[at]
        (cells,) = struct.unpack_from(">H", data, at + 3)
        start = at + (8 if kind in (INDEX_LEAF, TABLE_LEAF) else 12)
        if start + 2 * cells > self.usable or (not cells and kind in (INDEX_INNER, TABLE_INNER)):
            return None
        rows: list[Row] = []
        children: list[int] = []
        broken = 0
        for pointer in struct.unpack_from(f">{cells}H", data, start):
            if not start + 2 * cells <= pointer < self.usable:
                broken += 1
                continue
            try:
                if kind in (INDEX_INNER, TABLE_INNER):
                    children.append(int.from_bytes(data[pointer : pointer + 4], "big"))
                    pointer += 4
                if kind != TABLE_INNER:
                    rows.append(self._row(data, pointer, table=kind == TABLE_LEAF))
            except (IndexError, ValueError, struct.error):
                broken += 1
        if kind in (INDEX_INNER, TABLE_INNER):
            children.append(int.from_bytes(data[at + 8 : at + 12], "big"))
        if cells and broken == cells:
            return None
        return Node(kind, rows, children, broken)

    def _row(self, data: bytes, at: int, *, table: bool) -> Row:
        """Raises IndexError or ValueError: these bytes are not a row."""
        length, at = _varint(data, at)
        key = None
        if table:
            key, at = _varint(data, at)
            key = key - (1 << 64) if key >> 63 else key
        usable = self.usable
        most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
        if length <= most:
            if at + length > usable:
                raise ValueError("the row reaches beyond its page")
            return _record(key, data[at : at + length], length)
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        if at + local + 4 > usable or length > self.count * usable:
            raise ValueError("the row reaches beyond its page")
        rest = self._overflow(int.from_bytes(data[at + local : at + local + 4], "big"), length - local)
        return _record(key, data[at : at + local] + rest, length)

    def _overflow(self, number: int, length: int) -> bytes:
        """What lies in the chain of pages from here, as far as it can be read."""
        parts: list[bytes] = []
        seen: set[int] = set()
        while length > 0:
            data = self.page(number) if 1 < number <= self.count and number not in seen else b""
            following = int.from_bytes(data[:4], "big")
            last = length <= self.usable - 4
            # Of a page that does not lead on as it must, nothing is believed.
            if not data or (following != 0 if last else not 1 < following <= self.count) or not any(data):
                break
            seen.add(number)
            parts.append(data[4 : min(self.usable, 4 + length)])
            length -= len(parts[-1])
            number = following
        return b"".join(parts)

    def free(self) -> tuple[set[int], bool]:
        """The pages that hold nothing any more, and whether the list is complete.

        Where the list can't be followed, pages that look like a part of it are taken for that: they hold nothing but
        numbers of pages, which no other page does by chance.
        """
        found: set[int] = set()
        head = self.header
        if head:
            number, count = struct.unpack_from(">II", head, 32)
            while number and number not in found:
                listed = self._listed(number)
                if listed is None or found.intersection(listed[1]):
                    break
                found.add(number)
                found.update(listed[1])
                number = listed[0]
            if not number and len(found) == count:
                return found, True
        for number in self.numbers():
            if number not in found and (listed := self._listed(number)) is not None and listed[1]:
                found.add(number)
                found.update(listed[1])
        return found, False

    def _listed(self, number: int) -> tuple[int, list[int]] | None:
        """The next part of the list of free pages, and the pages that this part lists; None: it is not part of the
        list."""
        data = self.page(number) if 1 < number <= self.count else b""
        if not data:
            return None
        following, count = struct.unpack_from(">II", data)
        if following > self.count or following == 1 or count > self.usable // 4 - 2:
            return None
        pages = list(struct.unpack_from(f">{count}I", data, 8))
        if len(set(pages)) != count or not all(1 < one <= self.count and one != number for one in pages):
            return None
        return following, pages


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and where it ends. Raises IndexError at the end of the bytes."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    value = first & 0x7F
    for place in range(at + 1, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)
"""Bytes of a value, by its kind; of texts and blobs the kind says it."""


def _record(key: int | None, payload: bytes, length: int) -> Row:
    """Raises IndexError or ValueError: these bytes are not a record of this length."""
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise ValueError("the row does not say what is in it")
    head = payload[at:end]
    kinds: Sequence[int] = head
    if head and max(head) >= 0x80:  # a kind that takes more than a byte: a text or blob of some length
        kinds = many = []
        while at < end:
            kind, at = _varint(payload, at)
            many.append(kind)
        if at != end:
            raise ValueError("the row's head has another length than it says")
    if 10 in kinds or 11 in kinds:
        raise ValueError("a kind of value that files do not have")
    sizes = [_LENGTHS[kind] if kind < 12 else (kind - 12) // 2 for kind in kinds]
    at = end
    if end + sum(sizes) != length:
        raise ValueError("the row's values have another length than it says")
    values: list[Value | Cut] = []
    for kind, size in zip(kinds, sizes, strict=True):
        data = payload[at : at + size]
        if len(data) != size:
            values.extend([CUT] * (len(kinds) - len(values)))
            return Row(key, tuple(values), False)
        at += size
        values.append(_value(kind, data))
    return Row(key, tuple(values), True)


def _value(kind: int, data: bytes) -> Value:
    if kind == 0:
        return None
    if kind >= 12:
        return data.decode("utf-8", "replace") if kind % 2 else data
    if kind == 7:
        number: float = struct.unpack(">d", data)[0]
        return number
    return int.from_bytes(data, "big", signed=True) if data else kind - 8


def _reaches_end(data: bytes) -> bool:
    """Whether the last cell (or unused piece) of a b-tree page ends where the page does."""
    kind, (cells,) = data[0], struct.unpack_from(">H", data, 3)
    start = 8 if kind in (INDEX_LEAF, TABLE_LEAF) else 12
    if not cells or start + 2 * cells > len(data):
        return False
    pointers = struct.unpack_from(f">{cells}H", data, start)
    last = max(pointers)
    if min(pointers) < start + 2 * cells or last >= len(data):
        return False
    try:
        at = last + (0 if start == 8 else 4)
        if kind == TABLE_INNER:
            _, at = _varint(data, at)
        else:
            length, at = _varint(data, at)
            if kind == TABLE_LEAF:
                _, at = _varint(data, at)
            most = len(data) - 35 if kind == TABLE_LEAF else (len(data) - 12) * 64 // 255 - 23
            if length > most:
                least = (len(data) - 12) * 32 // 255 - 23
                local = least + (length - least) % (len(data) - 4)
                length = (local if local <= most else least) + 4
            at += length
    except IndexError:
        return False
    return len(data) - 3 <= at <= len(data)


class _PagesBeside(ABC):
    """A file beside a history's that holds pages of it; it may be missing."""

    def __init__(self, path: Path) -> None:
        self.size = 0
        """Of a page; 0: there is no such file, or it does not say."""
        self.pages = 0
        """Of the whole history at the last commit (a log), or before what was not committed (a journal); 0: unknown."""
        self._places: dict[int, int] = {}
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError:
            self._file = BytesIO()

    @abstractmethod
    def read(self, size: int) -> None:
        """Find the pages, of `size` bytes each."""

    def close(self) -> None:
        self._file.close()

    @property
    def last(self) -> int:
        """The highest number of a page in it."""
        return max(self._places, default=0)

    def numbers(self) -> list[int]:
        """The pages in it."""
        return sorted(self._places)

    def page(self, number: int) -> bytes | None:
        place = self._places.get(number)
        if place is None:
            return None
        self._file.seek(place)
        return self._file.read(self.size)


class _Log(_PagesBeside):
    """The write-ahead log beside a file: its pages up to the last commit. https://www.sqlite.org/walformat.html"""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sum: tuple[int, int] | None = None
        self._salt = b""
        self._order = "<"
        head = self._file.read(_LOG_HEADER)
        self.there = bool(head)
        """Whether something is in it."""
        if len(head) == _LOG_HEADER:
            magic, _, size = struct.unpack_from(">III", head)
            if magic & ~1 == _LOG_MAGIC:
                self._order = ">" if magic & 1 else "<"
                if _checksum(head[:24], (0, 0), self._order) == struct.unpack_from(">II", head, 24):
                    self.size, self._salt, self._sum = size, head[16:24], struct.unpack_from(">II", head, 24)

    def read(self, size: int) -> None:
        """Find the pages. A frame that is damaged is left out; what follows it counts as far as it is of this log."""
        self.size = size
        self._file.seek(_LOG_HEADER)
        pending: dict[int, int] = {}
        while True:
            place = self._file.tell() + _FRAME_HEADER
            frame = self._file.read(_FRAME_HEADER + size)
            if len(frame) < _FRAME_HEADER + size:
                return
            number, pages, _, _, first, second = struct.unpack_from(">IIIIII", frame)
            if not self._salt:
                self._salt = frame[8:16]  # the log's own head is destroyed
            if frame[8:16] != self._salt:
                self._sum = None
                continue
            known, self._sum = self._sum, (first, second)
            if known is not None:
                made = _checksum(frame[_FRAME_HEADER:], _checksum(frame[:8], known, self._order), self._order)
                if made != (first, second):
                    continue
            if not 1 <= number < 1 << 31:
                continue
            pending[number] = place
            if pages:
                self._places.update(pending)
                pending.clear()
                self.pages = pages


class _Journal(_PagesBeside):
    """The rollback journal beside a file: the pages as they were before what was not committed.

    https://www.sqlite.org/fileformat2.html#the_rollback_journal
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        head = self._file.read(_JOURNAL_HEADER)
        if len(head) == _JOURNAL_HEADER and head.startswith(_JOURNAL_MAGIC):
            self.size = int.from_bytes(head[24:28], "big")

    def read(self, size: int) -> None:
        """Find the pages, up to the first that is not whole."""
        if self.size != size:
            self.size = size
            return
        at, end = 0, self._file.seek(0, os.SEEK_END)
        while True:
            self._file.seek(at)
            head = self._file.read(_JOURNAL_HEADER)
            if len(head) < _JOURNAL_HEADER or not head.startswith(_JOURNAL_MAGIC):
                return
            records, nonce, pages, sector, _ = struct.unpack_from(">IIIII", head, 8)
            if not 512 <= sector <= 65536:
                return
            at += sector
            if records == 0xFFFFFFFF:
                records = (end - at) // (size + 8)
            if not records:
                return  # not on the disk yet: nothing was written to the file
            self.pages = self.pages or pages
            for _ in range(records):
                self._file.seek(at)
                record = self._file.read(size + 8)
                if len(record) < size + 8:
                    return
                number = int.from_bytes(record[:4], "big")
                made = nonce + sum(record[4 + place] for place in range(size - 200, 0, -200))
                if not number or made & 0xFFFFFFFF != int.from_bytes(record[-4:], "big"):
                    return
                self._places.setdefault(number, at + 4)
                at += size + 8
            at = -(-at // sector) * sector


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = start
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def walk(pages: Pages, root: int) -> Iterator[tuple[int, int, Node | None]]:
    """The pages of the b-tree from `root`, in the order of its keys, each with how far it is from there (0: the root).

    Instead of a page that is none, or comes again, None.
    """
    seen: set[int] = set()
    pending = [(root, 0)]
    while pending:
        number, depth = pending.pop()
        node = None
        if 1 <= number <= pages.count and number not in seen:
            seen.add(number)
            node = pages.node(number)
        yield number, depth, node
        if node is not None:
            pending.extend((child, depth + 1) for child in reversed(node.children))
