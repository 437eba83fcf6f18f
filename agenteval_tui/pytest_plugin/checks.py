"""What the fixture `agenteval` does: grade what a test has in hand, and keep it in the history.

All checks of a pytest session are one execution: the app opens on what pytest found.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.function import name_of
from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.analysis.statistics import interval_of
from agenteval_tui.api.grading import Criteria, Grade, grade
from agenteval_tui.api.runs import Execution, File, run
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.core.numbers import count, interval_phrase, percent, percent_limit
from agenteval_tui.grading import sentences
from agenteval_tui.history.execution_names import KeepCommits, checked_name, meta_of
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.pytest_plugin.session import TRUST
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.suites.commits import COMMITS_S, CommitReading, places_of
from agenteval_tui.suites.projects import project_of_folder
from agenteval_tui.suites.trust import code_runs_here


class CheckFailed(AssertionError):  # noqa: N818 - pytest shows the name: a failed check is no error of the program
    """What was checked did not pass; the text says why."""

    __module__ = "agenteval"  # what pytest writes before the text


class SessionRecord:
    """The execution that the checks of a pytest session belong to. It begins with the first check."""

    def __init__(self, root: Path, db: File | None, name: str = "", meta: Sequence[str] = ()) -> None:
        self._name = checked_name(name)
        self._meta = meta_of(meta, option="--agenteval-meta")
        self._commits: CommitReading | None = None
        self.db = directories.history_file(db)
        self.execution = ""
        self._root = root
        self._store: Store | None = None
        self._position = 0

    def add(self, planned: Mapping[str, Any], graded: Grade, started_ms: int, duration_ms: float | None) -> str:
        """Store a check as a run; gives its id. `planned`: the fields of `PlannedRun` that name it."""
        store = self._open()
        run_id = new_id()
        plan = PlannedRun(
            id=run_id,
            execution_id=self.execution,
            position=self._position,
            criteria=tuple(spec.hash for spec in graded.specs),
            specs=tuple(spec_to_dict(spec) for spec in graded.specs),
            **planned,
        )
        self._position += 1
        verdict = graded.verdict
        # Waited for: the id is printed where the check fails, and must lead to a run.
        store.add_runs(self.execution, [plan])
        store.run_ended(
            RunEnded(
                run_id=run_id,
                status=graded.status,
                score=verdict.score,
                started_ms=started_ms,
                duration_ms=duration_ms,
                attempts=1,
                transcript=graded.transcript,
                results=verdict.results,
                warnings=verdict.warnings,
                why="" if graded.passed else sentences.verdict_sentence(verdict),
            )
        ).result()
        return run_id

    def close(self) -> None:
        """The session is over."""
        if self._store is not None:
            if self._commits is not None and (commits := self._commits.result(COMMITS_S)):
                self._store.write(KeepCommits(self.execution, commits))
            self._store.end_execution(self.execution, "finished").result()
            self._store.close()
            self._store = None

    def _open(self) -> Store:
        if self._store is None:
            self._store = Store.open(self.db)
            self.execution = new_id()
            record = ExecutionRecord(
                id=self.execution,
                title=f"pytest: {self._root.name}",
                kind="run",
                source=str(self._root),
                suite_keys=(),
                started_ms=now_ms(),
                project=project_of_folder(self._root),
                name=self._name,
                meta=self._meta,
            )
            # A session grades what its own code made: the repository is the agents' and the tests'.
            self._commits = CommitReading(places_of((), [self._root]))
            self._store.begin_execution(record, ()).result()
        return self._store


class Checks:
    """The fixture: of one pytest test."""

    def __init__(self, record: SessionRecord, item: pytest.Item, *, trust: bool = False) -> None:
        self._record = record
        self._item = item
        self._trust = trust
        # pytest has imported the test: its folder's code runs in this process anyway.
        code_runs_here(item.path.parent)
        self._names: Counter[str] = Counter()

    def check(
        self,
        what: Any,
        criteria: Criteria,
        *,
        name: str = "",
        variables: Mapping[str, Any] | None = None,
        judge: str | None = None,
        trust: bool = False,
        repeat: int = 1,
        pass_rate: float = 1.0,
    ) -> Grade:
        """Grade `what` (see `agenteval_tui.grade`), keep it in the history, and fail the test where it did not pass.

        `what` may be a function without parameters, plain or async, that gives what is graded: with `repeat` it is
        called this many times, and the check passes when the share that passed is at least `pass_rate`. `name` tells
        several checks of a test apart. Gives the grade, of several the first that did not pass. Raises `CheckFailed`.
        """
        __tracebackhide__ = True  # pytest shows the line of the test, and not this one
        called = callable(what)
        if repeat > 1 and not called:
            raise AgentevalError(
                "the same messages were to be graded several times",
                fix="give a function that asks the agent: check(lambda: ask(...), ..., repeat=5)",
            )
        if not 0 < pass_rate <= 1:
            raise AgentevalError(f"pass_rate is above 0 and at most 1, not {pass_rate}")
        test = self._test_id(name)
        grades, runs = [], []
        for repetition in range(1, repeat + 1):
            started, began = now_ms(), time.perf_counter()
            result = _called(what) if called else what
            took = (time.perf_counter() - began) * 1000 if called else None
            # Where trust is missing, the error names the option of pytest, and not `trust=True`.
            with allowed_once_by(TRUST):
                graded = grade(result, criteria, variables=variables, judge=judge, trust=trust or self._trust)
            planned = self._planned(test, graded, repetition, what if called else None, variables)
            grades.append(graded)
            runs.append(self._record.add(planned, graded, started, took))
        passed = sum(graded.passed for graded in grades)
        # The first that did not pass explains: the mean of several grades has no reasons.
        worst = next((number for number, graded in enumerate(grades) if not graded.passed), 0)
        if passed / repeat < pass_rate:
            message = _failure(grades[worst], passed, repeat, pass_rate)
            raise CheckFailed(f"{message}\nagenteval why {runs[worst]}{directories.db_option(self._record.db)}")
        return grades[worst]

    def grade(self, what: Any, criteria: Criteria, **options: Any) -> Grade:
        """The same without failing the test, and without keeping it."""
        with allowed_once_by(TRUST):
            return grade(what, criteria, **options)

    def run(self, suites: Any, **options: Any) -> Execution:
        """Run suites (see `agenteval_tui.run`), in the history of this session. What did not pass fails nothing: assert
        `execution.passed`, or its `pass_rate`."""
        options.setdefault("trust", self._trust)
        with allowed_once_by(TRUST):
            return run(suites, db=self._record.db, **options)

    def _test_id(self, name: str) -> str:
        test = self._item.nodeid.partition("::")[2] or self._item.name
        full = f"{test} {name}" if name else test
        # Counted, so that a check in a loop is a test of its own each time, and always the same one.
        self._names[full] += 1
        return full if self._names[full] == 1 else f"{full} ({self._names[full]})"

    def _planned(
        self,
        test: str,
        graded: Grade,
        repetition: int,
        function: Callable[[], Any] | None,
        variables: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        file = self._item.nodeid.partition("::")[0]
        prompts = [message.content for message in graded.transcript.messages if message.role == "user"]
        return {
            "suite_key": f"pytest:{file}",
            "suite_name": file,
            "test_id": test,
            "test_name": test,
            "repetition": repetition,
            "agent": graded.transcript.model or (name_of(function) if function is not None else "given"),
            "prompt": prompts[-1] if prompts else "",
            "variables": dict(variables or {}),
        }


def _called(function: Callable[[], Any]) -> object:
    result = function()
    if inspect.isawaitable(result):

        async def awaited() -> object:
            return await result

        return run_in_thread(awaited)
    return result


def _failure(graded: Grade, passed: int, repeat: int, pass_rate: float) -> str:
    reasons = graded.why()
    if repeat > 1:
        interval = interval_phrase(interval_of(passed, repeat))
        reasons = (
            f"{passed:,} of {count(repeat, 'run')} passed: {percent(passed / repeat, beside=pass_rate)} "
            f"({interval}), wanted {percent_limit(pass_rate)}\n{reasons}"
        )
    return reasons
