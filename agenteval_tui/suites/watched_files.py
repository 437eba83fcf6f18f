"""Whether programs are still what they were: files are looked at by their state, and by content where that differs."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAX_FILES = 20_000
_ALWAYS = 2_000  # files whose state is looked at before each start
_LARGEST = 100_000_000  # bytes of a file whose content is compared; of a larger one only the state is
PASSED_OVER = frozenset((".git", "__pycache__", "node_modules", "site-packages"))
# What programs write all the time. Whatever may be executed by its mode counts all the same.
_DATA = frozenset(
    (
        ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt", ".md", ".rst", ".log", ".out", ".err", ".html", ".htm",
        ".css", ".xml", ".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".docx", ".xlsx", ".pptx",
        ".odt", ".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal", ".parquet", ".arrow", ".npy", ".npz",
        ".onnx", ".safetensors", ".eval", ".gz", ".zip", ".bak", ".tmp", ".swp", ".orig", ".woff2", ".mp3", ".mp4",
        ".yaml", ".yml", ".lock", ".pyc", ".pid", ".sock", "",
    )
)  # fmt: skip
_ARCHIVES = frozenset((".zip", ".pyc"))  # data that Python runs
_LOGS = frozenset((".log", ".out", ".err", ".pid", ".db", ".sqlite", ".sqlite3"))


class WatchedFiles:
    """Files as they were when they were permitted: those that commands name, and the code beside them."""

    __slots__ = ("_code", "_named")

    def __init__(
        self,
        named: dict[Path, tuple[int, ...] | None] | None = None,
        code: dict[Path, tuple[int, ...] | None] | None = None,
    ) -> None:
        self._named = named or {}
        self._code = code or {}

    @classmethod
    def of(cls, named: Iterable[Path], code: Iterable[Path]) -> WatchedFiles:
        """These files as they are now. Files that are absent now may come; a change of the others is told."""
        return cls({one: _state(one) for one in named}, {one: _state(one) for one in code})

    def changed(self, *, whole: bool = True) -> str:
        """The first file that is not as it was, "" for none. Not `whole`: where there is much code, only those that
        commands name."""
        whole = whole or len(self._code) <= _ALWAYS
        for files in (self._named, self._code) if whole else (self._named,):
            for path, before in files.items():
                if before is None:
                    continue
                now = _state(path, before)
                if now != before:
                    return str(path)
        return ""


def code_of(folder: Path) -> Iterator[Path]:
    """The files of a folder that look like programs, at most 20,000; what can't be read is passed over."""
    waiting, seen = [folder], 0
    while waiting and seen < _MAX_FILES:
        here = waiting.pop()
        try:
            with os.scandir(here) as scan:
                entries = list(scan)
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in PASSED_OVER:
                        waiting.append(Path(entry.path))
                    continue
                seen += 1
                mode = entry.stat().st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and (mode & 0o111 or Path(entry.name).suffix.lower() not in _DATA):
                yield Path(entry.path)


def looks_like_log(path: Path) -> bool:
    """Whether this is a log, a list of errors, a process' number or a database, and nothing that may be executed."""
    return path.suffix.lower() in _LOGS and looks_like_data(path)


def looks_like_data(path: Path) -> bool:
    """Whether this is a file that programs write and do not run: by its ending, its mode and its first bytes."""
    suffix = path.suffix.lower()
    if suffix not in _DATA or suffix in _ARCHIVES:
        return False
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o111:
            return False
        with path.open("rb") as stream:
            return stream.read(2) != b"#!"
    except OSError:
        return False


def _state(path: Path, before: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """What tells a file's content: its inode, size and times, and its content where those differ from `before`."""
    try:
        status = path.stat()
        quick = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if before is not None and quick == before[:-1]:
            return before
        digest = 0
        if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
            with path.open("rb") as stream:
                digest = int.from_bytes(hashlib.file_digest(stream, "sha256").digest()[:8], "big")
        if before is not None and digest and digest == before[-1] and status.st_size == before[2]:
            return before  # only touched
        return (*quick, digest)
    except OSError:
        return None
