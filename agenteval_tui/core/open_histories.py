"""Which files this process must leave to SQLite: the histories that it has open, and the logs beside them.

POSIX drops all locks that a process has on a file as soon as the process closes any descriptor of it. So whoever reads
or copies such a file by itself takes the locks of all our connections away. Another process may then remove the
write-ahead log, and what we write after that is lost.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

_BESIDE = ("", "-wal", "-shm", "-journal")
_open: Counter[str] = Counter()
_changing = threading.Lock()


def history_opened(path: Path) -> None:
    """Until `history_closed`, this process has the history at `path` open."""
    with _changing:
        _open[os.path.realpath(path)] += 1


def history_closed(path: Path) -> None:
    """The end of one `history_opened`."""
    real = os.path.realpath(path)
    with _changing:
        _open[real] -= 1
        if _open[real] <= 0:
            del _open[real]


def _names() -> set[str]:
    return {f"{Path(history).name}{end}" for history in tuple(_open) for end in _BESIDE}


def is_of_open_history(path: Path) -> bool:
    """Whether this is such a file. To read one, copy the history with SQLite (`history.backup`)."""
    if not _open or not (path.name in _names() or path.is_symlink()):
        return False
    real = os.path.realpath(path)
    return any(real == f"{history}{end}" for history in tuple(_open) for end in _BESIDE)
