"""JSON Schemas of results: an execution, a run, figures, verdicts given again, why a run failed."""

from __future__ import annotations

from agenteval_tui.formats.documents.causes import FailureCause
from agenteval_tui.formats.documents.comparison import AgainstBaseline
from agenteval_tui.formats.documents.schema import schema_of
from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    CRITERION,
    ERROR,
    EXECUTION_STATUS,
    LABEL,
    NUMBER,
    OUTCOME,
    RUN,
    SHARE,
    SPAN,
    STATUS,
    TEXT,
    TIME,
    TRANSCRIPT,
    Schema,
    array,
    by_key,
    or_null,
    record,
)

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
        "notes": {
            **array(TEXT),
            "description": "of an import: what was left out of its file, and what else is to be known",
        },
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
        "baseline": {
            **schema_of(AgainstBaseline),
            "description": "against the baseline of its tests; not there where they have none",
        },
        "quarantine": array(
            record(
                {
                    "suite": TEXT,
                    "test": TEXT,
                    "criterion": {**or_null(TEXT), "description": "null: the whole test"},
                    "until": {**COUNT, "description": "milliseconds since 1970"},
                    "reason": TEXT,
                    "runs": COUNT,
                    "not_passed": {**COUNT, "description": "runs that it kept from counting as not passed"},
                }
            ),
            "what did not gate",
        ),
        "runs": array(record(RUN)),
        "causes": array(schema_of(FailureCause), "of the failures, worst first; those that are gone last"),
    },
    optional=("baseline", "quarantine"),
)
SHOWN_RUN = record({"version": {"const": 1}, **RUN, "transcript": TRANSCRIPT})

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
            "checks_not_made": COUNT,
            "error": {
                **or_null(ERROR),
                "description": "why the agent did not finish",
            },
            "ending": {
                **or_null(record({"code": TEXT, "finish_reason": TEXT, "message": TEXT})),
                "description": "what ended the answer, where it was cut, stopped by a filter, or empty",
            },
            "notes": array(record({"code": TEXT, "what": TEXT})),
            "divergence": {
                **TEXT,
                "description": "where passing and failing repetitions of the test part; empty when nothing parts them",
            },
            "labels": array(LABEL, "what people said of these criteria, and of the run"),
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
