"""The cells of an execution: a row a test (in one variation, on one row of a dataset), a cell a run."""

from __future__ import annotations

from rich.cells import cell_len

from agenteval_tui.analysis.statistics import reaches
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import percent
from agenteval_tui.runs.events import RunState
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph, mark
from agenteval_tui.tui.styled_text import Cell, Line, fit, fit_text, left, right, spread, width_of
from agenteval_tui.views.gates import gate_text

RETRIED = ("↻" if UNICODE else "r", "error")
CACHED = ("=", "dim")
_QUEUED = ("queued", False, False)
LEAST_CELLS = 6  # signs of runs beside the sums of a row, however narrow it is
LEAST_NAME = 10  # cells of a test beside its variation
_RATE = 17  # cells of that
_GATE = 15  # cells of the gate of a row
WIDE = 80  # cells from which a row says how many of its runs passed
_SUMMED = ("passed", "failed", "error", "cancelled", "skipped", "needs_review", "running")


class RunGrid:
    """A row source for the virtual list. `column` is the chosen cell of the cursor's row.

    Runs are grouped by test, variation and dataset row, in the order of the plan. `note` keeps count of what changed,
    so that no repaint looks at more runs than are seen.
    """

    def __init__(self, view: ExecutionView) -> None:
        self.view = view
        self.column = 0
        self.groups: list[list[str]] = []
        self.row_of: dict[str, int] = {}
        self.flying: dict[str, None] = {}
        """The runs at work, in the order in which they started."""
        self.marked: dict[str, int] = {"retried": 0, "cached": 0, "skipped": 0}
        """How many runs bear which sign."""
        self._place: dict[str, int] = {}
        self._known: dict[str, tuple[str, bool, bool]] = {}
        self._tallies: list[dict[str, int]] = []
        self._names: list[tuple[str, str, str]] = []
        self._places: dict[tuple[str, str, str, int, int], int] = {}
        self._suites: dict[str, set[str]] = {}
        self._rate_width = _RATE
        self.name_width = self._longest = 0
        for run in view.runs.values():
            self._suites.setdefault(run.ref.test, set()).add(run.ref.suite)
        for run in view.runs.values():
            self._add(run)

    def _add(self, run: RunState) -> None:
        ref = run.ref
        suites = self._suites.setdefault(ref.test, set())
        suites.add(ref.suite)
        # Two suites of one name may have a test of the same id: its repetitions begin anew.
        again = 0
        place = self._places.setdefault((ref.suite, ref.test, ref.variation, ref.row, again), len(self.groups))
        while place < len(self.groups) and ref.repetition <= self._repetition(place):
            again += 1
            place = self._places.setdefault((ref.suite, ref.test, ref.variation, ref.row, again), len(self.groups))
        if place == len(self.groups):
            self.groups.append([])
            self._tallies.append({})
            self._names.append(_name(run, ref.suite if len(suites) > 1 else ""))
            self.name_width = max(self.name_width, cell_len("".join(self._names[-1])))
        self._place[ref.run] = len(self.groups[place])
        self.groups[place].append(ref.run)
        self._longest = max(self._longest, len(self.groups[place]))
        self.row_of[ref.run] = place
        if ref.gate is not None:
            self._rate_width = _RATE + _GATE
        if run.status == "queued":
            # Most are, of what begins: nothing is to be told apart.
            self._known[ref.run] = _QUEUED
            self._tallies[place]["queued"] = self._tallies[place].get("queued", 0) + 1
        else:
            self.note(ref.run)

    def _repetition(self, place: int) -> int:
        return self.view.runs[self.groups[place][-1]].ref.repetition

    def note(self, run_id: str) -> None:
        """This run changed."""
        run = self.view.runs.get(run_id)
        if run is None:
            return
        if run_id not in self.row_of:
            self._add(run)
            return
        now = (run.status, run.attempt > 1, run.cached)
        before = self._known.get(run_id)
        # Most events of a run change none of its signs.
        if before == now:
            return
        self._known[run_id] = now
        tally = self._tallies[self.row_of[run_id]]
        if before is not None:
            tally[_summed(before[0])] -= 1
        tally[_summed(now[0])] = tally.get(_summed(now[0]), 0) + 1
        if run.status in ("running", "grading"):
            self.flying[run_id] = None
        else:
            self.flying.pop(run_id, None)
        for name, is_so, was in (
            ("retried", now[1], before is not None and before[1]),
            ("cached", now[2], before is not None and before[2]),
            ("skipped", now[0] == "skipped", before is not None and before[0] == "skipped"),
        ):
            self.marked[name] += is_so - was

    def note_all(self) -> None:
        """Anything may have changed: a snapshot came."""
        for run in self.view.runs:
            self.note(run)

    def chosen(self, row: int) -> str:
        """The run id of the chosen cell in `row`; "" when there is none."""
        if not 0 <= row < len(self.groups):
            return ""
        runs = self.groups[row]
        return runs[min(self.column, len(runs) - 1)]

    def column_of(self, run: str) -> int:
        """The cell that a run has in its row."""
        return self._place.get(run, 0)

    def count(self) -> int:
        """How many rows there are."""
        return len(self.groups)

    def key(self, index: int) -> str:
        """What the row is: its first run."""
        return self.groups[index][0]

    def index_of(self, key: str) -> int | None:
        """The row with a run."""
        return self.row_of.get(key)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """The test's name and a sign a run; at the cursor, the chosen one is shown in reverse: it takes no more room
        than the others. If there is no room for all runs, their outcomes are summed up at the end.
        """
        # Names have what the cells of the longest row leave; of many runs two fifths, for the sums need room as well.
        names = min(
            self.name_width,
            max(width - 3 - 2 * self._longest - (self._rate_width if width >= WIDE else 0), width * 2 // 5, 12),
        )
        cells: list[Cell] = [(" ", ""), (_fit_name(*self._names[index], names), ""), (" ", "")]
        runs = self.groups[index]
        room = max((width - names - 3 - (self._rate_width if width >= WIDE else 0)) // 2, LEAST_CELLS)
        end: tuple[Cell, ...] = ()
        if len(runs) > room:
            end = self._sums(index)
            room = max((width - names - 4 - width_of(end)) // 2, LEAST_CELLS)
        chosen = min(self.column, len(runs) - 1) if focused else -1
        first = max(0, min(chosen - room // 2, len(runs) - room)) if focused else 0
        if first:
            cells[-1] = ("‹" if UNICODE else "<", "dim")
        for number in range(first, min(first + room, len(runs))):
            run = self.view.runs[runs[number]]
            sign, style = _sign(run)
            look = f"{style} bold reverse" if number == chosen else style
            # Between two cells stands the sign of the one before, or a space.
            before = _extra(self.view.runs[runs[number - 1]]) if number > first else (" ", "")
            cells += [before, (sign, look)]
        if runs:
            cells.append(_extra(self.view.runs[runs[min(first + room, len(runs)) - 1]]))
        if width >= WIDE and not end:
            return spread(cells, self._rate(index), width)
        gate = () if end or width >= WIDE else self._gate(index)
        if gate and width_of(cells) + width_of(gate) + 2 <= width:
            return spread(cells, (*gate, (" ", "")), width)
        return fit((*cells, *end), width)

    def _rate(self, index: int) -> tuple[Cell, ...]:
        """How many of the runs that have a verdict passed, where there is room for it."""
        tally = self._tallies[index]
        passed = tally.get("passed", 0)
        decided = passed + tally.get("failed", 0)
        ref = self.view.runs[self.groups[index][0]].ref
        share = percent(passed / decided, beside=None if ref.row else ref.gate) if decided else ""
        gate = self._gate(index)
        return ((right(f"{passed}/{decided}" if decided else "", 8), ""), (right(share, 7), "dim"), *gate, (" ", ""))

    def _gate(self, index: int) -> tuple[Cell, ...]:
        """How often the row's test must pass, and whether it did so far; rows of a dataset are measured together. ()
        where no test has a gate."""
        if self._rate_width == _RATE:
            return ()
        ref = self.view.runs[self.groups[index][0]].ref
        if ref.gate is None:
            return ((" " * _GATE, ""),)
        tally = self._tallies[index]
        sign: Cell = (" ", "")
        passed = tally.get("passed", 0)
        decided = passed + tally.get("failed", 0)
        if decided and not ref.row:
            sign = mark("passed" if reaches(passed / decided, ref.gate) else "failed")
        return ((right(gate_text(ref.gate), _GATE - 2), "dim"), (" ", ""), sign)

    def _sums(self, index: int) -> tuple[Cell, ...]:
        tally = self._tallies[index]
        cells: list[Cell] = [(" ", "")]
        for status in _SUMMED:
            if tally.get(status):
                sign, style = mark(status)
                cells.append((f" {sign}{tally[status]}", style))
        return tuple(cells)


def legend(grid: RunGrid, width: int) -> Line:
    """The signs beside cells in words, as far as there are any; () else."""
    cells: list[Cell] = []
    for name, (sign, style) in (("retried", RETRIED), ("cached", CACHED), ("skipped", mark("skipped"))):
        if grid.marked[name]:
            cells += [("  " if cells else " ", ""), (sign, style), (f" {name} {grid.marked[name]:,}", "dim")]
    return fit(cells, width)


def _sign(run: RunState) -> Cell:
    if run.status in ("running", "grading") and run.retry_in_s is not None:
        return RETRIED
    return mark(run.status) if glyph(run.status).strip() else ("?", "dim")


def _extra(run: RunState) -> Cell:
    """The sign behind a cell: tried again, or answered by the cache."""
    if run.cached:
        return CACHED
    return RETRIED if run.attempt > 1 else (" ", "")


def _summed(status: str) -> str:
    return "running" if status == "grading" else status


def _name(run: RunState, suite: str) -> tuple[str, str, str]:
    """The test, and what tells its rows apart; `suite`: named if another suite has a test of the same id."""
    ref = run.ref
    parts = [one_line(ref.variation, 24)] if ref.variation else []
    if suite:
        parts.append(one_line(suite, 40))
    return (
        one_line(ref.test, 60),
        "".join(f" · {part}" for part in parts),
        f" #{one_line(ref.row_label, 24)}" if ref.row else "",
    )


def _fit_name(test: str, variation: str, row: str, width: int) -> str:
    """All in exactly `width` cells: what tells rows apart is cut last."""
    room = max(width - cell_len(row), 0)
    test = fit_text(test, max(room - cell_len(variation), min(LEAST_NAME, room)))
    return left(test + fit_text(variation, room - cell_len(test)) + row, width)
