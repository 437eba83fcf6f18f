"""What programs that are agents (kinds `command` and `python`) may say: one event, a line of standard output.

`agents.process.protocol` reads events, and passes over what an event has besides.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from agenteval_tui.core.document import Count
from agenteval_tui.transcripts.model import Usage

_Value = Annotated[Any, Meta(description="a text, or a value that is kept as JSON text")]


class _Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base of events. Their docstrings are in the JSON Schema."""


class TextEvent(_Event, frozen=True, kw_only=True, tag="text"):
    """More of the answer."""

    text: str


class AgentEvent(_Event, frozen=True, kw_only=True, tag="agent"):
    """Which agent writes the current message and those after it, where there are several. An empty name ends that."""

    name: str


class ReasoningEvent(_Event, frozen=True, kw_only=True, tag="reasoning"):
    """More of the model's thinking."""

    text: str


class ToolCallEvent(_Event, frozen=True, kw_only=True, tag="tool_call"):
    """The agent calls a tool."""

    id: Annotated[str | UnsetType, Meta(description="call_1, call_2, ... if absent")] = UNSET
    name: str
    arguments: _Value = UNSET


class ToolResultEvent(_Event, frozen=True, kw_only=True, tag="tool_result"):
    """The result of a call."""

    id: Annotated[str | UnsetType, Meta(description="the call's id; if absent, the oldest call without a result")] = (
        UNSET
    )
    result: _Value = UNSET
    error: Annotated[bool | str | UnsetType, Meta(description="whether the tool failed, or how")] = UNSET
    duration_ms: float | UnsetType = UNSET


class ReadyEvent(_Event, frozen=True, kw_only=True, tag="ready"):
    """The program has started. The time before this event is not the agent's time. The first event."""


class RestartEvent(_Event, frozen=True, kw_only=True, tag="restart"):
    """Discard the earlier events: the program sends them again, in another order or whole."""


class NoteEvent(_Event, frozen=True, kw_only=True, tag="note"):
    """A note for the run."""

    code: str
    what: str


class MessageEndEvent(_Event, frozen=True, kw_only=True, tag="message_end"):
    """The message is complete. The next text starts a new message."""


class UsageEvent(Usage, frozen=True, tag_field="type", tag="usage"):
    """The tokens of one request to a model. Several events add up. The names of every provider are read too, if the
    fields of its usage are here."""


class ModelRequestEvent(_Event, frozen=True, kw_only=True, tag="model_request"):
    """A request to a model that has ended: what the model saw, and what it answered. The transcript is not made of it.
    Without `messages`, it is not known what the model saw."""

    messages: Annotated[
        list[dict[str, Any] | Count] | UnsetType,
        Meta(
            description="OpenAI chat messages, system prompts too. In place of one that an earlier event has: its "
            "number, from 0, among the messages of these events"
        ),
    ] = UNSET
    answer: Annotated[dict[str, Any] | UnsetType | None, Meta(description="the model's message; null: none")] = UNSET
    tools: Annotated[
        list[dict[str, Any]] | UnsetType,
        Meta(description="the tools that the model could call, as any provider writes them; if absent: not known"),
    ] = UNSET
    parameters: Annotated[
        dict[str, Any] | UnsetType, Meta(description="all else of the request; if absent: not known")
    ] = UNSET
    model: str | UnsetType = UNSET
    agent: Annotated[str | UnsetType, Meta(description="which agent asked, where there are several")] = UNSET
    previous: Annotated[str | UnsetType, Meta(description="the id of what the server keeps of the conversation")] = (
        UNSET
    )
    error: Annotated[str | UnsetType, Meta(description="why there is no answer")] = UNSET
    usage: Annotated[
        dict[str, Any] | UnsetType,
        Meta(
            description="its tokens, by the names of any provider: those of `input_tokens` are the size of what the "
            "model saw. They are not counted: that is what the events `usage` are for"
        ),
    ] = UNSET
    started_ms: Annotated[
        float | UnsetType, Meta(description="when the model was asked, by the program's clock, from the run's start on")
    ] = UNSET
    duration_ms: float | UnsetType = UNSET


class DoneEvent(_Event, frozen=True, kw_only=True, tag="done"):
    """The agent has finished. Later events don't count."""

    finish_reason: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    outputs: Annotated[
        dict[str, Any] | UnsetType, Meta(description="what the agent returns beside its answer, by name")
    ] = UNSET


class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The agent could not finish."""

    message: str
    kind: str | UnsetType = UNSET
    fix: str | UnsetType = UNSET
    retry: Annotated[bool | UnsetType, Meta(description="another attempt may succeed")] = UNSET
    retry_after_s: float | UnsetType = UNSET


PROGRAM_EVENT = Annotated[
    TextEvent
    | AgentEvent
    | ReasoningEvent
    | ToolCallEvent
    | ToolResultEvent
    | ReadyEvent
    | RestartEvent
    | NoteEvent
    | MessageEndEvent
    | UsageEvent
    | ModelRequestEvent
    | DoneEvent
    | ErrorEvent,
    Meta(description="One line of standard output."),
]
