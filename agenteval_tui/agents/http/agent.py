"""The kind `http`: any endpoint that takes JSON and does its own work with it."""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    CheckStep,
    Done,
    Failed,
    Noted,
    PromptSent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from agenteval_tui.agents.http.client import HttpClient
from agenteval_tui.agents.http.client_factory import NoWayError, Secrets, api_key, make_client, run_on_client
from agenteval_tui.agents.http.connection_pool import Connections
from agenteval_tui.agents.http.errors import error_in, is_markup, is_only_an_error, words_of_page
from agenteval_tui.agents.http.options import HttpOptions
from agenteval_tui.agents.http.sse import LINE_END, ServerEvent, SseReader
from agenteval_tui.agents.models.message_mapping import with_system
from agenteval_tui.agents.models.stream import (
    CutReplyError,
    EmptyResponseError,
    ProviderError,
    StreamReply,
    end_of_turn,
    is_cut,
    kind_of,
)
from agenteval_tui.agents.options import options_for, prefix_refusal, read_options
from agenteval_tui.agents.recording.providers import run_header
from agenteval_tui.agents.think_tags import without_thinking
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import json_object, with_texts
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.grading.json_paths import Path, PathFailedError, compile_path, walk
from agenteval_tui.suites.templates import render_option
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Message, Note, Transcript, Usage
from agenteval_tui.transcripts.observed import NO_CALLS_OPTION, NOTHING_AT_PATH

_SESSIONS = 10_000  # runs whose session is remembered
_LONGEST_TEXT = 16_000_000  # characters in a JSON value that is taken as text
_MOST_PARTS = 200_000
_KEYS_NAMED = 12
_USAGE_FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_tokens",
    "reasoning": "reasoning_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
    "cost": "cost",
}
_NOTHING: Any = object()
_CALLS = ".tool_calls"
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_SSE_LINE = re.compile(r"(?:data|event|id|retry):|:")


class HttpAgent:
    """Asks an endpoint once a turn. Failures are `Failed` events of the kinds that `openai` has."""

    options_model = HttpOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(HttpOptions, setup.name, setup.config)
        self._connections = Connections()
        self._secrets = Secrets(setup)
        self._sessions: OrderedDict[str, Any] = OrderedDict()

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One turn of a run: one request."""
        return run_on_client(lambda: self._begin(request))

    async def check(self, thorough: bool = False) -> CheckReport:
        """Whether anybody answers at the address; `thorough` sends a prompt, as a run does."""
        request = AgentRequest((Message("user", "ping"),), test_id="check", run="check")
        try:
            own_request = make_request(self._options, request, None)
            wire = self._wire(self._options, own_request)
        except AgentevalError as error:
            return CheckReport(False, error.problem, fix=error.fix)
        except NoWayError as missing:
            return missing.report
        return await (self._try(request) if thorough else _knock(wire))

    def release(self, run: str) -> None:
        """The run is over: its session is forgotten."""
        self._sessions.pop(run, None)

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    def _begin(self, request: AgentRequest) -> tuple[HttpClient, AsyncIterator[AgentEvent]]:
        options = options_for(request, self._setup, self._options)
        if request.turn <= 1:
            self._sessions.pop(request.run, None)  # a failed attempt had a different one
        own_request = make_request(options, request, self._sessions.get(request.run))
        wire = self._wire(options, own_request, request.config, request.proxy)
        return wire, without_thinking(self._ask(options, request, own_request, wire))

    async def _ask(
        self, options: HttpOptions, request: AgentRequest, own_request: HttpRequest, wire: HttpClient
    ) -> AsyncGenerator[AgentEvent, None]:
        if (refusal := prefix_refusal(options, request)) is not None:
            yield refusal
            return
        if own_request.messages != request.messages:
            yield PromptSent(own_request.messages)
        reply = HttpReply(options)
        reader = {"sse": SseReader, "jsonl": LineReader, "none": None}[options.stream]
        content = {} if own_request.content is None else {"content": own_request.content}
        answer_events = wire.ask(
            "", reply, method=options.method, reader=reader, always_stream=options.stream == "jsonl", **content
        )
        async with aclosing(answer_events) as events:
            async for event in events:
                yield event
                if isinstance(event, Failed):
                    return
        for event in end_of_turn(reply.usage, reply.odd):
            yield event
        if request.run and reply.session is not None:
            self._sessions[request.run] = reply.session
            # Runs that are never released, as those of a check, must not stay for ever.
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        note = reply.calls_not_seen
        if note is not None:
            yield Noted(note)
        yield Done(reply.finish_reason or "stop", reply.model)

    async def _try(self, request: AgentRequest) -> CheckReport:
        began = time.perf_counter()
        pieces, first, last = 0, None, None
        async for event in self.run(request):
            last = event
            if isinstance(event, TextDelta | ReasoningDelta):
                pieces += 1
                first = first or (time.perf_counter() - began) * 1000
        took = (time.perf_counter() - began) * 1000
        failed = last if isinstance(last, Failed) else None
        kind = failed.error.kind if failed is not None else ""
        words = failed.error.message if failed is not None else ""
        # Any other failure is an answer: somebody is there.
        there = kind not in ("connection", "timeout")
        steps = [CheckStep("reachable", there, words if not there else "the endpoint answers", took)]
        refused = kind in ("auth", "permission")
        # Who is refused for its country was not asked for its key.
        key = None if not there or kind == "region" else not refused
        steps.append(
            CheckStep("key", key, words if refused else "" if key is None else "the endpoint accepts the request")
        )
        model = last.model if isinstance(last, Done) else ""
        steps.append(CheckStep("model", True if model else None, model or "the endpoint does not say"))
        if self._options.stream == "none":
            steps.append(CheckStep("streams", None, "the agent does not use a stream"))
        elif failed is not None:
            steps.append(CheckStep("streams", None if refused or key is None else False, words))
        else:
            text = count(pieces, "piece") + (f"; the first after {first:.0f} ms" if first else "")
            steps.append(CheckStep("streams", True, text, first))
        steps.append(CheckStep("tools", None, "the endpoint calls its own tools"))
        if failed is not None:
            return CheckReport(False, words, took, failed.error.fix, tuple(steps))
        return CheckReport(True, "the endpoint answers a prompt", took, "", tuple(steps))

    def _wire(
        self,
        options: HttpOptions,
        own_request: HttpRequest,
        config: Mapping[str, Any] | None = None,
        proxy: str = "",
    ) -> HttpClient:
        """The way to the endpoint; `config` is what the options were read from. `proxy`: where a server that agenteval
        started sends its requests to models. Raises `NoWayError`."""
        name = options.api_key_env or ""
        key = api_key(self._setup, name)
        headers = {header.lower(): text for header, text in own_request.headers.items()}
        if own_request.content_type and own_request.content is not None:
            headers.setdefault("content-type", own_request.content_type)
        # Some servers stream only where they are asked to.
        headers.setdefault("accept", "text/event-stream" if options.stream == "sse" else "*/*")
        # Last, so that a header of the options can't take the place of the key.
        if key:
            header = options.api_key_header.lower()
            scheme = options.api_key_scheme
            if scheme is None:
                scheme = "Bearer" if header == "authorization" else ""
            headers[header] = f"{scheme} {key}" if scheme else key
        # A variation may have another address: elsewhere, nobody is told of the proxy.
        if proxy and options.runs_here:
            headers.update([run_header(proxy)])
        filled = options.model_copy(update={"headers": headers, "query": dict(own_request.query)})
        return make_client(
            own_request.url,
            key,
            name,
            {},
            options=filled,
            config=config or self._setup.config,
            connections=self._connections,
            secrets=self._secrets,
            option="url",
        )


async def _knock(wire: HttpClient) -> CheckReport:
    """Asks what the endpoint takes (OPTIONS): nothing is done by that, and any answer says that it is there."""
    began = time.perf_counter()
    _, failed = await wire.request("OPTIONS", "")
    took = (time.perf_counter() - began) * 1000
    if failed is not None and failed.error.kind in ("connection", "timeout"):
        steps = (CheckStep("reachable", False, failed.error.message, took), CheckStep("key", None, "not tried"))
        return CheckReport(False, failed.error.message, took, failed.error.fix, steps)
    steps = (
        CheckStep("reachable", True, f"{wire.server.url} answers", took),
        CheckStep("key", None, "only a prompt can tell"),
    )
    return CheckReport(True, f"{wire.server.url} responds", took, "", steps)


# The kind `http`: a request made of templates


class HttpRequest(Struct, frozen=True):
    """What is sent: the address, the headers, the parameters, and `content` (None: nothing) of type `content_type`.

    `messages`: what the agent got, with the system prompt if the templates use it.
    """

    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes | None
    content_type: str
    messages: tuple[Message, ...]


def make_request(options: HttpOptions, request: AgentRequest, session: Any) -> HttpRequest:
    """The request for one turn. Raises `AgentevalError` when a template can't be filled."""
    messages = with_system(request, None)
    variables = _variables(request, messages, session)
    url = render_option("url", options.url, with_texts(variables, lambda text: quote(text, safe="")), typed=False)
    # Trust was given for the host in the file: a variable of a test must not send the keys to another one.
    configured, target = urlsplit(options.url), urlsplit(url)
    if (target.scheme, target.netloc) != (configured.scheme, configured.netloc):
        raise AgentevalError("the template of `url` changes the host", where="url", fix="put templates into its path")
    headers = {
        name: render_option(f"headers.{name}", text, variables, typed=False) for name, text in options.headers.items()
    }
    for name, text in headers.items():
        # A text of a test with a line end would add headers to the request.
        if "\n" in text or "\r" in text or "\0" in text:
            raise AgentevalError(
                f"the header {name} would have several lines", where=f"headers.{name}", fix="put such text into `body`"
            )
    query = {name: render_option(f"query.{name}", text, variables, typed=False) for name, text in options.query.items()}
    content, content_type = _content(options, variables)
    return HttpRequest(url, headers, query, content, content_type, messages)


def _variables(request: AgentRequest, messages: tuple[Message, ...], session: Any) -> dict[str, Any]:
    prompt = next((message.content for message in reversed(messages) if message.role == "user"), "")
    system = next((message.content for message in messages if message.role in SYSTEM_ROLES), "")
    return {
        "prompt": prompt,
        "messages": to_openai_messages(Transcript(_with_calls(messages, request), request.tool_calls)),
        "system": system,
        "turn": request.turn,
        "run": request.run,
        "test": request.test_id,
        "repetition": request.repetition,
        "seed": request.seed,
        "context": dict(request.context),
        "variables": dict(request.variables),
        "session": session,
    }


def _with_calls(messages: tuple[Message, ...], request: AgentRequest) -> tuple[Message, ...]:
    """The messages, without numbers of calls that don't exist."""
    count = len(request.tool_calls)
    return tuple(
        message
        if all(index < count for index in message.tool_calls) and (message.tool_call or 0) < max(count, 1)
        else Message(
            message.role, message.content, message.reasoning, name=message.name, attachments=message.attachments
        )
        for message in messages
    )


def _content(options: HttpOptions, variables: Mapping[str, Any]) -> tuple[bytes | None, str]:
    # The default body is for POST; a GET has one only where it is written.
    if options.body is None or (options.method == "GET" and "body" not in options.model_fields_set):
        return None, ""
    value = render_option("body", options.body, variables)
    if isinstance(value, str):
        return value.encode(), "text/plain; charset=utf-8"
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"), "application/json"
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentevalError(f"`body` is not JSON: {error}", where="body", fix="check its templates") from None


# The kind `http`: finding the answer, the calls and the figures in whatever an endpoint replies


class HttpReply(StreamReply):
    """One reply of an endpoint, read with the expressions of the options.

    What came is in `session`, `model`, `finish_reason`, `usage`. An answer that neither a stream nor a whole reply
    brought is an error in words, raised by `rest`.
    """

    protocol = "usable"
    fix = "check the agent's JMESPath options against a real reply"

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._paths = {name: compile_path(text) for name, text in options.paths().items()}
        # Of `choices[0].message.tool_calls` the part before the last name: the message that has the calls, or none.
        where = options.tool_calls or ""
        self._in_message = compile_path(where.removesuffix(_CALLS)) if where.endswith(_CALLS) else None
        self._text = False  # pieces of the answer have come
        self._answer: Any = _NOTHING
        self._calls = 0
        self._says_calls = False  # something stood where calls are, be it an empty list
        self._open: dict[int, tuple[str, str]] = {}  # calls without a result: key -> id, name
        self._closed: dict[str, str] = {}  # ids of the others, and what their results were
        self._last: Any = _NOTHING  # the last JSON value, to say what it has instead
        self._figures: dict[str, Any] = {}
        self._whole_usage: dict[str, Any] = {}
        self.odd = UsageReader()
        self.session: Any = None
        self.model = ""
        self.finish_reason = ""

    @property
    def complete(self) -> bool:
        """Only the connection tells whether a stream was cut; otherwise the text received is taken as complete."""
        return self._text or self._answer is not _NOTHING or self._calls > 0 or bool(self.finish_reason)

    @property
    def calls_not_seen(self) -> Note | None:
        """Why the reply says nothing of tool calls, or None: it has some, or says that there were none."""
        path = self._paths.get("tool_calls")
        if path is None:
            return Note(NO_CALLS_OPTION, "")
        return None if self._says_calls else Note(NOTHING_AT_PATH, path.text)

    @property
    def usage(self) -> Usage:
        """The figures."""
        fields = {_USAGE_FIELDS[name]: figure for name, figure in self._figures.items()}
        return replace(self.odd.read(self._whole_usage), **fields)

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        """One event of a stream, or one line of JSON lines."""
        marker = self._options.done
        if sent.data.strip() == marker or (marker and sent.name == marker):
            # Where the name of the event is the marker, its data may still say something.
            self.over = True
            if sent.data.strip() == marker:
                return
        try:
            value = json.loads(sent.data)
        except (ValueError, RecursionError):
            if self._options.stream == "jsonl" and _SSE_LINE.match(sent.data):
                raise _other_stream("sse", "jsonl") from None
            if is_cut(sent.data):
                raise CutReplyError(f"an event that ends within its JSON ({sent.data[:200]!r})") from None
            if self._options.delta is not None or self._options.answer is not None:
                raise EmptyResponseError(f"an event that is not JSON ({sent.data[:200]!r})") from None
            yield from self._more(sent.data)
            return
        yield from self._take_value(value)
        if self._options.delta is not None:
            piece = self._find("delta", value)
            if piece is not None:
                yield from self._more(as_text(piece))
        elif self._options.answer is None:
            yield from self._more(value if isinstance(value, str) else sent.data)

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        """A reply that came at once."""
        # A stream that is not called one would be read as a text, and the run would pass with it.
        sent = _stream_in(text, self.content_type)
        if sent and sent != self._options.stream:
            raise _other_stream(sent, self._options.stream)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            # A text may be the answer, but not where an option says in which field that is.
            expected = next((name for name in ("answer", "tool_calls", "error") if name in self._paths), "")
            if expected:
                raise EmptyResponseError(f"not JSON, where `{expected}` shall be found ({_shown(text)})") from None
            yield from self._plain(text)
            return
        if (
            self._options.answer is None
            and not self._paths.keys() & {"tool_calls", "delta"}
            and value in (None, {}, [])
        ):
            raise EmptyResponseError(f"an empty reply ({_shown(text)})", "check `url`, and what the endpoint answers")
        yield from self._take_value(value)
        if self._options.answer is None:
            piece = self._find("delta", value) if isinstance(value, Mapping) else value
            if piece is None and "delta" in self._paths and not self._calls:
                raise EmptyResponseError(self._nothing_at("delta"))
            yield from self._more(piece if isinstance(piece, str) else text)

    def rest(self) -> Iterator[AgentEvent]:
        """The answer that came whole. Raises `EmptyResponseError` when there is none."""
        # What was streamed piece by piece is told already; the whole answer at the end repeats it.
        if self._text:
            return
        if self._answer is not _NOTHING:
            yield TextDelta(as_text(self._answer))
        elif self._options.answer is not None and not self._calls:
            raise EmptyResponseError(self._nothing_at("answer"))
        elif not self._calls and not self.finish_reason:
            raise EmptyResponseError(
                self._nothing_at("delta") if "delta" in self._paths else "a stream without an answer"
            )

    def not_a_stream(self, line: str) -> EmptyResponseError:
        if line.startswith("{"):
            return _other_stream("jsonl", self._options.stream)
        return super().not_a_stream(line)

    def _plain(self, text: str) -> Iterator[AgentEvent]:
        """A reply that is not JSON, where no JSON is expected."""
        if not text.strip():
            raise EmptyResponseError("an empty reply", "check `url`, and what the endpoint answers to this request")
        if _HTML.match(text) and "html" in self.content_type:
            raise EmptyResponseError(
                f"an HTML page ({_shown(text)})",
                "check `url`: a login page or a wrong address sends HTML. "
                "If HTML is the answer, send it as text/plain or inside JSON",
            )
        yield from self._more(text)

    def _more(self, text: str) -> Iterator[AgentEvent]:
        self._text = True
        if text:
            yield TextDelta(text)

    def _take_value(self, value: object) -> Iterator[AgentEvent]:
        self._last = value
        wrong = self._find("error", value)
        if wrong:
            # `error: true` beside a message: the whole object says what is wrong.
            if wrong is True:
                wrong = value
            raise ProviderError(wrong if isinstance(wrong, Mapping) else {"message": as_text(wrong)})
        # Some endpoints send errors with the status 200, and no option was written for that.
        if not wrong and isinstance(value, Mapping) and is_only_an_error(value) and self._answers_nowhere(value):
            raise ProviderError(error_in(value))
        if "session" in self._paths:
            value_at = self._find("session", value)
            self.session = self.session if value_at is None else value_at
        for name in ("model", "finish_reason"):
            value_at = self._find(name, value)
            if value_at is not None:
                setattr(self, name, as_text(value_at))
        for name in type(self._options.usage).model_fields:
            value_at = {name: self._find(f"usage.{name}", value)}
            if name == "whole":
                # Of several in a stream, the last ones count; some leave out what they said before.
                more = value_at[name].items() if isinstance(value_at[name], Mapping) else ()
                self._whole_usage.update((key, amount) for key, amount in more if amount is not None)
                continue
            figure = self.odd.cost(value_at, name) if name == "cost" else self.odd.tokens(value_at, name)
            if figure is not None:
                self._figures[name] = figure
        thinking = self._find("reasoning", value)
        if thinking:
            yield ReasoningDelta(as_text(thinking))
        value_at = self._find("answer", value)
        if value_at is not None:
            self._answer = value_at
        calls = self._find("tool_calls", value)
        self._says_calls = self._says_calls or calls is not None or self._has_chat_message(value)
        for entry in _objects("tool_calls", calls):
            yield from self._take_call(entry)
        for entry in _objects("tool_results", self._find("tool_results", value)):
            yield from self._take_result(entry)

    def _take_call(self, entry: Mapping[str, Any]) -> Iterator[AgentEvent]:
        name = self._find("tool_call.name", entry)
        if not isinstance(name, str):
            raise EmptyResponseError(f"a call has no name at `{self._options.tool_call.name}`; {_has(entry)}")
        key = self._calls
        self._calls += 1
        own_id = self._find("tool_call.id", entry)
        call_id = "" if own_id is None else as_text(own_id)
        yield ToolCallStarted(key, call_id, name)
        arguments = self._find("tool_call.arguments", entry)
        if arguments is not None:
            yield ToolArgumentsDelta(key, as_text(arguments))
        result = self._find("tool_call.result", entry)
        failed = bool(self._find("tool_call.error", entry))
        if result is not None or failed:
            text = "" if result is None else as_text(result)
            self._closed[call_id] = text
            yield ToolCallFinished(key, text, failed)
        else:
            self._open[key] = (call_id, name)

    def _take_result(self, entry: Mapping[str, Any]) -> Iterator[AgentEvent]:
        """A result apart from its call: of the call with its id, else of the oldest of its name, else of the oldest."""
        own_id, name = self._find("tool_result.id", entry), self._find("tool_result.name", entry)
        result, failed = self._find("tool_result.result", entry), bool(self._find("tool_result.error", entry))
        text = "" if result is None else as_text(result)
        call_id = "" if own_id is None else as_text(own_id)
        fits = [key for key, (open_id, _) in self._open.items() if call_id and open_id == call_id]
        # Endpoints that send their whole state with each event repeat results.
        if not fits and call_id in self._closed and call_id:
            if self._closed[call_id] == text:
                return  # told again
            raise EmptyResponseError(f"a second result for the call {call_id!r}")
        if not fits:
            # Calls without an id of their own, or a result that does not say which it is of.
            loose = [key for key, (open_id, _) in self._open.items() if not (call_id and open_id)]
            fits = [key for key in loose if self._open[key][1] == name] or ([] if isinstance(name, str) else loose)
        if not fits:
            which = f" {call_id!r}" if call_id else f" of {name}" if isinstance(name, str) else ""
            raise EmptyResponseError(
                f"a tool's result for the call{which}, which was not made or has its result",
                "check `tool_calls`, `tool_results` and the paths of `tool_call` and `tool_result`",
            )
        open_id, _ = self._open.pop(fits[0])
        if open_id:
            self._closed[open_id] = text
        yield ToolCallFinished(fits[0], text, failed)

    def _answers_nowhere(self, value: Mapping[str, Any]) -> bool:
        """Whether none of the options finds anything in what says of itself that it is an error."""
        values = (self._find(name, value) for name in ("answer", "delta", "tool_calls", "tool_results"))
        return all(answer is None or answer == [] for answer in values)

    def _has_chat_message(self, value: object) -> bool:
        """Whether calls are looked for in a message of Chat Completions: it leaves `tool_calls` out for none."""
        if self._in_message is None:
            return False
        message = self._in_message.search(value)
        return isinstance(message, Mapping) and not {"role", "content"}.isdisjoint(message)

    def _find(self, name: str, value: object) -> Any:
        path = self._paths.get(name)
        if path is None:
            return None
        try:
            return path.search(value)
        except PathFailedError as error:
            raise EmptyResponseError(f"`{name}`: {error}") from None

    def _nothing_at(self, name: str) -> str:
        path = self._paths[name]
        if self._last is _NOTHING:
            return f"nothing at `{name}` (`{path.text}`): the stream had no JSON event"
        where, value = _furthest(path, self._last)
        return f"the reply has nothing at `{name}` (`{path.text}`); {where}{_has(value)}"


def _objects(name: str, value: object) -> Iterator[Mapping[str, Any]]:
    """The objects that an expression gave: one or a list. What a projection makes of an event that has none of it is
    nothing: null, or an object of nulls."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping):
            if any(value is not None for value in entry.values()):
                yield entry
        elif entry is not None:
            raise EmptyResponseError(f"`{name}` gives {kind_of(entry)} where an object is due")


def _stream_in(text: str, content_type: str) -> str:
    """What kind of stream a reply is that came as one text: "sse", "jsonl" or ""."""
    lines = [line for line in LINE_END.split(text.removeprefix("\ufeff")) if line.strip()]
    if any(line.startswith("data:") for line in lines) and all(_SSE_LINE.match(line) for line in lines):
        return "sse"
    if len(lines) < 2 and not any(name in content_type for name in ("ndjson", "jsonl", "json-seq", "x-json-stream")):
        return ""
    return "jsonl" if lines and all(json_object(line) is not None for line in lines) else ""


def _other_stream(sent: str, option: str) -> EmptyResponseError:
    words = {"sse": "server-sent events", "jsonl": "JSON lines"}[sent]
    return EmptyResponseError(
        f"{words}, but the agent has `stream: {option}`", f"set `stream: {sent}`, and `delta` if needed"
    )


def _furthest(path: Path, value: object) -> tuple[str, Any]:
    """How far a plain path leads, in words, and what is there."""
    # An expression with filters or functions has no steps that could be followed.
    if path.steps is None:
        return "", value
    reached, value_there = walk(value, path.steps)
    if reached in (0, len(path.steps)):
        return "", value
    place = ".".join(str(step) if isinstance(step, str) else f"[{step}]" for step in path.steps[:reached])
    return f"`{place.replace('.[', '[')}` leads on, and there ", value_there


def _has(value: object) -> str:
    if isinstance(value, Mapping):
        keys = [str(key)[:60] for key in value]
        more = f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else ""
        return f"it has the keys {', '.join(keys[:_KEYS_NAMED])}{more}" if keys else "it is an empty object"
    if isinstance(value, list):
        return f"it is a list of {len(value)}"
    return f"it is {kind_of(value)}"


def _shown(text: str) -> str:
    return on_one_line(words_of_page(text) if is_markup(text) else text[:400], 200) or "an empty reply"


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON. Raises `EmptyResponseError` when that is far too long."""
    if isinstance(value, str):
        return value
    # An expression can name the same part of a reply again and again: what it gives may be far larger than the reply.
    waiting, parts = [value], 0
    length = 0
    while waiting:
        node = waiting.pop()
        parts += 1
        if isinstance(node, Mapping):
            length += sum(len(str(key)) for key in node)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, str):
            length += len(node)
        if parts > _MOST_PARTS or length > _LONGEST_TEXT:
            raise EmptyResponseError(f"a value of more than {_MOST_PARTS:,} parts or {_LONGEST_TEXT:,} characters")
    return json.dumps(value, ensure_ascii=False)


class LineReader:
    """Reads JSON lines, as `SseReader` reads server-sent events."""

    cut = False  # a line that is cut is no JSON, and whoever reads it says so
    strange = ""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The lines that `data` completes."""
        # Only the newline ends a line: JSON has it escaped within texts, and other ends of lines as they are.
        first, *others = data.split(b"\n")
        self._pieces.append(first)
        events: list[ServerEvent] = []
        for line in others:
            events += self.close()
            self._pieces.append(line)
        return events

    def close(self) -> list[ServerEvent]:
        """The last line, if it has no end."""
        line = b"".join(self._pieces).decode("utf-8", "replace").strip().removeprefix("\ufeff")
        self._pieces.clear()
        return [ServerEvent("", line)] if line else []
