"""Files that are written whole or not at all, and the lock for those that several processes change."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError

PRIVATE = 0o600
"""Permissions of a file that only its user reads and writes."""


def draft_path(path: Path, suffix: str = ".tmp") -> Path:
    """A free hidden name beside `path`, for what takes its place when it is complete."""
    return path.with_name(f".{path.stem[:50]}.{os.getpid()}-{os.urandom(4).hex()}{suffix}")


def write_whole(
    path: Path,
    pieces: Iterable[bytes],
    *,
    mode: int | None = None,
    like: os.stat_result | None = None,
    force: bool = True,
    durable: bool = True,
    check: Callable[[Path], object] | None = None,
    suffix: str = ".tmp",
) -> None:
    """Write a file in one step: it holds all of `pieces`, or is as it was, also when the machine stops midway.

    `mode`: its permissions; `like`: the permissions and, where the system allows it, the owner of this file; with
    neither, what the umask leaves. `force`: replace an existing file. `check` is called with the complete
    draft just before it takes that place, and stops that with an error. Without `durable` the file may be lost (but not
    torn) when the machine stops in the next seconds: for files that are written with each move of a person.
    Raises OSError (`FileExistsError` without `force`), and what `pieces` and `check` raise.
    """
    if like is not None:
        mode = stat.S_IMODE(like.st_mode)
    if is_special(path):  # root could put a file in its place
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")
    draft = draft_path(path, suffix)
    try:
        # Where the permissions are set later, nobody else may open it until then.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else PRIVATE)
        with os.fdopen(descriptor, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
            # After the change of the owner, which may take some of the bits away.
            if mode is not None:
                os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
        if check is not None:
            check(draft)
        if force:
            draft.replace(path)
        else:
            os.link(draft, path)  # fails where there is a file, also one that came this moment
    finally:
        # After an error; or `os.link` gave the file a second name, and this one is left over.
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def append_whole(descriptor: int, data: bytes) -> None:
    """Append to an open file all of `data`, or nothing: half a line would take the next one with it. Only one process
    may append at a time. Raises OSError."""
    size = os.fstat(descriptor).st_size
    remaining = memoryview(data)
    try:
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def is_special(path: Path) -> bool:
    """Whether it is a device or a pipe (`/dev/stderr`, `>(gzip)`): written into, never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _sync_folder(folder: Path) -> None:
    """Make the renaming durable. Some file systems can't; then it is as durable as they are."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_pieces(path: Path, pieces: Iterable[str], *, force: bool = False) -> None:
    """Write a text piece by piece; the file is there when all of it is. A device or a pipe is written into.

    Raises `AgentevalError`, also when there is a file of that name and `force` is not set.
    """
    try:
        if path.is_dir():
            raise AgentevalError("this is a folder", where=str(path), fix="name a file in it")
        data = (piece.encode("utf-8", "backslashreplace") for piece in pieces)
        if is_special(path):
            with path.open("ab") as stream:
                stream.writelines(data)
        else:
            write_whole(path, data, force=force)
    except FileExistsError:
        raise AgentevalError(
            "this file already exists and is not overwritten", where=str(path), fix="name another"
        ) from None
    except OSError as error:
        raise AgentevalError(
            f"this file can't be written: {(error.strerror or str(error)).lower()}",
            where=str(path),
            fix="check the folder, its permissions and the space on its disk",
        ) from None


@contextlib.contextmanager
def locked(path: Path, *, needed: bool = True) -> Iterator[None]:
    """While this lasts, no other process gets the same lock: it lies on a folder, or on a lock file that is made.

    Raises OSError; where `needed` is not set, a file system that knows no locks is passed without one.
    """
    # O_NONBLOCK: a FIFO in its place must not hold this up.
    flags = os.O_RDONLY if path.is_dir() else os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK
    descriptor = os.open(path, flags | os.O_CLOEXEC, PRIVATE)
    try:
        with contextlib.nullcontext() if needed else contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # This gives the lock back, and so does the end of the process.
        os.close(descriptor)
