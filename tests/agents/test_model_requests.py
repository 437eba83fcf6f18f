"""The exact requests of a recording: of every protocol, each with the agent that asked."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.model_requests import before_in_line, model_requests
from agenteval_tui.transcripts.request_changes import difference

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
SYSTEM = "You sell socks."


def exchange(path: str, body: dict[str, Any], answer: Any = None, *, at: float = 0.0, status: int = 200) -> Exchange:
    return Exchange(Question("POST", path, {}, body), Answer(status, "application/json", answer), "", at, at + 5)


CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Any?"}],
    "tools": [{"type": "function", "function": {"name": "find", "description": "finds", "parameters": SCHEMA}}],
    "temperature": 0,
    "stream": True,
}
BODIES = {
    "openai/v1/chat/completions": CHAT,
    "openai/v1/responses": {
        "model": "m", "instructions": SYSTEM, "input": [{"role": "user", "content": "Any?"}], "temperature": 0,
        "tools": [{"type": "function", "name": "find", "description": "finds", "parameters": SCHEMA}],
    },
    "anthropic/v1/messages": {
        "model": "m", "system": SYSTEM, "messages": [{"role": "user", "content": "Any?"}], "temperature": 0,
        "tools": [{"name": "find", "description": "finds", "input_schema": SCHEMA}],
    },
    "gemini/v1beta/models/m:generateContent": {
        "systemInstruction": {"parts": [{"text": SYSTEM}]}, "contents": [{"role": "user", "parts": [{"text": "Any?"}]}],
        "tools": [{"functionDeclarations": [{"name": "find", "description": "finds", "parameters": SCHEMA}]}],
        "temperature": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_every_protocol_gives_the_same_request(path: str) -> None:
    (request,) = model_requests([exchange(path, BODIES[path])])
    assert (request.number, request.line, request.model, request.system) == (1, 1, "m", SYSTEM)
    assert [(one["role"], one["content"]) for one in request.messages] == [("user", "Any?")]
    assert [(one.name, one.description, one.parameters) for one in request.tools] == [("find", "finds", SCHEMA)]
    assert request.parameters == {"temperature": 0}
    assert request.previous == ""


def test_what_is_no_question_to_a_model_is_left_out() -> None:
    models = Exchange(Question("GET", "openai/v1/models"), Answer(200, "application/json", {"data": []}))
    broken = exchange("openai/v1/chat/completions", {"messages": 3})
    assert model_requests([models, broken]) == ()


def test_a_conversation_that_the_server_keeps_is_said() -> None:
    for more in ({"previous_response_id": "resp_1"}, {"conversation": "resp_1"}, {"conversation": {"id": "resp_1"}}):
        (request,) = model_requests([exchange("openai/v1/responses", {"model": "m", "input": "and now?", **more})])
        assert request.previous == "resp_1"


def chat(
    messages: list[dict[str, Any]], at: float, *, system: str = SYSTEM, said: str = "Yes.", took: float = 5
) -> Exchange:
    body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages]}
    answer = {"model": "m", "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
    made = exchange("openai/v1/chat/completions", body, answer, at=at)
    return Exchange(made.question, made.answer, "", at, at + took)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


YES = {"role": "assistant", "content": "Yes."}


def test_a_request_is_compared_with_the_one_before_of_the_same_agent() -> None:
    first, other = [user("one")], [user("Give it a title")]
    recording = [
        chat(first, 0),
        chat(other, 10, system="You name things."),
        chat([*first, YES, user("two")], 20),
        chat([*first, YES, user("two"), YES, user("three")], 30),
        chat([user("Summary."), user("three"), YES, user("four")], 40),
        chat([user("What did I ask first?")], 50),
    ]
    requests = model_requests(list(reversed(recording)))
    assert [request.line for request in requests] == [1, 2, 1, 1, 1, 1]
    before = [before_in_line(requests, request.number) for request in requests]
    assert [one.number if one is not None else None for one in before] == [None, None, 1, 3, 4, 5]
    kinds = [
        [change.kind for change in difference(one, request).changes]
        for one, request in zip(before, requests, strict=True)
        if one is not None
    ]
    assert kinds == [["added"], ["added"], ["replaced", "added"], ["restarted"]]


def test_agents_that_ask_at_the_same_time_with_equal_prompts_are_told_apart() -> None:
    recording = [chat([user("a")], 0, took=20), chat([user("b")], 5, took=20), chat([user("a"), YES, user("c")], 30)]
    assert [request.line for request in model_requests(recording)] == [1, 2, 1]


def test_an_answer_that_failed_says_why() -> None:
    failed = exchange("openai/v1/chat/completions", CHAT, {"error": {"message": "busy"}}, status=503)
    assert "busy" in model_requests([failed])[0].error
