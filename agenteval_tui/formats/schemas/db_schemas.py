"""JSON Schemas of what `agenteval db` prints. Sizes are bytes."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import COUNT, FLAG, TEXT, Schema, array, by_key, or_null, record

DB: Schema = record(
    {
        "version": {"const": 1},
        "file": TEXT,
        "size": COUNT,
        "log_size": COUNT,
        "unused": {**COUNT, "description": "what deleted rows left; new rows take it"},
        "journal": TEXT,
        "network": {**FLAG, "description": "the file is on a network file system"},
        "file_version": COUNT,
        "newest_version": {**COUNT, "description": "of files, that this program knows"},
        "sqlite": TEXT,
        "problems": array(TEXT, "empty: SQLite can read the file"),
        "wrong": array(TEXT, "what can be read and does not fit"),
        "counts": by_key(COUNT),
        "space": array(record({"what": TEXT, "bytes": COUNT}), "the largest first"),
        "beside": array(record({"file": TEXT, "size": COUNT}), "copies of older versions, and damaged files"),
    }
)
CHECK: Schema = record(
    {
        "version": {"const": 1},
        "damage": array(TEXT, "what SQLite can't read"),
        "wrong": array(TEXT, "what can be read and does not fit"),
        "mended": array(TEXT),
        "lost": {**COUNT, "description": "runs whose transcript is gone for good"},
        "lost_evidence": {**COUNT, "description": "runs whose evidence is gone for good"},
    }
)
PRUNE: Schema = record(
    {
        "version": {"const": 1},
        "runs": {**COUNT, "description": "runs that go, or would"},
        "of_runs": COUNT,
        "executions": COUNT,
        "of_executions": COUNT,
        "bytes": {**COUNT, "description": "about what they take in the file"},
        "kept": {**by_key(COUNT), "description": "runs that stay all the same, by reason"},
        "removed": {
            **or_null(record({"runs": COUNT, "executions": COUNT, "unused": COUNT})),
            "description": "null: nothing was removed",
        },
    }
)
MERGED: Schema = array(
    record(
        {
            "file": TEXT,
            "executions": COUNT,
            "runs": COUNT,
            "completed": {**COUNT, "description": "runs that were here and had not ended"},
            "labels": COUNT,
            "taken_back": {
                **COUNT,
                "description": "labels, decisions and baselines that are gone here, as they are there",
            },
            "already": COUNT,
            "left_out": array(TEXT),
        }
    )
)
