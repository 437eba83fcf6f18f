"""Waiting for another program that keeps the history locked: listeners are told once per wait. SQLite waits silently.
So each connection waits `NOTICE_S` at a time, and reports here before it tries again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from agenteval_tui.history.errors import is_busy

_T = TypeVar("_T")
NOTICE_S = 2.0
"""Shorter waits are not reported: most locks are held for milliseconds."""
_ONE_WAIT_S = 30.0  # what is told again within this time is the same wait

_lock = threading.Lock()
_listeners: list[Callable[[str], None]] = []
_told_at = float("-inf")


def tell_waiting(path: Path) -> None:
    """Say that this file is waited for. Called in any thread."""
    global _told_at
    with _lock:
        now = time.monotonic()
        was_told, _told_at = now - _told_at < _ONE_WAIT_S, now
        # The last one shows something now: the app, and not the command line behind it.
        listeners = [] if was_told else _listeners[-1:]
    for listener in listeners:
        listener(f"waiting for the history file, which another program keeps locked: {path}")


def retry_while_locked(path: Path, do: Callable[[], _T], tries: int) -> _T:
    """What `do` gives. Where another program keeps the file locked that is said, and it is done again, `tries` times in
    all. Raises what `do` raised last."""
    for tries_left in range(tries - 1, -1, -1):
        try:
            return do()
        except Exception as error:  # SQLite's; the app listens here before it needs SQLite itself
            if not tries_left or not is_busy(error):
                raise
            tell_waiting(path)
    raise ValueError("it is to be tried at least once")


@contextmanager
def listen_for_waits(listener: Callable[[str], None]) -> Iterator[None]:
    """While this lasts, `listener` gets a sentence for each wait, in the thread that waits."""
    global _told_at
    with _lock:
        _listeners.append(listener)
        _told_at = float("-inf")
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)
