"""Saves of files in a project: what an editor writes at once is one save, and what did not change is none.

Nor is what the runs of a check write themselves: each check would bring the next one. A save of a source that must be
built first, such as the TypeScript of `node dist/agent.js`, changes nothing until the program is built again.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.process.project_interpreter import ENVIRONMENT_FOLDERS
from agenteval_tui.runs.program_code import DATABASE_SUFFIXES

_IGNORED = frozenset((*ENVIRONMENT_FOLDERS, "node_modules", "__pycache__", "dist", "build", "site-packages"))
"""Folders that hold no source of an agent, beside those whose names begin with a dot: what belongs to tools, such as
`.git` and `.venv`, and what servers write when they start, such as `.next`."""
_FOLDERS = 4_000  # of a project that are watched
_FILES = 4_000  # of a new folder
_ADDED = 1  # watchfiles' `Change`, which takes long to import
_SETTLED_MS = 20  # without a further change
_AT_MOST_MS = 400  # for a burst, such as a checkout
_LARGEST = 8_000_000  # bytes of a file that is compared by its content
_TEMPORARY = (".swp", ".swx", ".tmp", "~", ".pyc", ".log", "-journal", "-wal", "-shm", *DATABASE_SUFFIXES)
_CHECKS_THAT_TELL = 2.0  # one after another in which a file changed: then the runs write it
_SHARE_IF_EDITED = 0.25  # of a check that a save ends, for a file that a person edits: one who saves often ends many
_EDITED_BY_HAND = (
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".tsx",
    ".jsx",
    ".go",
    ".rs",
    ".rb",
    ".java",
    ".sh",
    ".ipynb",
    ".md",
    ".txt",
    ".yaml",
    ".yml",
    ".toml",
    ".jinja",
    ".jinja2",
    ".j2",
    ".prompt",
    ".tmpl",
)
_CLOCK_S = 0.02  # by which the time of a file may be behind
_NOT_KNOWN = "?"
"""In place of a digest: what the file said when it was read."""
_BUILD_FOLDERS = frozenset(("dist", "build", "out", "target"))
_INSTALLED = frozenset(("node_modules", "site-packages", *ENVIRONMENT_FOLDERS))
_BUILT_SOURCES = (
    ".ts",
    ".tsx",
    ".mts",
    ".cts",
    ".go",
    ".rs",
    ".c",
    ".cc",
    ".cpp",
    ".h",
    ".hpp",
    ".java",
    ".kt",
    ".cs",
    ".swift",
)
_BUILT_FILES = 4_000  # of a build that are looked at


def folders_of(projects: Iterable[Path], files: Iterable[str]) -> frozenset[Path]:
    """The folders to watch: those of the projects that may hold sources, and those of the files. A file may be a
    folder, which was listed."""
    folders = {Path(file) if os.path.isdir(file) else Path(file).parent for file in files}  # noqa: PTH112 - thousands
    for project in projects:
        for place, _ in _walk(project):
            folders.add(Path(place))
            if len(folders) >= _FOLDERS:
                break
    return frozenset(folder for folder in folders if folder.is_dir())


def _walk(folder: str | Path) -> Iterator[tuple[str, list[str]]]:
    """A folder and those below it that may hold sources; each with the names of its files."""
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if _may_hold_sources(name)]
        yield place, names


def _may_hold_sources(folder: str) -> bool:
    return folder not in _IGNORED and not folder.startswith(".")


def with_targets(files: Iterable[str]) -> frozenset[str]:
    """Files, and what those are that are links: an editor saves what a link leads to."""
    return frozenset(name for file in files for name in (file, os.path.realpath(file)))


class Contents:
    """What files said when they were looked at the last time."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    @property
    def known(self) -> frozenset[str]:
        """The files that were looked at. A link is told by what it leads to."""
        return frozenset(file for file in self._digests if not os.path.islink(file))  # noqa: PTH114 - thousands

    def look(self, paths: Iterable[str], *, since: float = math.inf) -> bool:
        """Take files as they are now that were not looked at yet: a save that changes nothing is told by it. What was
        looked at may have been saved meanwhile, and that is still to be told. So is what a person may have saved since
        the runs began that read it (`since`, a time of `time.time`): gives whether there is such a file."""
        is_late = False
        for path in paths:
            if path not in self._digests:
                late = path.endswith(_EDITED_BY_HAND) and _saved_s(path) >= since - _CLOCK_S
                self._digests[path] = _NOT_KNOWN if late else _digest(path)
                is_late = is_late or late
        return is_late

    def changed(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those that say something else than before, or were not looked at and are there. A folder stands for what was
        looked at in it: one that is renamed tells of no file."""
        named = set(paths)
        changed = []
        for path in sorted(named.union(file for file in self._digests if _is_within(file, named))):
            digest = _digest(path)
            if self._digests.get(path, "") != digest:
                self._digests[path] = digest
                changed.append(path)
        return tuple(changed)


async def saves(
    folders: Callable[[], frozenset[Path]], contents: Contents, stop: asyncio.Event, moved: asyncio.Event
) -> AsyncIterator[tuple[str, ...]]:
    """Yield the files of each save, as absolute paths. `folders` is asked anew when `moved` is set, and after each
    save. Ends when `stop` and `moved` are set."""
    from watchfiles import awatch

    while not stop.is_set():
        moved.clear()
        watched = folders()
        changes = awatch(
            *watched,
            watch_filter=lambda _, path: is_source(path),
            debounce=_AT_MOST_MS,
            step=_SETTLED_MS,
            stop_event=moved,
            # Not recursive, or the folders that `folders_of` leaves out would be watched, too.
            recursive=False,
        )
        coming = asyncio.ensure_future(anext(changes, None))
        try:
            # It watches from its first step on. What was saved before that, between two watches, it does not tell.
            await asyncio.sleep(0)
            if missed := contents.changed(contents.known):
                yield missed
            while not moved.is_set() and (paths := await coming) is not None:
                if changed := contents.changed(_with_new_folders(paths)):
                    yield changed
                if folders() != watched:
                    break
                coming = asyncio.ensure_future(anext(changes, None))
        finally:
            # A generator can't be closed while a step of it runs, and only the stop event ends that step.
            moved.set()
            await asyncio.wait({coming})
            await changes.aclose()


def _with_new_folders(changes: Iterable[tuple[int, str]]) -> Iterator[str]:
    """The paths of changes, and the files in new folders, which are not watched yet."""
    for change, path in changes:
        yield path
        if change == _ADDED and _may_hold_sources(Path(path).name):
            files = (os.path.join(place, name) for place, names in _walk(path) for name in names)  # noqa: PTH118
            yield from islice(filter(is_source, files), _FILES)


def is_source(path: str) -> bool:
    """Whether a person may have written the file."""
    name = Path(path).name
    # Vim tests with a file named 4913 whether it can write a folder; Emacs locks with `.#`; GLib writes to
    # `.goutputstream` first.
    return not name.endswith(_TEMPORARY) and not name.startswith((".#", ".goutputstream")) and name != "4913"


def _is_within(file: str, folders: Collection[str]) -> bool:
    place = os.path.dirname(file)  # noqa: PTH120 - for thousands of files
    while place not in folders:
        place, below = os.path.dirname(place), place  # noqa: PTH120
        if place == below:
            return False
    return True


def _saved_s(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0  # it is not there, and a file that comes is a save


def _digest(path: str) -> str:
    file = Path(path)
    try:
        status = file.stat()
        if status.st_size > _LARGEST:
            return str(status.st_mtime_ns)
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""  # it is not there, or a folder


class OwnWrites:
    """Tells which files change with the checks, and not by a person. New files count by their folder and ending, as a
    program may give each another name."""

    def __init__(self) -> None:
        self._began = self._ended = 0.0
        self._running = False
        self._folders: set[Path] = set()
        self._names: set[str] = set()
        self._checks: defaultdict[str, float] = defaultdict(float)
        self._written: set[str] = set()

    def look(self, folders: Iterable[Path]) -> None:
        """Take the files in these folders as there, those that were looked at before excepted."""
        for folder in folders:
            if folder not in self._folders:
                self._folders.add(folder)
                with suppress(OSError), os.scandir(folder) as entries:  # it may have gone
                    self._names.update(entry.path for entry in entries)

    def begin(self) -> None:
        """A check begins."""
        self._began, self._running = time.time(), True

    def end(self) -> None:
        """It has ended."""
        self._ended, self._running = time.time(), False

    def saved(self, paths: Iterable[str], read: Collection[str]) -> tuple[list[str], list[str]]:
        """Of files that changed: those that a person may have saved, and what is known from now on to be written by the
        runs. `read`: the files that the agents read. What changes while no run is made, a person saved: it is no longer
        taken for the runs' own."""
        kinds = {path: self._kind(path) for path in paths}
        # After the kinds are told: a new file is known by its name only from its second save on.
        self._names.update(kinds)
        by_person = [path for path in kinds if not self._is_of_check(path)]
        self._written.difference_update([kinds[path] for path in by_person])
        unexplained = [path for path, kind in kinds.items() if kind not in self._written]
        during = [path for path in unexplained if path not in by_person]
        # Checks are counted one after another: a person's save between them begins the count anew.
        if not during:
            self._checks.clear()
            return unexplained, []
        # One of them may be a save all the same: only what comes again and again is the runs' own.
        for kind in {kinds[path] for path in during}:
            is_edited = kind in read or kind.endswith(_EDITED_BY_HAND)
            self._checks[kind] += _SHARE_IF_EDITED if self._running and is_edited else 1
        new = {kind for kind in {kinds[path] for path in during} if self._checks[kind] > _CHECKS_THAT_TELL}
        self._written |= new
        return [path for path in unexplained if kinds[path] not in new], sorted(new)

    def without(self, paths: Iterable[str]) -> list[str]:
        """Those of the files of which it is not known that the runs write them."""
        return [path for path in paths if not {path, _alike(path)} & self._written]

    def _kind(self, path: str) -> str:
        return path if path in self._names else _alike(path)

    def _is_of_check(self, path: str) -> bool:
        if self._running:
            return True
        try:
            return self._began - _CLOCK_S <= os.stat(path).st_mtime <= self._ended  # noqa: PTH116
        except OSError:
            return False


def _alike(path: str) -> str:
    """What stands for new files in the same folder with the same ending."""
    file = Path(path)
    return str(file.with_name(f"*{file.suffix}"))


class BuiltProgram(Struct, frozen=True):
    """A program of a command in the folder of a build."""

    folder: Path

    def lacking(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the files that are sources and were saved after the last build."""
        saved: dict[str, int] = {}
        for path in paths:
            if path.endswith(_BUILT_SOURCES) and not Path(path).is_relative_to(self.folder):
                with suppress(OSError):  # it was deleted
                    saved[path] = os.stat(path).st_mtime_ns  # noqa: PTH116
        if not saved:
            return frozenset()
        # Once for all of a checkout.
        built = max(islice(_times(self.folder), _BUILT_FILES), default=0)
        return frozenset(path for path, time in saved.items() if time > built)


def built_program(files: Iterable[Path], project: Path) -> BuiltProgram | None:
    """The built program that the files of a command belong to: those that it names, or that it loads; None: they belong
    to none."""
    project = project.resolve()
    files = list(files)
    if any(file.suffix in (".ts", ".tsx", ".mts", ".cts") for file in files):
        return None  # it runs from its sources
    for file in files:
        if not file.is_relative_to(project):
            continue
        parts = file.relative_to(project).parts[:-1]
        depth = next((number for number, part in enumerate(parts, 1) if part in _BUILD_FOLDERS), None)
        if depth is not None and _INSTALLED.isdisjoint(parts):
            return BuiltProgram(project.joinpath(*parts[:depth]))
    return None


def _times(folder: Path) -> Iterator[int]:
    """When the files of a folder were written."""
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was removed meanwhile
                yield os.stat(os.path.join(place, name)).st_mtime_ns  # noqa: PTH116, PTH118 - thousands
