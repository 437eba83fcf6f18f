"""The kind `openai` against recorded bodies of eleven hosts, served from loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import Failed
from agenteval_tui.transcripts.codec import content_text, decode_arguments

pytestmark = pytest.mark.shared
DONE = {"choices": [{"index": 0, "message": {"content": "done"}, "finish_reason": "stop"}]}


def rows(shared: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "data" / "wire" / name).open(encoding="utf-8")]


async def play(run_agent: Any, row: dict[str, Any]) -> Any:
    """Run against a server that sends the row's body first, then a plain end."""
    sent = [Answer(row["status"], row["body"], row["content_type"])]

    def handler(_: Request) -> Answer:
        return sent.pop() if sent else Answer(body=json.dumps(DONE))

    async with ScriptedServer(handler) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m", "stream": row["stream"]}
        return await run_agent(config)


async def test_every_recorded_body_is_read_as_the_official_client_reads_it(shared: Path, run_agent: Any) -> None:
    wrong = []
    for row in rows(shared, "openai-chat.jsonl"):
        expected, ran = row["expected"], await play(run_agent, row)
        transcript = ran.transcript
        if "error" in expected:
            failed = ran.events[-1]
            if not isinstance(failed, Failed) or expected["error"]["message"][:200] not in failed.error.message:
                wrong.append((row["id"], failed))
            continue
        message = transcript.messages[1]
        calls = [(call["id"], call["name"], *decode_arguments(call["arguments"])) for call in expected["tool_calls"]]
        content = expected["content"]
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        content = content and re.sub(r"\A\s*<think>.*?</think>\s*", "", content, flags=re.DOTALL)  # is not the answer
        got = [(c.id, c.name, c.arguments, c.malformed) for c in transcript.tool_calls]
        # Where the official client keeps things elsewhere: an empty id (ours has a number, to answer it by), a
        # `function_call` (an old form of a call), a `refusal` (the text of the answer).
        calls = [(call[0] or got[0][0], *call[1:]) for call in calls] if got else calls
        if expected["finish_reason"] == "function_call" or (not calls and '"function_call":' in row["body"] and got):
            calls = got
        if not content and not calls and message.content:
            assert f'"refusal": "{message.content}"' in row["body"]
            content = message.content
        usage = expected["usage"]
        first_usage = next(event.usage for event in ran.events if hasattr(event, "usage"))
        if message.content != (content or "") or got != calls or transcript.error is not None:
            wrong.append((row["id"], row["host"], message, got, transcript.error))
        elif usage and (first_usage.input_tokens, first_usage.output_tokens) != (
            usage["prompt_tokens"],
            usage["completion_tokens"],
        ):
            wrong.append((row["id"], usage, first_usage))
        elif not calls and (transcript.finish_reason, transcript.model) != (
            expected["finish_reason"] or "stop",
            expected["model"],
        ):
            wrong.append((row["id"], expected["finish_reason"], transcript.finish_reason, transcript.model))
    assert wrong == []


async def test_bodies_on_which_the_official_client_raises_end_in_words(shared: Path, run_agent: Any) -> None:
    ended = {}
    for row in rows(shared, "openai-chat-quirks.jsonl"):
        ran = await play(run_agent, row)
        ended[row["id"]] = (ran.events[-1], ran.transcript)
    failed = {key: event.error for key, (event, _) in ended.items() if isinstance(event, Failed)}
    assert {key: error.kind for key, error in failed.items()} == {
        "quirk-00": "bad_request",
        "quirk-01": "bad_request",
        "quirk-03": "protocol",
        "quirk-04": "protocol",
        "quirk-05": "bad_request",
        "quirk-07": "bad_request",
    }
    assert "Tool call validation failed" in failed["quirk-00"].message
    assert "Token limit reached" in failed["quirk-05"].message
    assert "Content management policy" in failed["quirk-07"].message
    # What came before the error stays: the thinking, and the text.
    assert ended["quirk-00"][1].messages[-1].reasoning.startswith("We need to call the tool")
    assert ended["quirk-01"][1].final_output == "maybe"
    # Parts of text and thinking in one stream: the answer is the text alone.
    magistral = ended["quirk-02"][1]
    assert magistral.messages[-1].reasoning
    assert magistral.final_output.endswith("crossing.")
    assert magistral.usage.output_tokens == 232
    # A filtered answer is an empty answer with its reason.
    assert ended["quirk-06"][1].finish_reason == "content_filter"
    assert content_text(ended["quirk-06"][1].final_output) == ""
