"""Where the answers to a program's requests come from, and what is told of a request that has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from agenteval_tui.agents.recording.exchange import Answer, Question
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.document import Document
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import quoted, shown
from agenteval_tui.transcripts.model import ToolCall
from agenteval_tui.transcripts.request_changes import RequestChange

NOT_RECORDED_KIND = "recording"
"""The kind of error of a run that its recording has no answer for."""
_SHOWN = 3  # differences that a sentence names


class Difference(Document, frozen=True):
    """Where a request differs from the recorded one."""

    at: Annotated[str, Meta(description='the place in the body: "messages[0].content"')]
    recorded: Annotated[Any, Meta(description="null: there is nothing at this place in the recorded request")]
    now: Annotated[Any, Meta(description="null: there is nothing at this place now")]

    @property
    def description(self) -> str:
        """In words."""
        before, after = _around(self.recorded, self.now)
        if self.recorded is None:
            return f"{self.at}: new: {after}"
        if self.now is None:
            return f"{self.at}: now missing: {before}"
        return f"{self.at}: recorded {before}, now {after}"


class Miss(Struct, frozen=True):
    """A request that is not in the cassette. `nearest`: the number (from 1) of the most similar recorded request; None:
    nothing is recorded. `differences`: where the two differ. `context`: what the model sees differently from the
    recorded request of the same newest message, where it does not only see more."""

    question: Question
    nearest: int | None = None
    differences: tuple[Difference, ...] = ()
    context: tuple[RequestChange, ...] = ()

    @property
    def description(self) -> str:
        """In a sentence."""
        what = f"the cassette has no answer to {self.question.title}"
        if self.nearest is None:
            return f"{what}: no request is recorded in it"
        return f"{what}; the nearest is request {self.nearest}, which differs: {self.change}"

    @property
    def change(self) -> str:
        """Where it differs from the nearest one, in words."""
        if self.nearest is None:
            return f"no request is recorded, and this is {self.question.title}"
        text = "; ".join(difference.description for difference in self.differences[:_SHOWN])
        more = len(self.differences) - _SHOWN
        return text + (f"; and {count(more, 'more difference')}" if more > 0 else "")


class Answers(Protocol):
    """Where recorded answers come from."""

    def answer(self, question: Question) -> Answer | Miss:
        """The answer to a request without keys."""
        ...

    def knows(self, question: Question) -> bool:
        """Whether anything was recorded of the MCP server that a request goes to: it may have run without the shim."""
        ...


class RecordedAnswers(Struct, frozen=True):
    """The answers of a recorded run, for a run that is made again. `playback` begins them anew, for each attempt.

    `live`: a request that was not recorded, and all after it, go to the servers, for at most `max_cost` US dollars
    (None: no limit); else the run ends at the first. `tools`: the calls of the tools of a Python program that get their
    recorded results; None: all tools run. `stands`: this many requests to models must be recorded ones: if
    one before that was not recorded, the run is an error, and no server is asked.
    """

    playback: Callable[[], Answers]
    live: bool = False
    max_cost: float | None = None
    tools: tuple[ToolCall, ...] | None = None
    stands: int = 0


def _around(value: object, other: object, width: int = 24) -> tuple[str, str]:
    """Two values, of long texts only what is around their first difference."""
    # Prompts of thousands of characters often differ in a word.
    if not isinstance(value, str) or not isinstance(other, str):
        return shown(value), shown(other)
    # The same start for both: then they differ at the same place.
    start = max(0, common_start(value, other) - width)
    if max(len(value), len(other)) <= 2 * width + 10 or start == 0:
        return quoted(value), quoted(other)
    return quoted("…" + value[start:]), quoted("…" + other[start:])
