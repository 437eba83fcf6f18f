"""Where the code of a run is whose time is over, or that is broken off. Runs in the child: only the standard library,
of Python 3.8 or later.

`SIGQUIT` asks. The answer goes out in a thread: the signal may have come while this one was sending.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import json
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import python_errors as errors

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_MOST = 200  # coroutines that wait for each other, and tasks


class TimeLimit(BaseException):
    """The run's time is over."""

    __module__ = "builtins"  # its name stands alone


def answer_with(send: Callable[[str], None], seen: Callable[[], dict[str, Any]]) -> None:
    """From now on, SIGQUIT is answered by `{"place": the frames as a traceback}`, with what was `seen` of the run."""

    def asked(number: int, frame: types.FrameType | None) -> None:
        answer: dict[str, Any] = {"id": -1, "place": None}
        # Each by itself: an object of the user's may be one that can't be looked at. What is raised here would be
        # raised in the user's code.
        with contextlib.suppress(Exception):
            answer.update(seen())
        with contextlib.suppress(Exception):
            answer["place"] = errors.traceback_of(_error_at(frame))
        threading.Thread(target=send, args=(json.dumps(answer),), daemon=True).start()

    signal.signal(signal.SIGQUIT, asked)


def _error_at(frame: types.FrameType | None) -> BaseException:
    frames = _stack(frame)
    # What started this process is not the run's.
    frames = frames[next((n for n, (each, _) in enumerate(frames) if _is_ours(each)), 0) :]
    # A task that waits has no frame on the stack.
    if _loop_waits(frames):
        while frames and not _own(frames[-1:]):
            frames.pop()
        frames += _of_tasks()
    # Neither has what is waited for in a thread.
    frames += _of_executors()
    trace = None
    for each, line in reversed(frames):
        trace = types.TracebackType(trace, each, max(each.f_lasti, 0), line)
    return TimeLimit("it was here when its time was over").with_traceback(trace)


def _loop_waits(frames: list[Any]) -> bool:
    """Whether an event loop runs, and none of its tasks does."""
    events = sys.modules.get("asyncio.events")
    if events is None or events._get_running_loop() is None:
        return False
    return not any(frame.f_code.co_flags & _ASYNC for frame, _ in frames)


def _stack(frame: types.FrameType | None) -> list[Any]:
    frames = []
    while frame is not None:
        frames.append((frame, frame.f_lineno or 0))
        frame = frame.f_back
    return frames[::-1]


def _own(frames: list[Any]) -> int:
    return sum(errors.is_own(frame.f_code.co_filename) for frame, _ in frames)


def _is_ours(frame: types.FrameType) -> bool:
    return errors.is_ours(frame.f_code.co_filename)


def _of_tasks() -> list[Any]:
    """What the task that runs the agent waits for; then the task with most of the project's calls, of those that no
    other is seen to wait for, as in a group."""
    import asyncio

    tasks = list(asyncio.all_tasks(asyncio.get_running_loop()))[:_MOST]
    awaited = {id(other) for task in tasks for other in _waits_for(task)}
    first = [_of_task(task) for task in tasks if id(task) not in awaited]
    ours = [frames for frames in first if frames and _is_ours(frames[0][0])]
    others = sorted((frames for frames in first if frames not in ours and _own(frames)), key=_own)
    return [pair for frames in (*ours[:1], *others[-1:]) for pair in frames]


def _of_task(task: Any) -> list[Any]:
    frames: list[Any] = []
    for _ in range(_MOST):
        frames += _of_awaitable(task.get_coro())
        inner = _waits_for(task)
        if not inner:
            break
        task = max(inner, key=lambda other: _own(list(_of_awaitable(other.get_coro()))))
    return frames


def _waits_for(task: Any) -> list[Any]:
    """The tasks that a task is seen to wait for."""
    future = getattr(task, "_fut_waiter", None)
    waited = [future, *(getattr(future, "_children", None) or ())]
    return [each for each in waited if hasattr(each, "get_coro") and not each.done()]


def _of_awaitable(awaited: Any) -> Iterator[Any]:
    """The frames of a coroutine, and of what it awaits."""
    for _ in range(_MOST):
        for prefix, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            frame = getattr(awaited, prefix + "_frame", None)
            if frame is not None:
                yield frame, frame.f_lineno or 0
                awaited = getattr(awaited, inner, None)
                break
        else:
            # A step of an asynchronous generator does not say whose it is.
            awaited = next((each for each in gc.get_referents(awaited) if _has_frame(each)), None)
            if awaited is None:
                return


def _has_frame(each: object) -> bool:
    return inspect.iscoroutine(each) or inspect.isgenerator(each) or inspect.isasyncgen(each)


def _of_executors() -> list[Any]:
    """The stack of the thread of an executor that has most of the project's calls."""
    main = threading.main_thread().ident
    stacks = [_stack(frame) for number, frame in sys._current_frames().items() if number != main]
    working = [frames for frames in stacks if _own(frames) and any(_works(frame) for frame, _ in frames[:4])]
    return max(working, key=_own, default=[])


def _works(frame: types.FrameType) -> bool:
    """Whether this is where a worker of an executor, or of anyio, runs what it was given."""
    return frame.f_code.co_filename.endswith(("concurrent/futures/thread.py", "anyio/_backends/_asyncio.py"))
