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
    while (watched := _sorted_out(paths))[2]:
        places = _places(watched[2])
        meant = partial(_meant, files=watched[0], folders=watched[1])
        roots = {str(path) for path in watched[2]}

        def is_watched(_change: Any, raw: str, meant: Any = meant, roots: set[str] = roots) -> bool:
            return meant(Path(raw)) is not None or raw in roots

        async for changes in awatch(*roots, watch_filter=is_watched, stop_event=stop, debounce=debounce_ms, step=50):
            met = {path for _, raw in changes if (path := meant(Path(raw))) is not None}
            if met:
                yield met
            # A folder that was deleted is not watched any more, not even when there is one at its place again.
            if _places(watched[2]) != places or any(path.is_dir() for path in watched[0]):
                break
        else:
            return
        # Between one watch and the next a change goes unseen: all that is there counts as changed.
        if back := {path for path in map(Path, paths) if path.exists()}:
            yield back


def _places(folders: Iterable[Path]) -> list[tuple[int, int] | None]:
    """Which folder is at each of these paths now; None: none."""
    places: list[tuple[int, int] | None] = []
    for folder in folders:
        try:
            stat = folder.stat()
        except OSError:
            places.append(None)
        else:
            places.append((stat.st_dev, stat.st_ino))
    return places


def _sorted_out(paths: Iterable[Path | str]) -> tuple[dict[Path, Path], dict[Path, Path], list[Path]]:
    """Files and folders by their real paths (to how they were given), and the folders that must be watched."""
    files: dict[Path, Path] = {}
    folders: dict[Path, Path] = {}
    for place in paths:
        path = Path(place)
        real = path.resolve()
        (folders if real.is_dir() else files)[real] = path
    # Editors and our own saving replace a file by renaming: its folder is what must be watched.
    parents = {_existing(real.parent) for real in files}
    return (
        files,
        folders,
        [*folders, *(parent for parent in parents if not any(parent.is_relative_to(f) for f in folders))],
    )


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
        for root, folder in folders.items():
            if root in raw.parents:
                return folder / raw.relative_to(root)
    return None
