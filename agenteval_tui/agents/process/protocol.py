"""Events as programs of others write them, made into ours. The shape: docs/schemas/agent-event.json."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, to_builtins

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentNamed,
    AgentRequest,
    Done,
    Failed,
    ModelAsked,
    Noted,
    Prepared,
    ReasoningDelta,
    Restarted,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.process.python_conversation import EVENTS
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.codec import OpenAIMessage, content_text, openai_messages
from agenteval_tui.transcripts.content_parts import attachment_fields
from agenteval_tui.transcripts.impossible_figures import LEFT_OUT, duration_in, shown_figure
from agenteval_tui.transcripts.model import ErrorCode, Note, RunError, Transcript
from agenteval_tui.transcripts.model_request import RequestPart
from agenteval_tui.transcripts.traceback import traceback_from

OUTPUTS_KEPT = 256 * 1024
"""Characters, as JSON, of what an agent returned beside its answer."""


class EventError(Exception):
    """An event is not as it should be; the text says how."""


def is_event(value: object) -> bool:
    """Whether a JSON value is meant as an event."""
    return isinstance(value, Mapping) and value.get("type") in EVENTS


class EventReader:
    """Reads the events of one run. `ended` is true after `done` or `error`: what follows does not count."""

    def __init__(self) -> None:
        self.ended = False
        self._calls = 0
        self._open: dict[int, str] = {}  # calls without a result: key -> id
        self._read: dict[str, Callable[[Mapping[str, Any]], list[AgentEvent]]] = {
            "text": lambda event: [TextDelta(_text(event, "text"))],
            "agent": lambda event: [AgentNamed(_text(event, "name"))],
            "reasoning": lambda event: [ReasoningDelta(_text(event, "text"))],
            "tool_call": self._call,
            "tool_result": self._result,
            "message_end": lambda event: [TurnEnded()],
            "usage": self._usage,
            "done": self._done,
            "error": self._error,
            "restart": self._restart,
            "note": lambda event: [Noted(Note(_text(event, "code"), _text(event, "what")))],
            "ready": self._ready,
            "model_request": self._model_request,
        }
        self._told: list[Mapping[str, Any]] = []  # messages of requests, each once
        self._began = time.perf_counter()
        self._spoke = False

    def read(self, event: Any) -> list[AgentEvent]:
        """What one event means. Raises `EventError` for what is none."""
        if not isinstance(event, Mapping):
            raise EventError("an event is a JSON object with `type`")
        kind = event.get("type")
        read = self._read.get(kind) if isinstance(kind, str) else None
        if read is None:
            hint = did_you_mean(kind, EVENTS, f"types: {', '.join(EVENTS)}", quotes="'")
            problem = "an event has no `type`" if kind is None else f"there is no event of type {kind!r}"
            raise EventError(f"{problem}; {hint}")
        events = read(event)
        self._spoke = True
        return events

    def _restart(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        # What was told is taken back, its calls as well: a result that comes now belongs to a call that comes again.
        self._open.clear()
        return [Restarted()]

    def _ready(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        """What the program did until now was to start."""
        if self._spoke:
            raise EventError("an event of type 'ready' comes after others; it must be the first")
        return [Prepared("start of the program", (time.perf_counter() - self._began) * 1000)]

    def _call(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        name = _text(event, "name")
        # Ids are the program's, and may be missing or used twice: calls are told apart by their number.
        key = self._calls
        self._calls += 1
        call_id = _id(event, "id", "an event of type 'tool_call'") or f"call_{key + 1}"
        self._open[key] = call_id
        arguments = event.get("arguments", "")
        text = arguments if isinstance(arguments, str) else _json(arguments)
        return [ToolCallStarted(key, call_id, name), ToolArgumentsDelta(key, storable(text))]

    def _result(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        call_id = _id(event, "id", "an event of type 'tool_result'")
        fits = [key for key, open_id in self._open.items() if call_id is None or open_id == call_id]
        raised = traceback_from(event.get("traceback"))  # as our own process has it, of what a framework caught
        if not fits and call_id is not None and raised is not None:
            return [ToolCallFinished(-1, "", error=True, traceback=raised, call_id=call_id)]
        if not fits:
            which = "" if call_id is None else f" {call_id!r}"
            raise EventError(f"a tool_result answers the call{which}, which was not made or has its result")
        # Without an id, results answer the calls in their order.
        self._open.pop(fits[0])
        error = event.get("error", False)
        result = event.get("result")
        # `error` may be the message itself, as our own process has it for a tool that raised.
        if result is None and isinstance(error, str):
            result = error
        text = "" if result is None else result if isinstance(result, str) else _json(result)
        took = event.get("duration_ms")
        duration = duration_in(took)
        events: list[AgentEvent] = [ToolCallFinished(fits[0], storable(text), bool(error), duration, raised)]
        if took is not None and duration is None:
            events.append(Noted(Note(LEFT_OUT, shown_figure(took), "duration_ms")))
        return events

    def _usage(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        figures = UsageReader()
        usage = figures.read(event)
        odd = event.get("odd")  # what our own code in the child could not accept
        figures.odd.update(odd if isinstance(odd, Mapping) else {})
        sums = event.get("sums")
        figures.wrong_sums.update(dict.fromkeys(str(figure) for figure in sums) if isinstance(sums, list) else {})
        return [UsageReported(usage), *(Noted(note) for note in figures.notes)]

    def _model_request(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        listed = event.get("messages")
        if listed is None:
            return [ModelAsked()]
        if not isinstance(listed, list):
            raise EventError("an event of type 'model_request' needs a list as `messages`")
        messages = [self._told_message(entry) for entry in listed]
        answer, tools, parameters = (event.get(key) for key in ("answer", "tools", "parameters"))
        if answer is not None:
            answer = _message(answer)
        about: dict[str, Any] = dict(parameters) if isinstance(parameters, Mapping) else {}
        about.update(tools=tools, model=event.get("model"), previous_response_id=event.get("previous"))
        missing: list[RequestPart] = [] if isinstance(tools, list) else ["tools"]
        if not isinstance(parameters, Mapping):
            missing.append("parameters")
        agent, error = str(event.get("agent") or ""), str(event.get("error") or "")
        usage = event.get("usage")
        return [
            ModelAsked(
                messages,
                answer=answer,
                about=about,
                agent=agent,
                error=error,
                started_ms=duration_in(event.get("started_ms")),
                duration_ms=duration_in(event.get("duration_ms")) or 0.0,
                unrecorded=missing,
                usage=usage if isinstance(usage, Mapping) else {},
            )
        ]

    def _told_message(self, entry: object) -> Mapping[str, Any]:
        """A message, or the one that has this number among those that were told."""
        if isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(self._told):
            return self._told[entry]
        self._told.append(_message(entry))
        return self._told[-1]

    def _done(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        outputs = event.get("outputs", {})
        if not isinstance(outputs, Mapping):
            raise EventError("an event of type 'done' needs an object as `outputs`")
        self.ended = True
        size = len(_json(outputs)) if outputs else 0
        done = Done(
            storable(str(event.get("finish_reason") or "stop")),
            storable(str(event.get("model") or "")),
            # Outputs are kept with each run in the history: a whole data frame must not be.
            outputs if size <= OUTPUTS_KEPT else {},
        )
        if size <= OUTPUTS_KEPT:
            return [done]
        return [Noted(Note("left_out", f"outputs of {size:,} characters ({', '.join(map(str, outputs))[:200]})")), done]

    def _error(self, event: Mapping[str, Any]) -> list[AgentEvent]:
        self.ended = True
        message = _text(event, "message")
        wait = event.get("retry_after_s")
        wait_s = duration_in(wait)  # the same bounds do for seconds
        kind, fix = str(event.get("kind") or "agent"), storable(str(event.get("fix") or ""))
        error = (
            RunError.told(kind, message, fix)
            if message
            else RunError(kind, "the agent gave no reason", fix, ErrorCode.NO_REASON)
        )
        return [Failed(error, event.get("retry") is True, wait_s)]


def _message(value: object) -> dict[str, Any]:
    """An OpenAI chat message, with its content as text. Calls stay as they are, but for their ids."""
    if not isinstance(value, Mapping):
        raise EventError("an event of type 'model_request' has OpenAI chat messages, or numbers of earlier ones")
    if not isinstance(value.get("role"), str) or not value["role"]:
        raise EventError(f"{_MESSAGE} needs a text as `role`")
    try:
        message = {**value, "content": content_text(value.get("content"))}
        files = attachment_fields(value.get("content"))
    except RecursionError:
        raise EventError(_TOO_DEEP) from None
    # Only files that are in the content count, and no field that a program wrote by itself.
    message.pop("attachments", None)
    if files:
        message["attachments"] = files
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise EventError(f"{_MESSAGE} needs a list of objects as `tool_calls`")
    if calls:
        message["tool_calls"] = [{**call, "id": _id(call, "id", f"a call in {_MESSAGE}")} for call in calls]
    if "tool_call_id" in value:
        message["tool_call_id"] = _id(value, "tool_call_id", _MESSAGE)
    return message


_MESSAGE = "a message of an event of type 'model_request'"


def _id(holder: Mapping[str, Any], key: str, place: str) -> str | None:
    """An id as text; None where there is none."""
    value = holder.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EventError(f"{place} needs a text as `{key}`")
    return storable(value if isinstance(value, str) else _json(value))


def _text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        lack = "has no" if value is None else "needs a text as"
        raise EventError(f"an event of type {event['type']!r} {lack} `{key}`")
    return storable(value)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        raise EventError(_TOO_DEEP) from None


_TOO_DEEP = "a value is nested too deeply"


# What a program is told of its task: one JSON document. The shape: docs/schemas/agent-request.json.


class ProgramRequest(Document, frozen=True, kw_only=True):
    """What a program is told."""

    version: Literal[1] = 1
    prompt: Annotated[str, Meta(description="the text of the last user message")]
    messages: Annotated[
        tuple[Annotated[OpenAIMessage, Meta(description="An OpenAI chat message.")], ...],
        Meta(description="the whole conversation, the prompt last"),
    ]
    context: Annotated[dict[str, Any], Meta(description="the test's testing context: input_data, sample_tools, ...")]
    variables: Annotated[dict[str, Any], Meta(description="the test's variables, with those of its row in a dataset")]
    config: Annotated[dict[str, Any], Meta(description="the agent's `settings`, a variation's merged in")]
    test: str
    repetition: Annotated[int, Meta(ge=1)]
    seed: Annotated[Count, Meta(description="its own for each test, row and repetition; the same each time")]
    run: Annotated[str, Meta(description="the same in all turns and attempts of a run")]
    turn: Annotated[int, Meta(ge=1)]


def request_document(request: AgentRequest, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A `ProgramRequest` as plain data. `settings` are the agent's own options for the program, its `config`."""
    document = ProgramRequest(
        prompt=prompt_of(request),
        messages=openai_messages(Transcript(messages=request.messages, tool_calls=request.tool_calls)),
        context=dict(request.context),
        variables=json_like(request.variables),
        config=dict(settings),
        test=request.test_id,
        repetition=request.repetition,
        seed=request.seed,
        run=request.run,
        turn=request.turn,
    )
    plain: dict[str, Any] = to_builtins(document, enc_hook=str)
    # An agent in this process gets what one in another process reads from JSON: lists, no tuples.
    return {**plain, "messages": json_like(plain["messages"])}


def prompt_of(request: AgentRequest) -> str:
    """The text of the last user message."""
    return next((message.content for message in reversed(request.messages) if message.role == "user"), "")
