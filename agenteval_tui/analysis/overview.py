"""All suites at a glance: what is written, what is wrong with it, and what the history knows of each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.text.problems import Problem

if TYPE_CHECKING:
    from agenteval_tui.history.rows import TestSummary
    from agenteval_tui.history.store import Store
    from agenteval_tui.suites.load import LoadedSuite


@dataclass(frozen=True, slots=True)
class SuiteOverview:
    """One suite file: what was loaded, its problems, and by test id what the history says."""

    loaded: LoadedSuite
    problems: tuple[Problem, ...]
    summaries: Mapping[str, TestSummary]


@dataclass(frozen=True, slots=True)
class Overview:
    """All suites, in the order of their files."""

    suites: tuple[SuiteOverview, ...]

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return sum(len(one.loaded.suite.tests) for one in self.suites if one.loaded.suite)

    @property
    def criteria(self) -> int:
        """How many criteria all tests have together."""
        return sum(len(t.criteria) for one in self.suites if one.loaded.suite for t in one.loaded.suite.tests)


def overview(paths: Sequence[Path], store: Store) -> Overview:
    """Load every suite below `paths`, check it, and look up its tests in the history."""
    loaded, problems = check_suites(paths)
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    return Overview(
        tuple(
            SuiteOverview(one, tuple(by_file.get(str(one.path), ())), store.test_summaries(one.key)) for one in loaded
        )
    )
