"""Hand-made histories of runs that fail in a few ways: for causes, labels and reviews, without any execution."""

from __future__ import annotations

import sqlite3
from typing import Any

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

SUITE = "/suites/shop.suite.yaml"
PROMPT = "Which customers spend more than 5000?"
ANSWER = "Here is the query:\n```sql\nSELECT name FROM customers\nWHERE revenue > {}\n```"


def specs_of(version: str, *, person: bool = False) -> tuple[CriterionSpec, ...]:
    """The criteria: "v1" and "v2" of the first one are two versions that look for the same."""
    texts = {"type": "TextMatch", "contains_all": ["name", "5000"]}
    lookup: dict[str, Any] = {"metrics": [{"type": "ToolCheck", "tools": [{"name": "describe_table"}]}]}
    kind: dict[str, Any] = {"metrics": [{"type": "Human", "question": "Is it kind?"}]}
    specs = (
        CriterionSpec("The filter", "TextResponse", {"metrics": [{**texts, "name": version}]}),
        CriterionSpec("Looks it up", "ToolResponse", lookup),
    )
    return (*specs, CriterionSpec("Kind", "TextResponse", kind)) if person else specs


def did(what: str, number: int) -> Transcript:
    """What an agent did, see `make`."""
    answer = ANSWER.format("5.000" if what == "text" else "5000")
    name = "search" if what == "tool" else "describe_table"
    messages = (
        Message("user", PROMPT),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", "id, name, revenue", tool_call=0, tool_call_id="c1"),
        Message("assistant", answer),
    )
    call = ToolCall("c1", name, {"table": "customers"}, "id, name, revenue", message=1)
    error = RunError("timeout", f"no answer for {30 + number} s") if what == "down" else None
    return Transcript(messages, (call,), final_output=answer, error=error)


def make(
    store: Store,
    execution: str,
    *,
    version: str = "v1",
    started_ms: int = 0,
    suite_key: str = SUITE,
    **tests: list[str],
) -> str:
    """An execution with these runs: "" passed; "text" misses a text; "tool" a call; "down" its agent failed; "person"
    waits for one. The n-th run is EXECUTION-00n; gives the execution's id."""
    begun = started_ms or now_ms()
    plans, ends = [], []
    for test, runs in tests.items():
        for what in runs:
            number = len(plans)
            run, specs = f"{execution}-{number:03}", specs_of(version, person=what == "person")
            plans.append(
                PlannedRun(
                    run, execution, number, suite_key, "Shop", test, test.title(), agent="demo", prompt=PROMPT,
                    criteria=tuple(one.hash for one in specs), specs=tuple(map(spec_to_dict, specs)),
                )
            )  # fmt: skip
            transcript = did(what, number)
            verdict = grade(transcript, specs)
            ends.append(
                RunEnded(
                    run, str(verdict.outcome), verdict.score, begun + number, 1200.0 + number, 1, transcript,
                    verdict.results, why=verdict_sentence(verdict),
                )
            )  # fmt: skip
    store.begin_execution(ExecutionRecord(execution, execution, "run", "", (suite_key,), begun), plans)
    for end in ends:
        store.run_ended(end)
    store.end_execution(execution, "finished").result()
    return execution


def at(store: Store, execution: str, ms: int) -> None:
    """The runs of an execution began then."""
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE runs SET started_ms = ? WHERE uid LIKE ?", (ms, f"{execution}-%"))
    connection.close()
