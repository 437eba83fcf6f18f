"""Keys are taken out of exchanges before they are stored: out of addresses, bodies and streams, also where they come
in several pieces. Headers are not stored at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.http.aws_events import AWS_EVENTS, read_events, write_events
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question, encoded
from agenteval_tui.agents.secrets import is_secret_name, secrets_of
from agenteval_tui.core.json_values import is_too_deep, parsed_json
from agenteval_tui.core.key_shapes import STAND_IN, without_keys_in
from agenteval_tui.core.redaction import SHORTEST
from agenteval_tui.transcripts.redact import TranscriptRedactor

# A member of such a name is a model's or a tool's own words, or describes them.
_DATA = frozenset(
    (
        "messages",
        "contents",
        "input",
        "arguments",
        "args",
        "response",
        "parameters",
        "input_schema",
        "properties",
        "json_schema",
        "schema",
        "choices",
        "content",
        "output",
        "candidates",
        "usage",
        "usageMetadata",
    )
)
# What a stream tells piece by piece.
_PIECES = frozenset(
    (
        "content",
        "text",
        "delta",
        "arguments",
        "input",
        "partial_json",
        "thinking",
        "reasoning",
        "reasoning_content",
        "refusal",
        "summary",
        "response",
    )
)
_TAIL = re.compile(r"(?:[\r\n]+(?:id|event|retry)?:[^\r\n]*)*[\r\n]*\Z")
"""What follows the data of an event: its end, and other fields or a comment before that."""


class KeyRedactor(TranscriptRedactor):
    """Takes keys out of exchanges: those that are known by value, and what looks like one."""

    __slots__ = ()

    def question(self, question: Question) -> Question:
        """A request without keys."""
        query = {key: self.text(value) for key, value in question.query.items() if not is_secret_name(key)}
        return replace(question, path=self.text(question.path), query=query, body=self._body(question.body))

    def exchange(self, exchange: Exchange) -> Exchange:
        """An exchange without keys."""
        answer = exchange.answer
        if answer.streamed:
            body: Any = self._stream(answer.body)
        elif answer.type.startswith(AWS_EVENTS) and isinstance(answer.body, bytes):
            body = self._aws_stream(answer.body)
        else:
            body = self._body(answer.body)
        cleaned: Answer = replace(answer, body=body, type=self.text(answer.type), error=self.text(answer.error))
        return replace(exchange, question=self.question(exchange.question), answer=cleaned)

    def _body(self, body: object) -> object:
        if isinstance(body, bytes):
            text = body.decode("latin-1")  # reads every byte
            clean = self.text(text)
            return body if clean is text else clean.encode("latin-1")
        if isinstance(body, str):
            return self.text(body)
        if isinstance(body, Mapping | list):
            return STAND_IN if is_too_deep(body) else self._walk(body)
        return body

    def _walk(self, value: object, *, data: bool = False) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item, data=data) for item in value]
        if isinstance(value, Mapping):
            # In a model's or a tool's words, a name such as `token` is that of an argument, and no key by its name.
            named = without_keys_in(value)
            return {
                self.text(str(key)): STAND_IN
                if not data and isinstance(item, str) and item and is_secret_name(str(key))
                else self._walk(named.get(key, item), data=data or key in _DATA)
                for key, item in value.items()
            }
        return value

    def _aws_stream(self, data: bytes) -> bytes:
        """The same of a binary stream: a key may be in base64, or in two events, and lengths and checksums are of what
        is kept."""
        events = list(read_events(data))
        texts = [f"data: {event.text}\n\n" for event in events]
        clean = self._stream(texts)
        if list(clean) == texts:
            return data
        words = [text.removeprefix("data: ").removesuffix("\n\n") for text in clean]
        return write_events([event.with_text(text) for event, text in zip(events, words, strict=True)])

    def _stream(self, events: Iterable[str]) -> tuple[str, ...]:
        parsed = [_Event(event) for event in events]
        texts: dict[str, list[tuple[dict[str, Any], str]]] = {}
        for event in parsed:
            for place, holder, key in event.pieces():
                texts.setdefault(place, []).append((holder, key))
        for places in texts.values():
            # All that one choice, call or block said, as the client puts it together.
            whole = "".join([holder[key] for holder, key in places])
            clean = self.text(whole)
            # A key that comes in two pieces is found in the whole text alone; then the first piece gets the text, and
            # the others nothing.
            if clean is not whole and clean != "".join([self.text(holder[key]) for holder, key in places]):
                for number, (holder, key) in enumerate(places):
                    holder[key] = "" if number else clean
                for event in parsed:
                    event.changed = True
        return tuple([self.text(event.text()) for event in parsed])


class _Event:
    """An event of a stream whose texts can be changed."""

    def __init__(self, event: str) -> None:
        self.changed = False
        self._event = event
        is_line = event.startswith("{")  # of a stream that has a JSON object on each
        at = event.find("data:")
        is_event = (at >= 0 and event.count("data:") == 1) or event.lstrip().startswith(("data:", "event:"))
        self._start = 0 if is_line else at + len("data:")
        self._end = len(_TAIL.sub("", event))
        self._data = parsed_json(event[self._start : self._end]) if is_line or is_event else None

    def pieces(self) -> list[tuple[str, dict[str, Any], str]]:
        """The texts in it that may continue in the next event: (what they belong to, the object, the key)."""
        pieces: list[tuple[str, dict[str, Any], str]] = []
        waiting: list[tuple[str, Any]] = [("", self._data)]
        while waiting:
            place, value = waiting.pop()
            if isinstance(value, dict):
                inner = f"{place}#{value.get('index', value.get('output_index', ''))}"
                for key, item in value.items():
                    if isinstance(item, str) and key in _PIECES:
                        pieces.append((f"{inner}.{key}", value, key))
                    elif isinstance(item, dict | list):
                        waiting.append((f"{inner}.{key}", item))
            elif isinstance(value, list):
                waiting += [(f"{place}[]", item) for item in value]
        return pieces

    def text(self) -> str:
        if not self.changed or self._data is None:
            return self._event
        space = " " if self._start else ""
        return f"{self._event[: self._start]}{space}{encoded(self._data)}{self._event[self._end :]}"


def sent_keys(headers: Mapping[str, str], query: Mapping[str, str]) -> tuple[str, ...]:
    """The keys in a request."""
    return secrets_of({"headers": dict(headers), "query": dict(query)}, {})


def keys_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that a program may have from its environment."""
    return secrets_of({"kind": "command"}, env)


def without_keys(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The words of a command as a suite writes them: `${NAME}` for a key that is the value of a variable, `***` for
    other keys, and `$${` for the text `${`."""
    keys = keys_of(env)
    redactor = KeyRedactor(keys)
    names = {value.strip(): name for name, value in sorted(env.items(), reverse=True)}
    written = {key: f"${{{names[key]}}}" for key in keys if len(key) >= SHORTEST and key in names} | {"${": "$${"}
    pattern = re.compile("|".join(map(re.escape, written)))
    return [redactor.text(pattern.sub(lambda match: written[match.group()], word)) for word in words]
