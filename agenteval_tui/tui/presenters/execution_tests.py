"""What an execution says of each test, below the list of executions: its runs as glyphs, why it fails, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count, short_dollars, short_duration, token_count
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.tui.presenters.status_style import UNICODE, mark, of_runs
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, left, longest_that_fits, right, spread, width_of
from agenteval_tui.views.execution import took_ms
from agenteval_tui.views.failure import MOST_TESTS, Failure, failures

MOST_RUNS = 2_000  # of an execution whose tests are told apart
_STRIP = 20  # glyphs of a test
_LEAST_WHY = 24  # cells of a reason that are worth having


class TestOutcome(Struct, frozen=True):
    """A test of an execution: how its runs ended, in their order, why it fails, what they cost together."""

    __test__ = False  # not a test of this project

    name: str
    outcomes: tuple[str, ...]
    failure: Failure | None
    cost: float | None
    priced: bool = True
    """Whether `cost` is all of it."""

    @property
    def rate(self) -> float:
        """The share of its decided runs that passed; 1 where none is decided."""
        decided = sum(outcome in ("passed", "failed") for outcome in self.outcomes)
        return self.outcomes.count("passed") / decided if decided else 1.0


def outcomes_of_tests(
    runs: Sequence[RunRow], results_of: Callable[[str], Sequence[CriterionResult]]
) -> list[TestOutcome]:
    """The tests of an execution's runs, those that fail most first. `results_of` gives the results of a run."""
    tests = grouped(((run.suite_key, run.test_id, run.variation), run) for run in runs)
    suites: dict[str, set[str]] = {}
    for suite, test, _ in tests:
        suites.setdefault(test, set()).add(suite)
    test_outcomes: list[TestOutcome] = []
    explained = 0
    for (_, test, variation), rows in tests.items():
        bad = any(run.status in ("failed", "error") for run in rows)
        # Each reason is read from the history: of hundreds of failed tests nobody reads them all.
        reasons = failures(rows, results_of).reasons if bad and explained < MOST_TESTS else ()
        explained += bad
        name = one_line(test) + (f" · {one_line(variation)}" if variation else "")
        if len(suites[test]) > 1:
            name += f" · {one_line(rows[0].suite_name, 24)}"
        spent = [run.cost for run in rows if run.cost]
        outcomes = tuple(run.status for run in rows)
        first, cost = reasons[0] if reasons else None, sum(spent) if spent else None
        test_outcomes.append(TestOutcome(name, outcomes, first, cost, all(run.priced for run in rows)))
    return sorted(test_outcomes, key=lambda test_outcome: (test_outcome.rate, "error" not in test_outcome.outcomes))


def spent_text(row: ExecutionRow) -> str:
    """What an execution took, for a title: `4.8 s · 11.0k tokens · $0.08`."""
    parts = [short_duration(took_ms(row)), token_count(row.input_tokens + row.output_tokens), short_dollars(row.cost)]
    return " · ".join(part for part in parts if part)


def test_lines(tests: Sequence[TestOutcome], width: int, most: int) -> list[Line]:
    """A line a test in `width` cells, at most `most`; the last one says how many more there are."""
    names = min(max((cell_len(test.name) for test in tests), default=0), max(width // 3, 12))
    strip = min(max((len(test.outcomes) for test in tests), default=0), _STRIP, max(width // 4, 5))
    visible = tests if len(tests) <= most else tests[: most - 1]
    lines = [_line(test_outcome, names, strip, width) for test_outcome in visible]
    if len(visible) < len(tests):
        lines.append(fit(((f"     … {count(len(tests) - len(visible), 'more test')}", "dim"),), width))
    return lines


test_lines.__test__ = False  # type: ignore[attr-defined]


def _line(test_outcome: TestOutcome, names: int, strip: int, width: int) -> Line:
    numbers = [sum(outcome == name for outcome in test_outcome.outcomes) for name in ("passed", "failed", "error")]
    cells: list[Cell] = [("   ", ""), mark(of_runs(*numbers) or "none"), (" ", "")]
    cells += [(left(test_outcome.name, names), ""), ("  ", "")]
    glyphs = test_outcome.outcomes[:strip]
    cells += [*map(mark, glyphs), (" " * (strip - len(glyphs)), "")]
    decided = numbers[0] + numbers[1]
    cells.append((right(f"{numbers[0]}/{decided}" if decided else "", 7) + "  ", "dim"))
    end: tuple[Cell, ...] = (
        ((right(short_dollars(test_outcome.cost, whole=test_outcome.priced), 9) + " ", "dim"),)
        if test_outcome.cost
        else ()
    )
    room = width - 1 - width_of(cells) - width_of(end)
    if test_outcome.failure is not None and room >= _LEAST_WHY:
        cells += longest_that_fits(_why(test_outcome.failure), room)
    return spread(cells, end, width)


UNLIKE = " ≠ " if UNICODE else " != "
"""Between the expected and the actual value, if there is no room for words."""


def _why(failure: Failure) -> list[Line]:
    """The reason, with the criterion and the place, from the longest version to the shortest (the values alone)."""
    miss = failure.miss
    where: Line = ((f"{one_line(miss.criterion)}  ", "dim"),) if miss.criterion else ()
    if not miss.expected:
        return [(*where, (one_line(miss.said, 300), "")), ((one_line(miss.said, 300), ""),)]
    place: Line = ((f"{one_line(miss.what)}  ", "json-key"),) if miss.what else ()
    expected: Cell = (one_line(miss.expected), "")
    actual: Cell = (one_line(miss.got), "failed")
    compared: Line = (("expected ", "dim"), expected, (f"  {failure.got_label} ", "dim"), actual)
    if miss.looks_equal:
        note: Line = (expected, (f"  {one_line(miss.note)}", "failed"))
        return [(*where, *place, *note), (*place, *note), note, note[1:]]
    return [(*where, *place, *compared), (*place, *compared), compared, (expected, (UNLIKE, "dim"), actual)]
