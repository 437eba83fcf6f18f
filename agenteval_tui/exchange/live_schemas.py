"""JSON Schemas of what the verbs print that look at running executions, trusted folders and costs."""

from __future__ import annotations

from agenteval_tui.exchange.schemas import COUNT, FLAG, NUMBER, TEXT, TIME, Schema, array, or_null, record

PS: Schema = record(
    {
        "version": {"const": 1},
        "executions": array(
            record(
                {
                    "execution": TEXT,
                    "title": TEXT,
                    "pid": COUNT,
                    "started": TIME,
                    "answers": {**FLAG, "description": "false: its process lives and says nothing"},
                    "status": {"enum": ["running", "paused", "ended", "unknown"]},
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
