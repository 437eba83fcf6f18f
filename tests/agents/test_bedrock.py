"""Programs that ask Amazon Bedrock are recorded like those that speak OpenAI's API."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Answer as Sent
from scripted import Request, ScriptedServer
from test_auto_capture import captured_of, paths_of, python
from test_capture import WHOLE, run, told
from test_node_clients import environment, program

from agenteval_tui.agents.http.aws_events import AWS_EVENTS, events_in, read_events, write_events
from agenteval_tui.agents.recording.cassette import of_documents
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.recording.playback import OrderedPlayback
from agenteval_tui.agents.recording.protocols import read_reply, read_request, used_by
from tests.agents.conftest import skip_without

MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
BASE = "bedrock/model/anthropic.claude-3-haiku-20240307-v1%3A0"
CONVERSE, STREAM = Question("POST", f"{BASE}/converse"), Question("POST", f"{BASE}/converse-stream")
INVOKE = Question("POST", f"{BASE}/invoke-with-response-stream")
USAGE = {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100}
CALL = {"toolUse": {"toolUseId": "c1", "name": "get_order", "input": {"order": "W1"}}}


def event(name: str, data: Any, **headers: str) -> bytes:
    """An event as Amazon's servers send it."""
    head = b"".join(
        struct.pack(">B", len(key)) + key.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for key, value in {":event-type": name, ":message-type": "event", **headers}.items()
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def stream(content: list[dict[str, Any]]) -> list[bytes]:
    """An assistant's message as a stream, the arguments of calls in two pieces."""
    events = [event("messageStart", {"role": "assistant"})]
    for place, block in enumerate(content):
        if "toolUse" in block:
            call = dict(block["toolUse"])
            text = json.dumps(call.pop("input"))
            events.append(event("contentBlockStart", {"start": {"toolUse": call}, "contentBlockIndex": place}))
            pieces = [{"toolUse": {"input": piece}} for piece in (text[:4], text[4:])]
        else:
            pieces = [{"text": block["text"][:3]}, {"text": block["text"][3:]}]
        events += [event("contentBlockDelta", {"delta": piece, "contentBlockIndex": place}) for piece in pieces]
        events.append(event("contentBlockStop", {"contentBlockIndex": place}))
    reason = "tool_use" if any("toolUse" in block for block in content) else "end_turn"
    return [*events, event("messageStop", {"stopReason": reason}), event("metadata", {"usage": USAGE})]


def bedrock(request: Request) -> Sent:
    """Bedrock, with a model that calls a tool first."""
    last = request.json["messages"][-1]["content"][-1]
    content = [CALL] if "text" in last else [{"text": f"It is {last['toolResult']['content'][0]['text']}."}]
    if request.path.endswith("-stream"):
        return Sent(content_type=AWS_EVENTS, pieces=stream(content))
    message = {"role": "assistant", "content": content}
    reason = "tool_use" if content == [CALL] else "end_turn"
    return Sent(body=json.dumps({"output": {"message": message}, "stopReason": reason, "usage": USAGE}))


def test_a_stream_and_a_whole_reply_say_the_same() -> None:
    content = [{"text": "I look."}, CALL]
    whole = Answer(
        200, "application/json",
        {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use", "usage": USAGE,
        },
    )  # fmt: skip
    streamed = Answer(200, AWS_EVENTS, b"".join(stream(content)))
    for question, answer in ((CONVERSE, whole), (STREAM, streamed)):
        reply = read_reply(question, answer)
        assert reply.message is not None
        assert reply.message["content"] == "I look."
        function = {"name": "get_order", "arguments": '{"order": "W1"}'}
        assert [(call["id"], call["function"]) for call in reply.message["tool_calls"]] == [("c1", function)]
        assert (reply.finish_reason, reply.usage.input_tokens, reply.usage.output_tokens) == ("tool_calls", 1000, 100)
        assert used_by(question, answer) == (MODEL, reply.usage)


def test_thoughts_are_told() -> None:
    block = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}
    body = {"output": {"message": {"role": "assistant", "content": [block, {"text": "Hi."}]}}, "stopReason": "end_turn"}
    whole = read_reply(CONVERSE, Answer(200, "application/json", body))
    pieces = [{"reasoningContent": {"text": "H"}}, {"reasoningContent": {"text": "m."}}, {"text": "Hi."}]
    events = [event("contentBlockDelta", {"delta": piece, "contentBlockIndex": 0}) for piece in pieces]
    streamed = read_reply(STREAM, Answer(200, AWS_EVENTS, b"".join([*events, event("messageStop", {})])))
    for reply in (whole, streamed):
        assert reply.message == {"role": "assistant", "content": "Hi.", "reasoning": "Hm."}


def test_what_claude_streams_by_its_own_api_is_read() -> None:
    chunks = [
        {"type": "message_start", "message": {"model": "claude-3-haiku", "usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    ]
    data = [event("chunk", {"bytes": base64.b64encode(json.dumps(chunk).encode()).decode()}) for chunk in chunks]
    reply = read_reply(INVOKE, Answer(200, AWS_EVENTS, b"".join(data)))
    assert reply.message == {"role": "assistant", "content": "Hi."}
    assert (reply.model, reply.finish_reason, reply.usage.output_tokens) == ("claude-3-haiku", "stop", 2)
    body = {"anthropic_version": "bedrock-2023-05-31", "messages": [{"role": "user", "content": "Hi"}]}
    request = read_request(Question("POST", INVOKE.path, {}, body))
    assert request is not None
    assert (request.model, request.messages) == (MODEL, ({"role": "user", "content": "Hi"},))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(403, "application/json", {"message": "not allowed"}), "HTTP 403: not allowed"),
        (
            Answer(
                200, AWS_EVENTS,
                event("", {"message": "too many"}, **{":exception-type": "throttlingException"}),
            ),
            "too many",
        ),
        (Answer(200, "application/json", {"a": 1}), 'an object without `output.message` ({"a": 1})'),
        (Answer(200, AWS_EVENTS, b""), "a message without content, and without a reason why it ended"),
    ],
)  # fmt: skip
def test_what_is_no_answer_says_why(answer: Answer, error: str) -> None:
    assert error in read_reply(STREAM, answer).error


@given(st.binary(max_size=60), st.integers(0, 400))
def test_any_bytes_are_read_as_far_as_they_are_events(noise: bytes, cut: int) -> None:
    events = stream([{"text": "I look."}, CALL])
    whole = [*events_in(b"".join(events))]
    assert [*events_in(b"".join(events)[:cut])] == whole[: len([*events_in(b"".join(events)[:cut])])]
    assert [*events_in(b"".join(events) + noise)][: len(whole)] == whole


@pytest.mark.parametrize("own", [False, True])
def test_a_key_that_comes_in_two_events_is_not_kept(own: bool) -> None:
    pieces = ("It is sk-plan", "ted-0123456789", " for you.")
    if own:
        chunks: list[dict[str, Any]] = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ]
        chunks.insert(0, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        data = [event("chunk", {"bytes": base64.b64encode(json.dumps(chunk).encode()).decode()}) for chunk in chunks]
    else:
        data = [event("contentBlockDelta", {"delta": {"text": piece}, "contentBlockIndex": 0}) for piece in pieces]
    answer = Answer(200, AWS_EVENTS, b"".join(data))
    question = INVOKE if own else STREAM
    clean = KeyRedactor({"sk-planted-0123456789"}).exchange(Exchange(question, answer)).answer
    reply = read_reply(question, clean)
    assert reply.message is not None
    assert reply.message["content"] == "It is *** for you."
    assert b"plan" not in clean.body
    assert b"plan" not in b"".join(base64.b64decode(each) for each in re.findall(rb'"bytes": "([^"]+)"', clean.body))
    assert KeyRedactor({"another-key-0123456789"}).exchange(Exchange(question, answer)).answer == answer
    assert write_events(read_events(answer.body)) == answer.body


def test_a_request_is_read_whole() -> None:
    image = {"image": {"format": "png", "source": {"bytes": "QUJD"}}}
    result = {"toolUseId": "c1", "content": [{"json": {"state": "lost"}}], "status": "error"}
    spec = {"name": "get_order", "description": "finds", "inputSchema": {"json": {"type": "object"}}}
    body = {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "What is it?"}, image]},
            {"role": "assistant", "content": [{"text": "I look."}, CALL]},
            {"role": "user", "content": [{"toolResult": result}]},
        ],
        "inferenceConfig": {"temperature": 0},
        "toolConfig": {"tools": [{"toolSpec": spec}], "toolChoice": {"auto": {}}},
    }  # fmt: skip
    request = read_request(Question("POST", CONVERSE.path, {}, body))
    assert request is not None
    assert (request.model, request.system.strip()) == (MODEL, "Be brief.")
    assert request.parameters == {"inferenceConfig": {"temperature": 0}, "toolChoice": {"auto": {}}}
    assert [(tool.name, tool.description, tool.parameters) for tool in request.tools] == [
        ("get_order", "finds", {"type": "object"})
    ]
    asked, called, answered = request.messages
    (attachment,) = asked["attachments"]
    assert (attachment["media_type"], attachment["size"]) == ("image/png", 3)
    assert (called["content"], called["tool_calls"][0]["id"]) == ("I look.", "c1")
    assert (answered["content"], answered["tool_call_id"], answered["is_error"]) == ('{"state": "lost"}', "c1", True)


@pytest.mark.parametrize("body", [None, "text", [], {"messages": 3}, {"messages": [3]}, {"messages": [{}]}, {}])
def test_a_request_that_makes_no_sense_is_passed_over(body: Any) -> None:
    transcript_of([Exchange(Question("POST", CONVERSE.path, {}, body), Answer(200, "application/json", body))])


CLIENT = """
import os
from botocore.session import Session
TOOLS = {"tools": [{"toolSpec": {"name": "get_order", "inputSchema": {"json": {"type": "object"}}}}]}
def client():
    return Session().create_client("bedrock-runtime", region_name="us-east-1", endpoint_url=os.environ["SHOP_MODEL"])
def whole(prompt):
    bedrock = client()
    return answer(prompt, lambda **asked: bedrock.converse(**asked)["output"]["message"])
def streamed(prompt):
    bedrock = client()
    return answer(prompt, lambda **asked: joined(bedrock.converse_stream(**asked)["stream"]))
def joined(events):
    import json
    text, call, arguments = "", None, ""
    for event in events:
        call = event.get("contentBlockStart", {}).get("start", {}).get("toolUse", call)
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        text += delta.get("text", "")
        arguments += delta.get("toolUse", {}).get("input", "")
    block = {"text": text} if call is None else {"toolUse": {**call, "input": json.loads(arguments)}}
    return {"role": "assistant", "content": [block]}
def answer(prompt, ask):
    messages = [{"role": "user", "content": [{"text": prompt}]}]
    while True:
        message = ask(modelId=MODEL, messages=messages, system=[{"text": "Be brief."}], toolConfig=TOOLS)
        messages.append(message)
        block = message["content"][0]
        if "text" in block:
            return block["text"]
        result = {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"text": "shipped"}]}
        messages.append({"role": "user", "content": [{"toolResult": result}]})
""".replace("MODEL,", f"{MODEL!r},")
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAPLANTED", "AWS_SECRET_ACCESS_KEY": "planted-secret-key-0001"}


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_boto_is_recorded_and_its_signature_stays_true(tmp_path: Any, way: str) -> None:
    skip_without("botocore")
    async with ScriptedServer(bedrock) as server:
        env = {"SHOP_MODEL": f"http://127.0.0.1:{server.port}", **KEYS}
        transcript, events = await run(python(tmp_path, CLIENT, way), tmp_path, env, "Where is it?")
    assert transcript.error is None
    assert told(transcript) == WHOLE
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_order", {"order": "W1"}, "shipped")
    assert (transcript.model, transcript.usage.input_tokens) == (MODEL, 2000)
    assert paths_of(events) == [(STREAM if way == "streamed" else CONVERSE).path] * 2
    captured = captured_of(events)
    assert captured is not None
    assert "AKIAPLANTED" not in str(captured)
    exchanges = of_documents(captured.tape, "tape").exchanges
    playback = OrderedPlayback(exchanges)
    assert [playback.answer(exchange.question) for exchange in exchanges] == [each.answer for each in exchanges]
    for request in server.requests:
        assert not [name for name in request.headers if "agenteval" in name]
        assert request.headers["authorization"].endswith(f"Signature={_signature(server, request)}")


def _signature(server: ScriptedServer, request: Request) -> str:
    """What Amazon would compute."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    names = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    url = f"http://127.0.0.1:{server.port}{request.path}"
    signed = {name: request.headers[name] for name in names}
    aws = AWSRequest(request.method, url, headers=signed, data=request.body)
    aws.context["timestamp"] = request.headers["x-amz-date"]
    auth = SigV4Auth(Credentials(*KEYS.values()), "bedrock", "us-east-1")
    return str(auth.signature(auth.string_to_sign(aws, auth.canonical_request(aws)), aws))


async def test_a_server_of_bedrock_that_is_not_there_fails_as_without_a_proxy(tmp_path: Any) -> None:
    skip_without("botocore")
    env = {"SHOP_MODEL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", **KEYS}
    transcript, events = await run(python(tmp_path, CLIENT, "whole"), tmp_path, env, "Where is it?")
    assert transcript.error is not None
    assert "EndpointConnectionError" in transcript.error.message
    assert captured_of(events) is None


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_a_program_for_node_is_recorded(tmp_path: Any) -> None:
    code = f"""
    const asked = JSON.stringify({{ messages: [{{ role: 'user', content: [{{ text: 'Where is it?' }}] }}] }});
    const about = {{ hostname, port, path: '/model/{MODEL.replace(":", "%3A")}/converse', method: 'POST' }};
    request(about, (reply) => reply.pipe(process.stdout)).end(asked);
    """
    async with ScriptedServer(bedrock) as server:
        transcript, events = await run(program(tmp_path, code), tmp_path, environment(server.url), "Where is it?")
    assert transcript.error is None
    assert paths_of(events) == [CONVERSE.path]
    assert [call.name for call in transcript.tool_calls] == ["get_order"]
