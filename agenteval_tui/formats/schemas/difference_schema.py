"""The JSON Schema of a difference of two runs (`formats.exporters.difference_json`)."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import ANY, COUNT, SHARE, STATUS, TEXT, Schema, array, or_null, record

_RUN: Schema = record(
    {
        "run": TEXT,
        "test": TEXT,
        "variation": TEXT,
        "repetition": COUNT,
        "agent": TEXT,
        "status": STATUS,
        "score": or_null(SHARE),
    }
)
_SIDE: Schema = or_null(
    record(
        {
            "index": {**COUNT, "description": "the message, or for calls and results the tool call, counted from 0"},
            "text": {**TEXT, "description": "what was compared; of a call its arguments as JSON"},
        }
    )
)
_ARGUMENT: Schema = record(
    {
        "path": {**TEXT, "description": 'keys and indexes with dots between them; "" when all of it differs'},
        "state": {"enum": ["changed", "left", "right"]},
        "left": ANY,
        "right": ANY,
    }
)
DIFFERENCE: Schema = record(
    {
        "version": {"const": 1},
        "left": _RUN,
        "right": _RUN,
        "differences": {**COUNT, "description": "steps that differ; other reasoning alone is not counted"},
        "steps": array(
            record(
                {
                    "state": {"enum": ["same", "changed", "left", "right"]},
                    "kind": {**TEXT, "description": "the message's role, or reasoning, call, result, error"},
                    "tool": TEXT,
                    "left": _SIDE,
                    "right": _SIDE,
                    "arguments": array(_ARGUMENT, "of a call that differs: the arguments that do"),
                },
                optional=("arguments",),
            ),
            "all steps of both runs, in order",
        ),
    }
)
