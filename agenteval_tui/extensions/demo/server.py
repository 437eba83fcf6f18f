"""The bundled agent as an OpenAI-compatible server on loopback, so that the HTTP adapter can be tried with no key.

It is `demo-rules`, a rule-based program, not an AI model. Nothing is kept between requests: the program is run again
from the conversation's start, with the tools' results that the client sent, up to its next turn.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Self

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.agents.http.loopback_server import LoopbackServer, ServedRequest, ServerConnection
from agenteval_tui.agents.tools.changes import WITHOUT
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.extensions.demo.agent import arguments_json, chunks, missing_tool, tokens
from agenteval_tui.extensions.demo.shop.assistant import VERSIONS
from agenteval_tui.extensions.demo.shop.database import open_shop
from agenteval_tui.extensions.demo.shop.protocol import Call, Turn
from agenteval_tui.extensions.demo.shop.seeded_random import Dice
from agenteval_tui.extensions.demo.shop.tools import call_tool
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


class DemoServer:
    """Answers from `start` on. Close it, or use it with `async with`."""

    def __init__(self, version: str = "v1", *, pace: float = 1.0) -> None:
        self._version = version
        self._pace = pace
        self._server = LoopbackServer(self._answer, _LONGEST_BODY)

    async def start(self, host: str, port: int) -> None:
        """Listen from now on; port 0 takes a free one. Raises `InfrastructureError` when the port can't be had."""
        try:
            await self._server.start(host, port)
        except OSError as error:
            raise InfrastructureError(
                f"can't listen on port {port}: {error.strerror}", where=host, fix="choose another with --port"
            ) from error

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    @property
    def address(self) -> str:
        """The `base_url` under which it is reached."""
        return f"{self._server.address}/v1"

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _answer(self, client: ServerConnection, request: ServedRequest) -> None:
        path = request.path.rstrip("/")
        try:
            if path == "/v1/models" and request.method == "GET":
                await _send_json(client, 200, _models(self._version))
            elif path == "/v1/chat/completions" and request.method == "POST":
                body = _decoded(request.body)
                answer = _answer(body, self._version)
                if body.get("stream"):
                    usage = bool((body.get("stream_options") or {}).get("include_usage"))
                    await _stream(client, _chunks(answer, include_usage=usage), self._pace)
                else:
                    await _send_json(client, 200, _whole(answer))
            else:
                raise _BadRequestError(404, f"there is no {request.method} {path or '/'} here")
        except _BadRequestError as error:
            fields = {"message": error.message, "type": "invalid_request_error", "code": error.code or None}
            await _send_json(client, error.status, {"error": fields})


async def start(port: int = 0, version: str = "v1", *, host: str = HOST, pace: float = 1.0) -> DemoServer:
    """A server that answers from now on."""
    server = DemoServer(version, pace=pace)
    await server.start(host, port)
    return server


def serve(
    port: int = 0,
    version: str = "v1",
    *,
    pace: float = 1.0,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted. `announce` is told the address (".../v1") once it answers; port 0 takes a free one.

    Raises `InfrastructureError` when the port can't be had.
    """

    async def run() -> None:
        async with await start(port, version, pace=pace) as server:
            announce(server.address)
            await asyncio.Event().wait()

    asyncio.run(run())


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
    about = f"a rule-based program, not an AI model; demo-rules is {version}"
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "owned_by": "agenteval", "description": about} for name in names],
    }


def _answer(body: Mapping[str, Any], version: str) -> _Answer:
    """Run the assistant over the conversation up to its next turn."""
    named = str(body.get("model", "demo-rules"))
    chosen = version if named == "demo-rules" else named.removeprefix("demo-rules-")
    if chosen not in VERSIONS:
        names = ", ".join(model["id"] for model in _models(version)["data"])
        raise _BadRequestError(404, f"there is no model {named!r}; models: {names}", "model_not_found")
    dialogue = [message for message in body["messages"] if isinstance(message, Mapping)]
    last = max((n for n, message in enumerate(dialogue) if message.get("role") == "user"), default=None)
    if last is None:
        raise _BadRequestError(400, "the conversation has no user message")
    messages = tuple(
        Message(str(message.get("role")), _text(message.get("content"))) for message in dialogue[: last + 1]
    )
    seed = body.get("seed")
    if not isinstance(seed, int):
        # Each request starts the program again: with another seed it would take another way through the same talk.
        seed = int(content_hash([[message.role, message.content] for message in messages])[:8], 16)
    done = _results(dialogue[last + 1 :])
    declared, withheld = _declared(body.get("tools")), _withheld(body.get(WITHOUT))
    assistant = VERSIONS[chosen](Dice(seed))
    read, texts, call_count = tokens(message.content for message in messages), list[str](), 0
    with closing(open_shop()) as shop, closing(assistant.answer(messages)) as talk:
        turn: Turn = next(talk)
        while turn.calls:
            # A turn is the client's as a whole: half of its results would have to come from here.
            theirs = all(call.name in declared - withheld for call in turn.calls)
            call_count += len(turn.calls)
            if not theirs:
                texts.append(turn.text)
                outcomes = tuple(
                    missing_tool(call) if call.name in withheld else call_tool(shop, call.name, call.arguments)
                    for call in turn.calls
                )
            # The client has answered this turn already: it is told what it answered, and the program goes on.
            elif done:
                outcomes = _in_order(turn.calls, done.pop(0))
            else:
                return _made(assistant.name, [*texts, turn.text], turn.calls, call_count - len(turn.calls), read)
            read += tokens(outcome.text for outcome in outcomes)
            turn = talk.send(outcomes)
        return _made(assistant.name, [*texts, turn.text], (), call_count, read)


def _made(model: str, texts: list[str], calls: tuple[Call, ...], first: int, read: int) -> _Answer:
    spoken = tokens([*texts, *(arguments_json(call) for call in calls)])
    usage = {"prompt_tokens": read, "completion_tokens": spoken, "total_tokens": read + spoken}
    return _Answer(model, tuple(text for text in texts if text), calls, first, usage)


def _results(after: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The results that the client sent since the last user message: a list for each turn that asked for calls."""
    turns: list[list[str]] = []
    for message in after:
        if message.get("role") == "assistant" and message.get("tool_calls"):
            turns.append([])
        elif message.get("role") == "tool" and turns:
            turns[-1].append(_text(message.get("content")))
    return turns


def _in_order(calls: Sequence[Call], texts: Sequence[str]) -> tuple[ToolOutcome, ...]:
    """A turn's outcomes. The protocol has no mark for a failed tool: anything but a JSON object counts as one."""
    results = [*texts, *[""] * len(calls)][: len(calls)]
    return tuple(ToolOutcome(text, error=not text.lstrip().startswith("{")) for text in results)


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


def _text(content: object) -> str:
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

    answer_chunks = [chunk({"role": "assistant", "content": ""})]
    answer_chunks += [chunk({"content": piece}) for piece in chunks("\n\n".join(answer.texts))]
    for index, call in enumerate(answer.calls):
        start = {"index": index, "id": f"call_{answer.first_call + index + 1}", "type": "function"}
        answer_chunks.append(chunk({"tool_calls": [{**start, "function": {"name": call.name, "arguments": ""}}]}))
        answer_chunks += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in chunks(arguments_json(call))
        ]
    answer_chunks.append(chunk({}, "tool_calls" if answer.calls else "stop"))
    if include_usage:
        answer_chunks.append({**frame, "choices": [], "usage": dict(answer.usage)})
    return answer_chunks


def _frame(answer: _Answer, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-demo", "object": kind, "created": int(time.time()), "model": answer.model}


async def _send_json(client: ServerConnection, status: int, value: object) -> None:
    await client.answer(status, json.dumps(value, ensure_ascii=False).encode(), "application/json")


async def _stream(client: ServerConnection, chunks: Sequence[Any], pace: float) -> None:
    head = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
    await client.begin(200, head)
    for chunk in chunks:
        await client.send(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
        await asyncio.sleep(_PER_PIECE * pace)
    await client.send(b"data: [DONE]\n\n")
    await client.end()
