"""The same usage (100 tokens, 1,000 written into a cache, 5,000 read from one, 200 answered) through every door."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.agents.prices import Prices
from agenteval_tui.transcripts.model import Usage

WHOLE = Usage(6100, 200, cached_tokens=5000, cache_write_tokens=1000)
ANTHROPIC = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 5000,
    "output_tokens": 200,
}
OPENAI = {
    "prompt_tokens": 6100,
    "completion_tokens": 200,
    "total_tokens": 6300,
    "prompt_tokens_details": {"cached_tokens": 5000, "cache_write_tokens": 1000},
}
CONVENTIONS = {
    "gen_ai.usage.input_tokens": 6100,
    "gen_ai.usage.output_tokens": 200,
    "gen_ai.usage.cache_read.input_tokens": 5000,
    "gen_ai.usage.cache_creation.input_tokens": 1000,
}
TRACELOOP = {
    "gen_ai.usage.prompt_tokens": "6100",
    "gen_ai.usage.completion_tokens": "200",
    "llm.usage.total_tokens": "6300",
    "gen_ai.usage.cache_read_input_tokens": "5000",
    "gen_ai.usage.cache_creation_input_tokens": "1000",
}
OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "q",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "a",
    "llm.token_count.prompt": 6100,
    "llm.token_count.completion": 200,
    "llm.token_count.total": 6300,
    "llm.token_count.prompt_details.cache_read": 5000,
    "llm.token_count.prompt_details.cache_write": 1000,
}
SAID = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
PARTS = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "q"}]}]),
    "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]),
}
AT = "2026-01-01T00:00:00Z"


def span(attributes: dict[str, Any]) -> dict[str, Any]:
    def typed(value: Any) -> dict[str, Any]:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    listed = [{"key": key, "value": typed(value)} for key, value in attributes.items()]
    one = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "chat", "attributes": listed,
           "startTimeUnixNano": "1", "endTimeUnixNano": "2"}  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


def lines(*values: Any) -> str:
    return "\n".join(json.dumps(value) for value in values) + "\n"


DOORS: dict[str, Any] = {
    # No block of a tool says here whose dialect it is: the usage itself does.
    "Anthropic messages": [
        SAID[0],
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "usage": ANTHROPIC},
    ],
    "Anthropic messages with a text": [SAID[0], {**SAID[1], "usage": ANTHROPIC}],
    "messages with usage beside them": {"messages": SAID, "usage": ANTHROPIC},
    "OpenAI messages": {"messages": SAID, "usage": OPENAI},
    "OpenAI answer": {
        "request": {"messages": SAID[:1]},
        "response": {"id": "r", "model": "m", "choices": [{"message": SAID[1]}], "usage": OPENAI},
    },
    "Claude Code": lines(
        {"type": "user", "sessionId": "s", "uuid": "1", "timestamp": AT, "message": SAID[0]},
        {
            "type": "assistant",
            "sessionId": "s",
            "uuid": "2",
            "timestamp": AT,
            "message": {
                "id": "m1",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "a"}],
                "usage": ANTHROPIC,
            },
        },
    ),
    "Langfuse": {
        "trace": {"id": "t", "name": "n"},
        "observations": [
            {
                "id": "g",
                "type": "GENERATION",
                "startTime": AT,
                "input": SAID[:1],
                "output": SAID[1],
                "usageDetails": {
                    "input": 100,
                    "cache_read_input_tokens": 5000,
                    "cache_creation_input_tokens": 1000,
                    "output": 200,
                    "total": 6300,
                },
            }
        ],
    },
    "MLflow": {
        "info": {"trace_id": "t", "request_preview": "q"},
        "data": {
            "spans": [
                {
                    "span_id": "s",
                    "name": "chat",
                    "start_time_unix_nano": 1,
                    "end_time_unix_nano": 2,
                    "attributes": {
                        "mlflow.spanType": '"CHAT_MODEL"',
                        "mlflow.spanInputs": json.dumps({"messages": SAID[:1]}),
                        "mlflow.spanOutputs": json.dumps({"choices": [{"message": SAID[1]}]}),
                        "mlflow.chat.tokenUsage": json.dumps({
                            "input_tokens": 6100,
                            "output_tokens": 200,
                            "total_tokens": 6300,
                            "cache_read_input_tokens": 5000,
                            "cache_creation_input_tokens": 1000,
                        }),
                    },
                }
            ]
        },
    },
    "Braintrust": lines({
        "span_id": "s",
        "root_span_id": "s",
        "span_attributes": {"type": "llm", "name": "chat"},
        "input": SAID[:1],
        "output": SAID[1],
        "metrics": {
            "prompt_tokens": 6100,
            "completion_tokens": 200,
            "tokens": 6300,
            "prompt_cached_tokens": 5000,
            "prompt_cache_creation_tokens": 1000,
        },
    }),
    "LangSmith": lines({
        "id": "r",
        "trace_id": "r",
        "run_type": "llm",
        "name": "ChatAnthropic",
        "inputs": {"messages": SAID[:1]},
        "outputs": {
            "messages": SAID[1:],
            "usage_metadata": {
                "input_tokens": 6100,
                "output_tokens": 200,
                "total_tokens": 6300,
                "input_token_details": {"cache_read": 5000, "cache_creation": 1000},
            },
        },
    }),
    "LangChain messages": [
        {"type": "human", "content": "q"},
        {
            "type": "ai",
            "content": "a",
            "usage_metadata": {
                "input_tokens": 6100,
                "output_tokens": 200,
                "total_tokens": 6300,
                "input_token_details": {"cache_read": 5000, "cache_creation": 1000},
            },
        },
    ],
    "LangChain messages that keep the provider's usage": [
        {"type": "human", "content": "q"},
        {"type": "ai", "content": "a", "response_metadata": {"usage": ANTHROPIC}},
    ],
    "pydantic-ai messages": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "q"}]},
        {
            "kind": "response",
            "parts": [{"part_kind": "text", "content": "a"}],
            "usage": {
                "input_tokens": 6100,
                "output_tokens": 200,
                "cache_read_tokens": 5000,
                "cache_write_tokens": 1000,
            },
        },
    ],
    "ATIF": {
        "schema_version": "ATIF-v1.5",
        "session_id": "s",
        "agent": {"name": "x", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "q"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "a",
                "metrics": {
                    "prompt_tokens": 6100,
                    "completion_tokens": 200,
                    "cached_tokens": 5000,
                    "extra": {"cache_creation_input_tokens": 1000},
                },
            },
        ],
    },
    "OpenTelemetry": span({**PARTS, **CONVENTIONS}),
    "Traceloop": span({**PARTS, **TRACELOOP}),
    "OpenInference": span(OPENINFERENCE),
    "Vercel AI SDK": span({
        **PARTS,
        "gen_ai.usage.input_tokens": 6100,
        "gen_ai.usage.output_tokens": 200,
        "ai.usage.inputTokens": 6100,
        "ai.usage.cachedInputTokens": 5000,
        "ai.usage.inputTokenDetails.cacheWriteTokens": 1000,
    }),
    "agenteval": {"version": 1, "messages": SAID, "usage": {
        "input_tokens": 6100, "output_tokens": 200, "cached_tokens": 5000, "cache_write_tokens": 1000,
    }},
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_the_same_usage_through_every_door(imported: Callable[..., Any], door: str) -> None:
    given = DOORS[door]
    _, runs = imported(given, "f.jsonl" if isinstance(given, str) else "f.json")
    ((row, transcript),) = runs
    assert transcript.usage == WHOLE
    assert [note for note in transcript.notes if note.code.startswith("usage")] == []
    assert (row.input_tokens, row.output_tokens) == (6100, 200)
    # And at the list's price for claude-sonnet-4-5: 100 at $3, 1,000 at $3.75, 5,000 at $0.30, 200 at $15.
    assert Prices({}).cost("claude-sonnet-4-5", transcript.usage) == pytest.approx(0.00855)
