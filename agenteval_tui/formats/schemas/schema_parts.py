"""Parts of JSON Schemas that several documents have: kinds of values, evidence, transcripts, a run."""

from __future__ import annotations

from typing import Any

from agenteval_tui.grading.codes import Code

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
OUTCOME: Schema = {"enum": ["passed", "failed", "error", "skipped", "needs_review"]}
STATUS: Schema = {"enum": [*OUTCOME["enum"], "queued", "running", "grading", "cancelled"]}
EXECUTION_STATUS: Schema = {"enum": ["running", "finished", "cancelled", "stopped", "failed", "interrupted"]}
SEVERITY: Schema = {"enum": ["error", "warning", "info"]}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}


def or_null(schema: Schema) -> Schema:
    """`schema`, or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema, about: str = "") -> Schema:
    """A list of `items`."""
    return {"type": "array", "items": items, **({"description": about} if about else {})}


def record(properties: dict[str, Schema], optional: tuple[str, ...] = (), about: str = "") -> Schema:
    """An object with these properties and no others; all but `optional` ones are always there."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **({"description": about} if about else {}),
    }


def by_key(values: Schema) -> Schema:
    """An object whose keys are free."""
    return {"type": "object", "additionalProperties": values}


SPAN = record(
    {
        "kind": {"enum": ["message", "arguments", "tool", "value"]},
        "index": COUNT,
        "start": COUNT,
        "end": COUNT,
        "path": TEXT,
    },
    optional=("start", "end", "path"),
    about="A place: characters of a message or of the extracted value, a tool call, or an argument of one.",
)
CODE: Schema = {
    "anyOf": [{"enum": [str(code) for code in Code]}, {"type": "null"}],
    "description": "what holds or what is wrong; null: what is below says all. Documents of older versions have none.",
}
FIELDS: Schema = {
    "type": "object",
    "description": "what the code speaks of: tool, path, key, line, counts, bounds, ...",
}
REASON: Schema = {**TEXT, "description": "the code and its fields in words: for people, and worded anew at any time"}
EVIDENCE = record(
    {
        "condition": TEXT,
        "passed": or_null(FLAG),
        "reason": REASON,
        "code": CODE,
        "fields": FIELDS,
        "expected": ANY,
        "found": ANY,
        "spans": array(SPAN),
        "near": array(SPAN, "where the closest miss is"),
        "group": TEXT,
    },
    optional=("code", "fields"),
)
RATING: Schema = or_null({"type": "integer", "minimum": 1, "maximum": 5})
METRIC = record(
    {
        "name": TEXT,
        "type": TEXT,
        "outcome": OUTCOME,
        "score": or_null(SHARE),
        "rating": RATING,
        "evidence": array(EVIDENCE),
        "weight": NUMBER,
        "neutral": FLAG,
        "reason": REASON,
        "code": CODE,
        "fields": FIELDS,
    },
    optional=("code", "fields"),
)
CRITERION = record(
    {
        "criterion": TEXT,
        "outcome": OUTCOME,
        "score": or_null(SHARE),
        "rating": RATING,
        "value": or_null(TEXT),
        "metrics": array(METRIC),
        "reason": REASON,
        "code": CODE,
        "fields": FIELDS,
        "severity": SEVERITY,
        "weight": NUMBER,
        "negate": FLAG,
        "prototype_class": TEXT,
        "criterion_hash": TEXT,
        "source": {**TEXT, "description": 'whose verdict it is: "" ours, else the tool that it was imported from'},
        "derived": {**FLAG, "description": "made at an import of what the file says was expected; it decides nothing"},
        "value_spans": array(SPAN),
    },
    optional=("code", "fields", "derived"),
)

MESSAGE = record(
    {
        "role": TEXT,
        "content": TEXT,
        "reasoning": TEXT,
        "tool_calls": array(COUNT, "indices into the transcript's tool_calls"),
        "tool_call": {**COUNT, "description": "of a tool message: the call that it answers"},
        "tool_call_id": TEXT,
        "name": TEXT,
    },
    optional=("reasoning", "tool_calls", "tool_call", "tool_call_id", "name"),
)
TOOL_CALL = record(
    {
        "id": TEXT,
        "name": TEXT,
        "arguments": {"description": "the decoded JSON value; text when it was malformed"},
        "result": TEXT,
        "status": {"enum": ["ok", "error", "pending"]},
        "started_ms": NUMBER,
        "duration_ms": NUMBER,
        "message": COUNT,
        "malformed": FLAG,
    },
    optional=("result", "started_ms", "duration_ms", "message", "malformed"),
)
TIMING = record(
    {
        "first_token_ms": NUMBER,
        "total_ms": NUMBER,
        "steps": array(
            record({"name": TEXT, "started_ms": NUMBER, "duration_ms": NUMBER, "setup": FLAG}, optional=("setup",))
        ),
    },
    optional=("first_token_ms", "total_ms", "steps"),
)
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
USAGE = record({**dict.fromkeys(_TOKENS, COUNT), "cost": NUMBER}, optional=(*_TOKENS, "cost"))
ERROR = record(
    {
        "kind": TEXT,
        "message": TEXT,
        "mend": TEXT,
        "code": {**TEXT, "description": "what exactly went wrong; empty where nobody said it by a code"},
        "fields": {"type": "object", "description": "what the code is about; `fingerprint`: foreign words, reduced"},
    },
    optional=("code", "fields"),
)
TRANSCRIPT = record(
    {
        "version": {"const": 1},
        "messages": array(MESSAGE),
        "tool_calls": array(TOOL_CALL),
        "timing": TIMING,
        "usage": USAGE,
        "model": TEXT,
        "finish_reason": TEXT,
        "final_output": TEXT,
        "error": or_null(ERROR),
        "log": TEXT,
        "notes": array(record({"code": TEXT, "what": TEXT})),
    },
    optional=("tool_calls", "timing", "usage", "model", "finish_reason", "final_output", "error", "log", "notes"),
)

ROW_KEY: Schema = {
    **TEXT,
    "description": "what the dataset's row is, wherever it stands: `id:ID` or `content:HASH`; empty without a dataset",
}
LABEL: Schema = record(
    {
        "criterion": {**or_null(TEXT), "description": "its name; null: the run as a whole, or it is not known"},
        "unknown": {**FLAG, "description": "of an older history, where several criteria may be meant: no verdict"},
        "passed": or_null(FLAG),
        "rating": or_null(COUNT),
        "good": {**FLAG, "description": "passed, or rated 4 or 5"},
        "comment": TEXT,
        "who": TEXT,
        "at": TIME,
    }
)
RUN: dict[str, Schema] = {
    "run": TEXT,
    "suite": TEXT,
    "test": TEXT,
    "test_name": TEXT,
    "variation": TEXT,
    "row": COUNT,
    "row_key": ROW_KEY,
    "repetition": COUNT,
    "agent": TEXT,
    "tags": array(TEXT),
    "outcome": STATUS,
    "score": or_null(SHARE),
    "why": TEXT,
    "warnings": COUNT,
    "checks_not_made": COUNT,
    "started": or_null(TIME),
    "duration_ms": or_null(NUMBER),
    "attempts": COUNT,
    "criteria": array(CRITERION),
    "labels": array(LABEL, "what people said of the run and its criteria, oldest first"),
    "final_output": TEXT,
    "tool_calls": array(TOOL_CALL),
    "usage": USAGE,
    "timing": TIMING,
    "finish_reason": TEXT,
    "error": or_null(ERROR),
}
