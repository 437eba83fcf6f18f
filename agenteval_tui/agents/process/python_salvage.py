"""What an agent did before it raised, where its framework has kept that. Runs in the child: only the standard library.

A function that calls a framework gives nothing when the framework raises. What had happened is then in what the
framework says beside its exception, or in the objects that its frames still hold.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import python_frameworks as frameworks

if TYPE_CHECKING:
    from types import FrameType

_MOST_FRAMES = 500


@contextlib.contextmanager
def watching() -> Iterator[list[Any]]:
    """The messages of what runs inside, as far as a framework offers to keep them: a list for pydantic-ai."""
    pydantic: Any = sys.modules.get("pydantic_ai")
    capture = getattr(pydantic, "capture_run_messages", None)
    if capture is None:
        yield []
        return
    with capture() as messages:
        yield messages


def done_before(error: BaseException, messages: list[Any]) -> list[Any]:
    """What was done before, as pieces that `python_answers.Reader` reads; the first that is known."""
    # pydantic-ai keeps the messages of the last run in it: nothing has to be guessed.
    if messages:
        return [list(messages)]
    for find in (_of_openai_agents, _of_frames):
        with contextlib.suppress(Exception):
            pieces = find(error)
            if pieces:
                return pieces
    return []


def _of_openai_agents(error: BaseException) -> list[Any]:
    for each in chain(error):
        data = getattr(each, "run_data", None)
        items = [getattr(item, "raw_item", None) for item in getattr(data, "new_items", ())]
        # The answer of the model that asked for the tool that raised is not among the items of a finished turn.
        call_ids = {_call_id(item) for item in items}
        for response in getattr(data, "raw_responses", ()):
            items += [item for item in response.output if _call_id(item) and _call_id(item) not in call_ids]
        items = [item for item in items if item is not None]
        if data is not None:
            items += _open_calls(error, {_call_id(item) for item in items})
        if items:
            return [items]
    return []


def _open_calls(error: BaseException, call_ids: set[str | None]) -> list[Any]:
    """The calls of tools that were being made: the frames of what runs them hold them."""
    calls = {}
    for each in chain(error):
        for frame in frames_of(each):
            for value in list(frame.f_locals.values()):
                if type(value).__name__ == "ResponseFunctionToolCall" and _call_id(value) not in call_ids:
                    calls[_call_id(value)] = value
    return list(calls.values())


def _call_id(item: object) -> str | None:
    value = item.get("call_id") if isinstance(item, dict) else getattr(item, "call_id", None)
    return value if isinstance(value, str) else None


def _of_frames(error: BaseException) -> list[Any]:
    # The frames that the exception went through still hold the objects of the framework.
    for each in chain(error):
        for frame in frames_of(each):
            for value in list(frame.f_locals.values()):
                kind = type(value)
                if kind.__module__.startswith("langgraph.") and kind.__name__.endswith("PregelLoop"):
                    return _of_graph(value)
                framework = frameworks.of(value)
                kept = [] if framework is None else framework.kept_by(value)
                if kept:
                    return kept
    return []


def _of_graph(loop: Any) -> list[Any]:
    """The messages in the state of a graph, with what finished nodes of the broken step have written."""
    messages = list(loop.channels["messages"].get())
    message_ids = {getattr(message, "id", None) for message in messages}
    # A step of a graph is only applied when all of its nodes have ended.
    for write in getattr(loop, "checkpoint_pending_writes", None) or ():
        if write[1] == "messages":
            added = write[2] if isinstance(write[2], list) else [write[2]]
            messages += [message for message in added if getattr(message, "id", None) not in message_ids]
    return [{"messages": messages}]


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what it came from, and the members of groups."""
    waiting: list[BaseException | None] = [error]
    # By their ids, because an exception may define its own equality; causes can form a circle.
    visited: set[int] = set()
    while waiting and len(visited) < 50:
        current = waiting.pop(0)
        if current is None or id(current) in visited:
            continue
        visited.add(id(current))
        yield current
        members = getattr(current, "exceptions", ())
        waiting += [current.__cause__, current.__context__, *(members if isinstance(members, (list, tuple)) else ())]


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """The frames of an exception, the first call first."""
    trace, number = getattr(error, "__traceback__", None), 0
    while trace is not None and number < _MOST_FRAMES:
        yield trace.tb_frame
        trace, number = trace.tb_next, number + 1


def functions_in(error: BaseException) -> set[str]:
    """The names of all functions in which an exception, or what it came from, was raised."""
    return {frame.f_code.co_name for each in chain(error) for frame in frames_of(each)}
