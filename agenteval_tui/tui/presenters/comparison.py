"""A comparison on a screen: the head, the list of changes, and one change in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from agenteval_tui.analysis.attribution import Attributed
from agenteval_tui.analysis.comparison_model import (
    ORDER,
    Comparison,
    CriterionChange,
    MetricChange,
    Side,
    State,
    TestChange,
)
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, moment
from agenteval_tui.tui.presenters.status_style import RULE, UNICODE, WARNING
from agenteval_tui.tui.presenters.view_lines import cell, view_lines
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, hanging, indented, left, pad, right
from agenteval_tui.views.comparison import (
    SHARP,
    AttributedTests,
    change_cells,
    change_in_full,
    change_name,
    criteria_table,
    notes,
    overall_in_short,
    section_text,
    versions_text,
)
from agenteval_tui.views.model import View

_FIGURE = 7  # cells of a figure: `12/12`
_WHO = 12  # cells of who changed it, and its head `changed by`
_LEAST_NAME = 12
_LEAST_DIVERGENCE = 30
_WITH_DIVERGENCE = 92  # cells from which the first divergence, and the difference in points, are in the row
_TWO_COLUMNS = 100  # cells from which the criteria stand beside the test


class CompareRow(Struct, frozen=True):
    """A row: the head of a section (`change` None) with its number of tests (`number`) in `listed` rows, a test, or
    a criterion of it."""

    state: State
    change: TestChange | None = None
    criterion: CriterionChange | None = None
    number: int = 0
    listed: int = 0

    @property
    def key(self) -> str:
        """What keeps the cursor."""
        if self.change is None:
            return f"\x1f{self.state}"
        return "\x1f".join((*self.change.key, self.criterion.name if self.criterion is not None else ""))


def rows_of(comparison: Comparison, *, everything: bool = False, words: str = "") -> list[CompareRow]:
    """The rows in order. Unchanged tests only with `everything`; `words`: only rows with all these words."""
    query_words = words.casefold().split()
    rows: list[CompareRow] = []
    for state in ORDER:
        if state == "same" and not everything:
            continue
        listed: list[CompareRow] = []
        tests = 0
        for change in comparison.in_state(state):
            compare_rows = [row for row in _rows(change) if _matches(row, query_words)]
            tests += bool(compare_rows)
            listed += compare_rows
        if listed:
            rows += [CompareRow(state, number=tests, listed=len(listed)), *listed]
    return rows


def _rows(change: TestChange) -> list[CompareRow]:
    if change.state in SHARP or change.state in ("score", "criteria"):
        # What changed as the test did says most about it.
        moved = [criterion for criterion in change.criteria if criterion.state != "same" or criterion.edited]
        alike = [criterion_change for criterion_change in moved if criterion_change.state == change.state] or moved
        if alike:
            return [CompareRow(change.state, change, criterion_change) for criterion_change in alike]
    return [CompareRow(change.state, change)]


def _matches(row: CompareRow, words: Sequence[str]) -> bool:
    change = row.change
    assert change is not None
    criterion = row.criterion.name if row.criterion is not None else ""
    text = f"{change.suite} {change.label} {change.name} {criterion}".casefold()
    return all(word in text for word in words)


class CompareRows(Struct):
    """The rows of a list. `attributed`: who changed what, as far as it is known yet; `versions`: two versions of a
    criterion judge the same outputs."""

    rows: Sequence[CompareRow]
    attributed: AttributedTests = field(default_factory=dict)
    versions: bool = False
    longest: int = 0
    """Cells of the longest name."""

    def __post_init__(self) -> None:
        names = (change_name(row.change, row.criterion) for row in self.rows if row.change is not None)
        self.longest = max(map(cell_len, names), default=0)

    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """What the row is."""
        return self.rows[index].key

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        row = self.rows[index]
        if row.change is None:
            return self._section(row, width)
        figures = change_cells(row.change, row.criterion, self.attributed, versions=self.versions)
        sign, who = cell(*figures.sign), cell(*figures.who)
        cells: list[Cell] = [(" ", ""), sign, (" ", "")]
        cells.append((left(figures.name, self._name_width(width)), "dim" if row.state == "same" else ""))
        style = sign[1] if row.state in SHARP else ""
        cells += [(right(figures.was, _FIGURE), "dim"), (right(figures.now, _FIGURE), style)]
        if width >= _WITH_DIVERGENCE:
            cells.append((right(cell(figures.points, "")[0], _FIGURE), style))
        cells += [("  ", ""), (left(who[0], _WHO), who[1])]
        if width >= _WITH_DIVERGENCE:
            cells += [(" ", ""), cell(figures.divergence, "dim")]
        return fit(cells, width)

    def _name_width(self, width: int) -> int:
        """Names have what they need, as far as the first divergence has room beside them."""
        room = width - 3 - _figures(width) - 2 - _WHO
        if width < _WITH_DIVERGENCE:
            return max(room, _LEAST_NAME)
        return max(min(self.longest, max(room // 2, room - 1 - 2 * _LEAST_DIVERGENCE)), _LEAST_DIVERGENCE)

    def _section(self, row: CompareRow, width: int) -> Line:
        name = section_text(row.state, row.number)
        if row.listed > row.number:
            name += f", in {count(row.listed, 'criterion')}"
        cells: list[Cell] = [(" ", ""), (left(name, self._name_width(width) + 2), "bold")]
        if row.state not in ("added", "removed"):
            cells += [(right("was", _FIGURE), "dim"), (right("now", _FIGURE), "dim")]
            cells += [(right("points", _FIGURE), "dim")] if width >= _WITH_DIVERGENCE and row.state in SHARP else []
        if row.state in SHARP:
            cells += [("  ", ""), (left("changed by", _WHO), "dim")]
            if width >= _WITH_DIVERGENCE:
                cells.append((" first divergence", "dim"))
        return fit(cells, width)


def _figures(width: int) -> int:
    return (3 if width >= _WITH_DIVERGENCE else 2) * _FIGURE


def head_lines(comparison: Comparison, width: int, news: str = "") -> list[Line]:
    """The pass rates with interval and test, what n could have shown, what was measured, both sides, the notes; `news`
    is what has happened since it was compared."""
    short = view_lines((overall_in_short(comparison, unicode=UNICODE),), width - 1)
    lines = [fit(((" ", ""), *line), width) for line in short]
    lines.append(_sides(comparison.a, comparison.b, width))
    if version := versions_text(comparison):
        lines.append(fit(((" ", ""), (version, "dim")), width))
    for note in (*([news] if news else []), *notes(comparison)):
        warning = (" ", ""), cell(f"{WARNING} {one_line(note, 300)}", "warn")
        # Where there are rows for it nothing is cut.
        lines += hanging(warning, width) if width >= _WITH_DIVERGENCE else [fit(warning, width)]
    lines.append(((RULE * width, "rule"),))
    return lines


def _sides(a: Side, b: Side, width: int) -> Line:
    """Both sides. Where there is no room it is the longer name that is cut, and never a time, or the agents where these
    are what differs."""
    names = [one_line(side.name, 60) for side in (a, b)]
    agents = [", ".join(dict.fromkeys(one_line(run.agent, 30) for run in side.runs)) for side in (a, b)]
    agents_beside = ["", ""]
    if agents[0] != agents[1]:
        pairs = zip(names, agents, strict=True)
        agents_beside = [f" · {agent}" if agent and agent not in name else "" for name, agent in pairs]
    times = [f"  {when}" if (when := moment(side.started_ms)) else "" for side in (a, b)]
    arrow = cell("  →  ", "accent")
    room = max(width - 1 - cell_len(arrow[0]) - sum(map(cell_len, times + agents_beside)), 16)
    shorter = min(cell_len(names[0]), cell_len(names[1]), room // 2)
    first, second = (
        fit(((name, "bold"),), room if sum(map(cell_len, names)) <= room else room - shorter) for name in names
    )
    ends: list[Line] = [((agent, "bold"), (when, "dim")) for agent, when in zip(agents_beside, times, strict=True)]
    return fit(((" ", ""), *first, *ends[0], arrow, *second, *ends[1]), width)


def detail_lines(
    row: CompareRow,
    width: int,
    attributed: Attributed | None,
    metrics: Mapping[str, tuple[MetricChange, ...]] | None,
    *,
    waiting: bool = False,
    versions: bool = False,
    regressed: str = "",
) -> list[Line]:
    """One change in full: the test, and its criteria beside it (below it where there is no room)."""
    change = row.change
    if change is None:
        return []
    inner = max(width - 2, 10)
    test = change_in_full(change, row.criterion, attributed, waiting=waiting, versions=versions, regressed=regressed)
    criteria: View = (criteria_table(change, row.criterion, metrics),) if change.criteria else ()
    if inner < _TWO_COLUMNS:
        return indented((*view_lines(test, inner), (), *view_lines(criteria, inner)))
    half = (inner - 3) // 2
    sides = view_lines(test, half), view_lines(criteria, half)
    rows = max(map(len, sides))
    columns = [[*side, *[()] * (rows - len(side))] for side in sides]
    return [((" ", ""), *pad(line, half), ("   ", ""), *other) for line, other in zip(*columns, strict=True)]
