"""The kind `http`: finding the answer, the calls and the figures in whatever an endpoint replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.http_options import HttpOptions
from agenteval_tui.agents.interface import (
    AgentEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from agenteval_tui.agents.reply import NoReplyError, ServerSaidError, StreamReply, number
from agenteval_tui.agents.sse import ServerEvent
from agenteval_tui.grading.paths import Path, PathFailedError, compile_path, walk
from agenteval_tui.transcripts.model import Usage

_LONGEST_TEXT = 16_000_000  # characters in a JSON value that is taken as text
_MOST_PARTS = 200_000
_KEYS_NAMED = 12
_NOTHING: Any = object()


class HttpReply(StreamReply):
    """One reply of an endpoint, read with the expressions of the options.

    What came is in `session`, `model`, `finish_reason`, `usage`. An answer that neither a stream nor a whole reply
    brought is an error in words, raised by `rest`.
    """

    protocol = "usable"
    mend = "check the agent's JMESPath options against a real reply"

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._paths = {name: compile_path(text) for name, text in options.paths().items()}
        self._text = False  # pieces of the answer have come
        self._answer: Any = _NOTHING
        self._calls = 0
        self._last: Any = _NOTHING  # the last JSON value, to say what it has instead
        self._figures: dict[str, float] = {}
        self.session: Any = None
        self.model = ""
        self.finish_reason = ""

    @property
    def complete(self) -> bool:
        """Nothing tells whether a stream was cut, but for its connection; what came is taken for the whole."""
        return self._text or self._answer is not _NOTHING or self._calls > 0

    @property
    def usage(self) -> Usage:
        """The figures."""

        def tokens(name: str) -> int | None:
            return int(self._figures[name]) if name in self._figures else None

        return Usage(
            tokens("input"), tokens("output"), tokens("cached"), tokens("reasoning"), self._figures.get("cost")
        )

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        """One event of a stream, or one line of JSON lines."""
        marker = self._options.done
        if sent.data.strip() == marker or (marker and sent.name == marker):
            self.over = True
            if sent.data.strip() == marker:
                return
        if sent.name == "error":
            raise ServerSaidError(_json_or_text(sent.data))
        try:
            value = json.loads(sent.data)
        except (ValueError, RecursionError):
            if self._options.delta is not None or self._options.answer is not None:
                raise NoReplyError(f"an event that is no JSON ({sent.data[:200]!r})") from None
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
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            expected = next((name for name in ("answer", "tool_calls", "error") if name in self._paths), "")
            if expected:
                raise NoReplyError(f"not JSON, where `{expected}` shall be found ({_shown(text)})") from None
            yield from self._more(text)
            return
        yield from self._take_value(value)
        if self._options.answer is None:
            piece = self._find("delta", value) if isinstance(value, Mapping) else value
            yield from self._more(piece if isinstance(piece, str) else text)

    def rest(self) -> Iterator[AgentEvent]:
        """The answer that came whole. Raises `NoReplyError` when there is none."""
        if self._text:
            return
        if self._answer is not _NOTHING:
            yield TextDelta(as_text(self._answer))
        elif self._options.answer is not None and not self._calls:
            raise NoReplyError(self._nothing_at("answer"))

    def _more(self, text: str) -> Iterator[AgentEvent]:
        self._text = True
        if text:
            yield TextDelta(text)

    def _take_value(self, value: Any) -> Iterator[AgentEvent]:
        self._last = value
        wrong = self._find("error", value)
        if wrong:
            raise ServerSaidError(wrong if isinstance(wrong, Mapping) else {"message": as_text(wrong)})
        if "session" in self._paths:
            found = self._find("session", value)
            self.session = self.session if found is None else found
        for name in ("model", "finish_reason"):
            found = self._find(name, value)
            if found is not None:
                setattr(self, name, as_text(found))
        for name in type(self._options.usage).model_fields:
            figure = number(self._find(f"usage.{name}", value))
            if figure is not None and 0 <= figure < 1e15:
                self._figures[name] = figure
        thinking = self._find("reasoning", value)
        if thinking:
            yield ReasoningDelta(as_text(thinking))
        found = self._find("answer", value)
        if found is not None:
            self._answer = found
        yield from self._take_calls(self._find("tool_calls", value))

    def _take_calls(self, found: Any) -> Iterator[AgentEvent]:
        if found is None:
            return
        listed = found if isinstance(found, list) else [found]
        for one in listed:
            if not isinstance(one, Mapping):
                raise NoReplyError(f"`tool_calls` gives {_kind(one)} where an object is due")
            name = self._find("tool_call.name", one)
            if not isinstance(name, str):
                raise NoReplyError(f"a call has no name at `{self._options.tool_call.name}`; {_has(one)}")
            key = self._calls
            self._calls += 1
            given = self._find("tool_call.id", one)
            yield ToolCallStarted(key, "" if given is None else as_text(given), name)
            arguments = self._find("tool_call.arguments", one)
            if arguments is not None:
                yield ToolArgumentsDelta(key, as_text(arguments))
            result = self._find("tool_call.result", one)
            failed = bool(self._find("tool_call.error", one))
            if result is not None or failed:
                yield ToolCallFinished(key, "" if result is None else as_text(result), failed)

    def _find(self, name: str, value: Any) -> Any:
        path = self._paths.get(name)
        if path is None:
            return None
        try:
            return path.search(value)
        except PathFailedError as error:
            raise NoReplyError(f"`{name}`: {error}") from None

    def _nothing_at(self, name: str) -> str:
        path = self._paths[name]
        if self._last is _NOTHING:
            return f"nothing at `{name}` (`{path.text}`): the stream had no JSON event"
        where, value = _furthest(path, self._last)
        return f"the reply has nothing at `{name}` (`{path.text}`); {where}{_has(value)}"


def _furthest(path: Path, value: Any) -> tuple[str, Any]:
    """How far a plain path leads, in words, and what is there."""
    if path.steps is None:
        return "", value
    reached, found = walk(value, path.steps)
    if reached in (0, len(path.steps)):
        return "", value
    place = ".".join(str(step) if isinstance(step, str) else f"[{step}]" for step in path.steps[:reached])
    return f"`{place.replace('.[', '[')}` leads on, and there ", found


def _has(value: Any) -> str:
    if isinstance(value, Mapping):
        keys = [str(key)[:60] for key in value]
        more = f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else ""
        return f"it has the keys {', '.join(keys[:_KEYS_NAMED])}{more}" if keys else "it is an empty object"
    if isinstance(value, list):
        return f"it is a list of {len(value)}"
    return f"it is {_kind(value)}"


def _kind(value: Any) -> str:
    kinds = {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else kinds.get(type(value), "something else")


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"message": text}


def _shown(text: str) -> str:
    line = " ".join(text[:400].split())
    return line[:200] or "an empty reply"


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON. Raises `NoReplyError` when that is far too long."""
    if isinstance(value, str):
        return value
    # An expression can name the same part of a reply again and again: what it gives may be far larger than the reply.
    left, parts = [value], 0
    length = 0
    while left:
        one = left.pop()
        parts += 1
        if isinstance(one, Mapping):
            length += sum(len(str(key)) for key in one)
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
        elif isinstance(one, str):
            length += len(one)
        if parts > _MOST_PARTS or length > _LONGEST_TEXT:
            raise NoReplyError(f"a value of more than {_MOST_PARTS:,} parts or {_LONGEST_TEXT:,} characters")
    return json.dumps(value, ensure_ascii=False)


class LineReader:
    """Reads JSON lines, as `SseReader` reads server-sent events."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The lines that `data` completes."""
        first, *others = data.split(b"\n")
        self._pieces.append(first)
        made: list[ServerEvent] = []
        for line in others:
            made += self.close()
            self._pieces.append(line)
        return made

    def close(self) -> list[ServerEvent]:
        """The last line, if it has no end."""
        line = b"".join(self._pieces).decode("utf-8", "replace").strip().removeprefix("\ufeff")
        self._pieces.clear()
        return [ServerEvent("", line)] if line else []
