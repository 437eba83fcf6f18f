"""What the stored runs of a suite or a test say of its agent: for the linter and for completion. Reads only."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections import Counter

from agenteval_tui.core.storable import storable
from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.observed_tools import EXAMPLES, AgentFacts, ArgumentFacts, ToolFacts
from agenteval_tui.history.blobs import unpack_transcript
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.store import Store

RUNS = 2_000
"""The newest runs that are looked at for tools."""
ANSWERS = 300
"""The newest runs whose answers are read: their transcripts have to be decoded."""
_LONGEST_EXAMPLE = 300
_ARGUMENTS = 200  # different names of arguments of one tool
_CHUNK = 400

Call = tuple[str, str]


def facts_for(store: Store, suite_key: str, test_id: str | None = None) -> AgentFacts:
    """What is known from the newest ended runs of a suite, or of one of its tests.

    Nothing stored: facts with `runs` 0. Raises HistoryError when the file can't be read.
    """
    return store.read(lambda connection: _facts(connection, suite_key, test_id))


def _facts(connection: sqlite3.Connection, suite_key: str, test_id: str | None) -> AgentFacts:
    condition, values = "s.key = ?", [storable(suite_key)]
    if test_id is not None:
        condition, values = f"{condition} AND t.test_id = ?", [*values, storable(test_id)]
    rows = connection.execute(
        "SELECT r.transcript FROM runs r WHERE r.test IN"
        f" (SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite WHERE {condition})"
        f" AND r.transcript IS NOT NULL AND r.superseded != {FORK} ORDER BY r.id DESC LIMIT ?",
        [*values, RUNS],
    ).fetchall()
    transcripts = [row[0] for row in rows]
    different = list(dict.fromkeys(transcripts))  # repetitions that were alike are stored once
    calls = Counter[Call]()
    for chunk in batches(different, _CHUNK):
        marks = ",".join("?" * len(chunk))
        calls.update(
            connection.execute(
                f"SELECT name, arguments FROM tool_calls WHERE transcript IN ({marks})",
                chunk,
            ).fetchall()
        )
    newest = transcripts[:ANSWERS]
    return AgentFacts(len(transcripts), _tools(calls), _answers(connection, list(dict.fromkeys(newest))), len(newest))


def _tools(calls: Counter[Call]) -> dict[str, ToolFacts]:
    total = Counter[str]()
    by_tool: dict[str, dict[str, _Seen]] = {}
    for (name, text), number in calls.items():
        total[name] += number
        arguments = by_tool.setdefault(name, {})
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            continue  # what the agent sent was no JSON, or it is too deep
        for key, value in values.items() if isinstance(values, dict) else ():
            if key in arguments or len(arguments) < _ARGUMENTS:
                arguments.setdefault(key, _Seen()).add(value, number)
    return {
        name: ToolFacts(
            name,
            number,
            {
                key: argument.facts(key)
                for key, argument in sorted(by_tool[name].items(), key=lambda item: (-item[1].calls, item[0]))
            },
        )
        for name, number in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    }


class _Seen:
    """Values of one argument, as they come."""

    def __init__(self) -> None:
        self.calls = 0
        self.types = Counter[str]()
        self.values = Counter[str]()

    def add(self, value: object, number: int) -> None:
        self.calls += number
        self.types[type_of(value)] += number
        text = json.dumps(value, ensure_ascii=False)
        if len(text) <= _LONGEST_EXAMPLE and (text in self.values or len(self.values) < 1000):
            self.values[text] += number

    def facts(self, name: str) -> ArgumentFacts:
        examples = tuple(json.loads(text) for text, _ in self.values.most_common(EXAMPLES))
        return ArgumentFacts(name, self.calls, dict(self.types.most_common()), examples)


def _answers(connection: sqlite3.Connection, transcripts: list[int]) -> tuple[str, ...]:
    answers: dict[str, None] = {}
    for chunk in batches(transcripts, _CHUNK):
        marks = ",".join("?" * len(chunk))
        rows = dict(
            connection.execute(
                f"SELECT id, data FROM transcripts WHERE id IN ({marks})",
                chunk,
            ).fetchall()
        )
        for number in chunk:
            if number not in rows:
                continue
            try:
                answers[unpack_transcript(rows[number]).final_output] = None
            except ValueError:
                continue  # one that can't be read says nothing; whoever opens the run is told
    return tuple(answers)
