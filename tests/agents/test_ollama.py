"""Programs that ask Ollama by its own API are recorded like those that speak OpenAI's."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Answer as Sent
from scripted import Request, ScriptedServer
from test_auto_capture import captured_of, paths_of, python
from test_capture import WHOLE, run, told
from test_node_clients import environment, program

from agenteval_tui.agents.recording.cassette import of_documents
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import LINES, Answer, Exchange, Question, events_of
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.recording.playback import OrderedPlayback
from agenteval_tui.agents.recording.protocols import read_reply, read_request, used_by
from tests.agents.conftest import skip_without

CHAT, GENERATE = Question("POST", "ollama/api/chat"), Question("POST", "ollama/api/generate")
CALL = {"function": {"name": "get_order", "arguments": {"order": "W1"}}}
END = {"done": True, "done_reason": "stop", "prompt_eval_count": 1000, "eval_count": 100}


def lines_of(*chunks: Any) -> tuple[str, ...]:
    return tuple(json.dumps({"model": "llama3.2", **chunk}) + "\n" for chunk in chunks)


def answer_of(*chunks: Any) -> Answer:
    return Answer(200, LINES, lines_of(*chunks))


def ollama(request: Request) -> Sent:
    """Ollama, with a model that calls a tool first."""
    messages = request.json["messages"]
    parts: list[dict[str, Any]] = [{"content": "It is "}, {"content": f"{messages[-1]['content']}."}]
    if messages[-1]["role"] == "user":
        parts = [{"content": "", "tool_calls": [CALL]}]
    if request.json.get("stream") is False:
        whole = {"role": "assistant", **parts[0], "content": "".join(part["content"] for part in parts)}
        return Sent(body=json.dumps({"model": "llama3.2", "message": whole, **END}))
    chunks = [{"message": {"role": "assistant", **part}, "done": False} for part in parts]
    lines = lines_of(*chunks, {"message": {"role": "assistant", "content": ""}, **END})
    return Sent(content_type=LINES, pieces=[line.encode() for line in lines])


def test_a_stream_of_lines_is_one_message_with_its_figures() -> None:
    reply = read_reply(
        CHAT,
        answer_of(
            {"message": {"role": "assistant", "thinking": "Which "}},
            {"message": {"role": "assistant", "thinking": "order?", "content": ""}},
            {"message": {"role": "assistant", "content": "I "}},
            {"message": {"role": "assistant", "content": "look.", "tool_calls": [CALL]}},
            {"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}},
            {"message": {"role": "assistant", "content": ""}, **END},
        ),
    )
    assert reply.message is not None
    assert (reply.message["content"], reply.message["reasoning"]) == ("I look.", "Which order?")
    function = {"name": "get_order", "arguments": '{"order": "W1"}'}
    assert [call["function"] for call in reply.message["tool_calls"]] == [function, function]
    assert (reply.model, reply.finish_reason, reply.error) == ("llama3.2", "tool_calls", "")
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (1000, 100, 0.0)


def test_one_object_and_a_generated_text_say_the_same() -> None:
    chat = {"model": "m", "message": {"role": "assistant", "content": "Hi."}, **END, "done_reason": "length"}
    generated = {"model": "m", "response": "Hi.", **END, "done_reason": "length"}
    for question, body in ((CHAT, chat), (GENERATE, generated)):
        reply = read_reply(question, Answer(200, "application/json", body))
        assert reply.message == {"role": "assistant", "content": "Hi."}
        assert (reply.finish_reason, used_by(question, Answer(200, "application/json", body))) == (
            "length",
            ("m", reply.usage),
        )


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(404, "application/json", {"error": "model 'x' not found"}), "HTTP 404: model 'x' not found"),
        (answer_of({"message": {"content": "I "}}, {"error": "out of memory"}), "out of memory"),
        (Answer(200, "application/json", {"status": "ok"}), 'an object without `message` ({"status": "ok"})'),
        (Answer(200, LINES, ()), "a reply without an answer"),
    ],
)
def test_what_is_no_answer_says_why(answer: Answer, error: str) -> None:
    assert read_reply(CHAT, answer).error == error


def test_a_stream_that_breaks_off_was_cut() -> None:
    reply = read_reply(CHAT, Answer(200, LINES, lines_of({"message": {"content": "I "}}), whole=False))
    assert (reply.error, reply.message) == ("the answer was cut off", {"role": "assistant", "content": "I "})


def test_requests_are_read_whole() -> None:
    request = read_request(
        Question(
            "POST", "ollama/api/chat", {},
            {
                "model": "llava",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "What is it?", "images": ["QUJD"]},
                    {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [CALL, CALL]},
                    {"role": "tool", "content": "shipped", "tool_name": "get_order"},
                ],
                "options": {"temperature": 0}, "stream": False, "keep_alive": "5m",
                "tools": [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}],
            },
        )
    )  # fmt: skip
    assert request is not None
    assert (request.model, request.system) == ("llava", "Be brief.")
    assert request.parameters == {"options": {"temperature": 0}, "keep_alive": "5m"}
    assert [tool.name for tool in request.tools] == ["get_order"]
    asked, called, result = request.messages
    assert (asked["content"], asked["attachments"][0]["size"]) == ("What is it?\n[image]", 3)
    assert (called["reasoning"], len(called["tool_calls"])) == ("Hm.", 2)
    assert (result["name"], result["content"]) == ("get_order", "shipped")


def test_a_generated_text_has_one_message() -> None:
    body = {"model": "m", "prompt": "Hi", "system": "Be brief.", "options": {"seed": 1}}
    request = read_request(Question("POST", "ollama/api/generate", {}, body))
    assert request is not None
    assert (request.system, request.messages) == ("Be brief.", ({"role": "user", "content": "Hi"},))
    assert request.parameters == {"options": {"seed": 1}}


@pytest.mark.parametrize("body", [None, "text", [], {"messages": 3}, {"messages": [3]}, {"messages": [{}]}, {}])
@pytest.mark.parametrize("question", [CHAT, GENERATE])
def test_a_request_that_makes_no_sense_is_passed_over(question: Question, body: Any) -> None:
    transcript_of([Exchange(Question("POST", question.path, {}, body), Answer(200, "application/json", body))])


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), st.lists(st.integers(1, 9), max_size=40))
def test_lines_are_the_same_wherever_the_network_cuts_them(texts: list[str], sizes: list[int]) -> None:
    lines = lines_of(*({"message": {"content": text}} for text in texts))
    data, pieces, at = "".join(lines).encode(), list[tuple[int, bytes]](), 0
    for size in (*sizes, len("".join(lines).encode())):
        pieces.append((len(pieces), data[at : at + size]))
        at += size
    assert events_of(pieces, LINES)[0] == lines


CLIENT = """
import ollama
TOOLS = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]
def whole(prompt):
    return answer(prompt, lambda **asked: ollama.chat(**asked).message)
def streamed(prompt):
    return answer(prompt, lambda **asked: join(ollama.chat(stream=True, **asked)))
def join(chunks):
    messages = [chunk.message for chunk in chunks]
    calls = [call for message in messages for call in message.tool_calls or ()] or None
    return ollama.Message(role="assistant", content="".join(message.content or "" for message in messages),
                          tool_calls=calls)
def answer(prompt, ask):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}]
    while True:
        message = ask(model="llama3.2", messages=messages, tools=TOOLS)
        messages.append(message)
        if not message.tool_calls:
            return message.content
        messages += [{"role": "tool", "tool_name": call.function.name, "content": "shipped"}
                     for call in message.tool_calls]
"""


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_the_official_client_is_recorded_and_answered_from_its_tape(tmp_path: Any, way: str) -> None:
    skip_without("ollama")
    async with ScriptedServer(ollama) as server:
        env = {"OLLAMA_HOST": f"127.0.0.1:{server.port}"}
        transcript, events = await run(python(tmp_path, CLIENT, way), tmp_path, env, "Where is it?")
    assert transcript.error is None
    assert told(transcript) == WHOLE
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_order", {"order": "W1"}, "shipped")
    assert (transcript.model, transcript.usage.input_tokens, transcript.usage.cost) == ("llama3.2", 2000, 0.0)
    assert paths_of(events) == ["ollama/api/chat"] * 2
    captured = captured_of(events)
    assert captured is not None
    exchanges = of_documents(captured.tape, "tape").exchanges
    assert all(exchange.answer.streamed == (way == "streamed") for exchange in exchanges)
    playback = OrderedPlayback(exchanges)
    assert [playback.answer(exchange.question) for exchange in exchanges] == [each.answer for each in exchanges]


def test_a_key_that_comes_in_two_lines_is_not_kept() -> None:
    pieces = ("It is sk-plan", "ted-0123456789", " for you.")
    answer = answer_of(*({"message": {"role": "assistant", "content": piece}} for piece in pieces), END)
    clean = KeyRedactor({"sk-planted-0123456789"}).exchange(Exchange(CHAT, answer)).answer
    reply = read_reply(CHAT, clean)
    assert reply.message == {"role": "assistant", "content": "It is *** for you."}
    assert "planted" not in str(clean) + "".join(clean.body)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_a_program_for_node_is_recorded(tmp_path: Any) -> None:
    code = """
    const reply = await fetch('http://' + process.env.OLLAMA_HOST + '/api/chat', { method: 'POST', body });
    for await (const piece of reply.body) process.stdout.write(Buffer.from(piece));
    """
    async with ScriptedServer(ollama) as server:
        env = environment(server.url, OLLAMA_HOST=f"127.0.0.1:{server.port}")
        transcript, events = await run(program(tmp_path, code), tmp_path, env, "Where is it?")
    assert transcript.error is None
    assert paths_of(events) == ["ollama/api/chat"]
    assert [call.name for call in transcript.tool_calls] == ["get_order"]


async def test_a_server_of_the_user_with_such_a_path_is_left_alone(tmp_path: Any) -> None:
    source = """
import json, os, urllib.request
def ask(prompt):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}], "stream": False}).encode()
    with urllib.request.urlopen(os.environ["SHOP"] + "/api/chat", body) as reply:
        return json.load(reply)["message"]["tool_calls"][0]["function"]["name"]
"""
    async with ScriptedServer(ollama) as server:
        env = {"SHOP": f"http://127.0.0.1:{server.port}"}
        transcript, events = await run(python(tmp_path, source, "ask"), tmp_path, env, "Where is it?")
    assert (transcript.final_output, captured_of(events)) == ("get_order", None)
