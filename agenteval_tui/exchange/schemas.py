"""JSON Schemas of what this program reads and prints. `docs/schemas/` holds them as files; tests check both.

A document that may grow has a `version`; its number changes when something in it changes its meaning or goes away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenteval_tui.text.problems import AgentevalError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
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
EVIDENCE = record(
    {
        "condition": TEXT,
        "passed": or_null(FLAG),
        "reason": TEXT,
        "expected": ANY,
        "found": ANY,
        "spans": array(SPAN),
        "near": array(SPAN, "where the closest miss is"),
        "group": TEXT,
    }
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
        "reason": TEXT,
    }
)
CRITERION = record(
    {
        "criterion": TEXT,
        "outcome": OUTCOME,
        "score": or_null(SHARE),
        "rating": RATING,
        "value": or_null(TEXT),
        "metrics": array(METRIC),
        "reason": TEXT,
        "severity": SEVERITY,
        "weight": NUMBER,
        "negate": FLAG,
        "prototype_class": TEXT,
        "criterion_hash": TEXT,
        "source": {**TEXT, "description": 'whose verdict it is: "" ours, else the tool that it was imported from'},
        "value_spans": array(SPAN),
    }
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
        "steps": array(record({"name": TEXT, "started_ms": NUMBER, "duration_ms": NUMBER})),
    },
    optional=("first_token_ms", "total_ms", "steps"),
)
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
USAGE = record({**dict.fromkeys(_TOKENS, COUNT), "cost": NUMBER}, optional=(*_TOKENS, "cost"))
ERROR = record({"kind": TEXT, "message": TEXT, "mend": TEXT})
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
    },
    optional=("tool_calls", "timing", "usage", "model", "finish_reason", "final_output", "error"),
)

_RUN: dict[str, Schema] = {
    "run": TEXT,
    "suite": TEXT,
    "test": TEXT,
    "test_name": TEXT,
    "variation": TEXT,
    "row": COUNT,
    "repetition": COUNT,
    "agent": TEXT,
    "tags": array(TEXT),
    "outcome": STATUS,
    "score": or_null(SHARE),
    "why": TEXT,
    "warnings": COUNT,
    "started": or_null(TIME),
    "duration_ms": or_null(NUMBER),
    "attempts": COUNT,
    "criteria": array(CRITERION),
    "final_output": TEXT,
    "tool_calls": array(TOOL_CALL),
    "usage": USAGE,
    "timing": TIMING,
    "error": or_null(ERROR),
}
_COUNTS: dict[str, Schema] = dict.fromkeys(("passed", "failed", "error", "skipped", "cancelled", "needs_review"), COUNT)
RESULTS = record(
    {
        "version": {"const": 1},
        "execution": TEXT,
        "title": TEXT,
        "kind": {"enum": ["run", "import"]},
        "suite": TEXT,
        "status": EXECUTION_STATUS,
        "message": TEXT,
        "started": TIME,
        "finished": or_null(TIME),
        "summary": record(
            {
                "tests": COUNT,
                "runs": COUNT,
                **_COUNTS,
                "input_tokens": COUNT,
                "output_tokens": COUNT,
                "cost": or_null(NUMBER),
            }
        ),
        "runs": array(record(_RUN)),
    }
)
SHOWN_RUN = record({"version": {"const": 1}, **_RUN, "transcript": TRANSCRIPT})

_CURVE = by_key(SHARE)
_SPREAD = record({"p50": or_null(NUMBER), "p95": or_null(NUMBER)})
_INTERVAL: Schema = {"type": "array", "items": SHARE, "minItems": 2, "maxItems": 2}
_FIGURES: dict[str, Schema] = {
    "n": {**COUNT, "description": "runs that passed or failed"},
    "passed": COUNT,
    "errors": {**COUNT, "description": "runs that ended in an error; not in n unless asked for"},
    "undecided": COUNT,
    "pass_rate": or_null(SHARE),
    "interval": {**_INTERVAL, "description": "95 %: Wilson's for a test; overall clustered by test"},
    "pass_at_k": _CURVE,
    "pass_hat_k": _CURVE,
    "latency_ms": _SPREAD,
    "tokens": _SPREAD,
    "cost": _SPREAD,
    "steps": {**_SPREAD, "description": "tool calls of a run"},
}
STATS = record(
    {
        "execution": TEXT,
        "version": {"const": 1},
        "tests": array(
            record(
                {
                    "id": TEXT,
                    "name": TEXT,
                    "suite": TEXT,
                    "test": TEXT,
                    "variation": TEXT,
                    "row": COUNT,
                    **_FIGURES,
                    "flaky": FLAG,
                }
            )
        ),
        "overall": record(
            {
                "tests": COUNT,
                **_FIGURES,
                "standard_error": or_null(NUMBER),
                "tests_at_k": by_key(COUNT),
                "flaky": COUNT,
            },
            about="Rates and curves are means over the tests.",
        ),
        "classification": or_null(
            record(
                {
                    "labels": array(TEXT),
                    "matrix": array(array(COUNT)),
                    "n": COUNT,
                    "errors": COUNT,
                    "accuracy": or_null(NUMBER),
                    "macro_f1": or_null(NUMBER),
                    "weighted_f1": or_null(NUMBER),
                    "per_label": array(
                        record(
                            {
                                "label": TEXT,
                                "support": COUNT,
                                "given": COUNT,
                                "hits": COUNT,
                                "precision": or_null(NUMBER),
                                "recall": or_null(NUMBER),
                                "f1": or_null(NUMBER),
                            }
                        )
                    ),
                },
                about="Of the `Classification` metrics of all runs: matrix[i][j] counts how often labels[i] was right "
                "and labels[j] was given. Null where no run has such a metric.",
            )
        ),
    }
)

GRADED_EXECUTION = record(
    {
        "version": {"const": 1},
        "execution": TEXT,
        "saved": or_null(TEXT),
        "summary": record(
            {"runs": COUNT, "left_out": COUNT, "outcomes": by_key(COUNT), "agreement": by_key(COUNT)},
        ),
        "runs": array(
            record(
                {
                    "run": TEXT,
                    "test": TEXT,
                    "repetition": COUNT,
                    "outcome": OUTCOME,
                    "score": or_null(SHARE),
                    "criteria": array(CRITERION),
                    "foreign": array(CRITERION, "verdicts of other tools that are stored with the run"),
                }
            )
        ),
    }
)

_PLACE: Schema = {"type": "integer", "minimum": 1}
PROBLEM = record(
    {
        "file": TEXT,
        "line": _PLACE,
        "column": _PLACE,
        "end_line": _PLACE,
        "end_column": _PLACE,
        "severity": SEVERITY,
        "code": TEXT,
        "message": TEXT,
        "fix": or_null(TEXT),
    }
)
HISTORY = array(
    record(
        {
            "execution": TEXT,
            "title": TEXT,
            "kind": {"enum": ["run", "import"]},
            "status": EXECUTION_STATUS,
            "message": TEXT,
            "started": TIME,
            "finished": or_null(TIME),
            "suites": TEXT,
            "agents": TEXT,
            "runs": COUNT,
            "passed": COUNT,
            "failed": COUNT,
            "errors": COUNT,
            "skipped": COUNT,
            "cancelled": COUNT,
            "needs_review": COUNT,
            "cost": or_null(NUMBER),
        }
    )
)
_RUN_LINE = ("run", "suite", "test", "variation", "repetition", "agent", "outcome", "score", "why", "started")
HISTORY_RUNS = array(
    record(
        {
            **{name: _RUN[name] for name in _RUN_LINE},
            "execution": TEXT,
            "duration_ms": or_null(NUMBER),
            "prompt": TEXT,
            "output": TEXT,
        }
    )
)
IMPORTED = array(
    record(
        {
            "file": TEXT,
            "format": TEXT,
            "execution": TEXT,
            "read": COUNT,
            "added": COUNT,
            "already": FLAG,
            "cut_off": FLAG,
            "skipped": array(record({"reason": TEXT, "count": COUNT})),
            "notes": array(TEXT),
            "error": {**or_null(TEXT), "description": "why nothing of this file was imported"},
            "dry_run": {**FLAG, "description": "nothing was stored"},
        }
    )
)
AGENTS = array(
    record(
        {
            "agent": TEXT,
            "kind": TEXT,
            "from": TEXT,
            "description": TEXT,
            "ok": or_null(FLAG),
            "message": TEXT,
            "mend": TEXT,
            "latency_ms": or_null(NUMBER),
            "steps": array(
                record({"name": TEXT, "ok": or_null(FLAG), "message": TEXT, "latency_ms": or_null(NUMBER)}),
            ),
        },
        about="ok is null when the agent was not checked; of a step, when it could not be told.",
    )
)
_FACT: Schema = {"$ref": "#/$defs/fact"}
WHY = {
    **record(
        {
            "version": {"const": 1},
            "run": TEXT,
            "execution": TEXT,
            "suite": TEXT,
            "test": TEXT,
            "test_name": TEXT,
            "variation": TEXT,
            "repetition": COUNT,
            "agent": TEXT,
            "status": STATUS,
            "error": {
                **or_null(ERROR),
                "description": "why the agent did not finish",
            },
            "divergence": {
                **TEXT,
                "description": "where passing and failing repetitions of the test part; empty when nothing parts them",
            },
            "criteria": array(
                record(
                    {
                        "address": {**TEXT, "description": "what to say to `agenteval why` to see this one again"},
                        "headline": TEXT,
                        "explanation": _FACT,
                        "result": CRITERION,
                    }
                )
            ),
        }
    ),
    "$defs": {
        "fact": record(
            {
                "mark": {"enum": ["passed", "failed", "error", "info", "near"]},
                "text": TEXT,
                "span": or_null(SPAN),
                "children": array(_FACT),
            },
            about="One line of the explanation, with what belongs to it below.",
        )
    },
}
DOCTOR = record(
    {
        "version": {"const": 1},
        "checks": array(
            record({"name": TEXT, "state": {"enum": ["ok", "warning", "error"]}, "message": TEXT, "mend": TEXT})
        ),
    }
)


def _suite() -> Schema:
    from agenteval_tui.suites.json_schema import suite_schema

    return suite_schema()


def _criteria() -> Schema:
    whole = _suite()
    one: Schema = {"$ref": "#/$defs/Criterion"}
    several = array(one)
    return {
        "anyOf": [one, several, {"type": "object", "properties": {"criteria": several}, "required": ["criteria"]}],
        "$defs": {"Criterion": {**whole["$defs"]["Criterion"], "required": ["prototype_class", "config_uxon"]}},
    }


def _judge(name: str) -> Callable[[], Schema]:
    def made() -> Schema:
        from agenteval_tui.exchange import judge_schemas

        found: Schema = getattr(judge_schemas, name)
        return found

    return made


def _live(name: str) -> Callable[[], Schema]:
    def made() -> Schema:
        from agenteval_tui.exchange import live_schemas

        found: Schema = getattr(live_schemas, name)
        return found

    return made


def _program(name: str) -> Callable[[], Schema]:
    def made() -> Schema:
        from agenteval_tui.exchange import program_schemas

        found: Schema = getattr(program_schemas, name)
        return found

    return made


# name -> (title, the schema or what makes it)
AUDIT = record(
    {
        "version": {"const": 1},
        "suites": array(
            record(
                {
                    "file": TEXT,
                    "tests": array(
                        record(
                            {
                                "test": TEXT,
                                "name": TEXT,
                                "line": COUNT,
                                "runs": {**COUNT, "description": "stored runs that were looked at"},
                                "different_runs": {**COUNT, "description": "those that are not alike"},
                                "mutations": COUNT,
                                "note": {**TEXT, "description": "why the test was not audited"},
                                "criteria": array(
                                    record(
                                        {
                                            "criterion": TEXT,
                                            "severity": SEVERITY,
                                            "line": COUNT,
                                            "runs": by_key(COUNT),
                                            "mutations": by_key(COUNT),
                                            "noticed": by_key(record({"failed": COUNT, "tried": COUNT})),
                                            "note": TEXT,
                                        },
                                        about="Outcomes over runs and mutations; what it noticed, by kind of mutation.",
                                    )
                                ),
                                "findings": array(
                                    record(
                                        {
                                            "kind": {
                                                "enum": [
                                                    "never-fails",
                                                    "never-passes",
                                                    "always-error",
                                                    "implied",
                                                    "same",
                                                    "passes-empty",
                                                ]
                                            },
                                            "criterion": or_null(TEXT),
                                            "other": or_null(TEXT),
                                            "message": TEXT,
                                            "line": COUNT,
                                            "few_runs": FLAG,
                                            "evidence": by_key(COUNT),
                                        }
                                    )
                                ),
                            }
                        )
                    ),
                }
            )
        ),
    }
)


def _difference() -> Schema:
    from agenteval_tui.exchange.difference_schema import DIFFERENCE

    return DIFFERENCE


SCHEMAS: dict[str, tuple[str, Schema | Callable[[], Schema]]] = {
    "suite": ("a suite file", _suite),
    "criteria": ("the file of `agenteval grade --criteria`", _criteria),
    "transcript": ("a transcript; what `agenteval show --transcript --json` prints", TRANSCRIPT),
    "results": ("what `agenteval run --json` writes and `agenteval show EXECUTION --json` prints", RESULTS),
    "run": ("what `agenteval show RUN --json` prints", SHOWN_RUN),
    "grade": ("what `agenteval grade --transcript --json` prints", array(CRITERION)),
    "grade-execution": ("what `agenteval grade --execution --json` prints", GRADED_EXECUTION),
    "why": ("what `agenteval why --json` prints", WHY),
    "difference": ("what `agenteval show RUN --diff RUN --json` prints", _difference),
    "stats": ("what `agenteval stats --json` prints", STATS),
    "validate": ("what `agenteval validate --json` prints", array(PROBLEM)),
    "audit": ("what `agenteval audit --json` prints", AUDIT),
    "judge-report": ("what `agenteval judge-report --json` prints", _judge("REPORT")),
    "judge-replies": ("what `agenteval judge-report RUN/CRITERION --json` prints", _judge("REPLIES")),
    "judge-reask": ("what `agenteval judge-report RUN/CRITERION --reask N --json` prints", _judge("REASK")),
    "history": ("what `agenteval history --json` prints", HISTORY),
    "history-runs": ("what `agenteval history --runs --json` prints", HISTORY_RUNS),
    "import": ("what `agenteval import --json` prints", IMPORTED),
    "agents": ("what `agenteval agents --json` prints", AGENTS),
    "doctor": ("what `agenteval doctor --json` prints", DOCTOR),
    "agent-request": ("what a `command` or `python` agent is told", _program("REQUEST")),
    "agent-event": ("what a `command` or `python` agent may say: one event", _program("EVENT")),
    "costs": ("what `agenteval stats --costs --json` prints", _live("COSTS")),
    "ab": ("what `agenteval stats --ab --json` prints", _live("AB")),
    "plan": ("what `agenteval run --plan --json -` prints", _live("PLAN")),
    "ps": ("what `agenteval ps --json` prints", _live("PS")),
    "trust": ("what `agenteval trust --json` prints", _live("TRUST")),
}


def schema(name: str) -> Schema:
    """The schema of that name, with `$schema` and `title`. Raises `AgentevalError` for another name."""
    if name not in SCHEMAS:
        from difflib import get_close_matches

        near = get_close_matches(name, SCHEMAS, n=1)
        mend = f"did you mean {near[0]}?" if near else f"schemas: {', '.join(SCHEMAS)}"
        raise AgentevalError(f"there is no schema {name!r}", mend=mend)
    about, found = SCHEMAS[name]
    body = found() if callable(found) else found
    return {"$schema": DIALECT, "title": f"agenteval: {about}", **{k: v for k, v in body.items() if k not in _HEAD}}


_HEAD = ("$schema", "title")
