"""JSON Schemas of what `agenteval trends`, `flaky` and `quarantine` print."""

from __future__ import annotations

from agenteval_tui.formats.schemas.schema_parts import (
    COUNT,
    FLAG,
    NUMBER,
    ROW_KEY,
    SHARE,
    TEXT,
    TIME,
    Schema,
    array,
    by_key,
    or_null,
    record,
)

_INTERVAL = {**array(SHARE, "95 %, from and to"), "minItems": 2, "maxItems": 2}
_FIGURES: dict[str, Schema] = {
    "tests": {**COUNT, "description": "a variation or a row of a test is a test of its own"},
    "n": {**COUNT, "description": "runs with a verdict: passed or failed, and errors with --count-errors"},
    "passed": COUNT,
    "failed": COUNT,
    "errors": COUNT,
    "undecided": COUNT,
    "pass_rate": {**or_null(SHARE), "description": "the mean of the tests' rates; null without a verdict"},
    "interval": {**_INTERVAL, "description": "of the rate, 95 %, clustered by test"},
}
_SPENT = or_null(
    record({"n": COUNT, "p50": NUMBER, "p95": NUMBER, "mean": NUMBER, "total": NUMBER}, about="null: not measured")
)
_MEASURES: dict[str, Schema] = {"latency_ms": _SPENT, "tokens": _SPENT, "cost": _SPENT, "steps": _SPENT}

TRENDS: Schema = record(
    {
        "version": {"const": 1},
        "since": TIME,
        "until": TIME,
        "by": {"enum": ["execution", "hour", "day", "week"]},
        "group": {"enum": ["suite", "test", "tag", "agent", None]},
        "bins": array(record({"since": TIME, "until": TIME, "execution": or_null(TEXT)})),
        "series": array(
            record(
                {
                    "name": TEXT,
                    "key": TEXT,
                    **_FIGURES,
                    **_MEASURES,
                    "bins": array(or_null(record({**_FIGURES, **_MEASURES})), "as many as `bins`; null: nothing ran"),
                }
            ),
            "worst first; without a group one, of all runs",
        ),
        "criteria": array(
            record(
                {
                    "file": TEXT,
                    "suite": TEXT,
                    "test": TEXT,
                    "criterion": {**TEXT, "description": "its name in the test"},
                    "n": COUNT,
                    "passed": COUNT,
                    "failed": COUNT,
                    "errors": COUNT,
                    "undecided": COUNT,
                    "mean_score": or_null(SHARE),
                    "tenths": {**array(COUNT), "minItems": 10, "maxItems": 10},
                }
            ),
            "worst first; of the newest runs, from `criteria_since` on",
        ),
        "causes": array(
            record(
                {
                    "id": {**TEXT, "description": "as `agenteval causes` names it; empty for errors of agents"},
                    "cause": TEXT,
                    "runs": COUNT,
                    "tests": COUNT,
                    "run": {**TEXT, "description": "the newest of them"},
                }
            ),
            "most frequent first",
        ),
        "breaks": array(
            record(
                {
                    "at": {**TIME, "description": "when the first execution with what is new began"},
                    "bin": {**or_null(COUNT), "description": "the number of its piece of time, from 0"},
                    "file": TEXT,
                    "suite": TEXT,
                    "test": TEXT,
                    "criterion": TEXT,
                    "agent": {**TEXT, "description": "whose configuration is another one; empty for a criterion"},
                    "kind": {"enum": ["changed", "added", "removed", "agent"]},
                    "old": or_null(TEXT),
                    "new": or_null(TEXT),
                }
            ),
            "where a test's criteria changed, so that verdicts before and after are not comparable, or its agent did",
        ),
        "regraded": or_null(
            record(
                {
                    "runs": COUNT,
                    "changed": {**COUNT, "description": "of them end otherwise than they did"},
                    "errors": {**COUNT, "description": "can't be decided without asking a judge or a person"},
                    "left_out": {**COUNT, "description": "runs whose test is in no suite's file now"},
                    "cut": {**FLAG, "description": "older runs of the window were not graded"},
                },
                about="with --regrade: all verdicts are those of today's criteria; null: as they were stored",
            )
        ),
        "criteria_since": TIME,
        "alerts": or_null(
            record(
                {
                    "fired": FLAG,
                    "groups": array(
                        record(
                            {
                                "name": TEXT,
                                "key": TEXT,
                                "below": SHARE,
                                "state": {"enum": ["ok", "alert", "empty", "errors"]},
                                "by_chance": {**FLAG, "description": "the threshold lies in the interval"},
                                **_FIGURES,
                            }
                        )
                    ),
                    "left_out": array(
                        record({"file": TEXT, "test": TEXT, "criterion": or_null(TEXT), "until": COUNT}),
                        "what is in quarantine",
                    ),
                }
            )
        ),
    }
)

_ENTRY: dict[str, Schema] = {
    "suite": TEXT,
    "file": TEXT,
    "test": TEXT,
    "variation": TEXT,
    "row": COUNT,
    "row_key": ROW_KEY,
    "criterion": {**or_null(TEXT), "description": "null: the test as a whole"},
    "n": COUNT,
    "passed": COUNT,
    "errors": COUNT,
    "undecided": COUNT,
    "pass_rate": or_null(SHARE),
    "interval": {**_INTERVAL, "description": "Wilson's"},
    "pass_at_k": by_key(SHARE),
    "pass_hat_k": by_key(SHARE),
    "flaky": {**FLAG, "description": "passed sometimes, and sometimes not, with one agent and one version of criteria"},
    "by_agent": array(record({"agent": TEXT, "passed": COUNT, "n": COUNT}), "of several agents; else empty"),
    "step": {
        "enum": ["regression", "improvement", None],
        "description": "not flaky: the newest configuration of the agent, or version of the criteria, does otherwise",
    },
    "by_configuration": array(
        record({"agent": TEXT, "configuration": or_null(TEXT), "criteria": TEXT, "passed": COUNT, "n": COUNT}),
        "by configuration of the agent (null: not stored) and version of the criteria; the newest last",
    ),
    "variance": {
        **or_null(NUMBER),
        "description": "of one verdict among runs of one agent, p(1-p) without bias; null for fewer than two",
    },
    "whose": {"enum": ["agent", "judge", "both", "unknown", "nobody"]},
    "judge_share": {**or_null(SHARE), "description": "the judge's part of agent and judge variance"},
    "agent_variance": or_null(NUMBER),
    "judge_variance": or_null(NUMBER),
    "judged_outputs": or_null(COUNT),
    "judge_verdicts": or_null(COUNT),
    "quarantined_until": {**or_null(COUNT), "description": "milliseconds since 1970"},
}

FLAKY: Schema = record(
    {
        "version": {"const": 1},
        "since": {**COUNT, "description": "milliseconds since 1970"},
        "cut": {**FLAG, "description": "older runs of the window were not looked at"},
        "tests": array(record({**_ENTRY, "criteria": array(record(_ENTRY))}), "least predictable first"),
        "changed": array(
            record(_ENTRY), "not flaky: they do otherwise since the agent's configuration, or the criteria, are others"
        ),
        "suggested": array(
            record({"file": TEXT, "test": TEXT, "criterion": or_null(TEXT)}), "what might go into quarantine"
        ),
    },
    optional=("changed",),
)

QUARANTINE: Schema = record(
    {
        "version": {"const": 1},
        "quarantines": array(
            record(
                {
                    "file": TEXT,
                    "suite": TEXT,
                    "test": TEXT,
                    "criterion": or_null(TEXT),
                    "reason": TEXT,
                    "who": TEXT,
                    "at": {**COUNT, "description": "milliseconds since 1970, as `until`"},
                    "until": COUNT,
                    "holds": FLAG,
                }
            )
        ),
    }
)
