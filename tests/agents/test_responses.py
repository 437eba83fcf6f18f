"""`api: responses`: what is sent, and what is made of each kind of event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialects import STREAM, event
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.base import ReasoningDelta
from agenteval_tui.agents.registry import option_problems
from agenteval_tui.transcripts.model import Usage

THINKING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Second."}],
    "encrypted_content": "gAAAA",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "f",
    "arguments": '{"x":1}',
    "status": "completed",
}
SAID = {"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
USAGE = {
    "input_tokens": 30,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens_details": {"reasoning_tokens": 15},
}


def whole(*output: Any, **more: Any) -> Answer:
    return Answer(body=json.dumps({"status": "completed", "model": "o9", "output": output, "usage": USAGE, **more}))


def streamed(*events: Any) -> Answer:
    return Answer(body=b"".join(event(one) for one in events), content_type=STREAM)


async def ask(run_agent: Any, *replies: Answer, **options: Any) -> tuple[Any, list[Any]]:
    left = list(replies)
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        config = {"kind": "openai", "api": "responses", "base_url": server.url, "model": "o9", **options}
        ran = await run_agent({**config, "tools": [{"name": "f", "sample_response": "F"}]})
    assert [request.path for request in server.requests] == ["/v1/responses"] * len(server.requests)
    return ran, [request.json for request in server.requests]


@pytest.mark.parametrize("how", ["whole", "streamed", "streamed without deltas"])
async def test_thinking_goes_back_between_a_call_and_its_result(run_agent: Any, how: str) -> None:
    deltas: list[Any] = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "First."},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "Second."},
    ]
    items = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate([THINKING, CALL])
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "usage": USAGE, "model": "o9"}}
    first = {
        "whole": whole(THINKING, CALL),
        "streamed": streamed(*deltas, *items, end),
        "streamed without deltas": streamed(*items, end),
    }[how]
    ran, sent = await ask(run_agent, first, whole(SAID))
    assert ran.transcript.error is None
    assert ran.transcript.messages[1].reasoning == "First.\n\nSecond."
    assert sent[0]["include"] == ["reasoning.encrypted_content"]
    call = {key: value for key, value in CALL.items() if key not in ("id", "status")}
    assert sent[1]["input"][1:] == [THINKING, call, {"type": "function_call_output", "call_id": "c1", "output": "F"}]
    assert ran.transcript.usage == Usage(60, 40, 20, 30)
    assert ran.transcript.final_output == "done"
    assert ran.transcript.finish_reason == "stop"


async def test_thinking_that_the_server_would_not_know_again_is_left_out(run_agent: Any) -> None:
    plain = {key: value for key, value in THINKING.items() if key != "encrypted_content"}
    _, sent = await ask(run_agent, whole(plain, CALL), whole(SAID))
    assert [item.get("type") for item in sent[1]["input"][1:]] == ["function_call", "function_call_output"]
    _, sent = await ask(run_agent, whole(plain, CALL), whole(SAID), store=True)
    assert sent[1]["input"][1:3] == [plain, CALL]
    assert "include" not in sent[0]


async def test_options_have_their_names_and_places(run_agent: Any) -> None:
    schema = {"name": "s", "schema": {"type": "object"}, "strict": True}
    _, sent = await ask(
        run_agent,
        whole(SAID),
        model="gpt-4o",
        max_tokens=100,
        temperature=0.5,
        response_format={"type": "json_schema", "json_schema": schema},
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        extra_body={"metadata": {"a": "b"}},
    )
    body = sent[0]
    assert {key: body[key] for key in ("max_output_tokens", "temperature", "parallel_tool_calls", "metadata")} == {
        "max_output_tokens": 100,
        "temperature": 0.5,
        "parallel_tool_calls": False,
        "metadata": {"a": "b"},
    }
    assert body["text"] == {"format": {"type": "json_schema", **schema}}
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert (body["tools"][0]["name"], body["tools"][0]["strict"]) == ("f", False)
    assert "include" not in body  # gpt-4o does not think, and refuses to be asked for it
    _, sent = await ask(run_agent, whole(SAID), reasoning_effort="low", reasoning_summary="auto")
    assert sent[0]["reasoning"] == {"effort": "low", "summary": "auto"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"api": "responses", "stop": "x"}, "the Responses API has no option `stop`"),
        ({"api": "responses", "seed": 1}, "the Responses API has no option `seed`"),
        ({"api": "responses", "include_usage": False}, "the Responses API has no option `include_usage`"),
        ({"store": True}, "only `api: responses` has option `store`"),
        ({"reasoning_summary": "auto"}, "only `api: responses` has option `reasoning_summary`"),
        ({"api": "responses", "max_tokens": 1, "max_completion_tokens": 2}, "the Responses API has one limit"),
        ({"base_url": "http://h/v1?api-version=1"}, "`base_url` can't hold parameters: put them into `query`"),
        ({"api_key_env": "sk-123"}, "`api_key_env` is the name of an environment variable"),
    ],
)
def test_options_that_make_no_sense_are_said(options: dict[str, Any], said: str) -> None:
    ((_, message),) = option_problems("a", {"kind": "openai", "model": "m", **options})
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("", "incomplete")]
)
async def test_an_incomplete_answer_says_why(run_agent: Any, reason: str, finish: str) -> None:
    ran, _ = await ask(run_agent, whole(SAID, status="incomplete", incomplete_details={"reason": reason}))
    assert (ran.transcript.finish_reason, ran.transcript.final_output) == (finish, "done")


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (streamed({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), "rate_limit"),
        (streamed({"type": "error", "error": {"type": "server_error", "message": "slow"}}), "server"),
        (
            streamed({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "slow"}}}),
            "server",
        ),
        (whole(status="failed", error={"code": "invalid_prompt", "message": "slow"}), "bad_request"),
        (whole(status="cancelled"), "bad_request"),
        (Answer(body='{"choices": []}'), "protocol"),
    ],
)
async def test_errors(run_agent: Any, sent: Answer, kind: str) -> None:
    ran, _ = await ask(run_agent, sent)
    assert ran.transcript.error.kind == kind
    assert kind in ("bad_request", "protocol") or "slow" in ran.transcript.error.message


async def test_a_refusal_is_the_answer_and_pieces_do_not_come_twice(run_agent: Any) -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}
    ran, _ = await ask(
        run_agent,
        streamed(
            {"type": "response.refusal.delta", "output_index": 0, "delta": "I "},
            {"type": "response.refusal.delta", "output_index": 0, "delta": "can't."},
            {"type": "response.refusal.done", "output_index": 0, "refusal": "I can't."},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
        ),
    )
    assert ran.transcript.final_output == "I can't."


async def test_thinking_of_open_models(run_agent: Any) -> None:
    text = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    ran, _ = await ask(run_agent, streamed(text, end))
    assert [event.text for event in ran.events if isinstance(event, ReasoningDelta)] == ["hm"]
