"""The kind `openai` against servers that misbehave: each ends in the right outcome, in words, without the key."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.agents.base import AgentRequest, AgentSetup, Failed, TextDelta
from agenteval_tui.agents.models.openai import OpenAIChatAgent
from agenteval_tui.transcripts.model import Message

KEY = "sk-very-secret-0123456789"


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def against(run_agent: Any, answer: Any, **options: Any) -> tuple[Any, ScriptedServer]:
    handler = answer if callable(answer) else lambda _: answer
    async with ScriptedServer(handler) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m", **options}
        return await run_agent(config, env={"MY_KEY": KEY}), server


@pytest.mark.parametrize(
    ("answer", "kind", "retry"),
    [
        (Answer(500, "<html><h1>oh</h1></html>", "text/html"), "server", True),
        (Answer(503, '{"error": "overloaded"}'), "server", True),
        (Answer(400, '{"error": {"message": "no such parameter"}}'), "bad_request", False),
        (Answer(404, '{"detail": "Not Found"}'), "bad_request", False),
        (Answer(408, ""), "timeout", True),
        (Answer(429, '{"error": {"message": "slow down"}}'), "rate_limit", True),
        (Answer(429, '{"error": {"message": "pay", "code": "insufficient_quota"}}'), "bad_request", False),
        (Answer(302, "", headers={"location": "http://elsewhere.example/"}), "bad_request", False),
        (Answer(200, '{"choices": [{"mess'), "protocol", False),
        (Answer(200, "[]"), "protocol", False),
        (Answer(200, "null"), "protocol", False),
        (Answer(200, "data: {half a js\n\n", "text/event-stream"), "protocol", False),
        (Answer(200, "", "text/event-stream"), "connection", True),
        (stream_of(delta(content="I thi"), done=False), "connection", True),
        (Answer(200, b'data: {"choices": []}\n\n', "text/event-stream", cut=True), "connection", True),
        (stream_of(delta(content="x"), {"error": {"message": "lost", "code": 502}}), "server", True),
        (stream_of({"error": {"type": "rate_limit_error", "message": "lost"}}), "rate_limit", True),
    ],
)
async def test_each_fault_has_its_kind(run_agent: Any, answer: Answer, kind: str, retry: bool) -> None:
    ran, server = await against(run_agent, answer)
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.retry) == (kind, retry), failed.error
    assert server.url in failed.error.message
    assert "\n" not in failed.error.message


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_its_variable_and_never_itself(run_agent: Any, status: int) -> None:
    body = json.dumps({"error": {"message": "x" * 380 + f" Incorrect API key provided: {KEY}"}})
    ran, server = await against(run_agent, Answer(status, body), api_key_env="MY_KEY")
    error = ran.transcript.error
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert error.kind == "auth"
    assert "MY_KEY" in error.fix
    assert KEY[:8] not in error.message + error.fix


async def test_a_key_in_a_header_is_not_repeated_either(run_agent: Any) -> None:
    answer = Answer(400, json.dumps({"error": {"message": f"bad key {KEY}"}}))
    ran, _ = await against(run_agent, answer, headers={"api-key": KEY})
    assert "bad key ***" in ran.transcript.error.message


async def test_a_key_that_is_not_set_is_said_before_anything_is_sent(run_agent: Any) -> None:
    ran, server = await against(run_agent, Answer(), api_key_env="OTHER_KEY")
    assert ran.transcript.error.message == "the environment variable OTHER_KEY is not set"
    assert server.requests == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
async def test_how_long_to_wait_is_passed_on(run_agent: Any, headers: dict[str, str], seconds: float | None) -> None:
    ran, _ = await against(run_agent, Answer(429, "{}", headers=headers))
    assert ran.events[-1].retry_after_s == seconds


@pytest.mark.parametrize(
    ("status", "headers", "retry"),
    [
        (425, {}, True),
        (503, {"x-should-retry": "false"}, False),
        (429, {"x-should-retry": "False", "retry-after": "1"}, False),
        (409, {"x-should-retry": "false"}, False),
        (400, {"x-should-retry": "true"}, True),
        (503, {"x-should-retry": "perhaps"}, True),
        (400, {}, False),
    ],
)
async def test_the_server_says_whether_to_try_again(
    run_agent: Any, status: int, headers: dict[str, str], retry: bool
) -> None:
    ran, _ = await against(run_agent, Answer(status, "{}", headers=headers))
    assert ran.events[-1].retry is retry


@pytest.mark.parametrize(("kind", "path", "asked"), [
    ("openai", "/v1/chat/completions", "/v1/chat/completions"),
    ("openai", "/v1/chat/completions/", "/v1/chat/completions"),
    ("openai", "/v1/responses", "/v1/chat/completions"),
    ("openai", "/v1", "/v1/chat/completions"),
    ("openai", "/messages/v1", "/messages/v1/chat/completions"),
    ("anthropic", "/v1/messages", "/v1/messages"),
    ("anthropic", "/api/messages", "/api/v1/messages"),
    ("gemini", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"),
])  # fmt: skip
async def test_an_address_with_the_path_of_a_request_is_not_doubled(
    run_agent: Any, kind: str, path: str, asked: str
) -> None:
    async with ScriptedServer(lambda _: Answer(400, "{}")) as server:
        root = server.url.removesuffix("/v1")
        await run_agent({"kind": kind, "base_url": f"{root}{path}", "model": "m"})
    assert [request.path for request in server.requests] == [asked]


async def test_nobody_listens(run_agent: Any) -> None:
    with socket.socket() as taken:  # bound and never listening: the port is surely closed
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        ran = await run_agent({"kind": "openai", "base_url": url, "model": "m"})
    failed = ran.events[-1]
    assert (failed.error.kind, failed.retry) == ("connection", True)
    assert failed.error.message == f"no connection to {url}: nothing listens there"


async def test_silence_before_the_answer_is_a_time_out(run_agent: Any) -> None:
    async def never(_: Request) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    ran, _ = await against(run_agent, never, timeouts={"first_token": 0.2})
    assert ran.transcript.error.kind == "timeout"
    assert ran.transcript.error.fix == "raise `timeouts.first_token`"
    assert ran.events[-1].retry


async def test_silence_in_the_answer_is_a_time_out_and_keeps_what_came(run_agent: Any) -> None:
    async with _stalling(b"data: " + json.dumps(delta(content="one ")).encode() + b"\n\n") as url:
        config = {"kind": "openai", "base_url": url, "model": "m", "timeouts": {"silence": 0.2}}
        ran = await run_agent(config)
    assert ran.transcript.error.kind == "timeout"
    assert "fell silent" in ran.transcript.error.message
    assert ran.transcript.final_output == "one "


async def test_signs_of_life_are_no_answer(run_agent: Any) -> None:
    async with _stalling(b": working\n\n", again=True) as url:
        config = {"kind": "openai", "base_url": url, "model": "m", "timeouts": {"first_token": 0.3}}
        ran = await run_agent(config)
    assert ran.transcript.error.fix == "raise `timeouts.first_token`"


def _stalling(piece: bytes, *, again: bool = False) -> Any:
    """A server that sends a piece of a stream (or that piece again and again) and never ends."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def serving() -> AsyncIterator[str]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + piece)
                while again and not writer.is_closing():
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
                await reader.read()
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        finally:
            server.close()

    return serving()


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_an_endless_answer_ends_at_its_limit(run_agent: Any, content_type: str) -> None:
    pieces = [b"x" * 100_000] * 1000
    ran, _ = await against(run_agent, Answer(200, b"", content_type, pieces=pieces, cut=True), max_reply_mb=1)
    assert ran.transcript.error.message.endswith("the reply is longer than 1 MB")


async def test_wrong_utf8_is_replaced(run_agent: Any) -> None:
    body = b'data: {"choices": [{"delta": {"content": "a\xff\xc3b"}, "finish_reason": "stop"}]}\n\n'
    ran, _ = await against(run_agent, Answer(200, body, "text/event-stream"))
    assert ran.transcript.final_output == "a\ufffd\ufffdb"


async def test_any_cut_into_pieces_gives_the_same(run_agent: Any) -> None:
    lines = [delta(content="Grüße, "), delta(content="日本"), END]
    whole = "".join(f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n" for one in lines).encode()
    for size in (1, 2, 3, 7, 1000):
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        ran, _ = await against(run_agent, Answer(200, b"", "text/event-stream", pieces=pieces))
        assert ran.transcript.final_output == "Grüße, 日本"
        assert ran.transcript.error is None


def call(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "function": {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    }
    if index is not None:
        fields["index"] = index
    if call_id is not None:
        fields["id"] = call_id
    return fields


DIALECTS = {
    "as OpenAI sends it": [
        call(0, "a", "f", ""),
        call(0, None, None, '{"x"'),
        call(0, None, None, ": 1}"),
        call(1, "b", "g", '{"y": 2}'),
    ],
    "type and name again and again": [
        call(0, "a", "f", '{"x"'),
        call(0, "a", "f", ": 1}"),
        call(1, "b", "g", '{"y": '),
        call(1, "b", "g", "2}"),
    ],
    "no index": [call(None, "a", "f", '{"x"'), call(None, None, None, ": 1}"), call(None, "b", "g", '{"y": 2}')],
    "every index 0": [call(0, "a", "f", '{"x": 1}'), call(0, "b", "g", '{"y": 2}')],
    "every index 0, no ids": [call(0, None, "f", '{"x": 1}'), call(0, None, "g", '{"y": 2}')],
    "every index 0, empty ids": [call(0, "", "f", '{"x": 1}'), call(0, "", "g", '{"y": 2}')],
    "every index 0, no ids, in fragments": [
        call(0, None, "f", ""),
        call(0, None, None, '{"x"'),
        call(0, None, None, ": 1}"),
        call(0, None, "g", None),
        call(0, None, None, '{"y": '),
        call(0, None, None, "2}"),
    ],
    "every index 0, no ids, the name again with each fragment": [
        call(0, None, "f", '{"x"'),
        call(0, None, "f", ": 1}"),
        call(0, None, "f", ""),
        call(0, None, "g", '{"y": '),
        call(0, None, "g", "2}"),
        call(0, None, "g", ""),
    ],
    "every index 0, an id for the second only": [call(0, None, "f", '{"x": 1}'), call(0, "b", "g", '{"y": 2}')],
    "every index 0, an id for the first only": [call(0, "a", "f", '{"x": 1}'), call(0, None, "g", '{"y": 2}')],
    "no ids and no index, the name again": [
        call(None, None, "f", '{"x"'),
        call(None, None, "f", ": 1}"),
        call(None, None, "g", '{"y": 2}'),
    ],
    "no ids and no index": [call(None, None, "f", '{"x": 1}'), call(None, None, "g", '{"y": 2}')],
    "in turns": [
        call(0, "a", "f", ""),
        call(1, "b", "g", ""),
        call(0, None, None, '{"x": 1}'),
        call(1, None, None, '{"y": 2}'),
    ],
    "the name comes late": [call(0, "a", None, None), call(0, None, "f", '{"x": 1}'), call(1, "b", "g", '{"y": 2}')],
}


@pytest.mark.parametrize("name", DIALECTS)
async def test_tool_calls_in_every_dialect(run_agent: Any, name: str) -> None:
    replies = [
        stream_of(*(delta(tool_calls=[part]) for part in DIALECTS[name]), END, done=False),
        stream_of(delta(content="done"), END),
    ]
    tools = [{"name": "f", "sample_response": "from f"}, {"name": "g", "sample_response": "from g"}]
    ran, server = await against(run_agent, lambda _: replies.pop(0), tools=tools)
    assert ran.transcript.error is None
    assert [(c.name, c.arguments, c.result) for c in ran.transcript.tool_calls] == [
        ("f", {"x": 1}, "from f"),
        ("g", {"y": 2}, "from g"),
    ]
    sent = server.requests[1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]
    assert [c["id"] for c in sent[1]["tool_calls"]] == [message["tool_call_id"] for message in sent[2:]]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("pieces", [1, 2, 3])
async def test_a_tool_that_is_called_twice_without_ids_at_one_index(
    run_agent: Any, index: int | None, pieces: int
) -> None:
    """`pieces`: whether the name comes with the arguments, before them, or before arguments in two pieces."""
    parts: list[dict[str, Any]] = []
    for text in ('{"x": 1}', '{"x": {"}": 2}}'):
        if pieces == 1:
            parts.append(call(index, None, "f", text))
        else:
            half = 5 if pieces == 3 else 0
            parts.append(call(index, None, "f", ""))
            parts.extend(call(index, None, None, piece) for piece in (text[:half], text[half:]) if piece)
    replies = [
        stream_of(*(delta(tool_calls=[part]) for part in parts), END, done=False),
        stream_of(delta(content="done"), END),
    ]
    tools = [{"name": "f", "sample_response": "from f"}]
    ran, server = await against(run_agent, lambda _: replies.pop(0), tools=tools)
    assert ran.transcript.error is None
    assert [(c.name, c.arguments) for c in ran.transcript.tool_calls] == [("f", {"x": 1}), ("f", {"x": {"}": 2}})]
    ids = [c["id"] for c in server.requests[1].json["messages"][1]["tool_calls"]]
    assert len(set(ids)) == 2


async def test_failures_of_tools_go_back_to_the_model_and_stay_in_the_transcript(run_agent: Any) -> None:
    parts = [
        call(0, "a", "f", "{not json"),
        call(1, "b", "unknown", "{}"),
        call(2, "c", "f", '"text"'),
        call(3, "d", "f", '{"x": 1}'),
    ]
    replies = [stream_of(delta(tool_calls=parts), END), stream_of(delta(content="done"), END)]
    tools = [{"name": "f", "request_response_pairs": [{"arguments": {"x": 2}, "response": "two"}]}]
    ran, server = await against(run_agent, lambda _: replies.pop(0), tools=tools)
    calls = ran.transcript.tool_calls
    assert [c.status for c in calls] == ["error"] * 4
    assert [c.result for c in calls] == [
        "the arguments are not valid JSON",
        "there is no tool 'unknown'; tools: f",
        "the arguments must be a JSON object",
        "the mock tool f has no answer to these arguments",
    ]
    assert calls[0].malformed
    assert [m["content"] for m in server.requests[1].json["messages"][2:]] == [c.result for c in calls]


async def test_ten_thousand_calls_with_the_same_id(run_agent: Any) -> None:
    parts = [call(n, "same", "f", "{}") for n in range(10_000)]
    replies = [stream_of(delta(tool_calls=parts), END), stream_of(delta(content="done"), END)]
    ran, _ = await against(run_agent, lambda _: replies.pop(0), tools=[{"name": "f", "sample_response": "x"}])
    assert ran.transcript.error is None
    assert len(ran.transcript.tool_calls) == 10_000
    assert {c.result for c in ran.transcript.tool_calls} == {"x"}


async def test_the_context_brings_system_prompt_tools_and_data(run_agent: Any, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("- {name: f, sample_response: from the file}\n", encoding="utf-8")
    context = {
        "sample_system_prompt": "You are [#role#] of {{ shop }}. {{other}}",
        "sample_concepts": {"role": "the clerk", "shop": "Example"},
        "sample_tools": [{"name": "f", "sample_response": {"from": "context"}}],
        "input_data": {"rows": [1]},
    }
    replies = [stream_of(delta(tool_calls=[call(0, "a", "f", "{}")]), END), stream_of(delta(content="done"), END)]
    async with ScriptedServer(lambda _: replies.pop(0)) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m", "system": "own", "tools": "tools.yaml"}
        ran = await run_agent(config, context=context, seed=5)
    sent = server.requests[0].json
    assert sent["messages"][0] == {"role": "system", "content": "You are the clerk of Example. {{other}}"}
    assert sent["messages"][1]["content"] == 'hello\n\n{"rows": [1]}'
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["f"]
    assert ran.transcript.messages[0].role == "system"
    assert ran.transcript.tool_calls[0].result == '{"from": "context"}'


async def test_cancelling_closes_the_connection(tmp_path: Path) -> None:
    async with ScriptedServer(_never_ending) as server:
        agent = OpenAIChatAgent(AgentSetup("a", {"kind": "openai", "base_url": server.url, "model": "m"}, tmp_path))

        async def run() -> None:
            async with aclosing(agent.run(AgentRequest((Message("user", "hello"),)))) as events:  # type: ignore[type-var]
                async for event in events:
                    if isinstance(event, TextDelta):
                        began.set()

        began = asyncio.Event()
        task = asyncio.create_task(run())
        await asyncio.wait_for(began.wait(), 250)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(server.idle.wait(), 250)
        await agent.close()


def _never_ending(_: Request) -> Answer:
    piece = f"data: {json.dumps(delta(content='on and on '))}\n\n".encode()
    return Answer(200, b"", "text/event-stream", pieces=[piece] * 1_000_000)


async def test_a_stream_under_a_wrong_name_is_read(run_agent: Any) -> None:
    answer = stream_of(delta(content="one "), delta(content="two"), END)
    answer.content_type = "text/plain"
    ran, _ = await against(run_agent, answer)
    assert ran.transcript.final_output == "one two"


async def check(handler: Any, tmp_path: Path, **options: Any) -> Any:
    async with ScriptedServer(handler) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m", **options}
        agent = OpenAIChatAgent(AgentSetup("a", config, tmp_path, {"MY_KEY": KEY}))
        report = await agent.check()
        await agent.close()
        return report


async def test_check_without_a_list_of_models_asks_for_one_token(tmp_path: Path) -> None:
    answer = Answer(body=json.dumps({"choices": [{"message": {"content": "p"}, "finish_reason": "length"}]}))
    report = await check(lambda r: Answer(404, "{}") if r.path.endswith("/models") else answer, tmp_path)
    assert report.ok


async def test_check_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    refused = await check(lambda _: Answer(401, "{}"), tmp_path, api_key_env="MY_KEY")
    assert not refused.ok
    assert "MY_KEY" in refused.fix
    unset = await check(lambda _: Answer(200, "{}"), tmp_path, api_key_env="NO_KEY")
    assert unset.message == "the environment variable NO_KEY is not set"
    other = await check(lambda _: Answer(200, '{"data": [{"id": "x"}]}'), tmp_path)
    assert (other.ok, other.fix) == (False, "models: x")


async def test_a_seed_for_each_run_is_sent_when_asked(run_agent: Any) -> None:
    replies = stream_of(delta(content="x"), END)
    async with ScriptedServer(lambda _: replies) as server:
        await run_agent({"kind": "openai", "base_url": server.url, "model": "m", "seed": "run"}, seed=77)
    assert server.requests[0].json["seed"] == 77
