"""Suites that changed on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
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
    were given (a file), or below the folder that was given. Ends when `stop` is set. Paths that do not exist yet are
    watched through their nearest folder that does.
    """
    from watchfiles import awatch

    files, folders, watched = _sorted_out(paths)
    if not watched:
        return

    def wanted(_change: Any, raw: str) -> bool:
        return _meant(Path(raw), files, folders) is not None

    async for changes in awatch(*watched, watch_filter=wanted, stop_event=stop, debounce=debounce_ms, step=50):
        found = {_meant(Path(raw), files, folders) for _, raw in changes}
        met = {path for path in found if path is not None}
        if met:
            yield met


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
