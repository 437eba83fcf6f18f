"""OpenHands: trajectories (a list of events), and the resolver's and evaluation's output (`history`, `instruction`).

An action that the agent took is a call of a tool, the observation after it the call's result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_list, as_object, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

NAME = "openhands"
_SPEAK = ("message", "finish", "think", "system", "reject")
_BESIDE = frozenset(
    {
        "id",
        "timestamp",
        "source",
        "message",
        "cause",
        "action",
        "observation",
        "timeout",
        "tool_call_metadata",
        "args",
        "extras",
        "thought",
        "content",
        "llm_metrics",
    }
)
_SETTINGS = frozenset(
    {
        "thought",
        "is_confirmed",
        "confirmation_state",
        "keep_prompt",
        "hidden",
        "blocking",
        "action_risk",
        "security_risk",
        "images_urls",
        "image_urls",
        "wait_for_response",
        "impl_source",
        "translated_ipython_code",
    }
)


def can_read(value: Any) -> bool:
    """Whether a file's first value is an event, a list of events, or an output of the resolver."""
    if isinstance(value, list):
        return bool(value) and can_read(value[0])
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("history"), list) and "instruction" in value:
        return True
    return "source" in value and ("action" in value or "observation" in value)


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each output; events that follow one another are one run."""
    events: list[Any] = []
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
        elif isinstance(element.value, list):
            yield from _run(element.value, {}, (("[]", event) for event in element.value))
        elif isinstance(element.value, Mapping) and isinstance(element.value.get("history"), list):
            yield from _run(element.value["history"], element.value, (("", element.value),))
        elif isinstance(element.value, Mapping):
            events.append(element.value)
        else:
            yield Skipped("not an event: it is not an object", element.line)
    if events:
        yield from _run(events, {}, (("[]", event) for event in events))


def _run(
    events: list[Any], about: Mapping[str, Any], source: Iterable[tuple[str, Any]]
) -> Iterator[Recording | Skipped]:
    reader = _Reader()
    if about.get("instruction"):
        first = next((event for event in events if isinstance(event, Mapping)), {})
        # Mostly the first event says it already.
        if plain_text(_field(first, "content")) != about["instruction"]:
            reader.messages.append({"role": "user", "content": about["instruction"]})
    session = Session(_id_of(about), agent=NAME)
    for event in events:
        # Older outputs have pairs of an action and its observation.
        for entry in event if isinstance(event, list) else (event,):
            if isinstance(entry, Mapping):
                session.saw(entry.get("timestamp"))
                reader.take(entry)
    metrics = as_object(about.get("metrics"))
    session.messages, session.model = reader.messages, reader.model
    session.usage = reader.usage
    session.error = plain_text(about.get("error"))
    try:
        recording = session_recording(session, tuple(source))
    except AgentevalError as error:
        yield Skipped(error.what, place=session.id[:60] or "the trajectory")
        return
    cost = session.usage.cost(metrics, "accumulated_cost")
    if cost is not None:
        recording = replace(
            recording, transcript=replace(recording.transcript, usage=replace(recording.transcript.usage, cost=cost))
        )
    variables = {key: about[key] for key in ("issue", "git_patch") if about.get(key)}
    yield replace(recording, results=tuple(_results(about)), variables={**recording.variables, **variables})


def _id_of(about: Mapping[str, Any]) -> str:
    issue = as_object(about.get("issue"))
    named = "-".join(plain_text(issue[key]) for key in ("owner", "repo", "number") if issue.get(key) is not None)
    return plain_text(about.get("instance_id")) or named


def _results(about: Mapping[str, Any]) -> Iterator[CriterionResult]:
    if isinstance(about.get("success"), bool):
        explanation = plain_text(about.get("result_explanation"))
        yield foreign_result("OpenHands resolved", passed=about["success"], source=NAME, reason=explanation)
    resolved = value_at(about, "test_result", "resolved")
    if isinstance(resolved, bool):
        yield foreign_result("resolved", passed=resolved, source=NAME)


class _Reader(Struct):
    """Events as messages. `open`: calls that wait for their observation: (id, the event's id)."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    model: str = ""
    usage: UsageReader = field(default_factory=UsageReader)
    open: list[tuple[str, Any]] = field(default_factory=list)
    called: int = 0
    responses: set[str] = field(default_factory=set)

    def take(self, event: Mapping[str, Any]) -> None:
        self._response(event)
        if "observation" in event:
            self._observed(event)
        elif "action" in event:
            self._acted(event)

    def _response(self, event: Mapping[str, Any]) -> None:
        """The model's answer behind an event: it counts once, however many calls it made."""
        response = value_at(event, "tool_call_metadata", "model_response")
        if isinstance(response, Mapping) and plain_text(response.get("id")) not in self.responses:
            self.responses.add(plain_text(response.get("id")))
            self.model = plain_text(response.get("model")) or self.model
            self.usage.add(response.get("usage"))

    def _acted(self, event: Mapping[str, Any]) -> None:
        action, text = plain_text(event.get("action")), plain_text(_field(event, "content"))
        thought = plain_text(_field(event, "thought"))
        if event.get("source") == "user" or (action == "message" and "source" not in event and not self.messages):
            self.messages.append({"role": "user", "content": text or plain_text(event.get("message"))})
        elif action == "system":
            self.messages.append({"role": "system", "content": text})
        elif action in _SPEAK:
            content = text or thought or plain_text(_field(event, "final_thought")) or plain_text(event.get("message"))
            self.messages.append({"role": "assistant", "content": content})
        elif action and action != "null":
            self.called += 1
            name, call_id, arguments = self._call(event, action)
            self.open.append((call_id, event.get("id")))
            call = {"id": call_id, "function": {"name": name, "arguments": arguments}}
            self.messages.append({"role": "assistant", "content": thought, "tool_calls": [call]})

    def _call(self, event: Mapping[str, Any], action: str) -> tuple[str, str, Any]:
        """The call as the model made it, where that is kept; else the action with what it acts on."""
        about = as_object(event.get("tool_call_metadata"))
        call_id = plain_text(about.get("tool_call_id")) or f"action_{self.called}"
        for call in _calls_of(about.get("model_response")):
            function = call.get("function")
            if call.get("id") == about.get("tool_call_id") and isinstance(function, Mapping):
                return plain_text(function.get("name")) or action, call_id, function.get("arguments")
        args = event["args"] if isinstance(event.get("args"), Mapping) else event
        left_out = _SETTINGS if args is not event else _SETTINGS | _BESIDE - {"content"}
        arguments = {key: value for key, value in args.items() if key not in left_out and value not in (None, "")}
        return plain_text(about.get("function_name")) or action, call_id, arguments

    def _observed(self, event: Mapping[str, Any]) -> None:
        content = plain_text(event.get("content")) or plain_text(event.get("message"))
        waiting = next((pair for pair in self.open if pair[1] is not None and pair[1] == event.get("cause")), None)
        # Without a cause it is of the action before it.
        waiting = waiting or (self.open[-1] if self.open and event.get("cause") is None else None)
        failed = (
            event.get("observation") == "error" or event.get("success") is False or _exit_code(event) not in (None, 0)
        )
        if waiting is not None:
            self.open.remove(waiting)
            answer = {"role": "tool", "tool_call_id": waiting[0], "content": content, "is_error": failed}
            self.messages.append(answer)
        elif content and event.get("observation") not in ("null", "agent_state_changed"):
            self.messages.append({"role": "user", "content": content, "name": "observation"})


def _exit_code(event: Mapping[str, Any]) -> int | None:
    extras = event["extras"] if isinstance(event.get("extras"), Mapping) else event
    metadata = extras["metadata"] if isinstance(extras.get("metadata"), Mapping) else extras
    code = metadata.get("exit_code")
    # -1: OpenHands does not know it, as of a command that still runs.
    return code if isinstance(code, int) and not isinstance(code, bool) and code != -1 else None


def _field(event: Mapping[str, Any], name: str) -> object:
    args = event.get("args")
    return args.get(name) if isinstance(args, Mapping) and args.get(name) else event.get(name)


def _calls_of(response: Any) -> Iterator[Mapping[str, Any]]:
    for choice in as_list(value_at(response, "choices")):
        yield from objects_in(value_at(choice, "message", "tool_calls"))


FORMAT = Format(
    name=NAME,
    title="OpenHands",
    looks_like="events with `source` and `action` or `observation`; objects with `history`, `instruction`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=43,
)
