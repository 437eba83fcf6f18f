"""JSON Schemas of lists: problems of suites, executions and runs, imports, agents, what `doctor` looked at."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    EXECUTION_STATUS,
    FLAG,
    NUMBER,
    RUN,
    SEVERITY,
    TEXT,
    TIME,
    Schema,
    array,
    or_null,
    record,
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
            "notes": {**array(TEXT), "description": "of an import: what was left out of its file"},
            "started": TIME,
            "finished": or_null(TIME),
            "suites": TEXT,
            "agents": TEXT,
            "project": {**TEXT, "description": "the folder of its project; empty where that is not known"},
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
            **{name: RUN[name] for name in _RUN_LINE},
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
            "skipped": array(record({"reason": TEXT, "count": COUNT, "first": TEXT})),
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
DOCTOR = record(
    {
        "version": {"const": 1},
        "checks": array(
            record({"name": TEXT, "state": {"enum": ["ok", "warning", "error"]}, "message": TEXT, "mend": TEXT})
        ),
    }
)
