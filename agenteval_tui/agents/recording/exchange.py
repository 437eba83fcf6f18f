"""A request of a program and its answer: one line of a cassette."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.core.json_values import DEEPEST, is_too_deep, parsed_json

STREAM = "text/event-stream"
LINES = "application/x-ndjson"
"""A stream of JSON objects, one a line, as Ollama sends it."""
_ENDS = {
    # Where an event of a stream ends.
    STREAM: re.compile(rb"\r\n\r\n|\n\n|\r\r"),
    LINES: re.compile(rb"\n"),
}
_LONGEST_MS = 86_400_000


class Question(Struct, frozen=True):
    """A request. `path` begins with the provider ("openai/v1/chat/completions") in place of the server's address;
    `query` has no keys. `body` is JSON data, a text, or bytes; None: the request has no body."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Any = None

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return f"{self.method} {self.path}"


class Answer(Struct, frozen=True):
    """An answer. `body` is as in `Question`; for a stream, it is a tuple of the events as the server sent them, with
    what ends each (blank lines, or the end of its line).

    `at_ms`: the milliseconds from the request to each event of a stream, or to the end of the whole answer. `whole`
    False: the connection broke before the end. `error`: why there is no answer at all; `status` is then 0.
    """

    status: int
    type: str = ""
    body: Any = None
    at_ms: tuple[int, ...] = ()
    whole: bool = True
    error: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether a program can use it."""
        return 200 <= self.status < 300 and self.whole

    @property
    def streamed(self) -> bool:
        """Whether it is a stream of events."""
        return isinstance(self.body, tuple)

    def data(self) -> bytes:
        """Its body as the bytes that are sent."""
        return (
            b"".join(piece.encode("utf-8", "surrogatepass") for piece in self.body)
            if self.streamed
            else sent(self.body)
        )


class Exchange(Struct, frozen=True):
    """A request and its answer. `session` is the run of the program that asked ("": the only run). `started_ms` and
    `ended_ms` are milliseconds since that run started; a cassette does not store them. `live`: the answer is from a
    server, not from a recording. `refused`: the answer is an error of the proxy."""

    question: Question
    answer: Answer
    session: str = ""
    started_ms: float = 0.0
    ended_ms: float = 0.0
    live: bool = True
    refused: bool = False


def received(data: bytes, kind: str) -> object:
    """A body as it is stored: the data if it is JSON of at most `DEEPEST` levels, else a text, else bytes; None for an
    empty body."""
    if not data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    if "json" in kind or text[:1] in ("{", "["):
        value = parsed_json(text)
        # A body that is a JSON text or null is kept as it was written: as a value it could not be told from a text, or
        # from none.
        return text if isinstance(value, str) or value is None or is_too_deep(value) else value
    return text


def sent(body: object) -> bytes:
    """A body as bytes."""
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return encoded(body).encode()


def is_stream(kind: str) -> bool:
    """Whether an answer of this content type comes in events."""
    return kind.startswith((STREAM, LINES))


def events_of(pieces: list[tuple[int, bytes]], kind: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The events of a stream that arrived in these pieces (milliseconds, bytes), and when the end of each arrived.
    `kind`: its content type."""
    data = b"".join(piece for _, piece in pieces)
    ends, size = [], 0
    for at_ms, piece in pieces:
        size += len(piece)
        ends.append((size, at_ms))
    events, times, start, place = [], [], 0, 0
    # In the joined bytes: the network may cut the end of an event in two.
    cuts = [match.end() for match in _ENDS[LINES if kind.startswith(LINES) else STREAM].finditer(data)]
    if not cuts or cuts[-1] < len(data):
        cuts.append(len(data))
    for cut in cuts:
        while place < len(ends) - 1 and ends[place][0] < cut:
            place += 1
        if cut > start:
            events.append(data[start:cut].decode("utf-8", "replace"))
            times.append(ends[place][1])
        start = cut
    return tuple(events), tuple(times)


def to_json(exchange: Exchange) -> dict[str, Any]:
    """An exchange as JSON data of a cassette."""
    question, answer = exchange.question, exchange.answer
    request: dict[str, Any] = {"method": question.method, "path": question.path}
    if question.query:
        request["query"] = dict(question.query)
    request |= _stored(question.body)
    # What is as usual is left out: a cassette is read by people, and lies in a repository.
    reply: dict[str, Any] = {"status": answer.status}
    if answer.type:
        reply["type"] = answer.type
    reply |= {"stream": list(answer.body)} if answer.streamed else _stored(answer.body)
    if answer.at_ms:
        reply["at_ms"] = list(answer.at_ms)
    if not answer.whole:
        reply["whole"] = False
    if answer.error:
        reply["error"] = answer.error
    return {**({"session": exchange.session} if exchange.session else {}), "request": request, "answer": reply}


def from_json(value: Any) -> Exchange:
    """The exchange that `to_json` wrote. Raises ValueError with a sentence for anything else."""
    # By hand, and not by a converter of types: people edit cassettes, and each sentence names the field as it is there.
    request, reply = _member(value, "request"), _member(value, "answer")
    method, path, query = request.get("method"), request.get("path"), request.get("query", {})
    if not isinstance(method, str) or not isinstance(path, str) or not isinstance(query, dict):
        raise ValueError("`request` needs a `method` and a `path`")
    status = reply.get("status")
    if status is None:
        raise ValueError("`answer` needs a `status`")
    if type(status) is not int or not (status == 0 or 200 <= status <= 999):
        raise ValueError("`status` of an answer is one of HTTP, 200 to 999, or 0 where there was none")
    kind = str(reply.get("type", ""))
    if not kind.isprintable():
        raise ValueError("`type` of an answer is a content type, without line breaks")
    times = reply.get("at_ms", [])
    # A pause of years, which a replay would keep, is a slip.
    if not isinstance(times, list) or not all(type(time) is int and 0 <= time <= _LONGEST_MS for time in times):
        raise ValueError("`at_ms` of an answer is a list of milliseconds, of a day at most")
    stream = reply.get("stream")
    if stream is not None and not (isinstance(stream, list) and all(isinstance(event, str) for event in stream)):
        raise ValueError("`stream` of an answer is a list of texts")
    return Exchange(
        Question(method, path, {str(key): str(text) for key, text in query.items()}, _restored(request)),
        Answer(
            status,
            kind,
            _restored(reply) if stream is None else tuple(stream),
            tuple(times),
            reply.get("whole", True) is not False,
            str(reply.get("error", "")),
        ),
        str(value.get("session", "")),
        live=False,
    )


def encoded(value: object) -> str:
    """JSON in one line, which can be written to a file."""
    text = json.dumps(value, ensure_ascii=False)
    # Half of a surrogate pair has no UTF-8; JSON can still say it.
    return text if text.isascii() or _is_utf8(text) else json.dumps(value)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stored(body: object) -> dict[str, Any]:
    if body is None:
        return {}
    if isinstance(body, bytes):
        return {"base64": base64.b64encode(body).decode()}
    return {"text": body} if isinstance(body, str) else {"json": body}


def _restored(holder: Mapping[str, Any]) -> object:
    if isinstance(holder.get("base64"), str):
        try:
            return base64.b64decode(holder["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("`base64` of a body is not base64") from None
    if "text" in holder:
        return str(holder["text"])
    body = holder.get("json")
    if is_too_deep(body):
        raise ValueError(f"a body is nested deeper than {DEEPEST} levels")
    return body


def _member(value: object, key: str) -> dict[str, Any]:
    member = value.get(key) if isinstance(value, dict) else None
    if not isinstance(member, dict):
        raise ValueError(f"there is no `{key}`")
    return member
