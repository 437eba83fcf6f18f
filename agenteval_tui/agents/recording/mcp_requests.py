"""Requests to MCP servers that a program started: kept beside what it asks of models, and answered from recordings.

The program starts a shim (`mcp_shim.py`) in place of such a server. The shim tells of each request before the server
gets it, and of the answer once it is there; a recorded answer it gives itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import MsgspecError, Struct, convert, to_builtins
from msgspec.structs import replace

from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question, encoded
from agenteval_tui.transcripts.codec import content_text

PREFIX = "mcp/"
"""Where paths of such requests begin: "mcp/shop/get_order", with the server's name and, of a call, the tool's."""
CALL = "tools/call"
T = TypeVar("T")
_ERROR = -32001  # of JSON-RPC: the server's own are from -32000 on


class ToolRequest(Struct, frozen=True):
    """A call of an MCP server's tool, as the server saw it. Times are milliseconds since the run started. `result`:
    None where the server did not answer. `rounds`: when the requests of the call started and ended for which the server
    asked for input (`input_required`); the client then made the request again."""

    server: str
    name: str
    arguments: str
    result: str | None
    failed: bool
    started_ms: float
    ended_ms: float
    rounds: tuple[tuple[float, float], ...] = ()


class ToldRequest(Struct, frozen=True, tag="request"):
    """What a shim tells of a request of its program. `keys`: what must not be stored."""

    server: str
    method: str
    params: Any = None
    keys: tuple[str, ...] = ()


class ToldAnswer(Struct, frozen=True, tag="answer"):
    """What a shim tells of an answer of its server: the `message` itself. `request`: the number of `WhatToDo`."""

    request: int
    message: dict[str, Any]


class ToldMissed(Struct, frozen=True, tag="missed"):
    """What a shim tells once the recording answers again: how many messages of its server it could not tell."""

    server: str
    count: int


Told = ToldRequest | ToldAnswer | ToldMissed


class WhatToDo(Struct, frozen=True, omit_defaults=True):
    """What a shim is told: to give an `answer` (after a while), or to ask the server and tell what it said to the
    request of this number."""

    request: int | None = None
    answer: dict[str, Any] | None = None
    wait_ms: float = 0.0


def to_wire(message: Struct) -> bytes:
    """What a shim and the recording say to each other. A text may have half of a surrogate pair, as JSON allows. Raises
    RecursionError for what is nested too deep."""
    return encoded(to_builtins(message)).encode()


def from_wire(data: bytes, kind: type[T]) -> T:
    """What `to_wire` gave. Raises ValueError for anything else."""
    try:
        return convert(json.loads(data), kind)
    except (RecursionError, MsgspecError) as error:
        raise ValueError(str(error)) from None


def question_of(server: str, method: str, params: Any) -> Question:
    """A request as it is recorded. What no answer depends on is left out: `_meta`, and how a client introduces
    itself."""
    arguments = {key: value for key, value in params.items() if key != "_meta"} if isinstance(params, Mapping) else {}
    if method == "initialize":
        # The names and versions of clients change, and answers do not depend on them.
        arguments = {}
    # The first part of the path is the server's name (`server_of`), also of one such as `@scope/server`.
    path = f"{PREFIX}{server.replace('/', '-')}"
    if method == CALL:
        path = f"{path}/{arguments.pop('name', '')}"
    return Question(method, path, body=arguments or None)


def answer_of(response: Mapping[str, Any], took_ms: float) -> Answer:
    """What a server said (`result` or `error` of JSON-RPC), as it is recorded."""
    fields = {key: response[key] for key in ("result", "error") if key in response}
    return Answer(200, "application/json", fields, (round(took_ms),))


def error_of(message: str) -> dict[str, Any]:
    """An error of our own, as JSON-RPC has it."""
    return {"error": {"code": _ERROR, "message": message}}


def is_mcp(question: Question) -> bool:
    """Whether it went to an MCP server."""
    return question.path.startswith(PREFIX)


def server_of(question: Question) -> str:
    """The name of the server that it went to."""
    return question.path.split("/")[1]


def tool_requests(exchanges: Iterable[Exchange]) -> list[ToolRequest]:
    """The calls of tools among exchanges, in their order. A request that is made again with the input that the server
    asked for belongs to the same call."""
    tool_requests: list[ToolRequest] = []
    waiting: list[tuple[int, Mapping[str, Any]]] = []  # calls that wait for input, with what the server said
    # A server may ask for input (`input_required`): the client then makes the same call again, with the input in it.
    for exchange in exchanges:
        tool = tool_request(exchange)
        if tool is None:
            continue
        body = exchange.question.body if isinstance(exchange.question.body, Mapping) else {}
        again = None
        if "inputResponses" in body or "requestState" in body:
            again = _continued([(entry, tool_requests[entry[0]]) for entry in waiting], tool, body)
        if again is None:
            place = len(tool_requests)
            tool_requests.append(tool)
        else:
            waiting.remove(again)
            place, first = again[0], tool_requests[again[0]]
            tool_requests[place] = replace(tool, started_ms=first.started_ms, rounds=first.rounds)
        if (input_required := _input_required(exchange)) is not None:
            rounds = (*tool_requests[place].rounds, (tool.started_ms, tool.ended_ms))
            tool_requests[place] = replace(tool_requests[place], rounds=rounds)
            waiting.append((place, input_required))
    return tool_requests


def _continued(
    waiting: Iterable[tuple[tuple[int, Mapping[str, Any]], ToolRequest]], again: ToolRequest, body: Mapping[str, Any]
) -> tuple[int, Mapping[str, Any]] | None:
    """Which of the calls that wait for input a request continues: by the state that the client sends back; else one
    of equal arguments, best that which asked for this input, and the one that waits longest."""
    of_tool = [(entry, tool) for entry, tool in waiting if (tool.server, tool.name) == (again.server, again.name)]
    # A server may ask several calls of a tool for input at once: only the state tells them apart for sure.
    state = body.get("requestState")
    if state is not None:
        by_state = [entry for entry, _ in of_tool if entry[1].get("requestState") == state]
        if by_state:
            return by_state[0]
    given = body.get("inputResponses")
    alike = [entry for entry, tool in of_tool if tool.arguments == again.arguments]
    asked = [entry for entry in alike if given and _keys(given) == _keys(entry[1].get("inputRequests"))]
    return next(iter(asked or alike), None)


def _keys(inputs: Any) -> set[str]:
    return set(inputs) if isinstance(inputs, Mapping) else set()


def _input_required(exchange: Exchange) -> Mapping[str, Any] | None:
    """What a server said that asked for input; None for any other answer."""
    body = exchange.answer.body
    result = body.get("result") if isinstance(body, Mapping) else None
    is_asking = isinstance(result, Mapping) and result.get("resultType") == "input_required"
    return result if is_asking and isinstance(result, Mapping) else None


def tool_request(exchange: Exchange) -> ToolRequest | None:
    """The call of a tool that an exchange is, or a request of; None for any other, and for one that was refused."""
    question, body = exchange.question, exchange.answer.body
    if question.method != CALL or not is_mcp(question) or exchange.refused:
        return None
    _, server, name = (*question.path.split("/", 2), "", "")[:3]
    raw = question.body.get("arguments") if isinstance(question.body, Mapping) else None
    result, failed = _result(body if isinstance(body, Mapping) else {})
    # The question for input is no result of the tool.
    if _input_required(exchange) is not None:
        result = None
    arguments = json.dumps({} if raw is None else raw, ensure_ascii=False)
    return ToolRequest(
        server,
        name=name,
        arguments=arguments,
        result=result,
        failed=failed,
        started_ms=exchange.started_ms,
        ended_ms=exchange.ended_ms,
    )


def _result(body: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What a tool gave, as text, and whether it failed."""
    result, error = body.get("result"), body.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message", "")), True
    if not isinstance(result, Mapping):
        return None, False
    text = content_text(result.get("content"))
    # The protocol wants such content as a text, too; not every server gives it.
    if not text and result.get("structuredContent") is not None:
        text = json.dumps(result["structuredContent"], ensure_ascii=False)
    return text, result.get("isError") is True
