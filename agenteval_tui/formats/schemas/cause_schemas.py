"""JSON Schemas of what `agenteval causes`, `agenteval triage` and `agenteval review` print."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    FLAG,
    SHARE,
    STATUS,
    TEXT,
    TIME,
    Schema,
    array,
    or_null,
    record,
)
from agenteval_tui.history.triage import DECISIONS

_DECISION = record(
    {
        "decision": {"enum": list(DECISIONS)},
        "note": TEXT,
        "who": TEXT,
        "at": or_null(TIME),
        "until": {**or_null(TIME), "description": "it is open again from then on"},
        "holds": FLAG,
        "open_again": {**TEXT, "description": "why it no longer holds"},
    }
)
_PARTS: dict[str, Schema] = {
    "id": {**TEXT, "description": "the short name; `agenteval triage` takes it, or its first digits"},
    "signature": {**TEXT, "description": "the same wherever the same thing is wrong in the same way"},
    "kind": {"enum": ["failed", "error", "agent", "threshold", "ending"]},
    "criterion": TEXT,
    "prototype": TEXT,
    "metric": TEXT,
    "condition": {**TEXT, "description": "the condition that was missed; of an agent's error its kind"},
    "about": {**TEXT, "description": "the tool, its arguments, the key or the label"},
    "way": {**TEXT, "description": "how it was missed; of an error its message without what varies"},
}
CAUSE = record(
    {
        **_PARTS,
        "title": TEXT,
        "runs": COUNT,
        "share": {**SHARE, "description": "of the failed runs"},
        "of_runs": {**COUNT, "description": "runs of its tests, passed or not"},
        "tests": array(record({"suite": TEXT, "test": TEXT})),
        "trend": {"enum": ["new", "known", "gone", ""], "description": "against what it is compared with"},
        "before": {**COUNT, "description": "runs that had it there"},
        "since": {**or_null(TIME), "description": "when the first run that has it began"},
        "since_run": TEXT,
        "newest": or_null(TIME),
        "examples": array(TEXT, "RUN/NUMBER, for `agenteval why`; RUN where the agent failed"),
        "decision": or_null(_DECISION),
    }
)
CAUSES: Schema = record(
    {
        "version": {"const": 1},
        "scope": TEXT,
        "compared_with": TEXT,
        "execution": TEXT,
        "runs": COUNT,
        "failed": COUNT,
        "causes": array(CAUSE, "worst first; those that are gone last"),
    }
)
TRIAGE: Schema = record(
    {
        "version": {"const": 1},
        "decisions": array(
            record(
                {
                    **_PARTS,
                    "title": TEXT,
                    **_DECISION["properties"],
                    "done": {**TEXT, "description": "what deciding did"},
                },
                optional=("done",),
            )
        ),
    }
)
REVIEW: Schema = record(
    {
        "version": {"const": 1},
        "waiting": array(
            record(
                {
                    "run": TEXT,
                    "suite": TEXT,
                    "test": TEXT,
                    "outcome": STATUS,
                    "criterion": {**TEXT, "description": '"": the run as a whole'},
                    "address": {**TEXT, "description": "RUN/NUMBER, for `agenteval label`"},
                    "why": {"enum": ["needs_review", "failure", "disagreement", "sample"]},
                    "question": TEXT,
                }
            )
        ),
    }
)
