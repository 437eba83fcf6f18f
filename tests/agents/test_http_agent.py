"""The kind `http`: requests made of templates, replies read with JMESPath."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.transcripts.model import Message, ToolCall, Usage

ALLOWED = permission_for((), everything=True)


KEY = "sk-very-secret-0123456789"


def says(value: Any, **more: Any) -> Answer:
    return Answer(body=value if isinstance(value, str | bytes) else json.dumps(value), **more)


async def ask(run_agent: Any, reply: Any, /, *, request: Any = None, **options: Any) -> tuple[Any, list[Request]]:
    handler = reply if callable(reply) else lambda _: reply
    async with ScriptedServer(handler) as server:
        config = {"kind": "http", "url": f"{server.url}/ask", **options}
        config["url"] = config["url"].replace("SERVER", server.url)
        return await run_agent(config, env={"MY_KEY": KEY}, **(request or {})), server.requests


async def test_a_request_made_of_templates(run_agent: Any) -> None:
    body = {
        "q": "{{ prompt }}",
        "line": "turn {{ turn }} of {{ test }}",
        "turn": "{{turn}}",
        "seed": "{{ seed + 1 }}",
        "history": "{{ messages[:-1] }}",
        "deep": [{"first": "{{ context.rows[0] }}", "none": "{{ session }}", "fixed": 1.5}],
        "literal": '{{ "{{" }}',
        "some": "{% for m in messages %}{{ m.role }} {% endfor %}",
        "who": "{{ variables.customer }}",
        "all": "{{ variables }}",
    }
    messages = (
        Message("user", "one"),
        Message("assistant", "two", tool_calls=(0,)),
        Message("tool", "F", tool_call=0),
        Message("user", 'say "hi"\n'),
    )
    _, (request,) = await ask(
        run_agent,
        says({"answer": "x"}),
        body=body,
        answer="answer",
        url="SERVER/{{ test }}/{{ prompt }}?fixed=1",
        query={"run": "{{run}}"},
        headers={"X-Run": "{{ run }}"},
        request={
            "messages": messages,
            "tool_calls": (ToolCall("c", "f", {"x": 1}),),
            "test_id": "a/b",
            "run": "r&1",
            "turn": 2,
            "seed": 41,
            "context": {"rows": [{"x": None}]},
            "variables": {"customer": "Ana", "n": 5},
        },
    )
    assert request.path == "/v1/a%2Fb/say%20%22hi%22%0A?fixed=1&run=r%261"
    assert request.headers["x-run"] == "r&1"
    assert request.headers["content-type"] == "application/json"
    sent = request.json
    history = sent.pop("history")
    assert [one["role"] for one in history] == ["user", "assistant", "tool"]
    assert history[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert sent == {
        "q": 'say "hi"\n',
        "line": "turn 2 of a/b",
        "turn": 2,
        "seed": 42,
        "deep": [{"first": {"x": None}, "none": None, "fixed": 1.5}],
        "literal": "{{",
        "some": "user assistant tool user ",
        "who": "Ana",
        "all": {"customer": "Ana", "n": 5},
    }


@pytest.mark.parametrize(
    ("options", "header", "value"),
    [
        ({}, "authorization", f"Bearer {KEY}"),
        ({"api_key_scheme": "Token"}, "authorization", f"Token {KEY}"),
        ({"api_key_header": "X-Api-Key"}, "x-api-key", KEY),
    ],
)
async def test_the_key(run_agent: Any, options: dict[str, str], header: str, value: str) -> None:
    _, (request,) = await ask(run_agent, says("ok"), api_key_env="MY_KEY", **options)
    assert request.headers[header] == value


async def test_a_secret_that_was_put_into_the_configuration_is_not_repeated(run_agent: Any) -> None:
    answer = says({"error": {"message": f"no such token: {KEY}"}}, status=400)
    ran, _ = await ask(run_agent, answer, body={"token": KEY}, url=f"SERVER/x?k={KEY}")
    assert ran.transcript.error.message.endswith("no such token: ***")
    assert KEY not in repr(ran.events)


async def test_text_instead_of_an_object_and_no_body_at_all(run_agent: Any) -> None:
    ran, (request,) = await ask(run_agent, says("just text", content_type="text/plain"), body="{{ prompt }}!")
    assert (request.body, request.headers["content-type"]) == (b"hello!", "text/plain; charset=utf-8")
    assert ran.transcript.final_output == "just text"
    _, (request,) = await ask(run_agent, says("x"), method="GET", url="SERVER/q?text={{ prompt }}")
    assert (request.method, request.path, request.body) == ("GET", "/v1/q?text=hello", b"")


async def test_all_that_a_reply_may_hold(run_agent: Any) -> None:
    reply = {
        "out": {"text": "Two left.", "why": "I looked.", "end": "done", "by": "shop-bot 3"},
        "steps": [
            {"tool": "stock", "with": {"article": "Pan"}, "gave": {"count": 2}, "no": 7},
            {"tool": "mail", "with": "{broken", "gave": "lost", "bad": True},
            {"tool": "later", "with": None},
        ],
        "bill": {"in": 12, "out": 3, "usd": 0.25},
    }
    ran, _ = await ask(
        run_agent,
        says(reply, status=201),
        answer="out.text",
        reasoning="out.why",
        finish_reason="out.end",
        model="out.by",
        tool_calls="steps",
        tool_call={"name": "tool", "arguments": "with", "result": "gave", "id": "no", "error": "bad"},
        usage={"input": "bill.in", "output": "bill.out", "cost": "bill.usd", "cached": "bill.none"},
    )
    transcript = ran.transcript
    assert transcript.error is None
    assert [(c.id, c.name, c.arguments, c.result, c.status, c.malformed) for c in transcript.tool_calls] == [
        ("7", "stock", {"article": "Pan"}, '{"count": 2}', "ok", False),
        ("call_1", "mail", "{broken", "lost", "error", True),
        ("call_2", "later", {}, None, "pending", False),
    ]
    assert (transcript.final_output, transcript.finish_reason, transcript.model) == ("Two left.", "done", "shop-bot 3")
    assert transcript.usage == Usage(12, 3, cost=0.25)
    assert [m.reasoning for m in transcript.messages if m.reasoning] == ["I looked."]


async def test_calls_as_openai_writes_them_need_no_paths(run_agent: Any) -> None:
    calls = [{"id": "c1", "function": {"name": "f", "arguments": '{"x": 1}'}}]
    reply = {"message": {"content": None, "tool_calls": calls}, "usage": {"prompt_tokens": 2, "completion_tokens": 1}}
    ran, _ = await ask(run_agent, says(reply), answer="message.content", tool_calls="message.tool_calls")
    assert ran.transcript.error is None
    assert [(c.id, c.name, c.arguments) for c in ran.transcript.tool_calls] == [("c1", "f", {"x": 1})]
    assert ran.transcript.usage == Usage(2, 1)


@pytest.mark.parametrize(
    ("reply", "options", "said"),
    [
        (
            {"data": {"msg": "x", "id": 1}},
            {"answer": "data.text"},
            "nothing at `answer` (`data.text`); `data` leads on, and there it has the keys msg, id",
        ),
        ({"a": 1}, {"answer": "b"}, "the reply has nothing at `answer` (`b`); it has the keys a"),
        ([1, 2], {"answer": "b"}, "nothing at `answer` (`b`); it is a list of 2"),
        ({"a": 1}, {"answer": "a", "tool_calls": "a"}, "`tool_calls` gives a number where an object is due"),
        ({"a": [{"n": 1}]}, {"tool_calls": "a"}, "a call has no name at `name || function.name`; it has the keys n"),
        ("<html>", {"answer": "b"}, "not JSON, where `answer` shall be found (a page without any text)"),
        ({"a": 1}, {"answer": "length(a)"}, "`answer`: `length(a)` cannot be applied"),
        ({"a": 1}, {"answer": "|".join(["[@,@]"] * 40)}, "a value of more than 200,000 parts"),
    ],
)
async def test_a_reply_that_has_not_what_is_looked_for(
    run_agent: Any, reply: Any, options: dict[str, str], said: str
) -> None:
    ran, _ = await ask(run_agent, says(reply), **options)
    error = ran.transcript.error
    assert error is not None
    assert error.kind == "protocol"
    assert said in error.message
    assert "JMESPath" in error.fix


async def test_an_answer_that_is_no_text_is_json(run_agent: Any) -> None:
    for value, text in (({"a": "ü"}, '{"a": "ü"}'), (0, "0"), ("", "")):
        ran, _ = await ask(run_agent, says({"answer": value}), answer="answer")
        assert (ran.transcript.error, ran.transcript.final_output) == (None, text)


async def test_an_error_in_a_reply_that_calls_itself_well(run_agent: Any) -> None:
    ran, _ = await ask(run_agent, says({"error": "out of paper", "answer": "x"}), answer="answer", error="error")
    assert ran.transcript.error.message.endswith("out of paper")
    ran, _ = await ask(run_agent, says({"error": None, "answer": "x"}), answer="answer", error="error")
    assert ran.transcript.error is None


async def test_a_session_goes_from_one_turn_to_the_next_and_no_further(tmp_path: Path) -> None:
    numbers = iter(range(1, 10))
    async with ScriptedServer(lambda _: says({"answer": "x", "sid": f"s{next(numbers)}"})) as server:
        config = {
            "kind": "http",
            "url": f"{server.url}/{{{{ session or 'new' }}}}",
            "answer": "answer",
            "session": "sid",
        }
        agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)
        for run, turn in (("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 1)):
            request = AgentRequest((Message("user", "x"),), run=run, turn=turn)
            assert [event async for event in agent.run(request)]
        await agent.close()
    # The last one is a new attempt at the first turn.
    assert [one.path for one in server.requests] == ["/v1/new", "/v1/new", "/v1/s1", "/v1/s2", "/v1/new"]


SSE = 'event: start\ndata: {"sid": 1}\n\ndata: {"d": "one "}\n\ndata: {"d": "two", "tokens": 5}\n\n'


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (SSE + "data: [DONE]\n\ndata: {broken\n\n", {"stream": "sse", "delta": "d"}),
        (SSE, {"stream": "sse", "delta": "d"}),
        (SSE + "event: end\ndata: {}\n\ndata: {broken\n\n", {"stream": "sse", "delta": "d", "done": "end"}),
        (SSE + 'data: {"all": "one two"}\n\n', {"stream": "sse", "answer": "all"}),
        ("data: one \n\ndata: two\n\ndata: [DONE]\n\n", {"stream": "sse"}),
        ('{"d": "one "}\r\n\r\n{"d": "two"}', {"stream": "jsonl", "delta": "d"}),
        ('{"d": "x"}\n{"all": "one two"}\n', {"stream": "jsonl", "answer": "all"}),
    ],
)
async def test_streams(run_agent: Any, body: str, options: dict[str, str]) -> None:
    kind = "text/event-stream" if options["stream"] == "sse" else "application/x-ndjson"
    pieces = [body.encode()[i : i + 5] for i in range(0, len(body), 5)]
    ran, _ = await ask(run_agent, Answer(200, b"", kind, pieces=pieces), **options, usage={"output": "tokens"})
    assert ran.transcript.error is None
    assert ran.transcript.final_output.strip() == "one two"
    assert ran.transcript.usage.output_tokens == (5 if "tokens" in body else None)


async def test_an_event_that_is_no_json_where_json_is_due(run_agent: Any) -> None:
    ran, _ = await ask(
        run_agent, Answer(body="data: oh\n\n", content_type="text/event-stream"), stream="sse", delta="d"
    )
    assert ran.transcript.error.kind == "protocol"
    assert "an event that is not JSON ('oh')" in ran.transcript.error.message
    # Decisions about this cause are stored with the words of before.
    assert ran.transcript.error.fields["fingerprint"].endswith("reply: an event that is not JSON (…)")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "http://{{ prompt }}/x"}, "the host in `url` can't be a template"),
        ({"url": "ftp://h/x"}, "`url` must begin with http:// or https:// and a host"),
        ({"body": {"a": "{{ promt }}"}}, '`body.a`: the variable "promt" is not known (did you mean `prompt`?)'),
        ({"body": {"a": "{{ prompt "}}, "`body.a`: this template has an error"),
        ({"answer": "a["}, "`answer`: not a JMESPath expression"),
        ({"answer": "a" * 2000}, "`answer` is longer than 1000 characters"),
        ({"tool_call": {"name": "]"}}, "`tool_call.name`: not a JMESPath expression"),
        ({"tool_call": {"nam": "x"}}, "unknown option `tool_call.nam`, did you mean `name`?"),
        ({"delta": "d"}, "`delta` needs `stream: sse` or `stream: jsonl`"),
        ({"stream": "ws"}, "option `stream` must be 'none', 'sse' or 'jsonl', not 'ws'"),
    ],
)
def test_wrong_options_are_said_before_anything_is_sent(options: dict[str, Any], said: str) -> None:
    ((_, message),) = option_problems("a", {"kind": "http", "url": "http://h/x", **options})
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"body": {"a": "{{ context.nothing }}"}}, '`body.a`: context has no "nothing"'),
        ({"headers": {"X-A": "{{ prompt }}"}}, "the header X-A would have several lines"),
        ({"body": {"a": "{{ 'x' * 100000000 }}"}}, "`body.a`: this template makes more than 10,000,000 characters"),
    ],
)
async def test_templates_that_cannot_be_filled(run_agent: Any, options: dict[str, Any], said: str) -> None:
    ran, requests = await ask(run_agent, says("x"), request={"messages": (Message("user", "a\nb"),)}, **options)
    assert requests == []
    assert ran.transcript.error.kind == "bad_request"
    assert ran.transcript.error.message.startswith(said)


JSON_LINES = '{"d": "one"}\n{"d": "two"}\n'


@pytest.mark.parametrize(
    ("body", "kind", "options", "wanted"),
    [
        (SSE, "text/event-stream", {}, "sse"),
        (SSE, "text/event-stream; charset=utf-8", {"answer": "d"}, "sse"),
        (SSE, "text/plain", {}, "sse"),
        (SSE, "application/json", {"answer": "d"}, "sse"),
        (SSE.replace("\n", "\r\n"), "text/event-stream", {}, "sse"),
        (": hello\n\ndata: oh\n\n", "text/event-stream", {}, "sse"),
        ("data: [DONE]\n\n", "text/event-stream", {}, "sse"),
        ("data:one\n\ndata:two\n\n", "text/event-stream", {"tool_calls": "t"}, "sse"),
        (JSON_LINES, "application/x-ndjson", {}, "jsonl"),
        (JSON_LINES, "text/plain", {}, "jsonl"),
        (JSON_LINES, "application/json", {"answer": "d"}, "jsonl"),
        ('{"d": "one"}', "application/jsonl", {}, "jsonl"),
        # Some programs end a line at such a character; neither format does.
        ('{"d": "one\u2028"}\n{"d": "two\x85"}\n', "text/plain", {}, "jsonl"),
        ("data: one\u2028two\n\n", "text/plain", {}, "sse"),
        (JSON_LINES, "application/x-ndjson", {"stream": "sse", "delta": "d"}, "jsonl"),
        (JSON_LINES, "text/event-stream", {"stream": "sse", "delta": "d"}, "jsonl"),
        (JSON_LINES, "text/event-stream", {"stream": "sse"}, "jsonl"),
        (SSE, "text/event-stream", {"stream": "jsonl", "delta": "d"}, "sse"),
        (SSE, "application/x-ndjson", {"stream": "jsonl"}, "sse"),
    ],
)
async def test_a_stream_that_is_not_read_as_one(
    run_agent: Any, body: str, kind: str, options: dict[str, str], wanted: str
) -> None:
    ran, _ = await ask(run_agent, Answer(200, body, kind), **options)
    error = ran.transcript.error
    assert (error.kind, error.fix.startswith(f"set `stream: {wanted}`")) == ("protocol", True), error


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("one line\nand another", "text/plain"),
        ('{"d": "one"}', "application/json"),
        ('{"d": "one"}\n\n', "text/plain"),
        ("data: of three kinds\nfirst", "text/plain"),
        ('[{"d": 1}]\n[2]', "text/plain"),
        ('{\n"d": 1\n}', "application/json"),
        ("<html> is a tag", "text/plain"),
        ("1\n2\n", "text/plain"),
    ],
)
async def test_what_looks_a_little_like_a_stream_is_an_answer(run_agent: Any, body: str, kind: str) -> None:
    ran, _ = await ask(run_agent, Answer(200, body, kind))
    assert (ran.transcript.error, ran.transcript.final_output) == (None, body)


# Calls and results in events of their own; `tool` and `done` are what the endpoint calls them.
APART: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "projections, by id": (
        [
            {"tool": {"id": "1", "name": "f", "arguments": {"x": 1}}},
            {"tool": {"id": "2", "name": "g", "arguments": {}}},
            {"done": {"id": "2", "result": "G"}},
            {"done": {"id": "1", "result": {"a": 1}, "error": True}},
        ],
        {"tool_calls": "[tool]", "tool_results": "[done]"},
    ),
    "objects, by id": (
        [
            {"tool": {"id": 1, "name": "f", "arguments": {"x": 1}}},
            {"tool": {"id": 2, "name": "g"}},
            {"done": {"tool_call_id": 2, "content": "G"}},
            {"done": {"tool_call_id": 1, "content": {"a": 1}, "is_error": True}},
        ],
        {"tool_calls": "tool", "tool_results": "done"},
    ),
    "made of pieces, by name": (
        [
            {"call": "f", "with": {"x": 1}},
            {"call": "g"},
            {"of": "g", "gave": "G"},
            {"of": "f", "gave": {"a": 1}, "bad": 1},
        ],
        {
            "tool_calls": "{name: call, arguments: with}",
            "tool_results": "{name: of, result: gave, error: bad}",
        },
    ),
    "in order": (
        [
            {"calls": [{"name": "f", "args": {"x": 1}}, {"name": "g"}]},
            {"done": [{"result": {"a": 1}, "error": "it failed"}, {"result": "G"}]},
            {"done": []},
        ],
        {"tool_calls": "calls", "tool_results": "done"},
    ),
    "by type": (
        [
            {"type": "call", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "call", "id": "b", "name": "g", "input": None},
            {"type": "result", "id": "a", "output": {"a": 1}, "error": True},
            {"type": "result", "id": "a", "output": {"a": 1}, "error": True},
            {"type": "result", "id": "b", "output": "G"},
        ],
        {"tool_calls": "[@][?type=='call']", "tool_results": "[@][?type=='result']"},
    ),
}


@pytest.mark.parametrize("stream", ["sse", "jsonl"])
@pytest.mark.parametrize("name", APART)
async def test_results_in_events_of_their_own(run_agent: Any, name: str, stream: str) -> None:
    events, options = APART[name]
    events = [{"d": "so "}, *events, {"d": "it is"}]
    lines = [f"data: {json.dumps(one)}\n\n" if stream == "sse" else f"{json.dumps(one)}\n" for one in events]
    kind = "text/event-stream" if stream == "sse" else "application/x-ndjson"
    ran, _ = await ask(run_agent, Answer(200, "".join(lines), kind), stream=stream, delta="d", **options)
    transcript = ran.transcript
    assert (transcript.error, transcript.final_output) == (None, "it is")
    assert [(c.name, c.arguments, c.result, c.status) for c in transcript.tool_calls] == [
        ("f", {"x": 1}, '{"a": 1}', "error"),
        ("g", {}, "G", "ok"),
    ]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([{"id": "9", "result": "x"}], "for the call '9'"),
        ([{"name": "h", "result": "x"}], "for the call of h"),
        ([{"id": "1", "result": "x"}, {"id": "1", "result": "y"}], "a second result for the call '1'"),
        ([42], "`tool_results` gives a number where an object is due"),
    ],
)
async def test_results_of_no_call_are_said(run_agent: Any, results: list[Any], said: str) -> None:
    reply = says({"calls": [{"id": "1", "name": "f"}], "results": results, "a": "ok"})
    ran, _ = await ask(run_agent, reply, answer="a", tool_calls="calls", tool_results="results")
    assert ran.transcript.error.kind == "protocol"
    assert said in ran.transcript.error.message


@pytest.mark.parametrize("result", [False, "", 0, [], {}, True, "x"])
@pytest.mark.parametrize("apart", [False, True])
async def test_what_a_tool_gave_stays_what_it_is(run_agent: Any, result: Any, apart: bool) -> None:
    call = {"id": "c", "name": "f", "arguments": {}, "output": None}
    told = {"tool_results": [{"id": "c", "content": result}]} if apart else {}
    reply = {"answer": "done", "calls": [call if apart else {**call, "output": result}], **told}
    paths = {"answer": "answer", "tool_calls": "calls", **({"tool_results": "tool_results"} if apart else {})}
    async with ScriptedServer(lambda _: Answer(body=json.dumps(reply))) as server:
        ran = await run_agent({"kind": "http", "url": server.url, **paths})
    made = ran.transcript.tool_calls[0]
    text = result if isinstance(result, str) else json.dumps(result)
    assert (made.result, made.status, made.arguments) == (text, "ok", {})
