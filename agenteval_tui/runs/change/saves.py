"""Saves of files in a project: what an editor writes at once is one save, and what did not change is none."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

_IGNORED = frozenset(("venv", "env", "node_modules", "__pycache__", "dist", "build", "site-packages"))
"""Folders that hold no source of an agent, beside those whose names begin with a dot: what belongs to tools, such as
`.git` and `.venv`, and what servers write when they start, such as `.next`."""
_FOLDERS = 4_000  # of a project that are watched
_FILES = 4_000  # of a new folder
_ADDED = 1  # watchfiles' `Change`, which takes long to import
_SETTLED_MS = 20  # without a further change
_AT_MOST_MS = 400  # for a burst, such as a checkout
_LARGEST = 8_000_000  # bytes of a file that is compared by its content
_TEMPORARY = (".swp", ".swx", ".tmp", "~", ".pyc", ".db", ".db-wal", ".db-shm", ".log")


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

    def look(self, paths: Iterable[str]) -> None:
        """Take files as they are now that were not looked at yet: a save that changes nothing is told by it. What was
        looked at may have been saved since, and that is still to be told."""
        for path in paths:
            if path not in self._digests:
                self._digests[path] = _digest(path)

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


def _digest(path: str) -> str:
    file = Path(path)
    try:
        status = file.stat()
        if status.st_size > _LARGEST:
            return str(status.st_mtime_ns)
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""  # it is not there, or a folder
