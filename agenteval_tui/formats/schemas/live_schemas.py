"""JSON Schemas of what the verbs print that look at plans, running executions, trusted folders and costs."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    array,
    by_key,
    or_null,
    record,
)

_RANGE: Schema = or_null(
    record(
        {
            "low": NUMBER,
            "expected": NUMBER,
            "high": NUMBER,
            "runs": {**COUNT, "description": "planned runs that it is a sum over"},
            "unknown": {**COUNT, "description": "planned runs of which nothing is known: they come on top"},
            "basis": {**COUNT, "description": "earlier runs that it rests on"},
        },
        about="Nine times in ten between low and high. Null: nothing is known.",
    )
)
PLAN: Schema = record(
    {
        "version": {"const": 1},
        "title": TEXT,
        "suites": COUNT,
        "tests": COUNT,
        "cases": {**COUNT, "description": "tests, and rows of datasets"},
        "runs": COUNT,
        "parts": array(record({"agent": TEXT, "variation": TEXT, "tests": COUNT, "cases": COUNT, "runs": COUNT})),
        "concurrency": COUNT,
        "estimate": record(
            {
                "runs": COUNT,
                "tests": COUNT,
                "agents": by_key(COUNT),
                "seconds": _RANGE,
                "tokens": _RANGE,
                "cost": _RANGE,
                "judges": record({"asked": COUNT, "questions": _RANGE, "tokens": _RANGE, "cost": _RANGE}),
                "may_stop": {**COUNT, "description": "runs that early stopping may save"},
            }
        ),
        "limits": record({"cost": or_null(NUMBER), "tokens": or_null(COUNT), "seconds": or_null(NUMBER)}),
        "over": array({"enum": ["cost", "tokens", "seconds"]}, "limits that the estimate is likely to reach"),
        "cache": {"enum": ["", "first", "all"]},
        "trusted": FLAG,
        "needs": array(
            record({"folder": TEXT, "what": array(TEXT), "trusted": FLAG, "reason": TEXT}),
            "what would be executed on this machine, or read outside of the suites' folders",
        ),
    }
)
