"""A trace of another tool as one conversation: what models were asked and answered, and what tools gave.

Each request of a model holds the conversation so far, or only what is new; wrappers of a call are recorded beside the
call. So the messages of all requests are put together in their order, each once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.recording.conversation import Asked
from agenteval_tui.agents.recording.imported_requests import asked_in, with_requests
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    first_text,
    is_message,
    messages_in,
    plain_text,
    transcript_of,
)
from agenteval_tui.formats.importers.openai_responses import answer_messages
from agenteval_tui.formats.importers.span_tool_calls import UntoldCall, called_with, with_results, with_untold_calls
from agenteval_tui.formats.importers.traced_requests import as_asked
from agenteval_tui.formats.importers.usage_import import with_usage
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import RunError, Step, ToolCall, Transcript
from agenteval_tui.transcripts.observed import without_calls

Kind = Literal["model", "tool", "function", "agent", "other"]
"""A function is the program's own: it is what ran a call that a model made, or no call of a tool."""
_TEXTS = ("input", "question", "prompt", "query", "q", "output", "answer", "a", "response", "result", "text", "content")
_LONGEST_NAME = 80
_ROLE = re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE)


class Span(Struct, frozen=True):
    """A part of a trace. `started`, `ended`: milliseconds since 1970. `asked` and `answered` are as the tool recorded
    them: of a model messages in any dialect, a whole request or reply, or a text. So is its `usage`."""

    id: str
    kind: Kind
    name: str = ""
    parent: str = ""
    started: float | None = None
    ended: float | None = None
    asked: Any = None
    answered: Any = None
    call_id: str = ""
    model: str = ""
    usage: Any = None
    error: str = ""
    about: Mapping[str, Any] | None = None
    """What else a model was asked with (tools, parameters), where that is beside its messages."""

    @property
    def took(self) -> float | None:
        """How long it took, in milliseconds; None: that is not known."""
        # The clocks of two machines may differ: an end before the beginning is no time at all.
        return None if self.started is None or self.ended is None else max(0.0, self.ended - self.started)


def conversation_of(spans: Sequence[Span], source: str, notes: list[str], *, root: Span | None = None) -> Transcript:
    """The transcript of a trace. `root`: what the trace as a whole was asked and answered, where that is beside its
    spans. What could not be read is added to `notes`. Raises `AgentevalError` when nothing in it was said."""
    # Spans without a time come last: nothing says where they belong.
    ordered = sorted(spans, key=lambda span: (span.started is None, span.started or 0.0))
    models = _innermost([span for span in ordered if span.kind == "model"])
    conversation = _Conversation(notes)
    for span in models:
        conversation.take(span)
    by_id = {span.id: span for span in ordered}
    requests = [_request(number, span, by_id) for number, span in enumerate(models)]
    top = next((span for span in ordered if not span.parent), ordered[0] if ordered else None)
    # Without messages of a model, what was said is what went into the whole and what came out.
    for whole in (root, top):
        if not conversation.messages and whole is not None and (whole is root or whole.kind != "tool"):
            conversation.plain(whole)
    ran = [span for span in ordered if span.kind in ("tool", "function")]
    tools = [span for span in ran if span.kind == "tool"]
    if not conversation.messages and not tools:
        raise AgentevalError("nothing was said in this trace")
    transcript = transcript_of(conversation.messages, notes=notes)
    answering = models or ([] if top is None else [top])
    # A text tells of no calls: that there are none in it does not mean that none were made.
    is_told = bool(tools) or any(tells_calls(span.answered) for span in answering)
    transcript = _with_spans(transcript, ran)
    if not is_told:
        transcript = without_calls(transcript, source)
    # Of all spans, not of the models' alone: what the program did first counts, too.
    began = min((span.started for span in spans if span.started is not None), default=None)
    ended = max((span.ended for span in spans if span.ended is not None), default=None)
    steps = [_step(span, began) for span in (*models, *ran) if began is not None and span.started is not None]
    used = UsageReader()
    for span in models:
        used.add(span.usage)
    failed = top.error if top is not None else ""
    transcript = with_requests(transcript, requests)
    return replace(
        with_usage(transcript, used),
        model=transcript.model or next((span.model for span in reversed(models) if span.model), ""),
        timing=replace(
            transcript.timing,
            total_ms=None if began is None or ended is None else max(0.0, ended - began),
            steps=tuple(sorted((step for step in steps if step is not None), key=lambda step: step.started_ms)),
        ),
        error=RunError.told(source, failed[:20_000]) if failed else None,
    )


def _request(number: int, span: Span, spans: Mapping[str, Span]) -> Asked | None:
    """The request of a model's span, where its messages are recorded and not only a text."""
    inputs = decoded(span.asked)
    if not _has_messages(span):
        return None
    is_whole = isinstance(inputs, Mapping) and bool(inputs.keys() & {"model", "tools", "temperature", "max_tokens"})
    about = {**(inputs if isinstance(inputs, Mapping) and is_whole else {}), **(span.about or {})}
    replied = decoded(span.answered)
    if isinstance(replied, Mapping) and replied.get("previous_response_id"):
        about["previous_response_id"] = replied["previous_response_id"]
    instructions = replied.get("instructions") if isinstance(replied, Mapping) else None
    messages = list(_readable(request_messages(span.asked)))
    if (
        isinstance(instructions, str)
        and instructions
        and not any(message.get("role") == "system" for message in messages)
    ):
        messages.insert(0, {"role": "system", "content": instructions})
    answer = as_asked(answered_messages(span.answered))
    return asked_in(
        as_asked(messages),
        answer,
        number=number,
        started=span.started,
        ended=span.ended,
        about=about if is_whole or span.about is not None else None,
        model=span.model,
        agent=_agent(span, spans),
        error=span.error,
        usage=span.usage,
    )


def _agent(span: Span, spans: Mapping[str, Span]) -> str:
    """The name of the innermost agent around a span; "" for none. `spans`: all, by id."""
    # A broken trace may have spans that lie within each other.
    around, visited = spans.get(span.parent), set[str]()
    while around is not None and around.id not in visited:
        if around.kind == "agent":
            return around.name[:_LONGEST_NAME]
        visited.add(around.id)
        around = spans.get(around.parent)
    return ""


def tells_calls(answered: Any) -> bool:
    """Whether an output is recorded in a form that includes its tool calls: messages, and not a text."""
    value = decoded(answered)
    if isinstance(value, Mapping) and (answer_messages(value) is not None or _is_candidate(value)):
        return True
    messages = [message for message in answered_messages(value) if isinstance(message, Mapping)]
    return bool(messages) and all(
        any(message is part for part in _inside(value)) or "parts" in message for message in messages
    )


def _is_candidate(value: Mapping[str, Any]) -> bool:
    inner = value.get("content")
    return isinstance(inner, Mapping) and isinstance(inner.get("parts"), list)


def _inside(value: Any, depth: int = 0) -> Iterator[Any]:
    """A value, and the values that `answered_messages` may take out of it."""
    yield value
    if depth < 4 and isinstance(value, list):
        for item in value:
            yield from _inside(item, depth + 1)
    elif depth < 4 and isinstance(value, Mapping):
        for key in ("message", "messages", "output", "generations"):
            yield from _inside(value.get(key), depth + 1)


def _innermost(models: list[Span]) -> list[Span]:
    """Without the spans that only wrap another request: the one inside says the same, mostly better."""

    def wraps(outer: Span, inner: Span) -> bool:
        if outer is inner:
            return False
        if inner.parent == outer.id:
            return True
        # Tools that record no parents are told by the times: what lies within another span is inside of it.
        times = (outer.started, inner.started, inner.ended, outer.ended)
        if any(time is None for time in times):
            return False
        # Two spans with the very same times: neither is known to be the outer one.
        return times[0] <= times[1] and times[2] <= times[3] and times[:2] != times[2:]  # type: ignore[operator]

    spans = []
    for span in models:
        inner = [other for other in models if wraps(span, other) and not wraps(other, span)]
        outer = [other for other in models if wraps(other, span)]
        if any(_has_messages(span) for span in inner):
            continue  # a wrapper
        if outer and not _has_messages(span):
            continue  # said by the one around it
        spans.append(span)
    return spans


def _has_messages(span: Span) -> bool:
    """Whether its request is recorded as messages, and not as a text."""
    return not isinstance(decoded(span.asked), str) and bool(request_messages(span.asked))


class _Conversation:
    """The messages so far, without repetitions in later requests. A message that was sent twice is here twice."""

    def __init__(self, notes: list[str]) -> None:
        self.messages: list[dict[str, Any]] = []
        self._known: Counter[str] = Counter()
        self._open: list[tuple[str, str]] = []  # id and name of calls without a result
        self._notes = notes

    def take(self, span: Span) -> None:
        messages, answered = request_messages(span.asked), answered_messages(span.answered)
        answer = decoded(span.answered)
        instructions = answer.get("instructions") if isinstance(answer, Mapping) else None
        if (
            messages
            and not self.messages
            and isinstance(instructions, str)
            and instructions
            and messages[0].get("role") != "system"
        ):
            messages = [{"role": "system", "content": instructions}, *messages]  # as the Responses API repeats them
        # Only for the first one: a text in a later request is most likely the whole conversation again.
        if not messages and not self.messages and (text := text_of(span.asked)):
            messages = [{"role": "user", "content": text}]
        here: Counter[str] = Counter()
        for message in self._normal(messages):
            key = _key(message)
            here[key] += 1
            # A request repeats the conversation so far: new is what comes more often in it than until now.
            if here[key] > self._known[key]:
                self._add(message, key)
        for message in self._normal(answered):
            self._add(message, _key(message))

    def plain(self, root: Span) -> None:
        """Add the input and the output of a trace without a model."""
        for role, value, read in (
            ("user", root.asked, request_messages),
            ("assistant", root.answered, answered_messages),
        ):
            messages = read(value) or ([{"role": role, "content": text}] if (text := text_of(value)) else [])
            for message in self._normal(messages):
                if not self._known[_key(message)]:
                    self._add(message, _key(message))

    def _add(self, message: dict[str, Any], key: str) -> None:
        self._known[key] += 1
        self._open += [
            (plain_text(tool_call["id"]), tool_call["function"]["name"])
            for tool_call in message.get("tool_calls") or ()
        ]
        if message.get("role") == "tool":
            # If a tool gives no ids, each request numbers its calls from the start.
            named = [pair for pair in self._open if pair[0] == message.get("tool_call_id")]
            named = named or [pair for pair in self._open if pair[1] == message.get("name")] or self._open[:1]
            if named:
                self._open.remove(named[0])
                message = {**message, "tool_call_id": named[0][0]}
        self.messages.append(message)

    def _normal(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """The messages in one format, so that equal messages are recognized."""
        if not messages:
            return []
        # What can't be read of one request must not take the others with it.
        try:
            return _as_messages(transcript_of(list(_readable(messages)), notes=self._notes))
        except AgentevalError as error:
            self._notes.append(error.what)
            return []


def _as_messages(transcript: Transcript) -> list[dict[str, Any]]:
    """The messages of a transcript with their images and files, for `transcript_of`."""
    raw = to_openai_messages(transcript)
    for message, raw_message in zip(transcript.messages, raw, strict=True):
        if message.attachments:
            raw_message["attachments"] = list(message.attachments)
    return raw


def _readable(messages: Sequence[Any]) -> Iterator[Any]:
    """Without the definitions of tools that some instrumentations put between the messages."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        content = decoded(message.get("content"))
        if message.get("role") == "tool" and isinstance(content, Mapping) and "function" in content:
            continue
        yield message


def _key(message: Mapping[str, Any]) -> str:
    calls = [
        (tool_call["function"].get("name"), tool_call["function"].get("arguments"))
        for tool_call in message.get("tool_calls") or ()
    ]
    # One API calls instructions `developer`, another one `system`; they are the same message.
    role = "system" if message.get("role") == "developer" else message.get("role")
    return json.dumps([role, (message.get("content") or "").strip(), calls], sort_keys=True, default=str)


def request_messages(value: Any) -> list[Any]:
    """The messages of a request; [] for what is none."""
    value = decoded(value)
    if isinstance(value, str):
        return _lines(value)
    if isinstance(value, list):
        return messages_in(value[0] if value and isinstance(value[0], list) else value)
    if not isinstance(value, Mapping):
        return []
    if is_message(value):
        return [value]
    for key in ("messages", "contents", "input"):
        inner = decoded(value.get(key))
        if isinstance(inner, list) and inner:
            inner = inner[0] if isinstance(inner[0], list) else inner
            if all(is_message(message) for message in inner):
                return [*_system(value), *inner]
    # Only where nothing else is there: beside other fields a prompt is a variable among others.
    prompt = value.get("prompt")
    if isinstance(prompt, str) and (value.keys() <= {"prompt", "system"}):
        return [*_system(value), {"role": "user", "content": prompt}]
    return []


def _lines(text: str) -> list[dict[str, Any]]:
    """A request that was recorded as text: `system: ...`, `user: ...`; [] for any other text."""
    parts = _ROLE.split(text)
    if len(parts) < 3 or parts[0].strip():
        return []
    # A text has no id of the call that a result answers: so the result is what somebody said.
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [
        {"role": "user" if role == "tool" else role, "content": text.strip()}
        for role, text in pairs
        if text.strip() not in ("", "None")
    ]


def _system(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    config = as_object(value.get("config"))
    system = value.get("system") or value.get("instructions") or config.get("system_instruction")
    return [{"role": "system", "content": system}] if isinstance(system, str) and system else []


def answered_messages(value: Any) -> list[Any]:
    """The messages of a reply; a text is the assistant's."""
    value = decoded(value)
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    if isinstance(value, list):
        if messages_in(value):
            return value
        if value and isinstance(value[0], Mapping) and is_message(value[0].get("message")):
            return [value[0]["message"]]  # the choices of a chat completion
        if value and all(isinstance(item, Mapping) and ("toolName" in item or "tool_name" in item) for item in value):
            return [{"role": "assistant", "parts": [{**item, "type": "tool-call"} for item in value]}]
        return [{"role": "assistant", "content": text_of(value)}]
    if not isinstance(value, Mapping):
        return [{"role": "assistant", "content": plain_text(value)}]
    reply = answer_messages(value)
    if reply is not None:
        return [message for message in reply["messages"] if message.get("role") == "assistant" or "type" in message]
    inner = value.get("content")
    if isinstance(inner, Mapping) and isinstance(inner.get("parts"), list):  # Gemini's candidate
        return [{**inner, "role": "model"}]
    for key in ("message", "messages", "output", "generations"):
        messages = decoded(value.get(key))
        while isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
            messages = messages[0]
        if listed := messages_in(messages):
            return listed
    if is_message(value):
        return [value]
    return [{"role": "assistant", "content": text_of(value)}]


def decoded(value: object) -> object:
    """The value of a text that is JSON; everything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def text_of(value: Any) -> str:
    """The text of an object: the value of a usual name (`_TEXTS`), or its only value; else all of it as JSON."""
    value = decoded(value)
    if isinstance(value, Mapping):
        if (text := first_text(value, _TEXTS)) is not None:
            return text
        if len(value) == 1:
            return text_of(next(iter(value.values())))
        if not value:
            return ""
    return plain_text(value)


def _with_spans(transcript: Transcript, tools: Sequence[Span]) -> Transcript:
    """With what tools gave, where no request says it, and when they ran: by the call's id, else by name and arguments,
    else by name, in their order."""
    remaining, names = list(tools), {call.name for call in transcript.tool_calls}
    calls: list[ToolCall] = []
    ran_for: dict[int, int] = {}  # a span's number, and the number of its call
    for call in transcript.tool_calls:
        # An id is sure. Arguments come before the name alone, as parallel calls of one tool end in any order.
        span = next((span for span in remaining if span.call_id and span.call_id == call.id), None)
        alike = [
            span
            for span in remaining
            if _tool_of(span, names) == call.name and (not span.call_id or span.call_id != call.id)
        ]
        span = span or next((span for span in alike if called_with(span.asked) == call.arguments), None)
        span = span or next((span for span in alike if not span.call_id), None)
        if span is not None:
            ran_for[next(number for number, tool in enumerate(tools) if tool is span)] = len(calls)
            remaining.remove(span)
            result = call.result if call.result is not None else (_result(span) or None)
            status = "error" if span.error or call.status == "error" else "ok" if result else call.status
            call = replace(call, result=result, duration_ms=span.took, status=status)
        calls.append(call)
    untold = [
        _untold(span, 1 + max((call for ran, call in ran_for.items() if ran < number), default=-1))
        for number, span in enumerate(tools)
        if span.kind == "tool" and number not in ran_for and not _repeats(span, tools, ran_for)
    ]
    return with_untold_calls(with_results(transcript, calls), untold)


def _tool_of(span: Span, names: Collection[str]) -> str | None:
    """Which of the called tools ran in a span: the GenAI conventions call such a span `execute_tool NAME`. Of names
    that end alike, such as `search` and `web_search`, the longest."""
    return max((name for name in names if span.name.endswith(name)), key=len, default=None)


def _untold(span: Span, after: int) -> UntoldCall:
    return UntoldCall(
        span.call_id or f"span_{span.id}",
        name=span.name,
        arguments=span.asked,
        result=_result(span) or None,
        failed=bool(span.error),
        after=after,
        duration_ms=span.took,
    )


def _repeats(span: Span, tools: Sequence[Span], ran_for: Mapping[int, int]) -> bool:
    """Whether it is inside of another span of the same call, or wraps one that was told."""
    if any(tool.id == span.parent and tool.name == span.name for tool in tools if tool.id):
        return True
    inside = [number for number, tool in enumerate(tools) if tool.parent == span.id and tool.name == span.name]
    return any(number in ran_for for number in inside)


def _result(span: Span) -> str:
    answer = decoded(span.answered)
    if isinstance(answer, Mapping):
        # MCP's results are lists of parts.
        parts = answer.get("content")
        texts = [part.get("text") for part in as_list(parts) if isinstance(part, Mapping)]
        if texts and all(isinstance(text, str) for text in texts):
            return "\n".join(map(str, texts))
    return span.error if answer is None else plain_text(answer)


def _step(span: Span, began: float | None) -> Step | None:
    if began is None or span.started is None or span.took is None:
        return None
    return Step(span.name[:_LONGEST_NAME] or span.kind, max(0.0, span.started - began), span.took)
