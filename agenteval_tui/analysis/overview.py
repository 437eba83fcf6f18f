"""All suites at a glance: what is written, what is wrong with it, and what the history knows of each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.text.problems import Problem

if TYPE_CHECKING:
    from agenteval_tui.history.quarantines import Quarantine
    from agenteval_tui.history.rows import TestSummary
    from agenteval_tui.history.store import Store
    from agenteval_tui.suites.load import LoadedSuite


@dataclass(frozen=True, slots=True)
class SuiteOverview:
    """One suite file: what was loaded, its problems, by test id what the history says; quarantines that hold."""

    loaded: LoadedSuite
    problems: tuple[Problem, ...]
    summaries: Mapping[str, TestSummary]
    quarantines: tuple[Quarantine, ...] = ()

    def quarantined(self, test_id: str, criterion: str = "") -> Quarantine | None:
        """The quarantine of a test, or of one of its criteria by itself (by name); None: there is none."""
        found = (one for one in self.quarantines if (one.test_id, one.criterion) == (test_id, criterion))
        return next(found, None)


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
    from agenteval_tui.history import quarantines

    loaded, problems = check_suites(paths)
    held = list(quarantines.active(store))
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    return Overview(
        tuple(
            SuiteOverview(
                one,
                tuple(by_file.get(str(one.path), ())),
                store.test_summaries(one.key),
                tuple(quarantine for quarantine in held if quarantine.suite_key == one.key),
            )
            for one in loaded
        )
    )


def with_new_runs(seen: Overview, store: Store) -> Overview:
    """The same suites with what the history says of them now; no file is read."""
    return Overview(tuple(replace(one, summaries=store.test_summaries(one.loaded.key)) for one in seen.suites))
