"""Reading the files that people write: UTF-8, of bounded size, with a plain sentence when that fails."""

from __future__ import annotations

import stat
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError, Problem

MAX_BYTES = 32 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


def unreadable(path: Path, error: AgentevalError) -> Problem:
    """What keeps a file from being read, as a problem of it, at the place that the error names (else at 1:1)."""
    place = (1, 1)
    head, _, last = error.where.rpartition(":")
    before, _, number = head.rpartition(":")
    if last.isdecimal() and number.isdecimal() and before:
        place = (int(number), int(last))
    return Problem.at(path, place, "unreadable", error.what, error.fix or None)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that people write. Raises `AgentevalError` with the remedy."""
    where = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise AgentevalError("this is a folder, not a suite file", where=where, fix="name a file in it")
        # To read a pipe or a device may wait for ever.
        if not stat.S_ISREG(status.st_mode):
            raise AgentevalError("this is not a regular file", where=where, fix="give a suite file")
        if status.st_size > MAX_BYTES:
            raise AgentevalError(
                f"this file is too large for a suite: {status.st_size / 1e6:,.0f} MB, "
                f"at most {MAX_BYTES / 1e6:,.0f} MB",
                where=where,
                fix="split it, or move rows into a dataset file",
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise AgentevalError("there is no such file", where=where, fix="check the path") from None
    except PermissionError:
        raise AgentevalError("no permission to read this file", where=where, fix="check its permissions") from None
    except OSError as error:
        raise AgentevalError(f"this file can't be read: {error.strerror or error}", where=where) from None


def decode_utf8(data: bytes, path: Path) -> str:
    """The text of a file, without a byte order mark. Raises `AgentevalError` with the place when it is not UTF-8."""
    # Editors of Windows write it; the first byte that is not UTF-8 would say less.
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AgentevalError("this file is UTF-16, not UTF-8", where=f"{path}:1:1", fix="save it as UTF-8")
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        byte = error.object[error.start]
        raise AgentevalError(
            f"this file is not UTF-8: the byte 0x{byte:02x} can't be read",
            where=f"{path}:{line}:{column}",
            fix="save it as UTF-8",
        ) from None
