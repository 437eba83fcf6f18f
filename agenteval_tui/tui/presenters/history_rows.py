"""Executions and runs as rows of a list that holds only the rows it shows."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.lines import Cell, Line, fit, left, right, spread
from agenteval_tui.tui.presenters.figures import cost, date_time, duration, percent
from agenteval_tui.tui.presenters.outcomes import glyph, mark

if TYPE_CHECKING:
    from agenteval_tui.history.rows import ExecutionRow, RunRow

PAGE = 100
PAGES_KEPT = 30


class _Numbered(Protocol):
    @property
    def rowid(self) -> int: ...


Row = TypeVar("Row", bound=_Numbered)


class PagedRows(Generic[Row]):
    """A row source over row ids of the history: pages of rows are fetched by id when they are looked at.

    `fetch` reads rows by their ids, in that order, without those that are gone; a page takes a few milliseconds.
    """

    def __init__(self, ids: array[int], fetch: Callable[[Sequence[int]], list[Row]]) -> None:
        self.ids = ids
        self._fetch = fetch
        self._pages: OrderedDict[int, dict[int, Row]] = OrderedDict()

    def count(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def row(self, index: int) -> Row | None:
        """Row `index`; None when it was deleted meanwhile, or can't be read any more."""
        number = index // PAGE
        page = self._pages.get(number)
        if page is None:
            try:
                found = self._fetch(self.ids[number * PAGE : (number + 1) * PAGE])
            except AgentevalError:
                # Painting must go on; reading the list again says what is wrong.
                return None
            page = self._pages[number] = {row.rowid: row for row in found}
            while len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return page.get(self.ids[index])

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
        row = self.row(index)
        return self.draw(row, width) if row is not None else fit(((" (deleted, or not readable)", "dim"),), width)

    def draw(self, row: Row, width: int) -> Line:
        """A row in `width` cells. Subclasses say how."""
        raise NotImplementedError


class ExecutionRows(PagedRows["ExecutionRow"]):
    """Executions, newest first: when, what, outcomes, rate, duration, cost."""

    def draw(self, row: ExecutionRow, width: int) -> Line:
        start: list[Cell] = [(" ", ""), mark(row.status), (" ", ""), (date_time(row.started_ms), "dim"), ("  ", "")]
        start.append((one_line(row.title or row.suites) or row.id, ""))
        if row.kind == "import":
            start.append((f"  from {one_line(row.source)}", "dim"))
        elif width >= 110 and row.agents:
            start.append((f"  {one_line(row.agents)}", "dim"))
        decided = row.passed + row.failed
        end: list[Cell] = [
            (right(f"{glyph('passed')} {row.passed}", 8), "passed" if row.passed else "dim"),
            (right(f"{glyph('failed')} {row.failed}", 8), "failed" if row.failed else "dim"),
        ]
        if row.errors or width >= 100:
            end.append((right(f"{glyph('error')} {row.errors}", 6), "error" if row.errors else "dim"))
        end.append((right(percent(row.passed / decided) if decided else "", 7), ""))
        if width >= 100:
            spent = (row.finished_ms - row.started_ms) if row.finished_ms else None
            end += [(right(duration(spent), 9), "dim"), (right(cost(row.cost), 9), "dim")]
        return spread(start, (*end, (" ", "")), width)


class RunRows(PagedRows["RunRow"]):
    """Runs: outcome, test, repetition, why it failed, duration, tokens."""

    def draw(self, row: RunRow, width: int) -> Line:
        name = one_line(row.test_id) + (f" · {one_line(row.variation)}" if row.variation else "")
        start: list[Cell] = [(" ", ""), mark(row.status), (" ", ""), (left(name, min(28, width // 4)), "")]
        start.append((right(f"run {row.repetition}", 7) + "  ", "dim"))
        why = one_line(row.why or row.error_message or row.output_head, 200)
        start.append((why, "dim" if row.status == "passed" else ""))
        end: list[Cell] = [("  ", "")]
        if width >= 100:
            end += [(left(one_line(row.agent), 16), "dim"), (right(date_time(row.started_ms), 17), "dim")]
        end.append((right(duration(row.duration_ms), 8), "dim"))
        return spread(start, (*end, (" ", "")), width)


def execution_summary(row: ExecutionRow, width: int) -> Line:
    """One line about an execution, over the list of its runs."""
    decided = row.passed + row.failed
    cells: list[Cell] = [(" ", ""), mark(row.status), (" ", ""), (one_line(row.title) or row.id, "bold")]
    cells.append((f"  {row.runs} runs", "dim"))
    for outcome, number in (("passed", row.passed), ("failed", row.failed), ("error", row.errors)):
        if number:
            cells += [("  ", ""), (f"{glyph(outcome)} {number}", outcome)]
    if decided:
        cells.append((f"  {percent(row.passed / decided)}", ""))
    if row.message:
        cells.append((f"  {one_line(row.message)}", "dim"))
    return fit(cells, width)
