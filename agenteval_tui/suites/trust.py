"""Which folders the user trusted to run programs: by their path, and by what stands in them.

A folder is trusted with the content that it had. When a file that could run (or says what runs) is changed, added or
removed, for example by `git pull`, it must be trusted again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenteval_tui import places
from agenteval_tui.own_files import read_small
from agenteval_tui.text.problems import AgentevalError

MAX_FILES = 20_000  # (and folders) that are looked at: what is more than that can't be remembered
MAX_BYTES = 200_000_000  # that are hashed
MAX_FOLDERS = 500
MAX_LIST = 64 << 20  # bytes of the list of them, which names all their files
_DIGITS = 32  # of a SHA-256

# What is read as data, and made or changed all the time. Any other file counts: of an unknown ending too, a program
# may be started with it. What may be executed by its mode counts whatever its ending is.
_DATA = frozenset(
    (
        ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt", ".md", ".rst", ".log", ".out", ".html", ".htm", ".css",
        ".xml", ".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".docx", ".xlsx", ".pptx", ".odt",
        ".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal", ".parquet", ".arrow", ".npy", ".npz",
        ".onnx", ".safetensors", ".eval", ".gz", ".zip", ".bak", ".tmp", ".swp", ".orig", ".woff2", ".mp3", ".mp4",
    )
)  # fmt: skip
# Of those endings, and yet they say what runs.
_NAMES = frozenset(
    (
        "package.json", "package-lock.json", "composer.json", "deno.json", "tsconfig.json", "mcp.json",
        "requirements.txt", "constraints.txt",
    )
)  # fmt: skip
_CACHES = frozenset(("__pycache__",))  # made from what is looked at, and changing all the time


@dataclass(frozen=True, slots=True)
class Trusted:
    """One folder that was trusted: its absolute path, when (ISO 8601, UTC), and the hash of each file that counts."""

    folder: str
    when: str
    files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Trust:
    """The trusted folders. `problem` says why the file of them could not be read; then nothing is trusted."""

    path: Path
    problem: str = ""
    _known: dict[str, Trusted] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | None = None) -> Trust:
        """Read `trust.json` of the user's data folder; never raises."""
        file = places.data_dir() / "trust.json" if path is None else path
        made = cls(file)
        made._read()
        return made

    def is_trusted(self, folder: Path) -> bool:
        """Whether this folder was trusted with exactly what is in it now. It is read whole for that."""
        return not self.why_not(folder)

    def why_not(self, folder: Path) -> str:
        """Why this folder is not trusted, in one sentence; "" when it is."""
        place = _absolute(folder)
        known = self._known.get(place)
        if known is None:
            return self.problem or "this folder was never trusted"
        try:
            now = contents(Path(place))
        except AgentevalError as error:
            return str(error)
        return _difference(known, now)

    def trust(self, folder: Path) -> Trusted:
        """Remember this folder with what is in it now. Raises `AgentevalError` when it is too big to be remembered,
        or it can't be written down.
        """
        place = _absolute(folder)
        made = Trusted(place, datetime.now(UTC).isoformat(timespec="seconds"), contents(Path(place)))
        with self._changing():
            self._known[place] = made
            while len(self._known) > MAX_FOLDERS:
                self._known.pop(min(self._known.values(), key=lambda one: one.when).folder)
        return made

    def distrust(self, folder: Path) -> bool:
        """Forget this folder. Gives whether it was known. Raises `AgentevalError` when it can't be written down."""
        place = _absolute(folder)
        if place not in self._known:
            self._read()
        if place not in self._known:
            return False
        with self._changing():
            return self._known.pop(place, None) is not None

    def saved(self, path: Path, before: str) -> None:
        """This program wrote a file, whose SHA-256 was `before` (64 hexadecimal digits): what the user edits himself
        does not make a folder distrusted. Only where the file was trusted as it had been.

        Raises `AgentevalError` when it can't be written down.
        """
        file = Path(_absolute(path))
        for known in self.listed():
            folder = Path(known.folder)
            if not file.is_relative_to(folder):
                continue
            name = file.relative_to(folder).as_posix()
            if known.files.get(name) != before[:_DIGITS] or not file.is_file():
                continue
            with file.open("rb") as stream:
                now = hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]
            with self._changing():
                again = self._known.get(known.folder)
                if again is not None and again.files.get(name) == before[:_DIGITS]:
                    again.files[name] = now

    def listed(self) -> list[Trusted]:
        """The folders that were trusted, by path, whether they have changed since or not."""
        return sorted(self._known.values(), key=lambda one: one.folder)

    def _read(self) -> None:
        self._known, self.problem = {}, ""
        try:
            text = read_small(self.path, "it", MAX_LIST)
            if text is None:
                return
            self._known = {one.folder: one for one in map(_from_json, json.loads(text)["folders"])}
        except AgentevalError as error:
            self.problem = f"the list of trusted folders can't be read ({self.path}: {error.what}): none is trusted"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            said = "it is damaged"
            self.problem = f"the list of trusted folders can't be read ({self.path}: {said}): none is trusted"

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Read what others wrote meanwhile, let it be changed, and write it down in one step."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._read()
                yield
                self._write()
                self.problem = ""
            finally:
                os.close(lock)
        except OSError as error:
            raise AgentevalError(
                f"the trusted folders can't be written down: {error.strerror or error}",
                where=str(self.path),
                mend="check the permissions and the space of its folder",
            ) from None

    def _write(self) -> None:
        folders = [{"folder": one.folder, "when": one.when, "files": one.files} for one in self.listed()]
        data = json.dumps({"version": 1, "folders": folders}, indent=1, sort_keys=True).encode("utf-8", "surrogatepass")
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)


def contents(folder: Path) -> dict[str, str]:
    """The hash of each file below `folder` that could run or says what runs, by its path with "/".

    Hidden folders and caches are skipped. A link counts by where it points, and by its content if that is a file in
    the folder; links to folders are not followed. Raises `AgentevalError` when there is more than can be remembered,
    or something can't be read.
    """
    found: dict[str, str] = {}
    looked, size = 0, 0
    for path, entry in _walk(folder):
        looked += 1
        if looked > MAX_FILES:
            raise _too_big(folder, f"more than {MAX_FILES:,} files")
        name = path.relative_to(folder).as_posix()
        try:
            link = path.readlink() if entry.is_symlink() else None
            if link is not None and not path.resolve().is_relative_to(folder):
                found[name] = _hash(b"link " + os.fsencode(link))
                continue
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                if link is not None:
                    found[name] = _hash(b"link " + os.fsencode(link))
                continue
            if not _counts(path.name, status.st_mode):
                continue
            size += status.st_size
            if size > MAX_BYTES:
                raise _too_big(folder, f"more than {MAX_BYTES / 1e6:,.0f} MB that could run")
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256")
            if link is not None:
                digest.update(b"link " + os.fsencode(link))
            found[name] = digest.hexdigest()[:_DIGITS]
        except FileNotFoundError:
            if entry.is_symlink():
                found[name] = "a link to nowhere"
        except (OSError, RuntimeError) as error:
            raise AgentevalError(
                f"this folder can't be trusted: {name} can't be read ({getattr(error, 'strerror', None) or error})",
                where=str(folder),
                mend="check its permissions, or run with --trust",
            ) from None
    return found


def _walk(folder: Path) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """Every file (and link) below the folder, folder by folder, in the order of their names."""
    waiting, seen = [folder], 0
    while waiting:
        here = waiting.pop()
        seen += 1
        if seen > MAX_FILES:
            raise _too_big(folder, f"more than {MAX_FILES:,} folders")
        try:
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda one: one.name)
        except OSError as error:
            raise AgentevalError(
                f"this folder can't be trusted: {here} can't be read ({error.strerror})",
                where=str(folder),
                mend="check its permissions, or run with --trust",
            ) from None
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name.lower() not in _CACHES:
                    waiting.append(Path(entry.path))
            else:
                yield Path(entry.path), entry


def _counts(name: str, mode: int) -> bool:
    lower = name.lower()
    return bool(mode & 0o111) or lower in _NAMES or Path(lower).suffix not in _DATA


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _absolute(folder: Path) -> str:
    try:
        return str(Path(folder).resolve())
    except (OSError, RuntimeError):
        return str(Path(folder).absolute())


def _too_big(folder: Path, what: str) -> AgentevalError:
    return AgentevalError(
        f"this folder is too big to be remembered as trusted: it has {what}",
        where=str(folder),
        mend="run with --trust, or move the suites into a folder of their own",
    )


def _difference(known: Trusted, now: dict[str, str]) -> str:
    """What changed since, in one sentence that names a few files; "" when nothing did."""
    before = known.files
    parts = []
    for word, names in (
        ("changed", sorted(name for name in now if name in before and now[name] != before[name])),
        ("new", sorted(now.keys() - before.keys())),
        ("gone", sorted(before.keys() - now.keys())),
    ):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            parts.append(f"{word}: {', '.join(names[:3])}{more}")
    return f"this folder has changed since it was trusted: {'; '.join(parts)}" if parts else ""


def _from_json(data: Any) -> Trusted:
    folder, when, files = data["folder"], data["when"], data["files"]
    if not isinstance(folder, str) or not isinstance(when, str) or not isinstance(files, dict):
        raise TypeError
    return Trusted(folder, when, {str(name): str(digest) for name, digest in files.items()})
