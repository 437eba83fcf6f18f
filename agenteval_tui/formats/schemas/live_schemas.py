"""JSON Schemas of what the verbs print that look at plans, running executions, trusted folders and costs."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    Schema,
    array,
    by_key,
    or_null,
    record,
)

PS: Schema = record(
    {
        "version": {"const": 1},
        "executions": array(
            record(
                {
                    "execution": TEXT,
                    "title": TEXT,
                    "pid": {**or_null(COUNT), "description": "null: its process died"},
                    "started": TIME,
                    "answers": {**FLAG, "description": "false: its process says nothing, or died"},
                    "status": {"enum": ["running", "paused", "ended", "unknown", "died"]},
                    "runs": or_null(COUNT),
                    "ended": {**or_null(COUNT), "description": "runs that have an outcome or were cancelled"},
                    "running": or_null(COUNT),
                    "passed": or_null(COUNT),
                    "failed": or_null(COUNT),
                    "error": or_null(COUNT),
                    "eta_s": or_null(NUMBER),
                    "input_tokens": or_null(COUNT),
                    "output_tokens": or_null(COUNT),
                    "cost": {**or_null(NUMBER), "description": "US dollars, of agents and judges; null: not measured"},
                }
            ),
            "the oldest first",
        ),
    }
)

TRUST: Schema = record(
    {
        "version": {"const": 1},
        "folders": array(
            record(
                {
                    "folder": TEXT,
                    "since": TEXT,
                    "files": {**COUNT, "description": "files that could run, or say what runs"},
                    "trusted": {**FLAG, "description": "false: something was changed since"},
                    "reason": TEXT,
                }
            )
        ),
    }
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

_SPENT: dict[str, Schema] = {
    "count": {**COUNT, "description": "ended runs, or replies of judges"},
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "tokens": COUNT,
    "cost": {**or_null(NUMBER), "description": "US dollars; null: no price is known"},
    "priced": {**or_null(COUNT), "description": "runs with a known cost; null: not known of replies"},
    "mean_tokens": or_null(NUMBER),
    "mean_cost": or_null(NUMBER),
}
COSTS: Schema = record(
    {
        "execution": TEXT,
        "version": {"const": 1},
        "cost": or_null(NUMBER),
        "tokens": COUNT,
        "agents": record(_SPENT),
        "judges": record(_SPENT),
        "cached": {**COUNT, "description": "runs that were answered from the history"},
        "failed_attempts": COUNT,
        "by_test": array(
            record({"suite": TEXT, "test": TEXT, "name": TEXT, "agents": record(_SPENT), "judges": record(_SPENT)})
        ),
        "by_agent": array(record({"agent": TEXT, **_SPENT}), "what cost most first"),
        "by_criterion": array(
            record({"criterion": TEXT, "hash": TEXT, "models": array(TEXT), **_SPENT}), "the judges that each asked"
        ),
    },
    about="Failed attempts are in it, because they were paid for; answers that the history knew are not.",
)

_PAIR: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
_ARM = record(
    {
        "name": TEXT,
        "cases": COUNT,
        "runs": COUNT,
        "n": COUNT,
        "passed": COUNT,
        "errors": COUNT,
        "undecided": COUNT,
        "pass_rate": or_null(NUMBER),
        "interval": _PAIR,
        "tokens": or_null(NUMBER),
        "cost": or_null(NUMBER),
        "latency_ms": or_null(NUMBER),
    }
)
_MEASURE = or_null(record({"difference": NUMBER, "interval": or_null(_PAIR), "n": COUNT}))
AB: Schema = record(
    {
        "execution": TEXT,
        "version": {"const": 1},
        "a": _ARM,
        "b": _ARM,
        "cases": {**COUNT, "description": "tests and rows that were decided under both"},
        "unpaired": COUNT,
        "difference": {**or_null(NUMBER), "description": "B minus A, of pass rates, over cases"},
        "interval": or_null(_PAIR),
        "test": {"enum": ["mcnemar", "sign-flip"]},
        "p_value": or_null(NUMBER),
        "pairs": record({"both": COUNT, "only_a": COUNT, "only_b": COUNT, "neither": COUNT}),
        "detectable": or_null(NUMBER),
        "recommended": {"enum": ["", "A", "B"], "description": "only where the interval excludes 0"},
        "conclusion": TEXT,
        "tokens": _MEASURE,
        "cost": _MEASURE,
        "latency_ms": _MEASURE,
        "tests": array(
            record(
                {
                    "suite": TEXT,
                    "test": TEXT,
                    "name": TEXT,
                    "cases": COUNT,
                    "n_a": COUNT,
                    "passed_a": COUNT,
                    "n_b": COUNT,
                    "passed_b": COUNT,
                    "difference": NUMBER,
                }
            )
        ),
    }
)
