"""Whether the history file is still the one that was opened: it may be moved, deleted or replaced under the program.

SQLite would go on with the file that it has open: into one that has no name any more, or that has another name than
its write-ahead log.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agenteval_tui.history.errors import HistoryError


class MovedError(HistoryError):
    """The history file is not where it was opened; nothing was written."""


class InPlace:
    """Remembers which file is at a path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _identity(path)

    @property
    def now(self) -> bool:
        """Is it there still? Cheap."""
        return _identity(self._path) == self._file

    def require(self) -> None:
        """Raise `MovedError` when it is not."""
        if self.now:
            return
        what = "replaced by another file" if self._path.exists() else "moved or deleted"
        raise MovedError(
            f"the history file was {what} while it was open, so this was not stored",
            where=str(self._path),
            mend="put it back, with the files -wal and -shm beside it, or start again with a new history",
        )


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked before each transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode)
