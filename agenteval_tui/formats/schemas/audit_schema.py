"""The JSON Schema of an audit of criteria."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import COUNT, FLAG, SEVERITY, TEXT, array, by_key, or_null, record

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
