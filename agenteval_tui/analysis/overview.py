"""All suites at a glance: what is written, what is wrong with it, and what the history knows of each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import Problem
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import TestSummary
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import LoadedSuite, load_suites


class SuiteOverview(Struct, frozen=True):
    """One suite file: what was loaded, its problems, by test id what the history says; quarantines that hold.

    `problems` are the file's own and those of the datasets that it names; `Problem.file` says which. While it is not
    `checked`, they are those that were found when it was read, and there may be more.
    """

    loaded: LoadedSuite
    problems: tuple[Problem, ...]
    summaries: Mapping[str, TestSummary]
    quarantines: tuple[Quarantine, ...] = ()
    checked: bool = False

    @property
    def own_errors(self) -> list[Problem]:
        """The errors in the suite's own file, and not in a dataset."""
        file = str(self.loaded.path)
        return [problem for problem in self.problems if problem.severity == "error" and problem.file == file]

    def quarantined(self, test_id: str, criterion: str = "") -> Quarantine | None:
        """The quarantine of a test, or of one of its criteria by itself (by name); None: there is none."""
        matching = (
            quarantine
            for quarantine in self.quarantines
            if (quarantine.test_id, quarantine.criterion) == (test_id, criterion)
        )
        return next(matching, None)


class Overview(Struct, frozen=True):
    """All suites, in the order of their files."""

    suites: tuple[SuiteOverview, ...]

    @property
    def checked(self) -> bool:
        """Whether all problems of all suites are known."""
        return all(suite.checked for suite in self.suites)

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return sum(len(suite.loaded.suite.tests) for suite in self.suites if suite.loaded.suite)

    @property
    def criteria(self) -> int:
        """How many criteria all tests have together."""
        return sum(len(t.criteria) for suite in self.suites if suite.loaded.suite for t in suite.loaded.suite.tests)

    def with_problems(self, of: Overview, problems: Mapping[str, tuple[Problem, ...]]) -> Overview:
        """The same suites with the problems (by suite key) that were found in the suites of `of`.

        A suite that was read again since then keeps its problems.
        """
        looked_at = {suite.loaded.key: suite.loaded for suite in of.suites}
        return Overview(
            tuple(
                replace(suite, problems=problems[suite.loaded.key], checked=True)
                if looked_at.get(suite.loaded.key) is suite.loaded and suite.loaded.key in problems
                else suite
                for suite in self.suites
            )
        )

    def with_known_problems(self, before: Overview) -> Overview:
        """The same suites with the problems from `before`, for suites whose files have not changed since."""
        by_key = {suite.loaded.key: suite for suite in before.suites if suite.checked}
        return Overview(
            tuple(
                replace(suite, problems=was.problems, checked=True)
                if (was := by_key.get(suite.loaded.key)) is not None and was.loaded.digest == suite.loaded.digest != ""
                else suite
                for suite in self.suites
            )
        )

    def read_summaries(self, store: Store) -> dict[str, Mapping[str, TestSummary]]:
        """The newest summaries of the tests of each suite, by the suite's key. Reads the history, but no file."""
        return {suite.loaded.key: store.test_summaries(suite.loaded.key) for suite in self.suites}

    def with_summaries(self, summaries: Mapping[str, Mapping[str, TestSummary]]) -> Overview:
        """The same suites with these summaries from the history."""
        return Overview(
            tuple(replace(suite, summaries=summaries.get(suite.loaded.key, suite.summaries)) for suite in self.suites)
        )


def overview(paths: Sequence[Path], store: Store) -> Overview:
    """Load every suite below `paths`, and look up its tests in the history. The result also has the files that can't be
    read, each with that as its problem. Doesn't check the suites, because that takes several times as long (use
    `analysis.lint.check_loaded` and `Overview.with_problems`). Raises `AgentevalError` if a path does not exist."""
    held = list(quarantines.active(store))
    suites = []
    for suite in load_suites(paths, keep_unreadable=True):
        of_suite = tuple(quarantine for quarantine in held if quarantine.suite_key == suite.key)
        suites.append(SuiteOverview(suite, suite.problems, store.test_summaries(suite.key), of_suite))
    return Overview(tuple(suites))
