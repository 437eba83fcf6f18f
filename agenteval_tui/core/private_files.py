"""The program's own small files: read only as what they are meant to be, and the log of errors in the program."""

from __future__ import annotations

import os
import stat
import traceback
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError

LARGEST = 1 << 20
"""Bytes of a state, keymap, theme, trust or agents file; a larger one is none of ours."""
LARGEST_LOG = 1 << 20
"""Bytes of the log of errors; beyond them it starts again."""


class UnreadableError(AgentevalError):
    """The system does not let the file be read."""


def read_small(path: Path, what: str, largest: int = LARGEST) -> str | None:
    """As `read_small_bytes`, as text (UTF-8, a byte order mark is left out)."""
    data = read_small_bytes(path, what, largest)
    try:
        return None if data is None else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AgentevalError(f"{what} is not valid UTF-8", where=str(path), fix="save it as UTF-8") from error


def read_small_bytes(path: Path, what: str, largest: int = LARGEST) -> bytes | None:
    """The content of a regular file of at most `largest` bytes; None where there is no such file.

    Never waits for a FIFO or a device. Raises AgentevalError, in one sentence, for anything that can't be read; `what`
    names the file in it ("the list of keys").
    """
    try:
        # A FIFO without a writer would block the process that opens it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{what} can't be read", where=str(path), fix=_reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise AgentevalError(f"{what} is not a regular file", where=str(path), fix="move it away")
        data = bytearray()
        # A byte more than is allowed is enough to see that the file is larger.
        while len(data) <= largest and (piece := os.read(descriptor, largest + 1 - len(data))):
            data += piece
    except OSError as error:
        raise UnreadableError(f"{what} can't be read", where=str(path), fix=_reason(error)) from error
    finally:
        os.close(descriptor)
    if len(data) > largest:
        raise AgentevalError(
            f"{what} is larger than {largest >> 20} MB", where=str(path), fix="shorten it or move it away"
        )
    return bytes(data)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def make_private(folder: Path) -> None:
    """Make a folder of the program's own, and those above it that are missing, each for this user alone (0700),
    whatever the umask is. An existing folder that is open to others is closed to them. Raises OSError.
    """
    make_missing(folder)
    status = folder.stat()
    if status.st_uid == os.getuid() and status.st_mode & 0o077:
        folder.chmod(0o700)


def make_missing(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing, for this user alone. Raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder == folder.parent:
            break
        folder = folder.parent
    for path in reversed(missing):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            # Another process may have made it in the meantime.
            if not path.is_dir():
                raise
        else:
            path.chmod(0o700)  # a umask may have taken more than it should


def open_to_others(path: Path) -> str:
    """Why the content of this file may be another user's, "" if only this user (and root) can write it:
    who owns it and its folder, and who may write there."""
    for place in (path.parent, path):
        try:
            status = place.stat()
        except OSError:
            continue  # whoever reads it says so
        if status.st_uid not in (0, os.getuid()):
            return f"{place} belongs to another user"
        if status.st_mode & 0o022:
            return f"other users may write to {place}"
    return ""


def log_error(error: BaseException, doing: str, folder: Path) -> Path | None:
    """Append the traceback of an error in the program to `errors.log` in the folder; None where that can't be written.

    The lines of code are in it, never what the variables held: that may be a key.
    """
    return log_text("".join(traceback.format_exception(error)), doing, folder)


def log_text(text: str, doing: str, folder: Path) -> Path | None:
    """Append a traceback that is text already. As `log_error`."""
    path = folder / "errors.log"
    try:
        make_private(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path, flags, 0o600)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size > LARGEST_LOG:
                os.ftruncate(descriptor, 0)
            os.write(descriptor, f"while: {doing}\n{text}\n".encode("utf-8", "backslashreplace"))
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return path
