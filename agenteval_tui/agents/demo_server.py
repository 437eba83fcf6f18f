"""The bundled agent as an OpenAI-compatible server on loopback, so that the HTTP adapter can be tried with no key.

It is `demo-rules`, a rule-based program, not an AI model. Nothing is kept between requests: the program is run again
from the conversation's start, with the tools' results that the client sent, up to its next turn.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.agents.demo import arguments_json, chunks, missing_tool, tokens
from agenteval_tui.agents.http.loopback_server import why_not_listening
from agenteval_tui.agents.shop.assistant import VERSIONS
from agenteval_tui.agents.shop.database import open_shop
from agenteval_tui.agents.shop.protocol import Call, Turn
from agenteval_tui.agents.shop.seeded_random import Dice
from agenteval_tui.agents.shop.tools import call_tool
from agenteval_tui.agents.tools.changes import WITHOUT
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.transcripts.model import Message

HOST = "127.0.0.1"
_LONGEST_BODY = 10_000_000
_PER_PIECE = 0.011  # seconds at pace 1


class _BadRequestError(Exception):
    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class _Answer(Struct, frozen=True):
    """What a request gets: the texts of the turns that were made for it, and the calls that the client shall make."""

    model: str
    texts: tuple[str, ...]
    calls: tuple[Call, ...]
    first_call: int
    usage: Mapping[str, int]


def serve(
    port: int = 0,
    version: str = "v1",
    *,
    host: str = HOST,
    pace: float = 1.0,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted. `announce` is told the address (".../v1") once it answers; port 0 takes a free one.

    Raises `InfrastructureError` when the port can't be had.
    """

    async def run() -> None:
        async with await start(port, version, host=host, pace=pace) as server:
            announce(address(server))
            await server.serve_forever()

    asyncio.run(run())


async def start(port: int = 0, version: str = "v1", *, host: str = HOST, pace: float = 1.0) -> asyncio.Server:
    """A server that answers from now on. Close it, or use it with `async with`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve_one(reader, writer, version, pace)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away, or does not speak HTTP
        finally:
            writer.close()

    try:
        return await asyncio.start_server(answer, host, port)
    except (OSError, UnicodeError) as error:
        raise InfrastructureError(
            f"can't listen on port {port}: {why_not_listening(error)}", where=host, mend="choose another with --port"
        ) from error


def address(server: asyncio.Server) -> str:
    """The `base_url` under which a server is reached."""
    host, port = server.sockets[0].getsockname()[:2]
    return f"http://{host}:{port}/v1"


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str, pace: float) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, _, rest = head[0].partition(" ")
    path = rest.partition(" ")[0].partition("?")[0].rstrip("/")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    try:
        if path == "/v1/models" and method == "GET":
            await _send_json(writer, 200, _models(version))
        elif path == "/v1/chat/completions" and method == "POST":
            length = headers.get("content-length", "")
            if not length.isdigit() or int(length) > _LONGEST_BODY:
                raise _BadRequestError(413, "the request needs a Content-Length of at most 10 MB")
            body = _decoded(await reader.readexactly(int(length)))
            answer = _answer(body, version)
            if body.get("stream"):
                usage = bool((body.get("stream_options") or {}).get("include_usage"))
                await _stream(writer, _chunks(answer, include_usage=usage), pace)
            else:
                await _send_json(writer, 200, _whole(answer))
        else:
            raise _BadRequestError(404, f"there is no {method} {path or '/'} here")
    except _BadRequestError as error:
        said = {"message": error.message, "type": "invalid_request_error", "code": error.code or None}
        await _send_json(writer, error.status, {"error": said})


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise _BadRequestError(400, "the body is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise _BadRequestError(400, "the body needs `messages`")
    return body


def _models(version: str) -> dict[str, Any]:
    names = ["demo-rules", *(f"demo-rules-{name}" for name in VERSIONS)]
    said = f"a rule-based program, not an AI model; demo-rules is {version}"
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "owned_by": "agenteval", "description": said} for name in names],
    }


def _answer(body: Mapping[str, Any], version: str) -> _Answer:
    """Run the assistant over the conversation up to its next turn."""
    named = str(body.get("model", "demo-rules"))
    chosen = version if named == "demo-rules" else named.removeprefix("demo-rules-")
    if chosen not in VERSIONS:
        names = ", ".join(model["id"] for model in _models(version)["data"])
        raise _BadRequestError(404, f"there is no model {named!r}; models: {names}", "model_not_found")
    said = [one for one in body["messages"] if isinstance(one, Mapping)]
    last = max((n for n, one in enumerate(said) if one.get("role") == "user"), default=None)
    if last is None:
        raise _BadRequestError(400, "the conversation has no user message")
    asked = tuple(Message(str(one.get("role")), _text(one.get("content"))) for one in said[: last + 1])
    seed = body.get("seed")
    if not isinstance(seed, int):
        seed = int(content_hash([[message.role, message.content] for message in asked])[:8], 16)
    done = _results(said[last + 1 :])
    declared, withheld = _declared(body.get("tools")), _withheld(body.get(WITHOUT))
    assistant = VERSIONS[chosen](Dice(seed))
    read, texts, made = tokens(message.content for message in asked), list[str](), 0
    with closing(open_shop()) as shop, closing(assistant.answer(asked)) as talk:
        turn: Turn = next(talk)
        while turn.calls:
            theirs = all(call.name in declared - withheld for call in turn.calls)
            made += len(turn.calls)
            if not theirs:
                texts.append(turn.text)
                outcomes = tuple(
                    missing_tool(call) if call.name in withheld else call_tool(shop, call.name, call.arguments)
                    for call in turn.calls
                )
            elif done:
                outcomes = _in_order(turn.calls, done.pop(0))
            else:
                return _made(assistant.name, [*texts, turn.text], turn.calls, made - len(turn.calls), read)
            read += tokens(outcome.text for outcome in outcomes)
            turn = talk.send(outcomes)
        return _made(assistant.name, [*texts, turn.text], (), made, read)


def _made(model: str, texts: list[str], calls: tuple[Call, ...], first: int, read: int) -> _Answer:
    spoken = tokens([*texts, *(arguments_json(call) for call in calls)])
    usage = {"prompt_tokens": read, "completion_tokens": spoken, "total_tokens": read + spoken}
    return _Answer(model, tuple(text for text in texts if text), calls, first, usage)


def _results(after: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The results that the client sent since the last user message: a list for each turn that asked for calls."""
    turns: list[list[str]] = []
    for one in after:
        if one.get("role") == "assistant" and one.get("tool_calls"):
            turns.append([])
        elif one.get("role") == "tool" and turns:
            turns[-1].append(_text(one.get("content")))
    return turns


def _in_order(calls: Sequence[Call], texts: Sequence[str]) -> tuple[ToolOutcome, ...]:
    """A turn's outcomes. The protocol has no mark for a failed tool: anything but a JSON object counts as one."""
    given = [*texts, *[""] * len(calls)][: len(calls)]
    return tuple(ToolOutcome(text, error=not text.lstrip().startswith("{")) for text in given)


def _declared(tools: Any) -> set[str]:
    names = set()
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping):
            names.add(str(function.get("name")))
    return names


def _withheld(names: Any) -> set[str]:
    """Of our own making: tools that the program must do without, whoever calls them."""
    return {str(name) for name in names} if isinstance(names, list) else set()


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _whole(answer: _Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(answer.texts) or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number + 1}",
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_json(call)},
            }
            for number, call in enumerate(answer.calls, answer.first_call)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else "stop"}
    return {**_frame(answer, "chat.completion"), "choices": [choice], "usage": dict(answer.usage)}


def _chunks(answer: _Answer, *, include_usage: bool) -> list[dict[str, Any]]:
    frame = _frame(answer, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    made = [chunk({"role": "assistant", "content": ""})]
    made += [chunk({"content": piece}) for piece in chunks("\n\n".join(answer.texts))]
    for index, call in enumerate(answer.calls):
        start = {"index": index, "id": f"call_{answer.first_call + index + 1}", "type": "function"}
        made.append(chunk({"tool_calls": [{**start, "function": {"name": call.name, "arguments": ""}}]}))
        made += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in chunks(arguments_json(call))
        ]
    made.append(chunk({}, "tool_calls" if answer.calls else "stop"))
    if include_usage:
        made.append({**frame, "choices": [], "usage": dict(answer.usage)})
    return made


def _frame(answer: _Answer, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-demo", "object": kind, "created": int(time.time()), "model": answer.model}


async def _send_json(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    words_of = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Content Too Large"}
    head = f"HTTP/1.1 {status} {words_of.get(status, 'Error')}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(data)}\r\nconnection: close\r\n\r\n".encode() + data)
    await writer.drain()


async def _stream(writer: asyncio.StreamWriter, chunks: Sequence[Any], pace: float) -> None:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    writer.write(f"{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode())
    async for data in _events(chunks, pace):
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _events(chunks: Sequence[Any], pace: float) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
        await asyncio.sleep(_PER_PIECE * pace)
    yield b"data: [DONE]\n\n"
