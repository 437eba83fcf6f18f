"""Suites, tests and criteria as rows of a tree, filtered and folded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, percent, rate_bar
from agenteval_tui.core.outcomes import COMPLETED
from agenteval_tui.history.records import CriterionSummary, TestSummary
from agenteval_tui.tui.presenters.status_style import DOT, UNICODE, glyph, mark, word
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.test_status import counted, last_outcomes, outcome_of, recent_rate, sort_weight
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    fit,
    fit_reason,
    fit_text,
    left,
    pad,
    right,
    spread,
    width_of,
)

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview, SuiteOverview
    from agenteval_tui.suites.model import Test

_BAD = ("failed", "error", "flaky")
Kind = Literal["suite", "test", "criterion"]

SPARK = 8  # this many of the newest runs are shown in a row
LAST, RATE = 8, 8  # cells of the figures before them
END = LAST + RATE + 2 + SPARK + 1
AGENT = 16  # cells of the name of an agent
HEADED = 40  # cells, from which rows have figures, in columns with names: in fewer they are for the names of tests
ANSWER = "dim"  # the style of what a run answered; why it failed has none
LEAST_SAID = 24  # cells, in fewer of which what a run says would be a word or two
WIDE = 80  # cells, from which a row says what its last run says
NONE = "–" if UNICODE else "-"
_NOTHING: tuple[Cell, ...] = ((right(NONE, LAST), "dim"), (" " * (END - LAST), ""))


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

    def is_last(self, by: int) -> bool:
        """Is the row's test the last one of its suite in this direction (1: down, -1: up)?"""
        suite = self.suite.loaded.suite
        ids = [test.id for test in suite.tests] if suite is not None else []
        return self.test is None or self.test.id == (ids[-1] if by > 0 else ids[0])

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

    def __init__(
        self,
        overview: Overview,
        *,
        folded: Iterable[str] = (),
        opened: Iterable[str] = (),
        query: Query | None = None,
        worst_first: bool = False,
    ) -> None:
        self.overview = overview
        self.folded = set(folded)
        self.opened = set(opened)
        self.query = self._asked = query or Query()
        self._folded_found: set[str] = set()  # suites that were closed under the filter, which opens all
        self.worst_first = worst_first
        self.marked: set[str] = set()  # keys of tests that several actions are meant for
        self.rows: list[Node] = []
        self.arrange()

    def arrange(self) -> None:
        """Rebuild the rows: after folding, filtering or a new overview."""
        # Another filter opens all suites anew: what was closed under the last one is forgotten.
        if self._asked is not self.query:
            self._asked, self._folded_found = self.query, set()
        self.rows = []
        self._longest = 0  # cells of a test's id
        suites = list(self.overview.suites)
        if self.worst_first:
            suites.sort(
                key=lambda suite_overview: min(
                    map(sort_weight, suite_overview.summaries.values()), default=sort_weight(None)
                )
            )
        for suite in suites:
            top = Node("suite", suite)
            tests = self._tests(suite)
            if self.query and not tests:
                continue
            self.rows.append(top)
            if not self.is_open(top):
                continue
            self._longest = max(self._longest, *(cell_len(test.id) for test in tests), 0)
            for test in tests:
                node = Node("test", suite, test)
                self.rows.append(node)
                if self.opened and node.key in self.opened:
                    self.rows += [Node("criterion", suite, test, number) for number in range(len(test.criteria))]

    @cached_property
    def has_runs(self) -> bool:
        """Was any of the tests ever run?"""
        return any(suite.summaries for suite in self.overview.suites)

    @cached_property
    def has_failed(self) -> bool:
        """Did any of the tests fail last time?"""
        return bool(self.failed_tests())

    @property
    def executions(self) -> set[int]:
        """Those that the last runs of the tests are of."""
        return {
            execution
            for suite in self.overview.suites
            for test in suite.summaries.values()
            for execution in test.executions
        }

    def failed_tests(self) -> list[Node]:
        """The tests that failed last time, in the order of their files."""
        return [
            node
            for node in self.all_tests()
            if node.test is not None and outcome_of(node.suite.summaries.get(node.test.id)) in _BAD
        ]

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
        """Whether the node's children are shown."""
        return node.key not in self._closed if node.kind == "suite" else node.key in self.opened

    @property
    def _closed(self) -> set[str]:
        """The closed suites. A filter opens all suites at first, to show what it finds."""
        return self._folded_found if self.query else self.folded

    def set_open(self, node: Node, open_: bool) -> None:
        """Show or hide the node's children."""
        if node.kind == "suite":
            (self._closed.discard if open_ else self._closed.add)(node.key)
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

    def heading(self, width: int) -> Line:
        """The names of the columns at the end of rows that are `width` cells wide; the list's own title is before."""
        heads = right("last", LAST) + right("rate", RATE) + "  " + left("runs", SPARK + 1)
        if at := self._said_at(width):
            heads = left("  why it failed, or its last answer", width - at - END) + heads
        return ((heads, "dim"),) if width >= HEADED else ()

    def _said_at(self, width: int) -> int:
        """Where what the last run says begins, in a list that has room for it; 0: it has not."""
        return min(max(self._longest + 8, 24), width // 3) if width >= WIDE else 0

    def _row(self, start: list[Cell], cell: Cell, end: list[Cell], width: int) -> Line:
        if width < HEADED:
            return fit(start, width)
        at = self._said_at(width)
        # A name longer than its column takes room of what is said; the figures keep theirs.
        at = max(at, width_of(start)) if at else 0
        room = max(width - width_of(end) - at - 3, 0)
        if not at or room < LEAST_SAID:
            return spread(start, end, width)
        words = one_line(cell[0], 300)
        words = fit_text(words, room) if cell[1] == ANSWER else fit_reason(words, room)
        return spread((*pad(start, at), ("  ", ""), (words, cell[1])), end, width)

    def _suite_line(self, node: Node, width: int) -> Line:
        name = one_line(node.suite_name)
        fold: Cell = (" ▾ " if self.is_open(node) else " ▸ ", "dim")
        errors = sum(1 for problem in node.suite.problems if problem.severity == "error")
        wrong: list[Cell] = [("  ", ""), (f"{glyph('error')} {count(errors, 'problem')}", "error")] if errors else []
        end = self._suite_figures(node) if width >= HEADED else []
        # A long name gives way, and not what is wrong.
        room = max(width - width_of((fold, *wrong, *end)) - 1, 8)
        return self._row([fold, *fit(((name, "bold"),), room), *wrong], ("", ""), end, width)

    def _suite_figures(self, node: Node) -> list[Cell]:
        suite = node.suite.loaded.suite
        test_summaries = (
            [test_summary for test in suite.tests if (test_summary := node.suite.summaries.get(test.id)) is not None]
            if suite
            else []
        )
        if not test_summaries:
            return [(" ", "")]
        states = [outcome_of(summary) for summary in test_summaries]
        last: list[Cell] = []
        for outcome in ("failed", "error", "flaky"):
            number = states.count(outcome)
            more: list[Cell] = [(" ", ""), (f"{glyph(outcome)} {number}", outcome)] if number else []
            if width_of((*last, *more)) <= LAST:  # the worst ones keep their place
                last += more
        end: list[Cell] = [(" " * (LAST - width_of(last)), ""), *last]
        # A test whose last run ended in an error has no rate now: its earlier rate does not help.
        decided = [test_summary for test_summary, state in zip(test_summaries, states, strict=True) if state != "error"]
        rates = [passed / n for passed, n in map(recent_rate, decided) if n]
        if rates:
            rate = sum(rates) / len(rates)
            bar = rate_bar(rate, SPARK, unicode=UNICODE)
            end += [(right(percent(rate), RATE), ""), ("  ", ""), (bar, "dim"), (" ", "")]
        else:
            end += [(right(NONE, RATE), "dim"), (" " * (SPARK + 3), "")]
        return end

    def _test_line(self, node: Node, width: int) -> Line:
        test = node.test
        assert test is not None
        summary = node.suite.summaries.get(test.id)
        arrow = "▾" if self.is_open(node) else "▸"
        sign: Cell = (f" {DOT} ", "bold accent") if node.key in self.marked else ("   ", "")
        state = mark(outcome_of(summary)) if summary is not None and summary.recent else (NONE, "dim")
        start: list[Cell] = [sign, (f"{arrow} ", "dim"), state, (" ", ""), (one_line(test.id), "")]
        if node.suite.quarantined(test.id) is not None:
            start.append(("  quarantine", "flaky"))
        if summary is None or not summary.recent:
            return self._row(start, ("", ""), [*_NOTHING], width)
        if agent := other_agent(node, summary):
            start.append((f"  {one_line(agent, AGENT)}", "accent"))
        outcomes = last_outcomes(summary)
        decided = [outcome for outcome in outcomes if outcome in ("passed", "failed")]
        last = f"{decided.count('passed')}/{len(decided)}" if decided else word(summary.recent[-1])
        passed, n = recent_rate(summary)
        # In one style: each change of it is sent with every move of the cursor.
        end: list[Cell] = [(right(last, LAST) + right(percent(passed / n) if n else NONE, RATE), "")]
        return self._row(
            start,
            (summary.answer, ANSWER if summary.recent[-1] == "passed" else ""),
            [*end, ("  ", ""), *_recent_marks(summary), (" ", "")],
            width,
        )

    def _criterion_line(self, node: Node, width: int) -> Line:
        test = node.test
        assert test is not None
        assert node.criterion is not None
        criterion, name = test.criteria[node.criterion], node.criterion_name
        summary = criterion_summary(node)
        state = mark(summary.last) if summary else (NONE, "dim")
        start: list[Cell] = [("       ", ""), state, (" ", ""), (one_line(name), "")]
        if node.suite.quarantined(test.id, name) is not None:
            start.append(("  quarantine", "flaky"))
        # In the column of its test's runs; after the name it would be cut first.
        note = criterion.severity if criterion.severity != "error" else ""
        rate = percent(summary.passed / summary.n) if summary and summary.n else ""
        end: list[Cell] = [(" " * LAST + right(rate, RATE), "dim"), (left(f"  {note}", SPARK + 3), "dim")]
        return self._row(start, ("", ""), end, width)


def _recent_marks(summary: TestSummary) -> list[Cell]:
    """A glyph a run, the newest last; runs that do not count now are dim."""
    rows = zip(summary.recent, counted(summary), strict=True)
    ended = [(*mark(status), counts) for status, counts in rows if status in COMPLETED][-SPARK:]
    return [*((sign, style if counts else "dim") for sign, style, counts in ended), (" " * (SPARK - len(ended)), "")]


def other_agent(node: Node, summary: TestSummary) -> str:
    """The agent that the figures of a test are of, if it is not the one that the suite names; else ""."""
    suite = node.suite.loaded.suite
    own = (node.test.agent if node.test is not None else None) or (suite.agent if suite is not None else None)
    return summary.agent if own and summary.agent != own else ""


def criterion_summary(node: Node) -> CriterionSummary | None:
    """What the history knows of a criterion's row."""
    if node.test is None or node.criterion is None:
        return None
    summary = node.suite.summaries.get(node.test.id)
    return summary.criteria.get(node.criterion_name) if summary else None
