"""Suites, tests and criteria as rows of a tree, filtered and folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.number_format import percent
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph, mark, outcome_sparkline, sparkline
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.test_status import outcome_of, pulse_of, recent_rate, sort_weight
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, right, spread

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview, SuiteOverview
    from agenteval_tui.history.records import CriterionSummary
    from agenteval_tui.suites.model import Test

Kind = Literal["suite", "test", "criterion"]

SPARK = 8  # of the newest runs, so many are shown in a row
PULSE_CELLS = SPARK + 2  # where they stand at the row's end, each in its own colour


MARK = "●" if UNICODE else "*"


class Node(Struct, frozen=True):
    """A row: a suite, one of its tests, or one of a test's criteria (by number)."""

    kind: Kind
    suite: SuiteOverview
    test: Test | None = None
    criterion: int | None = None

    @property
    def key(self) -> str:
        """What the row is, so that the cursor stays on it when rows come and go."""
        parts = [self.suite.loaded.key]
        if self.test is not None:
            parts.append(self.test.id)
        if self.criterion is not None:
            parts.append(str(self.criterion))
        return "\x1f".join(parts)

    @property
    def test_key(self) -> str:
        """The key of the row's test, also for a criterion; "" for a suite."""
        return "" if self.test is None else f"{self.suite.loaded.key}\x1f{self.test.id}"

    @property
    def selector(self) -> str:
        """The row's test as an execution is told of it ("" for a suite): other suites may have a test of its id."""
        return "" if self.test is None else f"{self.suite.loaded.key}::{self.test.id}"

    @property
    def suite_name(self) -> str:
        """The suite's name; its file's where it can't be read."""
        loaded = self.suite.loaded
        return loaded.suite.name if loaded.suite is not None else loaded.path.name

    @property
    def criterion_name(self) -> str:
        """The criterion's name; "" for other rows."""
        return "" if self.test is None or self.criterion is None else self.test.criterion_names[self.criterion]


class SuiteTree:
    """The rows of the Suites screen: a row source for the virtual list."""

    def __init__(self, overview: Overview, *, folded: Iterable[str] = (), opened: Iterable[str] = ()) -> None:
        self.overview = overview
        self.folded = set(folded)
        self.opened = set(opened)
        self.query = Query()
        self.worst_first = False
        self.marked: set[str] = set()  # keys of tests that several actions are meant for
        self.rows: list[Node] = []
        self.arrange()

    def arrange(self) -> None:
        """Make the rows anew: after folding, filtering or a new overview."""
        self.rows = []
        suites = list(self.overview.suites)
        if self.worst_first:
            suites.sort(key=lambda one: min(map(sort_weight, one.summaries.values()), default=sort_weight(None)))
        for suite in suites:
            top = Node("suite", suite)
            shown = self._tests(suite)
            if self.query and not shown:
                continue
            self.rows.append(top)
            if top.key in self.folded and not self.query:
                continue
            for test in shown:
                node = Node("test", suite, test)
                self.rows.append(node)
                if node.key in self.opened:
                    self.rows += [Node("criterion", suite, test, number) for number in range(len(test.criteria))]

    def update(self, overview: Overview) -> None:
        """The same suites and tests with other problems: the rows stay."""
        self.overview = overview
        self.arrange()

    def shown_tests(self) -> list[Node]:
        """The test rows that the filter lets through."""
        return [row for row in self.rows if row.kind == "test"]

    def all_tests(self) -> list[Node]:
        """The tests of all suites, in the order of their files, whatever the filter says."""
        return [
            Node("test", suite, test)
            for suite in self.overview.suites
            for test in (suite.loaded.suite.tests if suite.loaded.suite else [])
        ]

    def tests_of(self, suite: SuiteOverview) -> list[Node]:
        """A suite's tests that the filter lets through, also while the suite is folded."""
        return [Node("test", suite, test) for test in self._tests(suite)]

    def _tests(self, suite: SuiteOverview) -> list[Test]:
        tests = list(suite.loaded.suite.tests) if suite.loaded.suite else []
        if self.worst_first:
            tests.sort(key=lambda test: sort_weight(suite.summaries.get(test.id)))
        return [test for test in tests if not self.query or self.query.accepts(suite, test)]

    def toggle(self, node: Node) -> None:
        """Open or close a suite or a test."""
        self.set_open(node, not self.is_open(node))

    def is_open(self, node: Node) -> bool:
        """Are the node's children shown?"""
        return node.key not in self.folded if node.kind == "suite" else node.key in self.opened

    def set_open(self, node: Node, open_: bool) -> None:
        """Show or hide the node's children."""
        if node.kind == "suite":
            (self.folded.discard if open_ else self.folded.add)(node.key)
        elif node.kind == "test":
            (self.opened.add if open_ else self.opened.discard)(node.key)
        self.arrange()

    def parent_key(self, node: Node) -> str:
        """The key of the row that holds this one ("" for a suite)."""
        return "" if node.kind == "suite" else node.key.rpartition("\x1f")[0]

    # The row source

    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """What row `index` is."""
        return self.rows[index].key

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index` in `width` cells."""
        node = self.rows[index]
        if node.kind == "suite":
            return self._suite_line(node, width)
        if node.kind == "test":
            return self._test_line(node, width)
        return self._criterion_line(node, width)

    def _suite_line(self, node: Node, width: int) -> Line:
        suite = node.suite.loaded.suite
        name = one_line(node.suite_name)
        start: list[Cell] = [(" ▾ " if self.is_open(node) else " ▸ ", "dim"), (name, "bold")]
        errors = sum(1 for problem in node.suite.problems if problem.severity == "error")
        if errors:
            start += [("  ", ""), (f"{glyph('error')} {errors} problem{'s' if errors > 1 else ''}", "error")]
        seen = [one for test in suite.tests if (one := node.suite.summaries.get(test.id)) is not None] if suite else []
        rates = [passed / n for passed, n in map(recent_rate, seen) if n]
        failing = sum(outcome_of(summary) in ("failed", "error") for summary in seen)
        end: list[Cell] = []
        if failing:
            end.append((f"{glyph('failed')} {failing}", "failed"))
        if rates:
            end.append((right(percent(sum(rates) / len(rates)), 6), ""))
            # As many tests' runs stand in one bar as there are; the test's own runs below have the same columns.
            end += [("  ", ""), (left(sparkline(pulse_of(seen, SPARK)), SPARK), "dim")]
        return spread(start, (*end, (" ", "")), width)

    def _test_line(self, node: Node, width: int) -> Line:
        test = node.test
        assert test is not None
        summary = node.suite.summaries.get(test.id)
        state = outcome_of(summary)
        arrow = "▾" if self.is_open(node) else "▸"
        sign: Cell = (f" {MARK} ", "bold accent") if node.key in self.marked else ("   ", "")
        start: list[Cell] = [sign, (f"{arrow} ", "dim"), mark(state), (" ", ""), (one_line(test.id), "")]
        if node.suite.quarantined(test.id) is not None:
            start.append((f"  {glyph('flaky')} quarantine", "flaky"))
        if summary is None or not summary.recent:
            note = "not run yet" if width >= 50 else ""
            # Where the rates stand; what is behind them is not under the cursor's background.
            return spread(start, ((note, "dim"), (" " * (SPARK + 3 if note else 1), "")), width)
        passed, n = recent_rate(summary)
        recent = [status for status in summary.recent if status in ("passed", "failed", "error")][-SPARK:]
        end: list[Cell] = []
        if n:
            end += [(right(f"{passed}/{n}", 7), "dim"), (right(percent(passed / n), 6), "")]
        end += [("  ", ""), *outcome_sparkline(recent), (" " * (SPARK - len(recent) + 1), "")]
        return spread(start, end, width)

    def _criterion_line(self, node: Node, width: int) -> Line:
        test = node.test
        assert test is not None
        assert node.criterion is not None
        criterion, name = test.criteria[node.criterion], node.criterion_name
        seen = criterion_summary(node)
        state = seen.last if seen else ""
        start: list[Cell] = [("       ", ""), mark(state), (" ", ""), (one_line(name), "")]
        if node.suite.quarantined(test.id, name) is not None:
            start.append((f"  {glyph('flaky')} quarantine", "flaky"))
        end: list[Cell] = []
        if seen and seen.n:
            # The same columns as the test's row above.
            end = [(right(f"{seen.passed}/{seen.n}", 7), "dim"), (right(percent(seen.passed / seen.n), 6), "dim")]
        # Where its test's runs stand; behind the name it would be the first to be cut.
        note = criterion.severity if criterion.severity != "error" else ""
        if end or note:
            end.append((left(f"  {note}", SPARK + 3), "dim"))
        return spread(start, end, width) if end else fit(start, width)


def criterion_summary(node: Node) -> CriterionSummary | None:
    """What the history knows of a criterion's row."""
    if node.test is None or node.criterion is None:
        return None
    summary = node.suite.summaries.get(node.test.id)
    return summary.criteria.get(node.criterion_name) if summary else None
