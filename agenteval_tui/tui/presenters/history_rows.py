"""Executions and runs as rows of a list that holds only the rows it shows, and what the list's cursor is on in a few
lines: below an execution its tests, with their runs as glyphs, why they fail, and what they cost."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import (
    count,
    moment,
    percent,
    rate_bar,
    short_dollars,
    short_duration,
    short_number,
    token_count,
)
from agenteval_tui.core.timespan import IN_FUTURE, in_future
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.annotations import Note
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.tui.presenters.status_style import DOT, UNICODE, glyph, mark, of_runs
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    fit,
    fit_reason,
    fit_text,
    left,
    longest_that_fits,
    right,
    spread,
    width_of,
)
from agenteval_tui.views.execution import scheduler_text, took_ms, version_words
from agenteval_tui.views.failure import MOST_TESTS, Failure, failures

PAGE = 100  # rows that are read together: more than a screen shows, and few enough to come at once
PAGES_KEPT = 30  # of millions of rows no more stay in memory
DRAWN_KEPT = 500  # lines
BASELINE = "⌂" if UNICODE else "B"
LABEL = "✎" if UNICODE else "L"
_WIDE = 110  # columns from which a row says more
_SIGNS = 64  # and from which it has room for what people left on it
_NARROW = 44  # and from which it has figures beside the rate: in fewer they are for what was run
_ALIKE = 4  # letters of a beginning that are worth to be dimmed
_TIMED = 100  # and from which it says how long it took: below, that is told of the chosen one
_DATED = 130  # and from which a date has its year
_AGENT = 12  # cells of the agents of an execution, where there is little room
_PASSED, _ERROR, _RATE, _TOOK = 9, 6, 7, 10  # cells of an execution's figures


Row = TypeVar("Row", ExecutionRow, RunRow)


class PagedRows(Generic[Row]):
    """A row source over row ids of the history. It reads nothing: what it lacks it says to `want`, and shows a stand-in
    until the page is `put` in.

    `want` is called with a page's number while a row of it is drawn; it must return at once. `marked` holds the keys of
    rows that several actions are meant for.
    """

    def __init__(self, ids: array[int], want: Callable[[int], None] = lambda page: None) -> None:
        self.ids = ids
        self.marked: set[str] = set()
        self._want = want
        self._pages: OrderedDict[int, tuple[dict[int, Row], Mapping[int, Note]]] = OrderedDict()
        self._drawn: dict[tuple[int, int, Cell], Line] = {}

    def count(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def ids_of(self, page: int) -> array[int]:
        """The row ids of a page: what to read for it."""
        return self.ids[page * PAGE : (page + 1) * PAGE]

    def put(self, page: int, rows: Sequence[Row], notes: Mapping[int, Note]) -> None:
        """The rows of a page, as far as they are still there, and what people left on them."""
        self._pages[page] = ({row.rowid: row for row in rows}, notes)
        self._pages.move_to_end(page)
        # What a row begins with depends on the row above, which may have come with this page.
        self._drawn.clear()
        while len(self._pages) > PAGES_KEPT:
            self._pages.popitem(last=False)

    def has(self, page: int) -> bool:
        """Is the page here?"""
        return page in self._pages

    def row(self, index: int) -> Row | None:
        """Row `index` as far as it is here; None: its page is not, or it was deleted."""
        page = self._pages.get(index // PAGE)
        return None if page is None else page[0].get(self.ids[index])

    def key(self, index: int) -> str:
        """What the row is, for keeping the cursor."""
        return str(self.ids[index])

    def index_of(self, key: str) -> int | None:
        """The row with `key`; None when there is none."""
        try:
            return self.ids.index(int(key))
        except ValueError:
            return None

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index` as it is shown."""
        number = index // PAGE
        page = self._pages.get(number)
        sign: Cell = (DOT, "accent") if self.marked and self.key(index) in self.marked else (" ", "")
        if page is None:
            self._want(number)
            return fit((sign, ("…", "dim")), width)
        row = page[0].get(self.ids[index])
        if row is None:
            return fit((sign, ("(deleted, or not readable)", "dim")), width)
        # Who moves the cursor has its rows painted several times.
        drawn = self._drawn.get((index, width, sign))
        if drawn is None:
            if len(self._drawn) >= DRAWN_KEPT:
                self._drawn.clear()
            note, before = page[1].get(row.rowid), self.row(index - 1) if index else None
            drawn = self._drawn[index, width, sign] = self.draw(row, note, sign, width, before)
        return drawn

    def draw(self, row: Row, note: Note | None, sign: Cell, width: int, before: Row | None) -> Line:
        """A row in `width` cells; `sign` says whether it is marked, `before` is the row above it as far as it is here:
        what it begins with is not said again as loudly. Subclasses say how."""
        raise NotImplementedError

    def heading(self, width: int) -> Line:
        """The names of the columns."""
        raise NotImplementedError


class ExecutionRows(PagedRows["ExecutionRow"]):
    """Executions, newest first: when, what, outcomes, the share of runs that passed, duration, tokens, cost.

    The pass rate of an execution is another figure: the mean over its tests. `places`: of several projects, so that
    each says which it is of.
    """

    places = False

    def draw(self, row: ExecutionRow, note: Note | None, sign: Cell, width: int, before: ExecutionRow | None) -> Line:
        # Most executions hold some failures: only what is unusual about one has a glyph.
        state = mark(row.status) if row.status != "finished" else (" ", "")
        start: list[Cell] = [sign, state, (" ", "")]
        if width >= _NARROW:
            started = _started(row.started_ms, width)
            start += [*_since(_started(before.started_ms, width) if before else "", started, "dim", "dim"), ("  ", "")]
        title = one_line(row.title or row.suites) or row.id
        if row.name:
            start.append((f"{one_line(row.name, max(width // 4, 12))}  ", "bold"))
        start += _since(one_line(before.title or before.suites) if before else "", title, "", "dim")
        if self.places:
            start.append((f"  {one_line(row.project.rpartition('/')[2]) or 'project not known'}", "accent"))
        if in_future(row.started_ms):
            start.append((f"  {IN_FUTURE}", "review"))
        wide = width >= _WIDE
        if row.kind == "import":
            source = one_line(row.source)
            start.append((f"  from {source}" if source not in title else "", "dim"))
        elif wide and row.agents:
            start.append((f"  {one_line(row.agents)}", "dim"))
        where = scheduler_text(row)
        if where and wide:
            start.append((f"  on {where}", "dim"))
        decided = row.passed + row.failed
        if width < _NARROW:
            return spread(start, ((percent(row.passed / decided) if decided else "", ""), (" ", "")), width)
        end: list[Cell] = _signs(note, width)
        if not wide and self._names_agents(width):
            end.append((left(f"  {fit_text(one_line(row.agents), _AGENT)}", _AGENT + 2), "dim"))
        if wide:
            for outcome, number in (("passed", row.passed), ("failed", row.failed)):
                figure = _outcome(outcome, number, 6) if decided else ""
                look = "failed" if number and outcome == "failed" else "dim"
                end.append((right(figure, 8 if outcome == "passed" else 7), look))
        else:
            # As the Suites screen has it: there is no room for a column each.
            end.append((right(_fraction(row.passed, decided), _PASSED), ""))
        end.append((right(_outcome("error", row.errors, 5), _ERROR), "error" if row.errors else "dim"))
        end.append((right(percent(row.passed / decided) if decided else "", _RATE), ""))
        if bar := _bar_cells(width):
            # One cell of a line: each change of style is sent with every move of a cursor.
            end += [("  ", ""), (rate_bar(row.passed / decided, bar, unicode=UNICODE) if decided else " " * bar, "dim")]
        if width >= _TIMED:
            end.append((right(short_duration(took_ms(row)), _TOOK), "dim"))
        if wide:
            for text, cells in ((short_number(row.input_tokens + row.output_tokens), 8), (short_dollars(row.cost), 9)):
                end.append((right(text, cells), "dim"))
        return spread(start, (*end, (" ", "")), width)

    def _names_agents(self, width: int) -> bool:
        """Whether agents have a column where there is little room: they may be all that differs."""
        return width >= _SIGNS and len({row.agents for rows, _ in self._pages.values() for row in rows.values()}) > 1

    def heading(self, width: int) -> Line:
        if width < _NARROW:
            return spread((("   execution", "dim"),), (("rate ", "dim"),), width)
        wide, bar = width >= _WIDE, _bar_cells(width)
        agents = left("  agent", _AGENT + 2) if not wide and self._names_agents(width) else ""
        end = f"{right('passed', 8)}{right('failed', 7)}" if wide else agents + right("passed", _PASSED)
        end += f"{right('error', _ERROR)}{right('rate', _RATE)}{' ' * (bar + 2 if bar else 0)}"
        end += right("duration", _TOOK) if width >= _TIMED else ""
        if wide:
            end += f"{right('tokens', 8)}{right('cost', 9)}"
        started = left("started", len(_started(1, width)) + 2)
        return spread(((f"   {started}execution", "dim"),), ((end + " ", "dim"),), width)


class RunRows(PagedRows["RunRow"]):
    """Runs: outcome, test, repetition, why it failed, duration. `within` the execution that all are of, agent and time
    are said over the list and not in each row, unless there are several agents."""

    def __init__(
        self,
        ids: array[int],
        want: Callable[[int], None] = lambda page: None,
        within: ExecutionRow | None = None,
    ) -> None:
        super().__init__(ids, want)
        self._within = within is not None
        self._one_agent = within is not None and "," not in within.agents

    def draw(self, row: RunRow, note: Note | None, sign: Cell, width: int, before: RunRow | None) -> Line:
        cells = _name_width(width)
        start: list[Cell] = [sign, mark(row.status), (" ", "")]
        start += _since(left(_name_of(before), cells) if before else "", left(_name_of(row), cells), "", "dim")
        start.append((right(f"{row.repetition}", 4) + "  ", "dim"))
        end: list[Cell] = _signs(note, width)
        agent, began, spent = self._columns(width)
        if agent:
            end += [("  ", ""), (left(one_line(row.agent), agent), "dim")]
        if began:
            end.append((right(_started(row.started_ms, width) if row.started_ms else "", began), "dim"))
        if spent:
            end.append((right(short_duration(row.duration_ms), spent), "dim"))
        end.append((" ", ""))
        room = width - width_of(start) - width_of(end) - 1
        why = why_or_answer(row, room)
        if row.status == "passed":
            start.append((why, "dim"))
        else:
            above = before if before is not None and before.status == row.status else None
            start += _since(why_or_answer(above, room) if above is not None else "", why, "", "dim")
        return spread(start, end, width)

    def heading(self, width: int) -> Line:
        start = f"   {left('test', _name_width(width))} run  why, or what it answered"
        agent, began, spent = self._columns(width)
        end = f"  {left('agent', agent)}" if agent else ""
        end += right("started", began) + right("duration", spent)
        return spread(((start, "dim"),), ((end + " ", "dim"),), width)

    def _columns(self, width: int) -> tuple[int, int, int]:
        """How wide agent, time and duration are; 0: not there. In a narrow list of runs of many executions it is the
        time that tells them apart."""
        if width >= _WIDE:
            return 0 if self._one_agent else 16, 0 if self._within else len(_started(1, width)) + 2, 9
        return (0, 0, 9) if self._within else (0, 13, 0)


def _outcome(outcome: str, number: int, cells: int) -> str:
    """A glyph and a number; nothing for no error."""
    if outcome == "error" and not number:
        return ""
    figure = f"{glyph(outcome)} {number:,}"
    return figure if len(figure) <= cells else f"{glyph(outcome)} {_thousands(number)}"


def _fraction(passed: int, decided: int) -> str:
    """14/20, 10k/12k; "" where nothing is decided."""
    fraction = f"{passed}/{decided}"
    if not decided:
        return ""
    return fraction if len(fraction) < _PASSED else f"{_thousands(passed)}/{_thousands(decided)}"


def _thousands(number: int) -> str:
    return f"{number // 1000}k" if number >= 1000 else str(number)


def _name_of(row: RunRow) -> str:
    return one_line(row.test_id) + (f" · {one_line(row.variation)}" if row.variation else "")


def why_or_answer(row: RunRow, width: int) -> str:
    """Why a run failed, else the beginning of what it answered, in at most `width` cells."""
    reason = row.why or row.error_message
    return fit_reason(one_line(reason, 300), width) if reason else fit_text(one_line(row.output_head, 200), width)


def _since(before: str, now: str, style: str, same: str) -> list[Cell]:
    """`now`, with what it begins with as the row above does in the style `same`: whole words, or all of it."""
    shared = common_start(before, now)
    # A word that is dim in part reads as two.
    if shared < len(now):
        shared = now.rfind(" ", 0, shared) + 1
    if shared < _ALIKE or style == same:
        return [(now, style)]
    return [(now[:shared], same), (now[shared:], style)]


def _bar_cells(width: int) -> int:
    """Cells of the bar beside the share of runs that passed; 0: there is no room."""
    return 8 if width >= _WIDE else 6 if width >= _SIGNS else 0


def _started(at_ms: int, width: int) -> str:
    """Date and time; in a narrow list without the year."""
    return moment(at_ms) if width >= _DATED else moment(at_ms)[5:]


def _name_width(width: int) -> int:
    return min(28, width // 4)


def _signs(note: Note | None, width: int) -> list[Cell]:
    """What people left on a row: a baseline's sign; the rating or verdict, or how many labels."""
    cells = 4 if width >= _WIDE else 2 if width >= _SIGNS else 0
    if not cells:
        return []
    if note is None:
        return [(" " * (cells + 2), "")]
    if note.passed is not None or note.rating is not None:
        verdict = "" if note.passed is None else glyph("passed" if note.passed else "failed")
        label = f"{LABEL}{note.rating or ''}{verdict}"
    else:
        label = f"{LABEL}{note.labels if note.labels < 10 ** (cells - 1) else ''}" if note.labels else ""
    return [(f" {BASELINE if note.baselines else ' '}", "accent"), (left(label[:cells], cells), "review")]


def status_cell(row: ExecutionRow) -> str:
    """The state of an execution, as a word that has a glyph: the outcome of its runs, or why there are no more runs.
    A finished execution has the glyph of its worst outcome, because a check mark beside failures would be wrong.
    """
    if row.status != "finished":
        return row.status
    return (
        of_runs(0, row.failed, row.errors)
        or ("needs_review" if row.needs_review else "")
        or ("passed" if row.passed else "skipped")
    )


def execution_version(row: ExecutionRow, width: int) -> list[Line]:
    """What an execution is a version of, and a person's note, in a line each; nothing where nothing is known."""
    parts = (("  ".join(version_words(row)), "dim"), (one_line(row.note, 400), ""))
    return [fit((("   ", ""), (words, style)), width) for words, style in parts if words]


def execution_summary(row: ExecutionRow, width: int) -> Line:
    """One line about an execution, over the list of its runs: what it was, and at the right how it ended."""
    decided = row.passed + row.failed
    start: list[Cell] = [(" ", ""), mark(status_cell(row)), (" ", ""), (one_line(row.title) or row.id, "bold")]
    if row.name:
        start[3:3] = [(f"{one_line(row.name, 60)}  ", "bold accent")]
    notes = f"{count(len(row.notes), 'note')}: {one_line(row.notes[0], 300)}" if row.notes else ""
    future = IN_FUTURE if in_future(row.started_ms) else ""
    where = f"on {scheduler}" if (scheduler := scheduler_text(row)) else ""
    parts = [
        future,
        *version_words(row),
        one_line(row.note, 200),
        one_line(row.agents),
        where,
        one_line(row.message),
        notes,
    ]
    start += [(f"  {part}", "dim") for part in parts if part]
    end: list[Cell] = [(f"  {_started(row.started_ms, width)}", "dim")]
    for outcome, number in (("passed", row.passed), ("failed", row.failed), ("error", row.errors)):
        if number:
            end += [("  ", ""), (f"{glyph(outcome)} {number:,}", outcome)]
    if decided:
        end.append((f"  {percent(row.passed / decided)} of runs", ""))
    if took := short_duration(took_ms(row)):
        end.append((f"  {took}", "dim"))
    return spread(start, (*end, (" ", "")), width)


MOST_RUNS = 2_000  # of an execution whose tests are told apart
_GLYPHS = 20  # glyphs of a test
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
    strip = min(max((len(test.outcomes) for test in tests), default=0), _GLYPHS, max(width // 4, 5))
    visible = tests if len(tests) <= most else tests[: most - 1]
    lines = [_test_line(test_outcome, names, strip, width) for test_outcome in visible]
    if len(visible) < len(tests):
        lines.append(fit(((f"     … {count(len(tests) - len(visible), 'more test')}", "dim"),), width))
    return lines


test_lines.__test__ = False  # type: ignore[attr-defined]


def _test_line(test_outcome: TestOutcome, names: int, strip: int, width: int) -> Line:
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
        cells += longest_that_fits(_why_lines(test_outcome.failure), room)
    return spread(cells, end, width)


UNLIKE = " ≠ " if UNICODE else " != "
"""Between the expected and the actual value, if there is no room for words."""


def _why_lines(failure: Failure) -> list[Line]:
    """The reason, with the criterion and the place, from the longest version to the shortest (the values alone)."""
    miss = failure.miss
    where: Line = ((f"{one_line(miss.criterion)}  ", "dim"),) if miss.criterion else ()
    if not miss.expected:
        return [(*where, (one_line(miss.sentence, 300), "")), ((one_line(miss.sentence, 300), ""),)]
    place: Line = ((f"{one_line(miss.what)}  ", "json-key"),) if miss.what else ()
    expected: Cell = (one_line(miss.expected), "")
    actual: Cell = (one_line(miss.got), "failed")
    compared: Line = (("expected ", "dim"), expected, (f"  {failure.got_label} ", "dim"), actual)
    if miss.looks_equal:
        note: Line = (expected, (f"  {one_line(miss.note)}", "failed"))
        return [(*where, *place, *note), (*place, *note), note, note[1:]]
    return [(*where, *place, *compared), (*place, *compared), compared, (expected, (UNLIKE, "dim"), actual)]
