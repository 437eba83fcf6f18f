"""Opening the file: folders and modes, network file systems, how connections are set up."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenteval_tui.core import directories
from agenteval_tui.core.private_files import make_missing, make_private
from agenteval_tui.history.errors import HistoryError, foreign_file, is_busy, is_foreign, refuse_unreleased
from agenteval_tui.history.lock_wait import NOTICE_S

BUSY_SECONDS = NOTICE_S  # how long a connection waits for another process; who tries again says so first
OPENING_TRIES = 5  # so often it is tried by somebody who opens the file
READING_TRIES = 10  # and by a reader
WRITING_TRIES = 15  # and by somebody who writes: half a minute

# SQLite's WAL needs memory shared by all processes that use the file: not to be had over a network.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "afs", "9p", "ceph", "glusterfs", "lustre", "ncpfs"}
_NETWORK_FUSE = ("fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.gcsfuse", "fuse.davfs")


class Connection(sqlite3.Connection):
    """A connection that can be held weakly: those of ended threads go with their thread."""


def rescued_path(path: Path) -> Path:
    """Where all that was saved of a damaged history stands, until the damaged file is out of its way."""
    return Path(f"{path}.rescued")


def prepare_file(path: Path) -> bool:
    """Make the folders (0700) and the file (0600) where they are missing. True: the file is new.

    A file that others may read is closed to them. Raises HistoryError.
    """
    make_private_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _check_existing(path)
    except OSError as error:
        raise HistoryError(
            f"the history file cannot be created: {error.strerror}",
            where=str(path),
            fix="give yourself write permission for the folder, or name another file with --db or AGENTEVAL_DB",
        ) from error
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    return True


def make_private_folder(folder: Path) -> None:
    """Make `folder`, and those above it that are missing, for this user alone. Raises HistoryError."""
    if folder.is_dir() and folder == directories.data_dir():  # a folder that `--db` names may be meant for others
        with contextlib.suppress(OSError):
            make_private(folder)
    try:
        make_missing(folder)
    except OSError as error:
        raise HistoryError(
            f"the folder for the history can't be created: {(error.strerror or str(error)).lower()}",
            where=str(error.filename or folder),
            fix="give yourself write permission there, or name another file with --db or AGENTEVAL_DB",
        ) from error


def _check_existing(path: Path) -> bool:
    if path.is_dir():
        raise HistoryError("this is a folder, not a history file", where=str(path), fix="name a file with --db")
    for place, kind in ((path, "file"), (path.parent, "folder")):
        if not os.access(place, os.W_OK):
            raise HistoryError(
                f"the history can't be written: no write permission for the {kind}",
                where=str(place),
                fix="give yourself write permission, or name another file with --db or AGENTEVAL_DB",
            )
    if is_foreign(path):
        raise foreign_file(path)
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(0o600)
        return path.stat().st_size == 0
    except OSError as error:
        raise HistoryError(f"the history file can't be read: {error.strerror}", where=str(path)) from error


def connect_writer(path: Path, *, busy_s: float | None = None, durable: bool = True) -> Connection:
    """A connection that writes; a commit is on the disk when it returns, or soon after that if it need not be
    `durable`. Raises sqlite3.Error."""
    # A run that is shown as ended is on the disk: FULL syncs the log with every commit (NORMAL would lose the last
    # commits with the power). Commits are grouped, so the price is small.
    # `journal_size_limit`: the log grows as long as somebody reads, and is cut to this size after that.
    pragmas = (
        "synchronous = FULL",
        "wal_autocheckpoint = 2000",
        "journal_size_limit = 67108864",
        "cache_size = -16000",
    )
    timeout = BUSY_SECONDS if busy_s is None else busy_s
    connection = _connect(path, pragmas, timeout=timeout, cached_statements=256)
    # With another journal, the file itself could be damaged by a loss of power.
    if not durable and connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def connect_reader(path: Path, *, immutable: bool = False) -> Connection:
    """A connection that only reads. `immutable`: the folder can't be written, so no shared memory file can be made."""
    mode = "immutable=1" if immutable else "mode=ro"
    address = f"file:{quote(str(path.absolute()))}?{mode}"
    return _connect(address, ("query_only = 1", "cache_size = -8000"), uri=True, timeout=BUSY_SECONDS)


def _connect(address: Path | str, pragmas: Sequence[str], **options: Any) -> Connection:
    # Transactions are begun by hand (`isolation_level`), and a connection may be closed by another thread than its own.
    connection = sqlite3.connect(address, isolation_level=None, check_same_thread=False, factory=Connection, **options)
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_look(path: Path) -> Connection:
    """A connection that only reads, also where the folder can't be written. Raises HistoryError, sqlite3.Error."""
    refuse_unreleased(path)
    try:
        return connect_reader(path)
    except sqlite3.OperationalError as error:
        if is_busy(error) or os.access(path.parent, os.W_OK):
            raise
        return connect_reader(path, immutable=True)


def file_bytes(connection: sqlite3.Connection) -> int:
    """Bytes that all pages of the history take. The file itself may lag behind its log."""
    return _pages(connection, "page_count")


def free_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold nothing."""
    return _pages(connection, "freelist_count")


def _pages(connection: sqlite3.Connection, which: str) -> int:
    number, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in (which, "page_size"))
    return number * size


def use_wal(connection: sqlite3.Connection, path: Path) -> str:
    """Switch the file to its journal mode. Returns a notice when that can't be WAL, else "".

    Raises sqlite3.Error when another program holds the file.
    """
    if on_network(path):
        mode = str(connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()[0])
        where = "on a network file system"
    else:
        mode = str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        where = "in a place where SQLite can't use its write-ahead log"
    if mode == "wal":
        return ""
    return (
        f"the history file is {where}: reading waits while a run is written, "
        "and only programs on one machine should use it at a time"
    )


def on_network(path: Path) -> bool:
    """Whether `path` is on a network file system, as far as the mount table tells (Linux)."""
    try:
        table = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        target = str(path.resolve())
    except OSError:
        return False
    best, kind = "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        # The longest mount point is the one that holds the file; of equal ones the last hides the others.
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind in _NETWORK or kind.startswith(_NETWORK_FUSE)
