"""Suites that changed on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.suites.discover import is_suite_name

if TYPE_CHECKING:
    import asyncio

BESIDE = {".env", "agents.yaml", "tools.yaml"}  # what a suite's meaning depends on as well


async def watch(
    paths: Iterable[Path | str], *, stop: asyncio.Event | None = None, debounce_ms: int = 200
) -> AsyncIterator[set[Path]]:
    """Yield the suites among `paths` (files, or folders with all below them) that were changed, added or removed.

    Also `.env`, `agents.yaml` and `tools.yaml` beside them, for what they say goes into a suite. Paths are as they
    were given (a file), or below the folder that was given. Ends when `stop` is set. Paths that do not exist yet, or
    not any more, are watched through their nearest folder that does.
    """
    from watchfiles import awatch

    paths = list(paths)
    while (found := _sorted_out(paths))[2]:
        places = _places(found[2])
        meant = partial(_meant, files=found[0], folders=found[1])
        roots = {str(one) for one in found[2]}

        def wanted(_change: Any, raw: str, meant: Any = meant, roots: set[str] = roots) -> bool:
            return meant(Path(raw)) is not None or raw in roots

        async for changes in awatch(*roots, watch_filter=wanted, stop_event=stop, debounce=debounce_ms, step=50):
            met = {path for _, raw in changes if (path := meant(Path(raw))) is not None}
            if met:
                yield met
            # A folder that was deleted is not watched any more, not even when there is one at its place again.
            if _places(found[2]) != places or any(path.is_dir() for path in found[0]):
                break
        else:
            return
        if back := {path for path in map(Path, paths) if path.exists()}:
            yield back


def _places(folders: Iterable[Path]) -> list[tuple[int, int] | None]:
    """Which folder is at each of these paths now; None: none."""
    found: list[tuple[int, int] | None] = []
    for folder in folders:
        try:
            stat = folder.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_dev, stat.st_ino))
    return found


def _sorted_out(paths: Iterable[Path | str]) -> tuple[dict[Path, Path], dict[Path, Path], list[Path]]:
    """Files and folders by their real paths (to how they were given), and the folders that must be watched."""
    files: dict[Path, Path] = {}
    folders: dict[Path, Path] = {}
    for given in paths:
        path = Path(given)
        real = path.resolve()
        (folders if real.is_dir() else files)[real] = path
    # Editors and our own saving replace a file by renaming: its folder is what must be watched.
    parents = {_existing(real.parent) for real in files}
    return files, folders, [*folders, *(one for one in parents if not any(one.is_relative_to(f) for f in folders))]


def _existing(path: Path) -> Path:
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _meant(raw: Path, files: dict[Path, Path], folders: dict[Path, Path]) -> Path | None:
    """The path as it was given, of a changed path, or None when it is of no interest."""
    if raw in files:
        return files[raw]
    if raw.name in BESIDE and any(raw.parent == real.parent for real in files):
        return raw
    if is_suite_name(raw.name) or raw.name in BESIDE:
        for root, given in folders.items():
            if root in raw.parents:
                return given / raw.relative_to(root)
    return None
