"""JSON Schemas of what `agenteval judge-report --json` prints."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    ANY,
    COUNT,
    FLAG,
    NUMBER,
    OUTCOME,
    SHARE,
    TEXT,
    Schema,
    array,
    by_key,
    or_null,
    record,
)

_RATE = {"type": "number", "minimum": -1, "maximum": 1}

REPORT: Schema = record(
    {
        "version": {"const": 1},
        "criteria": array(
            record(
                {
                    "suite": TEXT,
                    "criterion": TEXT,
                    "by_judge": {**FLAG, "description": "false: the criterion asks no judge"},
                    "judges": array(TEXT, "the models that judged"),
                    "judged": {**COUNT, "description": "runs that the criterion was applied to"},
                    "passed": COUNT,
                    "errors": COUNT,
                    "labelled": {**COUNT, "description": "of them with a person's rating"},
                    "undecided": {**COUNT, "description": "labelled runs without a verdict; left out of n"},
                    "n": {**COUNT, "description": "runs that judge and person both decided"},
                    "both_yes": COUNT,
                    "both_no": COUNT,
                    "only_judge": COUNT,
                    "only_person": COUNT,
                    "accuracy": or_null(SHARE),
                    "interval": {**array(SHARE), "description": "Wilson's 95 % interval of the accuracy"},
                    "kappa": {**or_null(_RATE), "description": "Cohen's kappa; null where it is not defined"},
                    "differ": array(TEXT, "RUN/NUMBER of the runs on which judge and person differ"),
                }
            )
        ),
    }
)

REPLIES: Schema = record(
    {
        "version": {"const": 1},
        "run": TEXT,
        "criterion": TEXT,
        "outcome": OUTCOME,
        "score": or_null(SHARE),
        "label": or_null(
            record(
                {
                    "rating": or_null({"type": "integer", "minimum": 1, "maximum": 5}),
                    "passed": or_null(FLAG),
                    "good": {**FLAG, "description": "passed if that is given, else a rating of 4 or 5"},
                    "comment": TEXT,
                    "who": TEXT,
                    "at": COUNT,
                }
            )
        ),
        "replies": array(
            record(
                {
                    "request": record(
                        {"kind": {"enum": ["chat", "embed", "call", "person"]}, "target": TEXT, "payload": by_key(ANY)}
                    ),
                    "raw": {**TEXT, "description": "what came back, as it came"},
                    "error": {**TEXT, "description": "why nothing came back"},
                    "model": TEXT,
                    "input_tokens": or_null(COUNT),
                    "output_tokens": or_null(COUNT),
                    "at": {**COUNT, "description": "milliseconds since 1970"},
                }
            )
        ),
    }
)

REASK: Schema = record(
    {
        "version": {"const": 1},
        "run": TEXT,
        "criterion": TEXT,
        "stored": OUTCOME,
        "times": COUNT,
        "outcomes": by_key(COUNT),
        "scores": array(SHARE),
        "median": or_null(SHARE),
        "spread": or_null(SHARE),
        "standard_deviation": or_null(NUMBER),
        "flips": {**COUNT, "description": "verdicts that differ from what most of them say"},
        "reasons": array(TEXT),
        "asked": {**COUNT, "description": "questions that were sent, with second tries"},
        "input_tokens": or_null(COUNT),
        "output_tokens": or_null(COUNT),
    }
)
