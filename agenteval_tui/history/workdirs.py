"""The working folders of runs, beside the history: each is named by its run, and goes with it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.store import Store


def workdirs_of(history: Path) -> Path:
    """Where the working folders of a history's runs are."""
    return history.with_name(f"{history.stem}-workdirs")


def remove_workdirs(root: Path, runs: Iterable[str]) -> None:
    """Remove the working folders of these runs, if they have any. Blocks."""
    for run in runs:
        folder = root / run
        if folder.parent == root and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, onerror=_writable)


def remove_if_empty(root: Path) -> None:
    """Remove the folder of working folders, if there are none in it."""
    with suppress(OSError):
        root.rmdir()


def sweep_workdirs(store: Store) -> None:
    """Remove the working folders of runs that are not in the history any more. Blocks."""
    root = workdirs_of(store.path)
    if not root.is_dir():
        return
    names = sorted(path.name for path in root.iterdir())

    def missing(connection: sqlite3.Connection) -> set[str]:
        there: set[str] = set()
        for some in batches(names, 400):
            cursor = connection.execute(f"SELECT uid FROM runs WHERE uid IN ({','.join('?' * len(some))})", some)  # noqa: S608 - only marks
            there.update(uid for (uid,) in cursor)
        return set(names) - there

    remove_workdirs(root, store.read(missing))
    remove_if_empty(root)


def _writable(remove: object, path: str, problem: object) -> None:
    """A folder that a program made read-only is removed all the same."""
    with suppress(OSError):
        Path(path).parent.chmod(0o700)
        if Path(path).is_dir() and not Path(path).is_symlink():
            Path(path).chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink()
