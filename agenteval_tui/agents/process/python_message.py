"""What the modules of the kind `python` pass on, as types. Only the type checker reads this module: the others name it
under `TYPE_CHECKING`, as they run in the user's Python, of 3.8 or later, where this package need not be installed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypedDict

Request: TypeAlias = dict[str, Any]
"""What an agent is asked (docs/schemas/agent-request.json), and `_how`: the options that say how to call it."""
Event: TypeAlias = dict[str, Any]
"""What an agent tells (docs/schemas/agent-event.json)."""
Figures: TypeAlias = dict[str, Any]
"""A usage by our names (`python_usage.figures_in`), with what can't be so under `odd` and `sums`."""
Part: TypeAlias = Literal["text", "reasoning"]
"""Which text of a message grows."""
Note: TypeAlias = Callable[[str, str], object]
"""Takes the code of something that the run must say, and what it is about."""
Tell: TypeAlias = Callable[[Event], object]
Wait: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Runs an awaitable to its end, and gives its result."""
Run: TypeAlias = Callable[[Request], object]
"""Runs an agent: gives what it answers, an awaitable of it, or an iterator of pieces, async or not."""
Read: TypeAlias = Callable[[object, bool], None]
"""Reads a piece of any library; whether it is one of several."""
IsInstalled: TypeAlias = Callable[[str | None], bool]
"""Whether a file belongs to Python or to an installed package, and not to the project."""


class Call(TypedDict, total=False):
    """A call of a tool. Its arguments are JSON data, or the text that the model wrote."""

    id: str
    name: str
    arguments: object


class Message(TypedDict, total=False):
    """A message that a piece holds. Which keys it has depends on its role: see `python_conversation`."""

    role: str
    id: object
    text: str
    reasoning: str
    calls: list[Call]
    closed: bool
    provisional: bool
    usage: Figures
    model: str | None
    finish: str | None
    agent: str | None
    call_id: str | None
    name: str | None
    error: bool


class Told(TypedDict, total=False):
    """What was told of a message of the assistant: its calls by their keys. `at`: as which of what was told."""

    at: int
    text: str
    reasoning: str
    calls: list[str]
    agent: str | None


class Item(Message, total=False):
    """A message in the conversation, or an event as the agent gave it (`role` is "event" then)."""

    live: bool
    told: Told
    event: Event
