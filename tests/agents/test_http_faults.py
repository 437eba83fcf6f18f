"""Every kind that talks over a network against servers that misbehave: the right outcome, in words, without the key.

What is particular to Chat Completions stands in test_openai_faults.py.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dialects import ALL, ANTHROPIC, CHAT, MODELS, RESPONSES, STREAM, Call, Dialect, Text, event
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import AgentRequest, Done, Failed, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
from tests.sweeps import share

ALLOWED = permission_for((), everything=True)


KEY = "sk-very-secret-0123456789"
TOOLS = [{"name": "f", "sample_response": "from f"}]

every = pytest.mark.parametrize("dialect", ALL, ids=[one.name for one in ALL])
models = pytest.mark.parametrize("dialect", MODELS, ids=[one.name for one in MODELS])


async def against(run_agent: Any, dialect: Dialect, answer: Any, **options: Any) -> tuple[Any, ScriptedServer]:
    """One run with a key; that never stands in an event, whatever the server does."""
    handler = answer if callable(answer) else lambda _: answer
    async with ScriptedServer(handler) as server:
        config = dialect.config(server.url, api_key_env="MY_KEY", **options)
        ran = await run_agent(config, env={"MY_KEY": KEY})
    assert KEY not in repr(ran.events)
    return ran, server


def ended(ran: Any) -> tuple[str, bool]:
    failed = ran.events[-1]
    assert isinstance(failed, Failed), failed
    assert "\n" not in failed.error.message
    return failed.error.kind, failed.retry


def _sent(events: list[Any]) -> Answer:
    return Answer(200, b"".join(event(one) for one in events), STREAM)


FAULTS: dict[str, tuple[Callable[[Dialect], Answer], tuple[str, bool]]] = {
    "500": (lambda _: Answer(500, "<html>oh</html>", "text/html"), ("server", True)),
    "500 as a stream": (
        lambda _: Answer(500, 'data: {"error": {"message": "lost"}}\n\ndata: [DONE]\n\n', STREAM),
        ("server", True),
    ),
    "529": (lambda _: Answer(529, '{"type": "error", "error": {"type": "overloaded_error"}}'), ("server", True)),
    "408": (lambda _: Answer(408), ("timeout", True)),
    "400": (lambda _: Answer(400, '{"error": {"message": "no"}}'), ("bad_request", False)),
    "401": (lambda _: Answer(401, json.dumps({"error": {"message": f"bad key {KEY}"}})), ("auth", False)),
    "302": (lambda _: Answer(302, headers={"location": "/v1/again"}), ("bad_request", False)),
    "half a JSON": (lambda _: Answer(200, b'data: {"choi', STREAM), ("connection", True)),
    "half a JSON in a whole event": (lambda _: Answer(200, b'data: {"choi\n\n', STREAM), ("connection", True)),
    "half a list": (lambda _: Answer(200, b"data: [1", STREAM), ("connection", True)),
    "half a name": (lambda _: Answer(200, b"da", STREAM), ("connection", True)),
    "no JSON": (lambda _: Answer(200, b"data: hello\n\n", STREAM), ("protocol", False)),
    "JSON lines": (lambda _: Answer(200, b'{"a": 1}\n{"a": 2}\n', STREAM), ("protocol", False)),
    "nothing at all": (lambda _: Answer(200, b"", STREAM), ("connection", True)),
    "cut within": (
        lambda d: Answer(200, d.chunks(Text(["on", "e"]), end=False)[-2], STREAM, cut=True),
        ("connection", True),
    ),
    "an error within": (
        lambda d: Answer(
            200, b"".join([*d.chunks(Text(["one"]), end=False), d.error_event("server_error", "lost")]), STREAM
        ),
        ("server", True),
    ),
    "overloaded within": (lambda d: Answer(200, d.error_event("overloaded_error", "busy"), STREAM), ("server", True)),
    "rate limit within": (
        lambda d: Answer(200, d.error_event("rate_limit_exceeded", "slow"), STREAM),
        ("rate_limit", True),
    ),
}


@pytest.mark.sweep("fault")
@every
@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_has_its_kind(run_agent: Any, dialect: Dialect, fault: str) -> None:
    answer, outcome = FAULTS[fault]
    ran, server = await against(run_agent, dialect, answer(dialect))
    assert ended(ran) == outcome, ran.events[-1]
    assert server.url.removesuffix("/v1") in ran.transcript.error.message
    assert len(server.requests) == 1  # no redirect was followed, nothing tried twice: that is the engine's to decide


@models
async def test_a_stream_that_ends_without_its_end_was_cut(run_agent: Any, dialect: Dialect) -> None:
    ran, _ = await against(run_agent, dialect, dialect.stream(Text(["one ", "two"]), end=False))
    assert ended(ran) == ("connection", True)
    assert ran.transcript.final_output == "one two"


@every
async def test_a_stream_that_is_cut_anywhere_is_a_break_or_whole(run_agent: Any, dialect: Dialect) -> None:
    body = b"".join(dialect.chunks(Text(["öne ", "two"]), Text(["x"])))
    wrong = []
    cuts = share(range(1, len(body), 7))
    at = 0

    def answer(_: Request) -> Answer:
        return Answer(200, body[:at], STREAM)

    async with ScriptedServer(answer) as server:
        for at in cuts:
            ran = await run_agent(dialect.config(server.url))
            last = ran.events[-1]
            whole = isinstance(last, Done) and ran.transcript.final_output == "öne twox"
            broken = isinstance(last, Failed) and (last.error.kind, last.retry) == ("connection", True)
            # Nothing but its connection tells of the stream of an unknown endpoint whether it is whole.
            between = dialect.name == "http" and isinstance(last, Done) and body[:at].rstrip(b"\n").endswith(b"}")
            if not (whole or broken or between):
                wrong.append((body[:at][-40:], last))
            if broken and "base_url" in last.error.fix:
                wrong.append((body[:at][-40:], last.error.fix))
    assert wrong == []


EMPTY: dict[str, dict[str, Any]] = {
    "chat": {
        "no choices": {"choices": []},
        "no choice at all": {"choices": [None]},
        "choices are a text": {"choices": "hello"},
        "an object without anything": {},
        "another choice": {"choices": [{"index": 1, "message": {"content": "hello"}, "finish_reason": "stop"}]},
        "no message": {"choices": [{"finish_reason": "stop"}]},
        "message is null": {"choices": [{"message": None, "finish_reason": "stop"}]},
        "message is a text": {"choices": [{"message": "hello", "finish_reason": "stop"}]},
        "null, no reason": {"choices": [{"message": {"content": None}}]},
        "a number": {"choices": [{"message": {"content": 42}, "finish_reason": "stop"}]},
        "zero": {"choices": [{"message": {"content": 0}, "finish_reason": "stop"}]},
        "true": {"choices": [{"message": {"content": True}, "finish_reason": "stop"}]},
        "an object": {"choices": [{"message": {"content": {"text": "hello"}}, "finish_reason": "stop"}]},
        "a list of numbers": {"choices": [{"message": {"content": [42]}, "finish_reason": "stop"}]},
        "a part whose text is a number": {
            "choices": [{"message": {"content": [{"text": 42}]}, "finish_reason": "stop"}]
        },
        "only an image": {"choices": [{"message": {"content": [{"type": "image_url"}]}, "finish_reason": "stop"}]},
        "calls are a number": {"choices": [{"message": {"content": None, "tool_calls": 42}, "finish_reason": "stop"}]},
        "an old completion": {"choices": [{"text": "hello", "finish_reason": "stop"}]},
    },
    "responses": {
        "no output": {"status": "completed", "output": []},
        "no output at all": {"status": "completed"},
        "output is a text": {"status": "completed", "output": "hello"},
        "a number in it": {"status": "completed", "output": [42]},
        "content is a number": {"status": "completed", "output": [{"type": "message", "content": 42}]},
        "a number as a part": {"status": "completed", "output": [{"type": "message", "content": [42]}]},
        "a number as text": {"status": "completed", "output": [{"type": "message", "content": [{"text": 42}]}]},
    },
    "anthropic": {
        "no content, no reason": {"type": "message", "content": []},
        "content is a number": {"type": "message", "content": 42, "stop_reason": "end_turn"},
        "content is null": {"type": "message", "content": None, "stop_reason": "end_turn"},
        "a number in it": {"type": "message", "content": [42], "stop_reason": "end_turn"},
        "a number as text": {"type": "message", "content": [{"type": "text", "text": 42}], "stop_reason": "end_turn"},
    },
    "http": {"an object": {}, "null": {"delta": None}, "a list": [], "nothing": None},
}
DELTAS: dict[str, dict[str, list[Any]]] = {
    "chat": {
        "no choices": [{"choices": []}, "[DONE]"],
        "its end alone": ["[DONE]"],
        "a list": [[1]],
        "usage alone": [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}, "[DONE]"],
        "no delta": [{"choices": [{"index": 0, "finish_reason": "stop"}]}, "[DONE]"],
        "an empty delta": [{"choices": [{"index": 0, "delta": {}}]}, "[DONE]"],
        "a role alone": [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}, "[DONE]"],
        "a number": [{"choices": [{"index": 0, "delta": {"content": 42}}]}, "[DONE]"],
        "a list of numbers": [
            {"choices": [{"index": 0, "delta": {"content": [42]}, "finish_reason": "stop"}]},
            "[DONE]",
        ],
    },
    "responses": {
        "no output": [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
        "a number": [
            {"type": "response.output_text.delta", "delta": 42},
            {"type": "response.completed", "response": {"status": "completed"}},
        ],
    },
    "anthropic": {
        "nothing": [{"type": "message_start", "message": {"model": "m"}}, {"type": "message_stop"}],
        "a number": [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 42}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
    },
    "http": {"its end alone": ["[DONE]"], "no delta": [{"other": 1}, "[DONE]"], "null": [{"delta": None}, "[DONE]"]},
}
REPLIED = [
    *[(d, name, Answer(200, json.dumps(body))) for d in ALL for name, body in EMPTY[d.name].items()],
    *[(d, f"{name}, streamed", _sent(events)) for d in ALL for name, events in DELTAS[d.name].items()],
    *[(d, "an empty body", Answer(200, b"")) for d in ALL],
    *[(d, "an HTML page", Answer(200, "<!doctype html><title>Log in</title>", "text/html")) for d in ALL],
    *[(d, "a text", Answer(200, "hello", "text/plain")) for d in MODELS],
]


@pytest.mark.sweep("dialect")
@pytest.mark.parametrize(
    ("dialect", "answer"), [(d, a) for d, _, a in REPLIED], ids=[f"{d.name}-{n}" for d, n, _ in REPLIED]
)
async def test_what_is_no_answer_is_an_error(run_agent: Any, dialect: Dialect, answer: Answer) -> None:
    own = (
        {"stream": "none", "delta": None, "answer": "delta"}
        if dialect.name == "http" and answer.content_type != STREAM
        else {}
    )
    async with ScriptedServer(lambda _: answer) as server:
        ran = await run_agent(dialect.config(server.url, **own))
    assert ended(ran) == ("protocol", False)
    assert ran.transcript.error.fix


BLANK: dict[str, list[Answer]] = {
    "chat": [
        Answer(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))
        for message in ({"content": None}, {"content": ""}, {"content": []}, {"role": "assistant"}, {})
    ]
    + [Answer(200, json.dumps({"choices": [{"message": {"content": ""}}]}))]
    + [_sent([{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"])],
    "responses": [
        Answer(200, json.dumps({"status": "completed", "output": [{"type": "message", "content": content}]}))
        for content in (None, [], "", [{"type": "output_text", "text": ""}])
    ]
    + [Answer(200, json.dumps({"status": "completed", "output": [{"type": "reasoning", "summary": []}]}))],
    "anthropic": [
        Answer(200, json.dumps({"type": "message", "content": content, "stop_reason": "end_turn"}))
        for content in ([], [{"type": "text", "text": ""}])
    ],
    "http": [Answer(200, json.dumps({"delta": ""})), _sent([{"delta": ""}, "[DONE]"])],
}


@pytest.mark.parametrize(("dialect", "answer"), [(d, a) for d in ALL for a in BLANK[d.name]])
async def test_an_answer_may_be_empty(run_agent: Any, dialect: Dialect, answer: Answer) -> None:
    ran, _ = await against(run_agent, dialect, answer)
    assert (ran.events[-1], ran.transcript.final_output) == (Done("stop", ran.transcript.model), "")


@every
@pytest.mark.parametrize(("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({}, None)])
async def test_a_rate_limit(run_agent: Any, dialect: Dialect, headers: dict[str, str], seconds: float | None) -> None:
    ran, _ = await against(run_agent, dialect, Answer(429, "{}", headers=headers))
    assert ended(ran) == ("rate_limit", True)
    assert ran.events[-1].retry_after_s == seconds


@every
async def test_nobody_listens(run_agent: Any, dialect: Dialect) -> None:
    with socket.socket() as taken:  # bound and never listening: the port is surely closed
        taken.bind(("127.0.0.1", 0))
        ran = await run_agent(dialect.config(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"))
    assert ended(ran) == ("connection", True)
    assert "nothing listens there" in ran.transcript.error.message


@every
async def test_silence_before_the_answer(run_agent: Any, dialect: Dialect) -> None:
    async with _stalling(b"") as url:
        ran = await run_agent(dialect.config(url, timeouts={"first_token": 0.1}))
    assert ended(ran) == ("timeout", True)
    assert ran.transcript.error.fix == "raise `timeouts.first_token`"


@every
async def test_silence_within_the_answer_keeps_what_came(run_agent: Any, dialect: Dialect) -> None:
    async with _stalling(b"".join(dialect.chunks(Text(["one "]), end=False))) as url:
        ran = await run_agent(dialect.config(url, timeouts={"silence": 0.1}))
    assert ended(ran) == ("timeout", True)
    assert ran.transcript.error.fix == "raise `timeouts.silence`"
    assert ran.transcript.final_output == "one "


@every
async def test_text_comes_while_the_server_still_speaks(dialect: Dialect, tmp_path: Path) -> None:
    one, whole = dialect.chunks(Text(["one "]), end=False), dialect.chunks(Text(["one ", "two"]))
    heard = asyncio.Event()
    async with _stalling(b"".join(one), heard, b"".join(whole[len(one) :])) as url:
        agent = make_agent("a", dialect.config(url), base_dir=tmp_path, env={}, permission=ALLOWED)
        said: list[str] = []
        async with asyncio.timeout(250):  # the server says no more before the first text has come
            async for event in agent.run(AgentRequest((Message("user", "hello"),))):
                if isinstance(event, TextDelta):
                    said.append(event.text)
                    heard.set()
        await agent.close()
    assert said == ["one ", "two"]


@asynccontextmanager
async def _stalling(piece: bytes, until: asyncio.Event | None = None, rest: bytes = b"") -> AsyncIterator[str]:
    """A server that begins a stream with a piece, and sends no more, or the rest once `until` is set."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + piece)
            if until is None:
                await reader.read()
            else:
                await until.wait()
                writer.write(rest)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


@every
@pytest.mark.parametrize("content_type", ["application/json", STREAM])
async def test_an_answer_of_100_mb_ends_at_its_limit(run_agent: Any, dialect: Dialect, content_type: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = Answer(200, b"", content_type, pieces=[b"x" * 100_000] * 1000, cut=True)
    ran, _ = await against(run_agent, dialect, answer, max_reply_mb=1)
    assert ran.transcript.error.message.endswith("the reply is longer than 1 MB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kilobytes


@every
async def test_wrong_utf8_is_replaced(run_agent: Any, dialect: Dialect) -> None:
    body = b"".join(dialect.chunks(Text(["a@b"]))).replace(b"@", b"\xff\xc3")
    ran, _ = await against(run_agent, dialect, Answer(200, body, STREAM))
    assert ran.transcript.error is None
    assert ran.transcript.final_output == "a\ufffd\ufffdb"


@every
async def test_any_cut_into_pieces_gives_the_same(run_agent: Any, dialect: Dialect) -> None:
    whole = b"".join(dialect.chunks(Text(["Grüße, ", "日本"])))
    for size in (3, 1000):
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        ran, _ = await against(run_agent, dialect, Answer(200, b"", STREAM, pieces=pieces))
        assert (ran.transcript.final_output, ran.transcript.error) == ("Grüße, 日本", None)


@every
async def test_an_answer_that_comes_whole_though_a_stream_was_asked_for(run_agent: Any, dialect: Dialect) -> None:
    ran, _ = await against(run_agent, dialect, dialect.whole("all of it"))
    assert (ran.transcript.final_output, ran.transcript.error) == ("all of it", None)


@every
async def test_a_stream_under_a_wrong_name_is_read(run_agent: Any, dialect: Dialect) -> None:
    answer = dialect.stream(Text(["one ", "two"]))
    answer.content_type = "text/plain"
    ran, _ = await against(run_agent, dialect, answer)
    assert (ran.transcript.final_output, ran.transcript.error) == ("one two", None)


@models
async def test_tool_calls_in_pieces_and_arguments_that_are_no_json(run_agent: Any, dialect: Dialect) -> None:
    first = dialect.stream(
        Text(["Let me see."]), Call("a", "f", ['{"x"', ": 1}"]), Call("b", "f", ["{not", " json"]), Call("c", "g")
    )
    replies = [first, dialect.stream(Text(["done"]))]
    ran, server = await against(run_agent, dialect, lambda _: replies.pop(0), tools=TOOLS)
    calls = ran.transcript.tool_calls
    assert ran.transcript.error is None
    assert [(c.arguments, c.result, c.status) for c in calls] == [
        ({"x": 1}, "from f", "ok"),
        ("{not json", "the arguments are not valid JSON", "error"),
        ({}, "there is no tool 'g'; tools: f", "error"),
    ]
    assert ran.transcript.final_output == "done"
    sent = server.requests[1].json
    assert dialect.results(sent) == [(c.id, c.result) for c in calls]
    wanted: list[Any] = ['{"x": 1}', "{not json", "{}"]
    if dialect is ANTHROPIC:  # its arguments must be objects
        wanted = [{"x": 1}, {"INVALID_JSON": "{not json"}, {}]
    assert [arguments for _, _, arguments in dialect.calls(sent)] == wanted


@pytest.mark.parametrize("dialect", [RESPONSES, ANTHROPIC], ids=["responses", "anthropic"])  # chat: test_openai_faults
async def test_ten_thousand_calls_with_the_same_id(run_agent: Any, dialect: Dialect) -> None:
    answer = dialect.stream(*[Call("same", "f", ())] * 10_000)
    replies = [answer, dialect.stream(Text(["done"]))]
    ran, server = await against(run_agent, dialect, lambda _: replies.pop(0), tools=TOOLS)
    assert ran.transcript.error is None
    assert len(ran.transcript.tool_calls) == 10_000
    assert {c.result for c in ran.transcript.tool_calls} == {"from f"}
    sent = server.requests[1].json
    ids = [one for one, _, _ in dialect.calls(sent)]
    # Servers refuse the same id twice; the transcript keeps what came.
    assert len(set(ids)) == 10_000
    assert ids == [one for one, _ in dialect.results(sent)]
    assert {c.id for c in ran.transcript.tool_calls} == {"same"}


@models
async def test_a_loop_of_calls_ends(run_agent: Any, dialect: Dialect) -> None:
    answer = dialect.stream(Call("a", "f"))
    ran, server = await against(run_agent, dialect, answer, tools=TOOLS, max_steps=3)
    assert ended(ran) == ("max_steps", False)
    assert len(server.requests) == 3


@every
async def test_the_key_goes_to_its_host_and_nowhere_else(run_agent: Any, dialect: Dialect) -> None:
    stranger: list[Request] = []
    async with ScriptedServer(lambda request: stranger.append(request) or Answer()) as other:
        answer = Answer(307, headers={"location": f"{other.url}/steal?key={KEY}"})
        ran, server = await against(run_agent, dialect, answer)
    assert ended(ran) == ("bad_request", False)
    assert "***" in ran.transcript.error.message
    assert stranger == []
    held = server.requests[0].headers
    assert held.get("authorization") == f"Bearer {KEY}" or held.get("x-api-key") == KEY


async def test_a_proxy_of_the_environment_is_used_for_other_machines(
    run_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedServer(lambda _: CHAT.stream(Text(["by proxy"]))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        ran = await run_agent(CHAT.config("http://elsewhere.invalid/v1"))
        here = await run_agent(CHAT.config(proxy.url))
    assert (ran.transcript.final_output, ran.transcript.error) == ("by proxy", None)
    assert here.transcript.error is None
    assert [one.path for one in proxy.requests] == [
        "http://elsewhere.invalid/v1/chat/completions",
        "/v1/chat/completions",
    ]


@every
async def test_a_certificate_that_nobody_vouches_for_is_refused(
    run_agent: Any, dialect: Dialect, self_signed: ssl.SSLContext
) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self_signed)
    port = server.sockets[0].getsockname()[1]
    ran = await run_agent(dialect.config(f"https://127.0.0.1:{port}/v1", api_key_env="MY_KEY"), env={"MY_KEY": KEY})
    server.close()
    assert ended(ran) == ("connection", False)
    assert "certificate" in ran.transcript.error.message
    assert asked == []


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server's side of TLS with a certificate that it signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-subj", "/CN=127.0.0.1", "-days", "2"]
    subprocess.run([*made, *names], check=True, capture_output=True, timeout=250)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context


@every
async def test_a_key_that_the_server_repeats_is_taken_out_of_the_answer(run_agent: Any, dialect: Dialect) -> None:
    pieces = [f"your key is {KEY[:9]}", KEY[9:20], f"{KEY[20:]}, and that is s", "k-"]
    ran, _ = await against(run_agent, dialect, dialect.stream(Text(pieces)))
    assert ran.transcript.final_output == "your key is ***, and that is sk-"


@every
async def test_no_cookie_ties_one_run_to_another(dialect: Dialect, tmp_path: Path) -> None:
    answer = dialect.stream(Text(["x"]))
    answer.headers = {"set-cookie": "session=1; Path=/"}
    async with ScriptedServer(lambda _: answer) as server:
        agent = make_agent("a", dialect.config(server.url), base_dir=tmp_path, env={}, permission=ALLOWED)
        for _ in range(2):
            events = [event async for event in agent.run(AgentRequest((Message("user", "hello"),)))]
            assert isinstance(events[-1], Done)
        await agent.close()
    assert "cookie" not in server.requests[1].headers


@every
async def test_a_run_that_is_cancelled_closes_its_connection(dialect: Dialect, tmp_path: Path) -> None:
    piece = dialect.chunks(Text(["on and on "]), end=False)
    answer = Answer(200, b"", STREAM, pieces=[*piece, *[piece[-1]] * 500_000])
    async with ScriptedServer(lambda _: answer) as server:
        agent = make_agent("a", dialect.config(server.url), base_dir=tmp_path, env={}, permission=ALLOWED)
        began = asyncio.Event()

        async def run() -> None:
            async for event in agent.run(AgentRequest((Message("user", "hello"),))):
                if isinstance(event, TextDelta):
                    began.set()

        task = asyncio.create_task(run())
        await asyncio.wait_for(began.wait(), 250)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(server.idle.wait(), 250)
        await agent.close()
