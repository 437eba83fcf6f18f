"""The JSON Schemas of comparisons, baselines and the versions of a criterion."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    FLAG,
    NUMBER,
    ROW_KEY,
    SHARE,
    STATUS,
    TEXT,
    TIME,
    Schema,
    array,
    or_null,
    record,
)

STATE: Schema = {
    "enum": ["worse", "better", "mixed", "score", "criteria", "undecided", "added", "removed", "same"]
}  # fmt: skip
_WHO: Schema = {"enum": ["agent", "criterion", "both", "judge noise", "unknown"]}
_INTERVAL: Schema = or_null({"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2})
_MEASURE = or_null(
    record(
        {
            "was": NUMBER,
            "now": NUMBER,
            "difference": NUMBER,
            "interval": {**_INTERVAL, "description": "95 %, of the difference; null for a single case"},
            "n": {**COUNT, "description": "cases that both sides have"},
        }
    )
)
_TALLY = or_null(
    record(
        {
            "runs": COUNT,
            "n": {**COUNT, "description": "those that passed or failed"},
            "passed": COUNT,
            "errors": COUNT,
            "score": or_null(SHARE),
            "latency_ms": or_null(NUMBER),
            "tokens": or_null(NUMBER),
            "cost": or_null(NUMBER),
        }
    )
)
_COUNTS: Schema = {"type": "object", "properties": dict.fromkeys(STATE["enum"], COUNT), "additionalProperties": False}
_OVERALL = record(
    {
        "pass_rate": _MEASURE,
        "test": {
            "enum": ["mcnemar", "sign-flip", "fisher"],
            "description": "mcnemar: every case ran once; sign-flip: repetitions; fisher: no case in common",
        },
        "n": {**COUNT, "description": "pairs, cases, or runs of the smaller side: what the test counts"},
        "p_value": or_null(SHARE),
        "detectable_drop": {
            **or_null(SHARE),
            "description": "the smallest drop that n shows four times in five; null: not even one of 1",
        },
        "pairs": record({"both": COUNT, "only_a": COUNT, "only_b": COUNT, "neither": COUNT}),
        "left_out": {**COUNT, "description": "cases that were decided on one side only"},
        "score": _MEASURE,
        "latency_ms": _MEASURE,
        "tokens": _MEASURE,
        "cost": _MEASURE,
        "said": TEXT,
    }
)
_SIDE = record(
    {
        "kind": {"enum": ["execution", "baseline", "agent", "variation", "version"]},
        "name": TEXT,
        "reference": TEXT,
        "executions": array(TEXT),
        "runs": COUNT,
        "started": or_null(TIME),
    }
)
_CRITERION = record(
    {
        "criterion": TEXT,
        "was_name": TEXT,
        "comparable": {**FLAG, "description": "one version of it judged both sides"},
        "state": STATE,
        "was": _TALLY,
        "now": _TALLY,
        "versions_was": array(TEXT),
        "versions_now": array(TEXT),
        "attribution": or_null(
            record(
                {
                    "who": _WHO,
                    "reason": TEXT,
                    "criterion": TEXT,
                    "was": {"anyOf": [STATUS, {"const": ""}]},
                    "now": {"anyOf": [STATUS, {"const": ""}]},
                    "old_under_new": TEXT,
                    "new_under_old": TEXT,
                }
            )
        ),
        "metrics": array(record({"name": TEXT, "type": TEXT, "was": _TALLY, "now": _TALLY})),
    }
)
_ROW = record(
    {
        "row": {**TEXT, "description": "its id, else its place in the file"},
        "row_key": ROW_KEY,
        "state": STATE,
        "was": _TALLY,
        "now": _TALLY,
        "place_was": {**or_null(COUNT), "description": "null: it was not there"},
        "place_now": {**or_null(COUNT), "description": "null: it is gone"},
        "moved": {**FLAG, "description": "out of the order of the others"},
        "content_changed": array(TEXT, "the variables that are others now, of a row that has an id"),
        "runs": {
            **or_null({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}),
            "description": "a run of each side that show the change",
        },
    }
)
COMPARISON: Schema = record(
    {
        "version": {"const": 1},
        "a": _SIDE,
        "b": _SIDE,
        "overall": _OVERALL,
        "counts": _COUNTS,
        "said": TEXT,
        "notes": array(TEXT),
        "paired_suites": {
            **array(
                record(
                    {
                        "was": {"type": "string", "description": "its key in a"},
                        "now": {"type": "string", "description": "its key in b"},
                        "by": {
                            "enum": ["name", "tests"],
                            "description": "name: a suite's file that lies elsewhere; tests: two imported files whose"
                            " tests have the same ids",
                        },
                        "asked_alike": {"type": "boolean", "description": "a test of both was asked the same"},
                    }
                )
            ),
            "description": "suites that are compared with each other though their files differ",
        },
        "tests": array(
            record(
                {
                    "suite": TEXT,
                    "test": TEXT,
                    "name": TEXT,
                    "variation": TEXT,
                    "state": STATE,
                    "comparable": {**FLAG, "description": "false: its criteria are others on the right"},
                    "cases": COUNT,
                    "was": _TALLY,
                    "now": _TALLY,
                    "difference": or_null(NUMBER),
                    "score_difference": or_null(NUMBER),
                    "p_value": or_null(SHARE),
                    "quarantine": {**TEXT, "description": 'why it does not gate; "": it does'},
                    "rows": array(_ROW, "of its dataset, in the order of the right side; those that went are last"),
                    "runs": {
                        **or_null({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}),
                        "description": "a run of each side that show the change",
                    },
                    "attribution": or_null(
                        record(
                            {
                                "who": _WHO,
                                "reason": TEXT,
                                "divergence": TEXT,
                                "flips": array(
                                    record({"before": TEXT, "after": TEXT, "who": _WHO, "divergence": TEXT})
                                ),
                            }
                        )
                    ),
                    "criteria": array(_CRITERION),
                }
            ),
            "what passes less often first",
        ),
    }
)
AGAINST: Schema = record(
    {
        "executions": array(TEXT),
        "started": or_null(TIME),
        "overall": {**_OVERALL, "description": "of the tests that gate"},
        "counts": _COUNTS,
        "regressed": array(TEXT),
        "not_comparable": array(TEXT, "tests whose criteria are others than the baseline's; they count all the same"),
        "within_chance": array(TEXT, "tests that passed less often, as chance explains"),
        "quarantined": array(TEXT),
        "without_baseline": COUNT,
        "changes": array(
            record(
                {
                    "test": TEXT,
                    "variation": TEXT,
                    "state": STATE,
                    "was": _TALLY,
                    "now": _TALLY,
                    "p_value": or_null(SHARE),
                    "rows": array(_ROW, "those of its dataset that are worse or better"),
                }
            )
        ),
    },
    about="against the baseline of its tests; not there where they have none",
)
BASELINES: Schema = array(
    record(
        {
            "suite": TEXT,
            "suite_key": TEXT,
            "test": TEXT,
            "name": TEXT,
            "execution": TEXT,
            "run": {**TEXT, "description": '"": all runs of the execution'},
            "who": TEXT,
            "set": TIME,
            "started": TIME,
            "runs": COUNT,
            "passed": COUNT,
            "errors": COUNT,
        }
    )
)
VERSIONS: Schema = record(
    {
        "version": {"const": 1},
        "suite_key": TEXT,
        "test": TEXT,
        "criterion": TEXT,
        "current": {**TEXT, "description": 'the hash in the suite\'s file; "": it is not there'},
        "was_named": {**TEXT, "description": "the name before its first version here; empty: as now"},
        "versions": array(
            record(
                {
                    "hash": TEXT,
                    "first": TIME,
                    "last": TIME,
                    "runs": COUNT,
                    "passed": COUNT,
                    "failed": COUNT,
                    "current": FLAG,
                    "text": TEXT,
                }
            ),
            "newest first",
        ),
    }
)
