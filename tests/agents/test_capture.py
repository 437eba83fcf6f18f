"""`capture: model` and `cassette`: runs of programs with every call of a model and a tool."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    Captured,
    CheckReport,
    Done,
    Failed,
    Noted,
    Seen,
    TextDelta,
    UsageReported,
)
from agenteval_tui.agents.permission import NotTrustedError, permission_for
from agenteval_tui.agents.process.options import CommandOptions
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.recording.capture import WAITING, CapturingAgent
from agenteval_tui.agents.recording.cassette import of_documents, read, write
from agenteval_tui.agents.recording.exchange import Exchange, Question
from agenteval_tui.agents.recording.matching import Matcher
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.transcripts.model import Message, Transcript

ALLOWED = permission_for((), everything=True)
KEY = "planted-key-of-the-user-0001"
LOOP = """
import json, os, sys, urllib.request
def ask(messages, base=None):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")}
    address = (base or os.environ["OPENAI_BASE_URL"]) + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]
def answer(prompt, base=None):
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}]
    while said[-1]["role"] != "assistant":
        said.append(ask(said, base))
        for call in said[-1].get("tool_calls") or ():
            said.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})
    return said[-1]["content"]
"""
PROGRAM = LOOP + "\nprint(answer(sys.stdin.read()))\n"


def model(request: Request) -> Answer:
    """A model that calls a tool first."""
    said = request.json["messages"]
    message: dict[str, Any] = {"role": "assistant", "content": f"It is {said[-1]['content']}."}
    if said[-1]["role"] == "user":
        function = {"name": "get_order", "arguments": '{"order": "W1"}'}
        calls = [{"id": "c1", "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Answer(body=json.dumps({"model": "gpt-4o", "choices": choices, "usage": usage}))


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(model) as running:
        yield running


async def run(
    config: dict[str, Any], folder: Path, env: dict[str, str], *turns: str, repetition: int = 1
) -> tuple[Transcript, list[Any]]:
    """A run of an agent, turn by turn; what is stored of it, and its events."""
    agent = make_agent("tested", config, base_dir=folder, env=env, permission=ALLOWED)
    recorder, events = Recorder((Message("user", turns[0]),)), list[Any]()
    messages: tuple[Message, ...] = (Message("user", turns[0]),)
    try:
        for number, text in enumerate(turns, 1):
            if number > 1:
                messages = (*recorder.transcript().messages, Message("user", text))
                recorder.next_turn(messages[-1])
            asked = AgentRequest(messages, run="r", turn=number, test_id="status", repetition=repetition)
            async for event in agent.run(asked):
                recorder.apply(event)
                events.append(event)
    finally:
        await agent.close()
    return recorder.stored(), events


def command(folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "agent.py").write_text(PROGRAM, "utf-8")
    words = [sys.executable, "-S", "agent.py"]
    return {"kind": "command", "command": words, "input": "text", "output": "text", "capture": "model", **more}


def told(transcript: Transcript) -> list[str]:
    return [f"{one.role}: {one.content}" for one in transcript.messages]


WHOLE = ["system: Be brief.", "user: Where is it?", "assistant: ", "tool: shipped", "assistant: It is shipped."]


async def test_a_program_of_any_kind_has_every_call_in_its_transcript(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    found, events = await run(command(tmp_path), tmp_path, env, "Where is it?")
    assert told(found) == WHOLE
    (call,) = found.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == ("get_order", {"order": "W1"}, "shipped", "ok")
    assert found.final_output == "It is shipped."
    assert (found.model, found.usage.input_tokens) == ("gpt-4o", 2000)
    assert found.usage.cost == pytest.approx(2 * (1000 * 2.5 + 100 * 10) / 1e6)
    assert [one.name for one in found.timing.steps if not one.setup] == ["turn 1", "get_order", "turn 2"]
    assert all(one.started_ms + one.duration_ms <= (found.timing.total_ms or 0) + 50 for one in found.timing.steps[1:])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    (captured,) = [one for one in events if isinstance(one, Captured)]
    assert KEY not in str(captured)
    assert len(captured.tape) == 3


async def test_what_a_run_that_is_stopped_has_used_is_counted_and_its_answers_are_kept(
    server: ScriptedServer, tmp_path: Path
) -> None:
    config = command(tmp_path, cassette={"file": "c.jsonl", "on_miss": "record"})
    hangs = PROGRAM.replace("        said.append(ask(said, base))", "        said.append(ask(said, base)); HANG()")
    (tmp_path / "agent.py").write_text("import time\nHANG = lambda: time.sleep(600)\n" + hangs, "utf-8")
    agent = make_agent("tested", config, base_dir=tmp_path, env={"OPENAI_BASE_URL": server.url}, permission=ALLOWED)
    used = None
    async with asyncio.timeout(250):
        events = agent.run(AgentRequest((Message("user", "Where is it?"),), run="r", test_id="status"))
        async for event in events:
            if isinstance(event, UsageReported):
                used = event.usage
                break
        await events.aclose()  # type: ignore[attr-defined]
        await agent.close()
    assert used is not None
    assert used.cost == pytest.approx((1000 * 2.5 + 100 * 10) / 1e6)
    assert [one.answer.succeeded for one in read(tmp_path / "c.jsonl").exchanges] == [True]


async def test_embeddings_count_in_what_a_run_used(tmp_path: Path) -> None:
    def answers(request: Request) -> Answer:
        if "input" not in request.json:
            return model(request)
        usage = {"prompt_tokens": 1_000_000, "total_tokens": 1_000_000}
        return Answer(body=json.dumps({"model": "gpt-4o", "data": [], "usage": usage}))

    asks = """
body = json.dumps({"model": "gpt-4o", "input": "x"}).encode()
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/embeddings", body)).read()
"""
    config = command(tmp_path)
    (tmp_path / "agent.py").write_text(LOOP + asks + "print(answer(sys.stdin.read()))\n", "utf-8")
    async with ScriptedServer(answers) as server:
        found, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    assert found.usage.input_tokens == 1_002_000
    assert found.usage.cost == pytest.approx(2.5 + 2 * (1000 * 2.5 + 100 * 10) / 1e6)


async def test_a_python_function_is_captured_and_its_own_words_are_its_answer(
    server: ScriptedServer, tmp_path: Path
) -> None:
    source = LOOP + "\ndef respond(request):\n    return 'I say: ' + answer(request['prompt'])\n"
    (tmp_path / "my_agent.py").write_text(source, "utf-8")
    config = {"kind": "python", "callable": "my_agent:respond", "capture": "model", "reuse": True}
    found, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    assert told(found) == [*WHOLE, "assistant: I say: It is shipped."]
    assert found.final_output == "I say: It is shipped."


async def test_a_python_function_is_captured_whatever_address_its_code_has(
    server: ScriptedServer, tmp_path: Path
) -> None:
    source = LOOP + f"\ndef respond(prompt):\n    return answer(prompt, {server.url!r})\n"
    (tmp_path / "my_agent.py").write_text(source, "utf-8")
    config = {"kind": "python", "callable": "my_agent:respond", "capture": "model"}
    transcript, _ = await run(config, tmp_path, {"OPENAI_API_KEY": KEY}, "Where is it?")
    assert told(transcript) == WHOLE


SEES = """
import os, subprocess
from my_loop import answer
AT_IMPORT = os.environ.get("OPENAI_BASE_URL")
def respond(prompt):
    child = subprocess.run(["sh", "-c", "echo $OPENAI_BASE_URL"], stdout=subprocess.PIPE).stdout.decode().strip()
    seen = [name for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE") if name in os.environ]
    return f"{answer(prompt, BASE)} {AT_IMPORT} {seen} {child}"
"""


@pytest.mark.parametrize("kind", ["python", "command"])
async def test_a_python_program_sees_no_base_url_that_it_has_not(
    server: ScriptedServer, tmp_path: Path, kind: str
) -> None:
    """Libraries behave otherwise where one is set; a program in another language finds the proxy by it."""
    (tmp_path / "my_loop.py").write_text(LOOP, "utf-8")
    program = SEES.replace("BASE)", f"{server.url!r})")
    (tmp_path / "my_agent.py").write_text(
        f"{program}if __name__ == '__main__':\n    print(respond(input()))\n", "utf-8"
    )
    config: dict[str, Any] = {"kind": "python", "callable": "my_agent:respond", "capture": "model"}
    if kind == "command":
        words = [sys.executable, "my_agent.py"]
        config = {"kind": "command", "command": words, "input": "text", "output": "text", "capture": "model"}
    found, _ = await run(config, tmp_path, {"OPENAI_API_KEY": KEY}, "Where is it?")
    assert told(found)[:5] == WHOLE
    answer, _, child = found.final_output.rpartition(" ")
    assert answer == "It is shipped. None []"
    assert child.startswith("http://127.0.0.1:")
    assert server.url not in child


STREAMED = """
import http.client, json, os
from urllib.parse import urlsplit
kept = []
def respond(prompt):
    address = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(address.netloc)
    kept.append(connection)
    body = json.dumps({"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": prompt}]})
    connection.request("POST", address.path + "/chat/completions", body, {"content-type": "application/json"})
    reply = connection.getresponse()
    kept.append(reply)
    text = ""
    while (line := reply.readline().decode().strip()) != "data: [DONE]":
        for choice in json.loads(line[6:])["choices"] if line else ():
            text += choice["delta"].get("content", "")
    return text
"""


@pytest.mark.parametrize("counts", [True, False])
async def test_an_answer_that_its_server_has_not_closed_is_paid_for_like_others(tmp_path: Path, counts: bool) -> None:
    """The agent ends with the last event of the stream, and does not wait for the end of the connection."""
    closes = asyncio.Event()
    chunks: list[dict[str, Any]] = [{"model": "gpt-4o", "choices": [{"index": 0, "delta": {"content": "Yes."}}]}]
    if counts:
        chunks.append({"model": "gpt-4o", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}})
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(f"{head}{len(text):x}\r\n{text}\r\n".encode())
        await closes.wait()
        writer.close()

    (tmp_path / "my_agent.py").write_text(STREAMED, "utf-8")
    config = {"kind": "python", "callable": "my_agent:respond", "capture": "model"}
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transcript, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": url}, "Is it?")
        closes.set()
    assert told(transcript)[:2] == ["user: Is it?", "assistant: Yes."]
    expected = (1000, (1000 * 2.5 + 100 * 10) / 1e6) if counts else (None, None)
    assert (transcript.usage.input_tokens, transcript.usage.cost) == pytest.approx(expected)


async def test_each_turn_adds_to_the_transcript(server: ScriptedServer, tmp_path: Path) -> None:
    config = command(tmp_path)
    found, events = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?", "And now?")
    assert told(found)[:5] == WHOLE
    assert told(found)[5:] == ["user: And now?", "assistant: ", "tool: shipped", "assistant: It is shipped."]
    assert all(one.name in (None, "get_order") for one in found.messages)
    assert len(found.tool_calls) == 2
    assert found.usage.input_tokens == 4000
    assert sum(isinstance(one, UsageReported) for one in events) == 4


async def test_an_agent_that_is_a_server_asks_at_a_fixed_port(server: ScriptedServer, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names: dict[str, Any] = {}
    exec(LOOP, names)

    async def serve(request: Request) -> Answer:
        base = f"http://127.0.0.1:{port}/openai/v1"
        return Answer(body=json.dumps(await asyncio.to_thread(names["answer"], request.json["prompt"], base)))

    async with ScriptedServer(serve) as agent:
        config = {"kind": "http", "url": agent.url, "capture": "model", "capture_port": port}
        found, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    assert told(found)[:5] == WHOLE
    assert dict(option_problems("a", {"kind": "http", "url": "http://x", "capture": "model"})) != {}


async def test_a_cassette_answers_without_a_server_and_a_miss_is_the_runs_error(
    server: ScriptedServer, tmp_path: Path
) -> None:
    env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    _, events = await run(command(tmp_path), tmp_path, env, "Where is it?")
    (captured,) = [one for one in events if isinstance(one, Captured)]
    write(tmp_path / "c.jsonl", of_documents(captured.tape, "tape"))
    server.requests.clear()
    gone = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    config = command(tmp_path, cassette="c.jsonl", capture=None)
    for repetition in (1, 2):
        found, _ = await run(config, tmp_path, gone, "Where is it?", repetition=repetition)
        assert told(found) == WHOLE
        assert found.usage.cost == 0
    _, events = await run(config, tmp_path, gone, "Where is W2?")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "cassette"
    assert 'recorded "Where is it?", now "Where is W2?"' in events[-1].error.message
    assert server.requests == []
    live = command(tmp_path, cassette={"file": "c.jsonl", "on_miss": "live"})
    found, events = await run(live, tmp_path, env, "Where is W2?")
    assert isinstance(events[-1], Done)
    assert len(server.requests) == 2


async def test_a_cassette_is_made_by_the_runs_that_miss_it(server: ScriptedServer, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    config = command(tmp_path, cassette={"file": "new.jsonl", "on_miss": "record"})
    for text in ("Where is it?", "Where is it?", "Where is W2?"):
        await run(config, tmp_path, env, text)
    assert len(server.requests) == 4
    kept = (tmp_path / "new.jsonl").read_text("utf-8")
    assert kept.count('"session": "status#1"') == 4
    assert KEY not in kept
    found, _ = await run(command(tmp_path, cassette="new.jsonl"), tmp_path, {}, "Where is W2?")
    assert found.final_output == "It is shipped."

    # Each run as it ends: what comes after it may be killed.
    agent = make_agent("a", config, base_dir=tmp_path, env=env, permission=ALLOWED)
    request = AgentRequest((Message("user", "And W3?"),), run="r", test_id="status")
    assert [one async for one in agent.run(request)][-1].__class__ is Done
    assert (tmp_path / "new.jsonl").read_text("utf-8").count('"session": "status#1"') == 6
    await agent.close()
    assert len(read(tmp_path / "new.jsonl").exchanges) == 6


async def test_what_is_wrong_with_a_cassette_is_said(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text('{"agenteval_cassette": 7}\n', "utf-8")
    for name, words in (("none.jsonl", "there is no such cassette"), ("old.jsonl", "has version 7")):
        config = command(tmp_path, cassette=name)
        _, events = await run(config, tmp_path, {}, "Where is it?")
        assert isinstance(events[-1], Failed)
        assert words in events[-1].error.message
        report = await make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED).check()
        assert not report.ok
        assert words in report.message
    outside = {**command(tmp_path), "cassette": "../c.jsonl"}
    with pytest.raises(NotTrustedError, match=r"reads recordings from \.\./c\.jsonl"):
        make_agent("a", outside, base_dir=tmp_path, env={}, permission=permission_for(()))


async def test_a_program_that_asks_no_model_says_so(tmp_path: Path) -> None:
    config = {"kind": "command", "command": [sys.executable, "-S", "-c", "print('hi')"], "capture": "model"}
    found, events = await run(config, tmp_path, {}, "hello")
    assert found.final_output.strip() == "hi"
    assert [one.note.code for one in events if isinstance(one, Noted)] == ["text_only", "no_requests"]
    assert "it asked none" in found.notes[1].description


async def test_a_program_that_fails_first_is_not_said_to_ignore_the_address(tmp_path: Path) -> None:
    config = {"kind": "command", "command": [sys.executable, "-S", "-c", "raise SystemExit(3)"], "capture": "model"}
    _, events = await run(config, tmp_path, {}, "hello")
    assert isinstance(events[-1], Failed)
    (note,) = [event.note for event in events if isinstance(event, Noted) and event.note.code == "no_requests"]
    assert "the agent failed first" in note.description


async def test_a_program_whose_model_can_not_be_reached_names_its_server(tmp_path: Path) -> None:
    with socket.socket() as bound:  # nobody listens there
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        _, events = await run(command(tmp_path), tmp_path, {"OPENAI_BASE_URL": f"http://{address}"}, "Where is it?")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.fix.startswith(f"{address} is the server of its model, and can't be reached from here")


@pytest.mark.parametrize("capture", ["model", "auto"])
async def test_a_python_program_is_captured_whatever_address_its_code_has(
    server: ScriptedServer, tmp_path: Path, capture: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.own = 'its own'\n")
    program = f"print(own, os.environ['PYTHONPATH'].split(os.pathsep)[1:], sys.path.count({str(tmp_path / 'own')!r}))\n"
    program += f"print(answer(sys.stdin.read(), {server.url!r}))\n"
    # A program that starts another one, as `poetry run` does.
    starts = "import subprocess, sys; subprocess.run([sys.executable, 'agent.py'])"
    config = {**command(tmp_path), "command": [sys.executable, "-c", starts], "capture": capture}
    (tmp_path / "agent.py").write_text(LOOP + program)
    transcript, events = await run(
        config, tmp_path, {"PYTHONPATH": str(tmp_path / "own"), "OPENAI_API_KEY": KEY}, "Where?"
    )
    (captured,) = [event for event in events if isinstance(event, Captured)]
    exchanges = of_documents(captured.tape, "tape").exchanges
    assert [each.question.path for each in exchanges] == ["openai/v1/chat/completions"] * 2
    assert [call.name for call in transcript.tool_calls] == ["get_order"]
    printed = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert printed.startswith(f"its own ['{tmp_path / 'own'}'] 1\n")


async def test_a_program_that_names_its_own_proxy_of_the_network_keeps_its_way(
    server: ScriptedServer, tmp_path: Path
) -> None:
    config = {**command(tmp_path), "command": [sys.executable, "agent.py"], "capture": "auto"}
    program = f"import os\nos.environ['HTTPS_PROXY'] = 'http://127.0.0.1:9'\n{LOOP}"
    (tmp_path / "agent.py").write_text(f"{program}\nprint(answer(sys.stdin.read(), {server.url!r}))\n")
    transcript, events = await run(config, tmp_path, {}, "Where?")
    assert transcript.final_output.strip() == "It is shipped."
    assert not any(isinstance(event, Captured) for event in events)


NODE_LOOP = """
const messages = [{role: 'system', content: 'Be brief.'}, {role: 'user', content: 'Where is it?'}];
while (messages.at(-1).role !== 'assistant') {
  const body = JSON.stringify({model: 'm', messages});
  const headers = {'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}`};
  const reply = await ASK;
  if (!reply.url.startsWith(SERVER)) throw new Error(reply.url);
  messages.push((await reply.json()).choices[0].message);
  for (const call of messages.at(-1).tool_calls ?? [])
    messages.push({role: 'tool', tool_call_id: call.id, content: 'shipped'});
}
console.log(process.env.NODE_OPTIONS.split(' ')[0], messages.at(-1).content);
"""


@pytest.mark.sweep("capture")
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.parametrize("capture", ["model", "auto"])
@pytest.mark.parametrize(
    "ask",
    [
        "fetch(SERVER + '/chat/completions', {method: 'POST', headers, body})",
        "fetch(new Request(new URL(SERVER + '/chat/completions'), {method: 'post', headers, body}))",
    ],
)
async def test_a_program_for_node_is_captured_whatever_address_its_code_has(
    server: ScriptedServer, tmp_path: Path, capture: str, ask: str
) -> None:
    (tmp_path / "agent.mjs").write_text(f"const SERVER = {server.url!r};{NODE_LOOP.replace('ASK', ask)}")
    config = {**command(tmp_path), "command": ["node", "agent.mjs"], "capture": capture}
    env = {"OPENAI_API_KEY": KEY, "NODE_OPTIONS": "--no-warnings", "PATH": os.environ["PATH"]}
    transcript, events = await run(config, tmp_path, env, "Where is it?")
    assert transcript.error is None
    assert told(transcript)[: len(WHOLE)] == WHOLE
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "--no-warnings It is shipped."


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_what_node_asks_that_is_no_models_goes_to_its_server(server: ScriptedServer, tmp_path: Path) -> None:
    code = f"await fetch({server.url + '/responses'!r}, {{method: 'POST', body: '{{}}'}}).catch(() => 0);"
    config = {**command(tmp_path), "command": ["node", "-e", f"(async () => {{{code} console.log('done')}})()"]}
    transcript, events = await run(config, tmp_path, {"PATH": os.environ["PATH"]}, "Where is it?")
    assert transcript.final_output.strip() == "done"
    assert not any(isinstance(event, Captured) for event in events)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("program", "options", "code"),
    [
        ("while True:\n    print('Bot:', answer(input('You: ')))\n", {"answer": "model"}, ""),
        ("while True:\n    print('Bot:', answer(input('You: ')))\n", {}, "input_ended"),
        ("name = input('Name: ')\nprint(answer(input('You: ')))\n", {"answer": "model"}, "input_ended"),
        ("while True:\n    print('Bot:', answer(input('You: ')))\n    1 / 0\n", {"answer": "model"}, "exit"),
    ],
)
async def test_a_loop_that_ends_for_want_of_a_second_question_has_answered(
    server: ScriptedServer, tmp_path: Path, program: str, options: dict[str, Any], code: str
) -> None:
    config = command(tmp_path, **options)
    (tmp_path / "agent.py").write_text(LOOP + program)
    env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    transcript, _ = await run(config, tmp_path, env, "Where is it?")
    assert (transcript.error.code if transcript.error is not None else "") == code
    if not code:
        assert transcript.final_output == "It is shipped."
        assert [note.code for note in transcript.notes] == ["input_ended"]


@pytest.mark.parametrize(
    ("program", "code", "what"),
    [
        ("print('**Shop**', answer('Where is it?').upper().replace(' ', chr(10)))\n", "", ""),
        ("answer('Where is it?')\nprint('Saved.')\n", "not_printed", ""),
        ("answer('Where is it?')\nprint()\n", "nothing_printed", ""),
        (
            "ask([{'role': 'user', 'content': 'Where is it?'}])\nprint('It is shipped.')\n",
            "answer_is_call",
            "get_order",
        ),
    ],
)
async def test_an_answer_of_the_model_that_the_program_does_not_give_is_noted(
    server: ScriptedServer, tmp_path: Path, program: str, code: str, what: str
) -> None:
    config = command(tmp_path, answer="model")
    (tmp_path / "agent.py").write_text(LOOP + program)
    transcript, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}, "Where is it?")
    assert transcript.error is None
    assert [(note.code, note.what) for note in transcript.notes] == ([(code, what)] if code else [])
    printed, _ = await run({**config, "answer": "printed"}, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    assert printed.notes == ()


@pytest.mark.parametrize(
    ("program", "given", "codes"),
    [
        ("print('Shop v1\\n\\n**It is', 'shipped.**' if answer('Where is it?') else '')\n", "It is shipped.", []),
        ("while True:\n    print('Bot:', answer(input('You: ')))\n", "It is shipped.", ["input_ended"]),
        ("answer('Where is it?')\nprint('Saved.')\n", "Saved.", ["printed_answer"]),
        ("print(answer('Where is it?')[:5])\n", "It is", ["printed_answer"]),
        ("print(answer('Where is it?').upper())\n", "IT IS SHIPPED.", ["printed_answer"]),
        (
            "while True:\n    print('Bot:', answer(input('You: '))[:2])\n",
            "You: Bot: It\nYou:",
            ["input_ended", "printed_answer"],
        ),
        ("answer('Where is it?')\nprint()\n", "It is shipped.", ["nothing_printed"]),
        ("ask([{'role': 'user', 'content': 'Where is it?'}])\nprint('At home.')\n", "At home.", ["printed_answer"]),
    ],
)
async def test_the_answer_is_what_the_model_said_last_if_that_is_printed(
    server: ScriptedServer, tmp_path: Path, program: str, given: str, codes: list[str]
) -> None:
    config = command(tmp_path, answer="auto")
    (tmp_path / "agent.py").write_text(LOOP + program)
    transcript, _ = await run(config, tmp_path, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}, "Where is it?")
    assert transcript.error is None
    assert (transcript.final_output.strip(), [note.code for note in transcript.notes]) == (given, codes)


async def test_runs_at_the_same_time_are_told_apart(server: ScriptedServer, tmp_path: Path) -> None:
    agent = make_agent(
        "a", command(tmp_path), base_dir=tmp_path, env={"OPENAI_BASE_URL": server.url}, permission=ALLOWED
    )

    async def one(number: int) -> Transcript:
        recorder = Recorder((Message("user", f"Order {number}?"),))
        async for event in agent.run(AgentRequest((Message("user", f"Order {number}?"),), run=f"r{number}")):
            recorder.apply(event)
        return recorder.stored()

    found = await asyncio.gather(*(one(number) for number in range(3)))
    await agent.close()
    assert [told(each)[1] for each in found] == ["user: Order 0?", "user: Order 1?", "user: Order 2?"]
    assert all(len(each.messages) == 5 for each in found)


async def test_what_it_asks_is_seen_while_it_works(server: ScriptedServer, tmp_path: Path) -> None:
    config = command(tmp_path)
    ends = "import time\nprint(answer(sys.stdin.read()))\nwhile not os.path.exists('seen'): time.sleep(0.01)\n"
    (tmp_path / "agent.py").write_text(LOOP + ends, "utf-8")
    agent = make_agent("a", config, base_dir=tmp_path, env={"OPENAI_BASE_URL": server.url}, permission=ALLOWED)
    events = []
    async for event in agent.run(AgentRequest((Message("user", "Where is it?"),), run="r")):
        events.append(event)
        if isinstance(event, Seen) and told(event.transcript) == WHOLE:
            (tmp_path / "seen").touch()
    await agent.close()
    assert isinstance(events[-1], Done)
    assert [type(one) for one in events].count(Captured) == 1


class _Talkative:
    """An agent that says more than anyone reads, and then ends."""

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces
        self.ended = asyncio.Event()

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        try:
            for _ in range(self._pieces):
                yield TextDelta("x")
            yield Done()
        finally:
            self.ended.set()

    async def check(self, thorough: bool = False) -> CheckReport:
        return CheckReport(True, "")

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("taken", range(1, 5))
async def test_a_run_that_nobody_reads_to_its_end_ends_all_the_same(tmp_path: Path, taken: int) -> None:
    config = command(tmp_path)
    inner = _Talkative(WAITING + 1)  # how much of it waits to be read when it ends depends on how much was read
    agent = CapturingAgent(inner, AgentSetup("a", config, tmp_path), CommandOptions.model_validate(config))
    events = agent.run(AgentRequest((Message("user", "Hello"),), run="r"))
    for _ in range(taken):
        assert isinstance(await anext(events), TextDelta)
        for _ in range(3):
            await asyncio.sleep(0)  # it says the next thing
    async with asyncio.timeout(250):
        await events.aclose()  # type: ignore[attr-defined]
        await inner.ended.wait()
    await agent.close()


class _Cancelled(_Talkative):
    """An agent that awaits something of its own that was cancelled."""

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("x")
        awaited = asyncio.get_running_loop().create_future()
        awaited.cancel()
        await awaited


async def test_an_agent_whose_own_code_is_cancelled_ends_its_run(tmp_path: Path) -> None:
    config = command(tmp_path)
    agent = CapturingAgent(_Cancelled(1), AgentSetup("a", config, tmp_path), CommandOptions.model_validate(config))
    events = agent.run(AgentRequest((Message("user", "Hello"),), run="r"))
    assert await anext(events) == TextDelta("x")
    with pytest.raises(RuntimeError, match="was cancelled"):
        await asyncio.wait_for(anext(events), 250)
    await agent.close()


async def test_what_was_asked_is_forgotten_when_the_run_is_over(server: ScriptedServer, tmp_path: Path) -> None:
    before = {id(one) for one in gc.get_objects() if isinstance(one, Exchange)}

    def kept() -> list[Exchange]:
        gc.collect()
        return [one for one in gc.get_objects() if isinstance(one, Exchange) and id(one) not in before]

    env = {"OPENAI_BASE_URL": server.url}
    agent = make_agent("a", command(tmp_path), base_dir=tmp_path, env=env, permission=ALLOWED)
    async for _ in agent.run(AgentRequest((Message("user", "Where is it?"),), run="r")):
        pass
    agent.release("r")  # type: ignore[attr-defined]
    try:
        async with asyncio.timeout(250):
            while kept():
                await asyncio.sleep(0.2)  # its last connection ends; to look costs more than to wait
    finally:
        await agent.close()


async def test_all_runs_share_what_was_looked_up_in_the_cassette(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each run of a large cassette would hold up all others while it looks through it."""
    recorded = command(tmp_path, cassette={"file": "c.jsonl", "on_miss": "record"})
    await run(recorded, tmp_path, {"OPENAI_BASE_URL": server.url}, "Where is it?")
    looked_at, key = [], Matcher.key

    def counted(matcher: Matcher, question: Question) -> str:
        looked_at.append(question.path)
        return key(matcher, question)

    monkeypatch.setattr(Matcher, "key", counted)
    replayed = command(tmp_path, cassette={"file": "c.jsonl"})
    agent = make_agent("a", replayed, base_dir=tmp_path, env={"OPENAI_BASE_URL": server.url}, permission=ALLOWED)
    for number in range(3):
        events = [one async for one in agent.run(AgentRequest((Message("user", "Where is it?"),), run=f"r{number}"))]
        assert isinstance(events[-1], Done)
    await agent.close()
    assert len(looked_at) == 2 + 3 * 2, "the two requests of the cassette, and those of the runs"
