"""The kind `anthropic` against recorded bodies of Anthropic's API, served from loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.base import Failed, UsageReported

pytestmark = pytest.mark.shared
HOSTED = ("srvtoolu_", "mcptoolu_")
"""How ids of calls of the server's own tools begin."""
DONE = {"type": "message", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn", "usage": {}}
REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def cached(body: str) -> int:
    """What the last figures in a body say of tokens that the cache gave and took."""
    found = 0
    for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
        # Only the figures of the whole message: a reply may hold those of its parts too (`iterations`).
        figures = re.findall(rf'"{name}": ?(\d+)', re.sub(r'"iterations": ?\[.*?\]', "", body))
        found += int(figures[-1]) if figures else 0
    return found


async def test_every_recorded_body_is_read_as_the_official_client_reads_it(shared: Path, run_agent: Any) -> None:
    wrong, streamed, thinking = [], 0, 0
    for line in (shared / "data" / "wire" / "anthropic.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        expected = row["expected"]
        sent = [Answer(row["status"], row["body"], row["content_type"])]
        async with ScriptedServer(lambda _, sent=sent: sent.pop() if sent else Answer(body=json.dumps(DONE))) as server:
            config = {"kind": "anthropic", "base_url": server.url, "model": "m", "stream": row["stream"]}
            ran = await run_agent(config)
        if "error" in expected:
            failed = ran.events[-1]
            assert isinstance(failed, Failed)
            assert expected["error"]["message"]["error"]["message"] in failed.error.message
            continue
        streamed += row["stream"]
        thinking += "thinking" in expected["block_types"]
        transcript = ran.transcript
        said = [one for one in transcript.messages[1:] if one.role == "assistant"]
        calls = [(call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]]
        # The server's own calls split what the client gives as one message.
        got = [(one.id, one.name, one.arguments) for one in transcript.tool_calls if not one.id.startswith(HOSTED)]
        content = "".join(one.content for one in said)
        content = content.removesuffix("done") if calls and not expected["content"].endswith("done") else content
        usage = next(event.usage for event in ran.events if isinstance(event, UsageReported))
        figures = (usage.input_tokens, usage.output_tokens)
        wanted = (expected["usage"]["input_tokens"] + cached(row["body"]), expected["usage"]["output_tokens"])
        if (content, got, transcript.error) != (expected["content"], calls, None):
            wrong.append((row["id"], content, got, transcript.error))
        elif figures != wanted:
            wrong.append((row["id"], "usage", figures, wanted))
        elif not calls and (transcript.finish_reason, transcript.model) != (
            REASONS[expected["finish_reason"]],
            expected["model"],
        ):
            wrong.append((row["id"], transcript.finish_reason, transcript.model))
        elif re.search(r'"thinking": ?"[^"]', row["body"]) and not any(one.reasoning for one in said):
            wrong.append((row["id"], "no thinking"))
    assert wrong == []
    assert streamed >= 20
    assert thinking >= 10
