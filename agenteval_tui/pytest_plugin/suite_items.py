"""A suite file as a file of pytest tests: an item a test, its failure the reason.

All selected tests of a file run together at the first of its items, many at once, as one execution. A worker of xdist
does not know which items it will get: there each item is an execution of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

import pytest
from msgspec import Struct

from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.analysis.test_gates import GateVerdict
from agenteval_tui.api.runs import Execution, Run, run
from agenteval_tui.api.suites import Suite, load
from agenteval_tui.core.directories import db_option
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count
from agenteval_tui.history.execution_names import meta_of
from agenteval_tui.pytest_plugin.session import TRUST, session_executions
from agenteval_tui.suites.trust import code_runs_here
from agenteval_tui.views.gates import verdict_text

_MEANT_FOR_PYTEST = frozenset(("filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"))
"""Marks that do something; as tags they only name tests."""
_REASONS = 3
"""How many different reasons of one test are told in full."""


class SuiteFile(pytest.File):
    """The tests of a suite."""

    suite: Suite | None = None

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._ran: dict[str, _Ran] = {}

    def collect(self) -> Iterator[SuiteTest]:
        """An item a test. A suite that can't be run is an error of collecting, with all its problems."""
        try:
            self.suite = load(self.path)[0]
        except AgentevalError as error:
            raise self.CollectError(str(error)) from None
        for test in self.suite.tests:
            item: SuiteTest = SuiteTest.from_parent(self, name=test.id)
            own = self.suite.loaded.suite.tags if self.suite.loaded.suite is not None else ()
            for tag in dict.fromkeys((*own, *test.tags)):
                if tag not in _MEANT_FOR_PYTEST and not tag.startswith("_"):
                    # Else pytest warns of an unknown mark, which is an error with `--strict-markers`.
                    self.config.addinivalue_line("markers", f"{tag}: a tag of tests in suites")
                    item.add_marker(getattr(pytest.mark, tag))
            yield item

    def runs_of(self, item: SuiteTest) -> _Ran:
        """The runs of a test. Each answer is given once: when it is asked for again (a rerun), it runs again."""
        if item.name not in self._ran:
            execution = self._execute(self._due(item))
            for test in dict.fromkeys(run.test for run in execution):
                gates = tuple(gate for gate in execution.gates if gate.test_id == test)
                self._ran[test] = _Ran(execution.of(test), gates)
        # Taken out: a rerun after a failure must run again, and not get the same answer.
        return self._ran.pop(item.name, _Ran())

    def _due(self, item: SuiteTest) -> list[str]:
        """The tests to run now: all that were selected and have not been run, this one first of all."""
        # `workerinput`: a worker of xdist, which other workers' items would be run by as well.
        if hasattr(self.config, "workerinput") or getattr(item, "ran", False):
            return [item.name]
        waiting = [item for item in self.session.items if isinstance(item, SuiteTest) and item.parent is self]
        return [suite_test.name for suite_test in waiting if not suite_test.ran] or [item.name]

    def _execute(self, tests: list[str]) -> Execution:
        option = self.config.getoption
        assert self.suite is not None
        code_runs_here(self.path.parent)
        with allowed_once_by(TRUST):
            execution = run(
                self.suite,
                tests=tests,
                agent=option("--agenteval-agent"),
                repeat=option("--agenteval-repeat"),
                max_cost=option("--agenteval-max-cost"),
                trust=bool(option(TRUST)),
                name=option("--agenteval-name"),
                meta=meta_of(option("--agenteval-meta"), option="--agenteval-meta"),
                db=option("--agenteval-db"),
            )
        session_executions(self.config).append(execution.id)
        for item in self.session.items:
            if isinstance(item, SuiteTest) and item.parent is self and item.name in tests:
                item.ran = True
        return execution


class SuiteTest(pytest.Item):
    """A test of a suite, with all its repetitions and rows."""

    ran = False

    def runtest(self) -> None:
        """Run it, or take what has run already. Raises `NotPassedError`."""
        assert isinstance(self.parent, SuiteFile)
        ran = self.parent.runs_of(self)
        for name, value in _properties(ran):
            self.user_properties.append((name, value))
        if not [run for run in ran.runs if run.status != "skipped"]:
            raise NotPassedError("nothing of this test was run")
        failed = [run for run in ran.runs if run.status not in ("passed", "skipped") and not run.excuse]
        if failed or any(gate.fails for gate in ran.gates):
            raise NotPassedError(_reasons(ran))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """The reasons, as `agenteval why` gives them; other errors in a sentence."""
        if isinstance(excinfo.value, NotPassedError | AgentevalError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is."""
        suite = self.parent.suite if isinstance(self.parent, SuiteFile) else None
        # pytest counts lines from 0.
        line = suite.loaded.line_of(self.name) - 1 if suite is not None else None
        return self.path, line, f"{suite.name if suite is not None else self.path.name}: {self.name}"


class NotPassedError(Exception):
    """A test did not pass: how many runs of how many, its gate, and each different reason in full."""


class _Ran(Struct, frozen=True):
    """What came of a test: its runs, and how each of its variations did against the gate, if it has one."""

    runs: tuple[Run, ...] = ()
    gates: tuple[GateVerdict, ...] = ()


def _reasons(ran: _Ran) -> str:
    bad = [run for run in ran.runs if run.status not in ("passed", "skipped")]
    first: dict[str, Run] = {}
    for failed in bad:
        first.setdefault(failed.row.why or failed.row.error_message or failed.status, failed)
    lines = [f"{len(bad)} of {len(ran.runs)} runs did not pass"] if len(ran.runs) > 1 else []
    lines += [verdict_text(gate) for gate in ran.gates]
    lines += [run.why() for run in list(first.values())[:_REASONS]]
    if len(first) > _REASONS:
        show = f"agenteval show {bad[0].row.execution_id}{db_option(bad[0].db)}"
        lines.append(f"{count(len(first) - _REASONS, 'more reason')}: {show}")
    return "\n\n".join(lines)


def _properties(ran: _Ran) -> Iterator[tuple[str, str]]:
    """What JUnit and other reports keep of it: ids, and each criterion with how often it passed."""
    runs = ran.runs
    if not runs:
        return
    yield "agenteval_execution", runs[0].row.execution_id
    counts = grouped(
        (result.criterion, str(result.outcome) == "passed")
        for result_run in runs
        for result in result_run.criteria
        if str(result.outcome) != "skipped"
    )
    for name, passed in counts.items():
        yield name, f"passed {sum(passed)} of {len(passed)}"
    for gate in ran.gates:
        yield "gate", verdict_text(gate)
