"""The members of an `.eval` file: a ZIP, packed by deflate or zstd, whole or cut off.

Nothing is unpacked onto the disk: a member's name is a name and no path. Where the directory at the archive's end is
missing, the members are found by their own headers, one after another.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import IO, Any

from msgspec import Struct

from agenteval_tui.formats.stream.json_stream import UnreadableFile

LARGEST_MEMBER = 4_000_000_000
"""Bytes that are unpacked of one member. More is nothing that a person could look at."""
ALWAYS, TIMES = 50_000_000, 500
"""A member may unpack to this many bytes, and to this many times its packed size. More is a bomb: logs shrink to a
tenth, and to a hundredth where their samples repeat themselves."""
TOGETHER = 1_000_000_000
"""At most this many bytes, and `TIMES` the archive's size, are unpacked of all members: many small bombs are one
too."""

_LOCAL = b"PK\x03\x04"
_ZSTD = 93
_CHUNK = 1 << 16
_FRAMES = (b"\x28\xb5\x2f\xfd",)  # how a zstd frame begins; Inspect's members may have several


class DamagedMember(UnreadableFile):
    """A member can't be unpacked (further); `cut_off`: the archive ends in it."""


class Member(Struct, frozen=True):
    """A file within the archive: its name, and how to open it."""

    name: str
    open: Callable[[], Any]


class Archive(Struct, frozen=True):
    """The members by name, of equal names the last; `cut_off`: the archive has no end; `replaced`: equal names."""

    members: dict[str, Member]
    cut_off: bool = False
    replaced: int = 0


def open_archive(file: IO[bytes]) -> Archive:
    """The archive in a seekable file. Raises `DamagedMember` when there is nothing in it."""
    zipfile = _zipfile()
    budget = _Budget(TOGETHER + TIMES * file.seek(0, io.SEEK_END))
    try:
        opened = zipfile.ZipFile(file)
        listed = opened.infolist()
    # A log that is being written, or was cut off, has no directory at its end yet.
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, struct.error, NotImplementedError):
        return _recovered(file, budget)
    members = {
        info.filename: Member(info.filename, partial(_member, zipfile, opened, info, budget))
        for info in listed
        if not info.is_dir()
    }
    return Archive(members, replaced=sum(not info.is_dir() for info in listed) - len(members))


class _Budget(Struct):
    """The bytes that all members of an archive may still unpack to."""

    left: int


def _member(zipfile: Any, archive: Any, info: Any, budget: _Budget) -> _Limited:
    return _Limited(_opened(zipfile, archive, info), info.compress_size, budget)


def _found(file: IO[bytes], start: int, method: int, size: int | None, budget: _Budget) -> _Limited:
    packed = file.seek(0, io.SEEK_END) - start if size is None else size
    return _Limited(_unpacked(file, start, method, size), packed, budget)


def _zipfile() -> ModuleType:
    """Python's zipfile; before 3.14 its backport, which knows zstd."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile
    return zipfile


def _opened(zipfile: Any, archive: Any, info: Any) -> IO[bytes]:
    try:
        stream: IO[bytes] = archive.open(info)
    except NotImplementedError:
        raise DamagedMember(f"packed by method {info.compress_type}, which can't be read") from None
    except RuntimeError:
        raise DamagedMember("it is encrypted") from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, struct.error) as error:
        raise DamagedMember(str(error) or type(error).__name__) from None
    return stream


class _Limited(io.RawIOBase):
    """A member's bytes, as far as they may be; what breaks while unpacking is a `DamagedMember`."""

    def __init__(self, inner: IO[bytes] | _Unpacking, packed: int, budget: _Budget) -> None:
        self._inner = inner
        self._most = min(LARGEST_MEMBER, ALWAYS + TIMES * packed)
        self._left = self._most
        self._budget = budget

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._inner.read(_CHUNK if size < 0 else size)
        except DamagedMember:
            raise
        except EOFError:
            raise DamagedMember("the archive ends in the middle of it", cut_off=True) from None
        except Exception as error:  # each way of packing has errors of its own
            raise DamagedMember(str(error) or type(error).__name__) from None
        # Counted while it is read: what a header says of its size may be a lie.
        self._left -= len(data)
        self._budget.left -= len(data)
        if self._budget.left < 0:
            raise DamagedMember(f"the archive unpacks to more than {TOGETHER:,} bytes and {TIMES} times its size")
        if self._left < 0:
            raise DamagedMember(f"unpacks to more than {self._most:,} bytes")
        return data

    def close(self) -> None:
        self._inner.close()
        super().close()


def _recovered(file: IO[bytes], budget: _Budget) -> Archive:
    """The members of an archive without its directory."""
    members: dict[str, Member] = {}
    count = 0
    for name, start, method, size in _local_headers(file):
        count += 1
        members[name] = Member(name, partial(_found, file, start, method, size, budget))
    if not members:
        raise DamagedMember("it is not a ZIP archive, or its start is damaged", cut_off=True)
    return Archive(members, cut_off=True, replaced=count - len(members))


def _local_headers(file: IO[bytes]) -> Iterator[tuple[str, int, int, int | None]]:
    """(name, where its data begins, method, packed size or None) of each member, in order."""
    at = 0
    while (at := _next_header(file, at)) >= 0:
        file.seek(at)
        header = file.read(30)
        if len(header) < 30:
            return
        flags, method = struct.unpack("<HH", header[6:10])
        size: int | None = struct.unpack("<I", header[18:22])[0]
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        name = file.read(name_length).decode("utf-8" if flags & 0x800 else "cp437", "replace")
        extra = file.read(extra_length)
        start = at + 30 + name_length + extra_length
        if flags & 8:
            size = None  # follows the data
        elif size == 0xFFFFFFFF:
            size = _wide_size(extra)
        # What is encrypted can't be read, and a folder has nothing in it.
        if not flags & 1 and not name.endswith("/"):
            yield name, start, method, size
        # Where the size is not known yet, the next header is looked for in the data itself.
        at = start + (size or 0)


def _next_header(file: IO[bytes], at: int) -> int:
    """Where the next local header begins, from `at` on; -1: nowhere."""
    file.seek(at)
    tail = b""
    while block := file.read(_CHUNK):
        data = tail + block
        position = data.find(_LOCAL)
        if position >= 0:
            return at + position
        # The four bytes may lie across two blocks.
        tail = data[-3:]
        at += len(data) - len(tail)
    return -1


def _wide_size(extra: bytes) -> int | None:
    """The packed size in the ZIP64 part of a header; None without one."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == 1 and length >= 16 and len(extra) >= 20:
            size: int = struct.unpack("<Q", extra[12:20])[0]
            return size
        extra = extra[4 + length :]
    return None


def _unpacked(file: IO[bytes], start: int, method: int, size: int | None) -> _Unpacking:
    if method == 0:
        if size is None:
            raise DamagedMember("nothing says where it ends")
        unpack: Any = None
    elif method == 8:
        unpack = zlib.decompressobj(-15)
    elif method == _ZSTD:
        unpack = _zstd()
    else:
        raise DamagedMember(f"packed by method {method}, which can't be read")
    return _Unpacking(file, start, size, unpack)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    return ZstdDecompressor()


class _Unpacking(io.RawIOBase):
    """The bytes of a member that is found by its own header, in memory as large as a chunk."""

    def __init__(self, file: IO[bytes], start: int, size: int | None, unpack: Any) -> None:
        self._file, self._at, self._left, self._unpack = file, start, size, unpack
        self._rest = b""
        self._starved = False

    def read(self, size: int = -1) -> bytes:
        want = _CHUNK if size < 0 else size
        while True:
            if self._unpack is None:
                return self._packed(want)
            if self._unpack.eof and not self._next_frame():
                return b""
            data = self._more(want)
            if data:
                return data
            if self._starved and not self._unpack.eof:
                raise EOFError

    def _more(self, want: int) -> bytes:
        if isinstance(self._unpack, type(zlib.decompressobj())):
            packed = self._unpack.unconsumed_tail or self._packed(_CHUNK)
            return bytes(self._unpack.decompress(packed, want))
        packed = b""
        if self._unpack.needs_input:
            packed = self._rest or self._packed(_CHUNK)
            self._rest = b""
        return bytes(self._unpack.decompress(packed, want))

    def _packed(self, want: int) -> bytes:
        self._file.seek(self._at)
        data = self._file.read(want if self._left is None else min(want, self._left))
        self._starved = not data
        if self._unpack is None and not data and self._left:
            raise EOFError
        self._at += len(data)
        if self._left is not None:
            self._left -= len(data)
        return data

    def _next_frame(self) -> bool:
        if isinstance(self._unpack, type(zlib.decompressobj())):
            return False
        rest = self._unpack.unused_data
        # The beginning of the next frame may be cut by the end of a chunk.
        if len(rest) < 4:
            rest += self._packed(_CHUNK)
        if not rest.startswith(_FRAMES):
            return False
        self._unpack, self._rest = _zstd(), rest
        return True
