"""Traces of Langfuse, openai-agents, MLflow and Braintrust: the conversation, each message once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"

Import = Callable[..., Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
ASKED = [{"role": "user", "content": "q"}]
LOOKED = {"role": "assistant", "content": "look", "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "r"}


def langfuse(*observations: dict[str, Any]) -> dict[str, Any]:
    return {"trace": {"id": "t", "name": "n"}, "observations": list(observations)}


def generation(number: int, asked: Any, answered: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:00:{number:02}Z"
    return {"id": f"g{number}", "type": "GENERATION", "name": "chat", "startTime": at, "endTime": at, "input": asked,
            "output": answered, **more}  # fmt: skip


def tool(number: int, answered: Any, **more: Any) -> dict[str, Any]:
    return {**generation(number, {"x": 1}, answered, **more), "id": f"t{number}", "type": "TOOL", "name": "f"}


def said(transcript: Any) -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in transcript.messages]


@pytest.mark.parametrize(
    "observations",
    [
        # Each request holds all so far.
        [generation(1, ASKED, LOOKED), generation(2, [*ASKED, LOOKED, TOLD], "done")],
        # Each request holds what is new; the tool's result is only in the tool's span.
        [generation(1, ASKED, LOOKED), tool(2, "r"), generation(3, None, "done")],
        # As JSON in texts, and a wrapper around the call that says the same.
        [
            {**generation(1, '{"prompt": "q"}', json.dumps(LOOKED)), "id": "w", "endTime": "2026-01-01T00:00:03Z"},
            generation(2, json.dumps(ASKED), json.dumps(LOOKED), parentObservationId="w"),
            generation(4, json.dumps([*ASKED, LOOKED, TOLD]), json.dumps("done")),
        ],
        # Gemini's words, without ids.
        [
            generation(
                1,
                {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
                {
                    "content": {
                        "role": "model",
                        "parts": [{"text": "look"}, {"function_call": {"name": "f", "args": {"x": 1}}}],
                    }
                },
            ),
            tool(2, "r"),
            generation(3, None, {"content": {"role": "model", "parts": [{"text": "done"}]}}),
        ],
    ],
)
def test_a_conversation_is_put_together_with_each_message_once(imported: Import, observations: list[Any]) -> None:
    _, ((_, transcript),) = imported(langfuse(*observations))
    assert said(transcript) == [("user", "q"), ("assistant", "look"), ("tool", "r"), ("assistant", "done")]
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [("f", {"x": 1}, "r")]


def test_what_was_said_twice_is_there_twice(imported: Import) -> None:
    yes, well = {"role": "user", "content": "yes"}, {"role": "assistant", "content": "well?"}
    asked = [yes, well, yes]
    _, ((_, transcript),) = imported(langfuse(generation(1, [yes], well), generation(2, asked, "done")))
    assert said(transcript) == [("user", "yes"), ("assistant", "well?"), ("user", "yes"), ("assistant", "done")]


def test_a_tool_that_failed_has_failed(imported: Import) -> None:
    failed = tool(2, None, level="ERROR", statusMessage="no such order")
    _, ((_, transcript),) = imported(langfuse(generation(1, ASKED, LOOKED), failed))
    (call,) = transcript.tool_calls
    assert (call.status, call.result) == ("error", "no such order")


def test_scores_say_only_what_they_say(imported: Import) -> None:
    scores = [
        {"name": "right", "value": 0, "dataType": "BOOLEAN", "comment": "the date is wrong"},
        {"name": "toxicity", "value": 0.8, "dataType": "NUMERIC"},
    ]
    given = langfuse(generation(1, ASKED, "a"))
    given["trace"]["scores"] = scores
    _, ((row, _),) = imported(given)
    assert row.status == "failed"
    assert "the date is wrong" in row.why


CALLS = {"agno": 1, "google-adk": 1, "langgraph-python": 1, "microsoft-agent": 1, "openai-agents": 1,
         "pydantic-ai-tools": 4, "claude-agent": 2, "vercel-aisdk": 1}  # fmt: skip


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
@pytest.mark.parametrize("path", sorted((SHARED / "langfuse").glob("*.trace.json")), ids=lambda path: path.name[:20])
def test_real_traces_hold_what_langfuse_itself_reads_in_them(imported: Import, path: Path) -> None:
    """Langfuse's own reading (`*.chatml.json`): every text and call that it found in a model's messages is there."""
    _, ((_, transcript),) = imported(path)
    name = path.name.split("-20")[0]
    assert len(transcript.tool_calls) == CALLS.get(name, 0)
    assert all(call.result is not None for call in transcript.tool_calls if call.name != "final_result")
    whole = " ".join("".join(one.content.split()) for one in transcript.messages)
    theirs = json.loads(Path(str(path).replace(".trace.", ".chatml.")).read_text("utf-8"))
    kinds = {one["id"]: one["type"] for one in json.loads(path.read_text("utf-8"))["observations"]}
    for observation, read in theirs.items():
        for side in ("input", "output"):
            data = read.get(side, {}).get("data") if kinds.get(observation) == "GENERATION" else None
            for message in data if isinstance(data, list) else ():
                text = message.get("content") if isinstance(message, dict) else None
                if isinstance(text, str) and text.strip() not in ("", "None", "role"):
                    assert "".join(text.split())[:60] in whole.replace("\\n", ""), (observation, side, text[:80])


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_a_real_trace_of_openai_agents_is_the_conversation(imported: Import) -> None:
    report, ((_, transcript),) = imported(SHARED / "otel/agents-native.json")
    assert report.format == "openai-agents-traces"
    roles = [role for role, _ in said(transcript)]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert transcript.tool_calls[0].arguments == {"order_id": "W1044"}
    assert transcript.usage.input_tokens
    assert len(transcript.timing.steps) == 3


@pytest.mark.parametrize("prefix", ["", "execute_tool "])
def test_a_tool_whose_name_ends_as_another_one_keeps_its_own_result(imported: Import, prefix: str) -> None:
    calls = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": '{"x": 1}'}}
        for name in ("search", "web_search")
    ]
    observations = [
        generation(1, ASKED, {"role": "assistant", "content": "look", "tool_calls": calls}),
        {**tool(2, "from the web"), "name": f"{prefix}web_search"},
        {**tool(3, "from the shelf"), "name": f"{prefix}search"},
        generation(4, None, "done"),
    ]
    _, ((_, transcript),) = imported(langfuse(*observations))
    assert [(call.name, call.result) for call in transcript.tool_calls] == [
        ("search", "from the shelf"), ("web_search", "from the web")
    ]  # fmt: skip
