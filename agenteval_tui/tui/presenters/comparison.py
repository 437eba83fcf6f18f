"""A comparison as rows: what got worse or better first, with figures, who changed it, and where the runs part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_model import ORDER, Comparison, CriterionChange, State, TestChange
from agenteval_tui.analysis.comparison_text import SECTIONS, fraction, score_of
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, right, spread

if TYPE_CHECKING:
    from agenteval_tui.analysis.attribution import Attributed
    from agenteval_tui.tui.widgets.virtual_list import RowSource

_FIGURE = 7  # cells of a figure: `12/12`
_WHO = 12
_WITH_WHERE = 92  # cells from which the first divergence stands in the row
_SHARP: tuple[State, ...] = ("worse", "better", "mixed")
_SIGNS: dict[State, tuple[str, str]] = {
    "worse": (glyph("failed"), "failed"),
    "better": (glyph("passed"), "passed"),
    "mixed": ("↕" if UNICODE else "%", "review"),
    "score": ("±" if UNICODE else "~", ""),
    "criteria": ("·" if UNICODE else ".", ""),
    "undecided": (glyph("error"), "error"),
    "added": ("+", "added"),
    "removed": ("-", "removed"),
    "same": (" ", "dim"),
}
WORDS = {"judge noise": "judge noise", "unknown": "not known"}


@dataclass(frozen=True, slots=True)
class CompareRow:
    """A row: the head of a section (`change` None), a test, or a criterion of it."""

    state: State
    change: TestChange | None = None
    criterion: CriterionChange | None = None
    number: int = 0

    @property
    def key(self) -> str:
        """What keeps the cursor."""
        if self.change is None:
            return f"\x1f{self.state}"
        return "\x1f".join((*self.change.key, self.criterion.name if self.criterion is not None else ""))


def rows_of(found: Comparison, *, everything: bool = False, words: str = "") -> list[CompareRow]:
    """The rows in order. Unchanged tests only with `everything`; `words`: only what has all of them in its names."""
    wanted = words.casefold().split()
    rows: list[CompareRow] = []
    for state in ORDER:
        if state == "same" and not everything:
            continue
        listed: list[CompareRow] = []
        tests = 0
        for change in found.in_state(state):
            made = [one for one in _rows(change) if _matches(one, wanted)]
            tests += bool(made)
            listed += made
        if listed:
            rows += [CompareRow(state, number=tests), *listed]
    return rows


def _rows(change: TestChange) -> list[CompareRow]:
    if change.state in _SHARP or change.state in ("score", "criteria"):
        # What changed as the test did says most about it.
        moved = [one for one in change.criteria if one.state != "same" or one.edited]
        alike = [one for one in moved if one.state == change.state] or moved
        if alike:
            return [CompareRow(change.state, change, one) for one in alike]
    return [CompareRow(change.state, change)]


def _matches(row: CompareRow, words: Sequence[str]) -> bool:
    change = row.change
    assert change is not None
    criterion = row.criterion.name if row.criterion is not None else ""
    text = f"{change.suite} {change.label} {change.name} {criterion}".casefold()
    return all(word in text for word in words)


@dataclass(slots=True)
class CompareRows:
    """The rows of a list. `attributed`: who changed what, by the test's key, as far as it is known yet."""

    rows: Sequence[CompareRow]
    attributed: Mapping[tuple[str, str, str], Attributed | None] = field(default_factory=dict)
    versions: bool = False  # two versions of a criterion on the same outputs: it is nobody else's doing

    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """What the row is."""
        return self.rows[index].key

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        row = self.rows[index]
        return _section(row, width) if row.change is None else self._change(row, row.change, width)

    def _change(self, row: CompareRow, change: TestChange, width: int) -> Line:
        sign, style = _SIGNS[row.state]
        cells: list[Cell] = [(" ", ""), (sign, style), (" ", "")]
        name = _name_width(width)
        label = one_line(change.label)
        if row.criterion is not None:
            label += f" / {one_line(row.criterion.name)}"
        cells.append((left(label, name), "dim" if change.state == "same" else ""))
        was, now = _figures(row, change)
        cells += [(right(was, _FIGURE), "dim"), (right(now, _FIGURE), style if row.state in _SHARP else "")]
        cells.append(("  ", ""))
        if change.quarantine:
            cells.append((left("quarantine", _WHO), "review"))
        else:
            cells.append(self._who(row, change))
        if width >= _WITH_WHERE:
            cells += [(" ", ""), (self._where(row, change), "dim")]
        return fit(cells, width)

    def _who(self, row: CompareRow, change: TestChange) -> Cell:
        if row.state not in _SHARP:
            return left("", _WHO), ""
        if self.versions:
            return left("criterion", _WHO), "accent"
        if change.key not in self.attributed:
            return left("…" if change.pairs else "", _WHO), "dim"
        found = self.attributed[change.key]
        if found is None:
            return left("not known", _WHO), "dim"
        mine = found.by_criterion.get(row.criterion.name) if row.criterion is not None else None
        who = mine.who if mine is not None else found.who
        return left(WORDS.get(who, who), _WHO), "dim" if who == "unknown" else "accent"

    def _where(self, row: CompareRow, change: TestChange) -> str:
        criterion = row.criterion
        if criterion is not None and criterion.edited:
            return f"config changed: {criterion.versions_was[-1][:6]} {_TO} {criterion.versions_now[-1][:6]}"
        if criterion is not None and criterion.state in ("added", "removed"):
            return f"criterion {criterion.state}"
        found = self.attributed.get(change.key)
        return one_line(found.divergence, 200) if found is not None else ""


_TO = "→" if UNICODE else "->"


def cells_to_figures(width: int) -> int:
    """Cells of a row up to whose doing it was: what the cursor's background covers."""
    return min(3 + _name_width(width) + 2 * _FIGURE + 2 + _WHO, width)


def _name_width(width: int) -> int:
    return max(width - 3 - 2 * _FIGURE - 2 - _WHO, 12) if width < _WITH_WHERE else max(min(46, width * 2 // 5), 30)


def _figures(row: CompareRow, change: TestChange) -> tuple[str, str]:
    criterion = row.criterion
    was, now = (criterion.was, criterion.now) if criterion is not None else (change.was, change.now)
    state = criterion.state if criterion is not None else change.state
    if state == "score" or (state == "same" and row.state == "score"):
        return score_of(was), score_of(now)
    return fraction(was), fraction(now)


def _section(row: CompareRow, width: int) -> Line:
    name = f"{SECTIONS[row.state][row.number != 1]} {row.number:,}"
    cells: list[Cell] = [(" ", ""), (left(name, _name_width(width) + 2), "bold")]
    if row.state not in ("added", "removed"):
        cells += [(right("was", _FIGURE), "dim"), (right("now", _FIGURE), "dim"), ("  ", "")]
    if row.state in _SHARP:
        cells.append((left("who changed", _WHO), "dim"))
        if width >= _WITH_WHERE:
            cells.append((" what differs first", "dim"))
    return fit(cells, width)


def side_label(rows: CompareRows) -> RowSource:
    """The rows for the list, typed."""
    return rows


__all__ = ["CompareRow", "CompareRows", "rows_of", "spread"]
