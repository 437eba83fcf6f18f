"""The kind `gemini`: what is sent, and what is made of each kind of reply. The server speaks the API's wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted import Answer, ScriptedServer, stream_of

from agenteval_tui.agents.base import Failed, UsageReported
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.transcripts.model import Message, Usage
from agenteval_tui.transcripts.observed import observes

KEY = "AIza-very-secret-0123"
CALLING = [
    {"text": "I look ", "thought": True},
    {"text": "it up.", "thought": True},
    {"text": "One "},
    {"text": "moment."},
    {"functionCall": {"name": "f", "args": {"city": "Rome"}, "id": "a"}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "f", "args": {}}},
]


def chunk(*parts: dict[str, Any], end: str | None = None, usage: dict[str, int] | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if end:
        candidate["finishReason"] = end
    return {"candidates": [candidate], "modelVersion": "gemini-9-001", "usageMetadata": usage or {}}


DONE = chunk({"text": "done"}, end="STOP", usage={"promptTokenCount": 3, "candidatesTokenCount": 1})
USAGE = {
    "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7, "thoughtsTokenCount": 5,
    "toolUsePromptTokenCount": 2, "totalTokenCount": 114,
}  # fmt: skip


async def ask(run_agent: Any, *replies: Answer, request: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    left = list(replies)
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        config = {"kind": "gemini", "base_url": server.url, "model": "gemini-9", "api_key_env": "MY_KEY", **options}
        config = {"tools": [{"name": "f", "sample_response": "F", "parameters": {"type": "object"}}], **config}
        ran = await run_agent(config, env={"MY_KEY": KEY}, **(request or {}))
    return ran, server.requests


@pytest.mark.parametrize("stream", [True, False])
async def test_a_whole_conversation(run_agent: Any, stream: bool) -> None:
    if stream:
        first = stream_of(*(chunk(part) for part in CALLING), chunk(end="STOP", usage=USAGE), done=False)
        last = stream_of(DONE, done=False)
    else:
        first = Answer(body=json.dumps(chunk(*CALLING, end="STOP", usage=USAGE)))
        last = Answer(body=json.dumps(DONE))
    ran, sent = await ask(run_agent, first, last, system="Be brief.", stream=stream)
    transcript = ran.transcript
    assert transcript.error is None
    how = "streamGenerateContent?alt=sse" if stream else "generateContent"
    assert {one.path for one in sent} == {f"/v1beta/models/gemini-9:{how}"}
    assert {one.headers["x-goog-api-key"] for one in sent} == {KEY}
    assert KEY not in str([one.path for one in sent])
    body = sent[0].json
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hello"}]}]
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert (declared["name"], declared["parametersJsonSchema"]["type"]) == ("f", "object")
    # The model's parts go back as they came, each call with its result.
    _, said, answered = sent[1].json["contents"]
    assert said == {"role": "model", "parts": CALLING}
    assert answered == {"role": "user", "parts": [
        {"functionResponse": {"name": "f", "response": {"result": "F"}, "id": "a"}},
        {"functionResponse": {"name": "f", "response": {"result": "F"}}},
    ]}  # fmt: skip
    assert [(call.name, call.arguments, call.result) for call in transcript.tool_calls] == [
        ("f", {"city": "Rome"}, "F"), ("f", {}, "F")
    ]  # fmt: skip
    asked = next(one for one in transcript.messages if one.role == "assistant")
    assert (asked.content, asked.reasoning) == ("One moment.", "I look it up.")
    assert (transcript.messages[-1].content, transcript.finish_reason, transcript.model) == (
        "done",
        "stop",
        "gemini-9-001",
    )
    used = [event.usage for event in ran.events if isinstance(event, UsageReported)]
    assert used == [Usage(102, 12, 60, 5), Usage(3, 1)]


async def test_options_are_sent_under_their_names(run_agent: Any) -> None:
    _, sent = await ask(
        run_agent, stream_of(DONE, done=False), max_tokens=9, temperature=0.5, top_p=0.9, top_k=4, stop_sequences=["x"],
        seed="run", thinking_budget=0, thinking_level="low", include_thoughts=True, tool_choice="f",
        extra_body={"safetySettings": []}, request={"seed": 2**40 + 5},
    )  # fmt: skip
    body = sent[0].json
    assert body["generationConfig"] == {
        "maxOutputTokens": 9, "temperature": 0.5, "topP": 0.9, "topK": 4, "stopSequences": ["x"], "seed": 5,
        "thinkingConfig": {"thinkingBudget": 0, "thinkingLevel": "low", "includeThoughts": True},
    }  # fmt: skip
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}
    assert body["safetySettings"] == []
    assert option_problems("gemini", {"model": "m", "temperature": 3})
    assert option_problems("gemini", {"model": "m", "api_key_env": "AIza-secret"})


async def test_earlier_messages_of_one_role_are_one_content(run_agent: Any) -> None:
    said = (Message("user", "a"), Message("user", "b"), Message("assistant", "c"), Message("user", "d"))
    _, sent = await ask(run_agent, stream_of(DONE, done=False), request={"messages": said}, model="tunedModels/mine")
    assert sent[0].path.startswith("/v1beta/tunedModels/mine:")
    assert [(one["role"], [part["text"] for part in one["parts"]]) for one in sent[0].json["contents"]] == [
        ("user", ["a", "b"]), ("model", ["c"]), ("user", ["d"])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chunk({"text": "par"}, end="MAX_TOKENS"), "length"),
        (chunk({"text": "par"}, end="SAFETY"), "content_filter"),
        (chunk(end="PROHIBITED_CONTENT"), "content_filter"),
        (chunk(end="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL"),
        ({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}, "content_filter"),
    ],
)
async def test_why_an_answer_ended(run_agent: Any, reply: dict[str, Any], reason: str) -> None:
    for answer in (stream_of(reply, done=False), Answer(body=json.dumps(reply))):
        ran, _ = await ask(run_agent, answer)
        assert (ran.transcript.error, ran.transcript.finish_reason) == (None, reason)


async def test_what_is_not_read_of_an_answer_is_said(run_agent: Any) -> None:
    code = {"toolOfTomorrow": {"name": "refund"}}
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    ran, _ = await ask(run_agent, stream_of(chunk(code, image, {"text": "there"}, end="STOP"), done=False))
    last = ran.transcript.messages[-1]
    assert (last.content, [(one.media_type, one.size) for one in last.attachments]) == (
        "[image]\nthere",
        [("image/png", 2)],
    )
    assert [(note.code, note.what) for note in ran.transcript.notes] == [("unread", "toolOfTomorrow")]
    assert "tool_calls" not in observes(ran.transcript)


def refusal(status: int, code: str, message: str, reason: str = "") -> Answer:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    error = {"code": status, "message": message, "status": code, "details": details}
    return Answer(status, json.dumps({"error": error}))


@pytest.mark.parametrize(
    ("answer", "kind", "retry"),
    [
        (refusal(400, "INVALID_ARGUMENT", "API key not valid.", "API_KEY_INVALID"), "auth", False),
        (refusal(403, "PERMISSION_DENIED", "no access"), "permission", False),
        (refusal(404, "NOT_FOUND", "models/x is not found"), "bad_request", False),
        (refusal(429, "RESOURCE_EXHAUSTED", "quota of requests"), "rate_limit", True),
        (refusal(503, "UNAVAILABLE", "overloaded"), "server", True),
        (stream_of({"error": {"code": 503, "message": "overloaded"}}, done=False), "server", True),
        (stream_of(chunk({"text": "par"}), done=False), "connection", True),
        (Answer(body='{"object": "list"}'), "protocol", False),
        (stream_of({"usageMetadata": {}}, done=False), "connection", True),
        (stream_of(chunk({"text": 5}), done=False), "protocol", False),
        (Answer(body='{"candidates": {}}'), "protocol", False),
    ],
)  # fmt: skip
async def test_failures(run_agent: Any, answer: Answer, kind: str, retry: bool) -> None:
    ran, _ = await ask(run_agent, answer)
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.retry) == (kind, retry), failed.error.message
    assert KEY not in failed.error.message


async def test_a_check_reads_the_list_of_models(tmp_path: Any) -> None:
    listed = Answer(body=json.dumps({"models": [{"name": "models/gemini-9"}]}))
    async with ScriptedServer(lambda _: listed) as server:
        config = {"kind": "gemini", "base_url": server.url, "model": "gemini-9"}
        agent = make_agent("tested", config, base_dir=tmp_path, env={})
        report = await agent.check()
        await agent.close()
    assert report.ok
    assert report.steps[-1].message == "gemini-9 is on the server's list"
    assert [one.path for one in server.requests] == ["/v1beta/models?pageSize=1000"]


async def test_the_key_of_google_is_taken_for_googles_address_only(run_agent: Any) -> None:
    ran = await run_agent({"kind": "gemini", "model": "m"}, env={})
    assert "GEMINI_API_KEY is not set" in ran.transcript.error.message
    async with ScriptedServer(lambda _: stream_of(DONE, done=False)) as server:
        ran = await run_agent({"kind": "gemini", "model": "m", "base_url": server.url}, env={"GEMINI_API_KEY": KEY})
    assert ran.transcript.error is None
    assert "x-goog-api-key" not in server.requests[0].headers
