"""Which folders the user trusted to run programs: by their path and their content.

A folder is trusted with the content that it had: every file counts, hidden and linked ones, data and bytecode too, and
so does every file that one of its commands names, wherever that is. When one is changed, added or removed, for example
by `git pull`, the folder must be trusted again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import PRIVATE, locked, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private, open_to_others, read_small

MAX_FILES = 50_000  # (and folders) that are looked at: what is more than that can't be remembered
MAX_BYTES = 1_000_000_000  # that are hashed
MAX_FOLDERS = 500
MAX_LIST = 64 << 20  # bytes of the list of them, which names all their files
_VERSION = 2
_DIGITS = 32  # of a SHA-256
_CHUNK = 1 << 20
_TRIES = 3  # of a file that changes while it is read
# What git itself writes with each command, and never takes from another repository. The rest of .git counts (hooks,
# config): it says what git runs.
_BOOKKEEPING = frozenset(("objects", "refs", "logs"))
_BOOKKEEPING_FILES = frozenset(
    ("index", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_HEAD", "packed-refs", "gc.log")
)


class FolderTrust(Struct, frozen=True):
    """A trusted folder: its absolute path, when it was trusted (ISO 8601, UTC), and the hash of each checked file."""

    folder: str
    when: str
    files: dict[str, str] = field(default_factory=dict)


class Trust(Struct):
    """The trusted folders. `problem` says why their file could not be read; then no folder is trusted."""

    path: Path
    problem: str = ""
    _known: dict[str, FolderTrust] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | None = None) -> Trust:
        """Read `trust.json` of the user's data folder; never raises."""
        file = directories.data_dir() / "trust.json" if path is None else path
        made = cls(file)
        made._read()
        return made

    def is_trusted(self, folder: Path) -> bool:
        """Whether this folder was trusted with exactly its present files. Reads the whole folder."""
        return not self.why_not(folder)

    def why_not(self, folder: Path, files: Iterable[Path] = ()) -> str:
        """Why this folder is not trusted, in one sentence; "" if it is. `files`: the files that its commands name."""
        place = _absolute(folder)
        known = self._known.get(place)
        if known is None:
            return self.problem or "this folder is not trusted yet"
        outside = [Path(name) for name in known.files if name.startswith("/")]
        try:
            now = contents(Path(place), (*outside, *files))
        except AgentevalError as error:
            return str(error)
        return _difference(known, now)

    def trust(self, folder: Path, files: Iterable[Path] = ()) -> FolderTrust:
        """Remember this folder with what is in it now, and the `files` that its commands name elsewhere.

        Raises `AgentevalError` when it is too big to be remembered, or it can't be written down.
        """
        place = _absolute(folder)
        made = FolderTrust(place, datetime.now(UTC).isoformat(timespec="seconds"), contents(Path(place), files))
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
            now = _digest(folder, file, name, MAX_BYTES)[0]
            with self._changing():
                again = self._known.get(known.folder)
                if again is not None and again.files.get(name) == before[:_DIGITS]:
                    again.files[name] = now

    def listed(self) -> list[FolderTrust]:
        """The folders that were trusted, by path, whether they have changed since or not."""
        return sorted(self._known.values(), key=lambda one: one.folder)

    def _read(self) -> None:
        self._known, self.problem = {}, ""
        try:
            text = read_small(self.path, "it", MAX_LIST)
            if text is None:
                return
            others = open_to_others(self.path)
            if others:
                self.problem = f"{others}, so the list of trusted folders is ignored: none is trusted"
                return
            data = json.loads(text)
            # The first version remembered programs only: what it knew is not enough, and is asked about again.
            if data["version"] != 1:
                self._known = {one.folder: one for one in map(_from_json, data["folders"])}
        except AgentevalError as error:
            self.problem = f"the list of trusted folders can't be read ({self.path}: {error.what}): none is trusted"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            said = "it is damaged"
            self.problem = f"the list of trusted folders can't be read ({self.path}: {said}): none is trusted"

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Read what others wrote meanwhile, let it be changed, and write it down in one step."""
        try:
            make_private(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                self._read()
                yield
                self._write()
                self.problem = ""
        except OSError as error:
            raise AgentevalError(
                f"the list of trusted folders can't be saved: {error.strerror or error}",
                where=str(self.path),
                mend="check the permissions and the space of its folder",
            ) from None

    def _write(self) -> None:
        folders = [{"folder": one.folder, "when": one.when, "files": one.files} for one in self.listed()]
        data = json.dumps({"version": _VERSION, "folders": folders}, indent=1, sort_keys=True).encode(
            "utf-8", "surrogatepass"
        )
        write_whole(self.path, (data,), mode=PRIVATE)


def contents(folder: Path, files: Iterable[Path] = ()) -> dict[str, str]:
    """The hash of each file below `folder`, by its path with "/"; and of each of `files` that lies elsewhere, by its
    absolute path.

    Hidden folders, caches and linked folders are gone through too (each folder once, so that links in a circle end). A
    link counts by where it points and by what is there. Pipes, sockets and devices count by their kind and are not
    read. Raises `AgentevalError` when there is more than can be remembered, or something can't be read.
    """
    found: dict[str, str] = {}
    size = 0
    for name, path in _walk(folder):
        if len(found) >= MAX_FILES:
            raise _too_big(folder, f"more than {MAX_FILES:,} files")
        digest, bytes_read = _digest(folder, path, name, MAX_BYTES - size)
        found[name] = digest
        size += bytes_read
    for file in files:
        real = Path(_absolute(file))
        if real.is_relative_to(folder) and _plain(real.relative_to(folder).as_posix()) in found:
            continue
        digest, bytes_read = _digest(folder, real, str(real), MAX_BYTES - size)
        found[_plain(str(real))] = digest
        size += bytes_read
    return found


def _digest(folder: Path, path: Path, name: str, room: int) -> tuple[str, int]:
    """The hash of a file and how many bytes were read for it; a file that changes meanwhile is read again."""
    try:
        link = b""
        if path.is_symlink():
            link = b"link " + os.fsencode(path.readlink())
        for _ in range(_TRIES):
            try:
                before = path.stat()
            except FileNotFoundError:
                return _hash(link + b" to nowhere"), 0
            if not stat.S_ISREG(before.st_mode):
                return _hash(link + f"kind {stat.S_IFMT(before.st_mode):o}".encode()), 0
            if before.st_size > room:
                raise _too_big(folder, f"more than {MAX_BYTES / 1e6:,.0f} MB")
            # Should it have become a pipe meanwhile, opening it must not wait.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                digest, left = hashlib.sha256(), before.st_size + 1
                while left > 0 and (data := stream.read(min(left, _CHUNK))):
                    digest.update(data)
                    left -= len(data)
                after = os.fstat(stream.fileno())
            if _state(before) == _state(after):
                digest.update(link + (b" executable" if before.st_mode & 0o111 else b""))
                return digest.hexdigest()[:_DIGITS], before.st_size
        raise AgentevalError(
            f"this folder can't be trusted: {name} changes while it is read",
            where=str(folder),
            mend="wait until no program writes to it, or run with --trust",
        )
    except (OSError, RuntimeError) as error:
        raise AgentevalError(
            f"this folder can't be trusted: {name} can't be read ({getattr(error, 'strerror', None) or error})",
            where=str(folder),
            mend="check its permissions, or run with --trust",
        ) from None


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file (and link) below the folder with its name, folder by folder, in the order of their names."""
    waiting: list[tuple[str, Path]] = [("", folder)]
    own = _own_folders() - {_identity(folder)}
    seen = set(own)
    while waiting:
        prefix, here = waiting.pop()
        if len(seen) - len(own) > MAX_FILES:
            raise _too_big(folder, f"more than {MAX_FILES:,} folders")
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda one: one.name)
        except OSError as error:
            raise AgentevalError(
                f"this folder can't be trusted: {here} can't be read ({error.strerror})",
                where=str(folder),
                mend="check its permissions, or run with --trust",
            ) from None
        git = here.name == ".git" or prefix.endswith(".git/")
        for entry in entries:
            name, path = prefix + _plain(entry.name), Path(entry.path)
            try:
                is_folder = entry.is_dir()
            except OSError:  # links in a circle
                is_folder = False
            if is_folder:
                if entry.is_symlink():
                    yield name, path
                if not (git and entry.name in _BOOKKEEPING):
                    waiting.append((f"{name}/", path))
            elif not (git and entry.name in _BOOKKEEPING_FILES and not entry.is_symlink()):
                yield name, path


def _own_folders() -> set[tuple[int, int]]:
    """The program's own folders, which it writes all the time: they may lie in a project's folder."""
    own = (directories.data_dir(), directories.cache_dir(), directories.runtime_dir())
    return {found for one in own if (found := _identity(one)) != (0, 0)}


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = folder.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _plain(name: str) -> str:
    """A name as text that JSON takes: bytes that are no UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _absolute(folder: Path) -> str:
    try:
        return str(Path(folder).resolve())
    except (OSError, RuntimeError):
        return str(Path(folder).absolute())


def _too_big(folder: Path, what: str) -> AgentevalError:
    return AgentevalError(
        f"this folder is too big to trust permanently: it has {what}",
        where=str(folder),
        mend="run with --trust, or move the suites to their own folder",
    )


def _difference(known: FolderTrust, now: dict[str, str]) -> str:
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


def _from_json(data: Any) -> FolderTrust:
    folder, when, files = data["folder"], data["when"], data["files"]
    if not isinstance(folder, str) or not isinstance(when, str) or not isinstance(files, dict):
        raise TypeError
    return FolderTrust(folder, when, {str(name): str(digest) for name, digest in files.items()})
