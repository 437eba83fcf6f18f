"""The threads that imports leave alive, which a fork does not have. Runs in the child: only the standard library, of
Python 3.8 or later.

Some packages start theirs again in each fork, as OpenTelemetry does. Clients of Langfuse, PostHog and LangSmith don't:
their threads wait for something to send. Such a thread is begun anew in each fork, where it does what it would do in a
process that has just imported its package.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_STDLIB = os.path.dirname(threading.__file__)  # noqa: PTH120
_POOL = _STDLIB + "/concurrent/futures/thread.py"
_WAITING = (threading.__file__, _STDLIB + "/queue.py", _POOL)
_FORK_SAFE = ("jemalloc_bg_thd",)  # jemalloc stops and starts them itself
_POOLS = {"numexpr": "set_num_threads"}
"""Packages with threads that Python does not know, and the function that says how many (and returns how many there
were): with one, a package uses that of its caller."""
_BUSY_S, _BEGIN_S, _ANSWER_S, _NATIVE_S = 0.05, 1, 1, 0.05
_PIPE = 4_096  # bytes that a pipe takes at once


def lost_in_forks(is_installed: Callable[[str], bool]) -> tuple[list[str], list[threading.Thread]]:
    """The names of the threads that a fork would miss, and the threads that it has to begin anew.

    `is_installed`: whether a file belongs to Python or to a package.
    """
    alive = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if not hasattr(os, "fork"):
        return [thread.name for thread in alive], []
    wait_until_idle()
    lost = _not_started_again(alive)
    # A thread of a package may have something to do first.
    until = time.monotonic() + _BEGIN_S
    while True:
        idle = [thread for thread in lost if _waits_for_work(thread, is_installed)]
        busy = [thread for thread in lost if thread not in idle and _is_of_package(thread, is_installed)]
        if not busy or time.monotonic() > until:
            break
        time.sleep(0.005)
    _stop_pools()
    names = [thread.name for thread in lost if thread not in idle] or _native(alive)
    if names:  # this process serves a run itself
        _start_pools()
    return names, idle


def begin(threads: Iterable[threading.Thread], awaited: Iterable[threading.Condition]) -> None:
    """In a fork: do what these threads of its parent did. `awaited`: what `wait_until_idle` returned."""
    for condition in awaited:
        # Those who waited are not in the fork: the next one that is told would be one of them.
        if condition.acquire(timeout=_BUSY_S):
            condition.notify_all()
            condition.release()
    for thread in threads:
        threading.Thread(target=thread.run, name=thread.name, daemon=thread.daemon).start()
    _start_pools()


_stopped: dict[str, int] = {}
"""By package, how many threads it had."""


def _stop_pools() -> None:
    for package, function in _POOLS.items():
        if package in sys.modules and package not in _stopped:
            with contextlib.suppress(Exception):  # another version
                _stopped[package] = getattr(sys.modules[package], function)(1)


def _start_pools() -> None:
    for package, threads in _stopped.items():
        getattr(sys.modules[package], _POOLS[package])(threads)
    _stopped.clear()


def wait_until_idle() -> list[threading.Condition]:
    """Wait until all other threads wait: a lock that one holds would stay locked in a fork. Returns what they
    wait for."""
    own = threading.get_ident()
    until = time.monotonic() + _BUSY_S
    frames: list[FrameType] = []
    while threading.active_count() > 1:
        frames = [frame for thread, frame in sys._current_frames().items() if thread != own]
        if all(frame.f_code.co_filename in _WAITING for frame in frames) or time.monotonic() > until:
            break
        time.sleep(0.001)
    awaited = [frame.f_locals.get("self") for frame in frames]
    return [condition for condition in awaited if isinstance(condition, threading.Condition)]


def _not_started_again(threads: list[threading.Thread]) -> list[threading.Thread]:
    """Those that a fork does not have. One is made to see it; if it does not say in time which it has, it has none."""
    if not threads:
        return []
    answer, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Whatever happens, it must not go on with the code of its parent.
        try:
            os.write(says, "\n".join(thread.name for thread in threading.enumerate()).encode()[:_PIPE])
        finally:
            os._exit(0)
    os.close(says)
    has_answered = select.select([answer], [], [], _ANSWER_S)[0]
    started = os.read(answer, _PIPE).decode(errors="replace").splitlines() if has_answered else []
    os.close(answer)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return [thread for thread in threads if thread.name not in started]


def _waits_for_work(thread: threading.Thread, is_installed: Callable[[str], bool]) -> bool:
    """Whether it is a package's, or one of a pool, and waits for something of its own process."""
    files = _files(thread)
    is_known = _POOL in files or any(file not in _WAITING for file in files)
    return bool(files) and files[0] in _WAITING and is_known and _is_of_package(thread, is_installed)


def _is_of_package(thread: threading.Thread, is_installed: Callable[[str], bool]) -> bool:
    # The project's own threads may do anything; to begin these anew would do it twice.
    return all(map(is_installed, _files(thread)))


def _files(thread: threading.Thread) -> list[str]:
    """Those whose code it runs, the innermost first."""
    frame = sys._current_frames().get(thread.ident or 0)
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def _native(known: list[threading.Thread]) -> list[str]:
    """Names of threads that Python does not know and that do not stop for a fork. Those of OpenBLAS do."""
    if len(_tasks()) <= 1 + len(known):
        return []
    numbers = {str(thread.native_id) for thread in known}
    # Libraries that stop their threads for a fork do so now; what is still there afterwards does not.
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    own, until = _name_of(str(os.getpid())), time.monotonic() + _NATIVE_S
    while True:
        names = [_name_of(task) for task in _tasks()[1:] if task not in numbers]
        names = [name for name in names if name and not name.startswith(_FORK_SAFE)]
        if not names or time.monotonic() > until:
            # A thread without a name of its own has that of the process.
            return list(dict.fromkeys("of a library in C" if name == own else name for name in names))
        time.sleep(0.001)


def _tasks() -> list[str]:
    own = str(os.getpid())
    try:
        # Its own thread comes first, so that it is the one that is left out of the names.
        return [own, *(task for task in os.listdir("/proc/self/task") if task != own)]  # noqa: PTH208
    except OSError:
        return [own]


def _name_of(task: str) -> str:
    try:
        with open("/proc/self/task/" + task + "/comm", encoding="utf-8", errors="replace") as name:  # noqa: PTH123
            return name.read().strip()
    except OSError:
        return ""
