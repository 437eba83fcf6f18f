"""JSON Schemas of what agents of the kinds `command` and `python` are told and may say."""

from __future__ import annotations

from typing import Any

from agenteval_tui.formats.schemas.schema_parts import COUNT, FLAG, NUMBER, TEXT, Schema, array, record

_FREE: Schema = {"type": "object"}
_MESSAGE: Schema = {
    "type": "object",
    "description": "An OpenAI chat message.",
    "properties": {
        "role": TEXT,
        "content": TEXT,
        "tool_calls": array(
            record(
                {
                    "id": TEXT,
                    "type": {"const": "function"},
                    "function": record({"name": TEXT, "arguments": {**TEXT, "description": "JSON text"}}),
                }
            )
        ),
        "tool_call_id": TEXT,
        "name": TEXT,
    },
    "required": ["role", "content"],
}

REQUEST = record(
    {
        "version": {"const": 1},
        "prompt": {**TEXT, "description": "the text of the last user message"},
        "messages": array(_MESSAGE, "the whole conversation, the prompt last"),
        "context": {**_FREE, "description": "the test's testing context: input_data, sample_tools, ..."},
        "variables": {**_FREE, "description": "the test's variables, with those of its row in a dataset"},
        "config": {**_FREE, "description": "the agent's `settings`, a variation's merged in"},
        "test": TEXT,
        "repetition": {**COUNT, "minimum": 1},
        "seed": {**COUNT, "description": "its own for each test, row and repetition; the same each time"},
        "run": {**TEXT, "description": "the same in all turns and attempts of a run"},
        "turn": {**COUNT, "minimum": 1},
    }
)


def _event(kind: str, about: str, properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "description": about,
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *required],
    }


_VALUE: dict[str, Any] = {"description": "a text, or a value that is kept as JSON text"}
EVENT: Schema = {
    "oneOf": [
        _event("text", "More of the answer.", {"text": TEXT}, ("text",)),
        _event("reasoning", "More of the model's thinking.", {"text": TEXT}, ("text",)),
        _event(
            "tool_call",
            "The agent calls a tool.",
            {"id": {**TEXT, "description": "call_1, call_2, ... if absent"}, "name": TEXT, "arguments": _VALUE},
            ("name",),
        ),
        _event(
            "tool_result",
            "The result of a call.",
            {
                "id": {**TEXT, "description": "whose result it is; the oldest call without one if absent"},
                "result": _VALUE,
                "error": {"type": ["boolean", "string"], "description": "whether the tool failed, or how"},
                "duration_ms": NUMBER,
            },
        ),
        _event("ready", "The program has started: what it did until now is not the agent's time. The first event.", {}),
        _event("restart", "What was told so far does not count: it is told again, in another order or whole.", {}),
        _event("note", "Something that the run shall say.", {"code": TEXT, "what": TEXT}, ("code", "what")),
        _event("message_end", "The message is complete; what follows begins another one.", {}),
        _event(
            "usage",
            "Tokens of one request to a model; several add up.",
            {
                **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"), COUNT),
                "cost": {**NUMBER, "description": "US dollars"},
            },
        ),
        _event("done", "The agent has finished; what follows does not count.", {"finish_reason": TEXT, "model": TEXT}),
        _event(
            "error",
            "The agent could not finish.",
            {
                "message": TEXT,
                "kind": TEXT,
                "mend": TEXT,
                "retry": {**FLAG, "description": "another attempt may succeed"},
                "retry_after_s": NUMBER,
            },
            ("message",),
        ),
    ],
    "description": "One line of standard output.",
}
