"""What the Editor lists: tests with their state, criteria, problems, the first rows of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agenteval_tui.analysis.edit_validation import FieldProblem
from agenteval_tui.analysis.overview import Overview
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.status_style import UNICODE, mark
from agenteval_tui.tui.presenters.test_form import CriterionForm
from agenteval_tui.tui.presenters.test_status import outcome_of
from agenteval_tui.tui.presenters.text_layout import hanging, paragraph
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, spread

EDITED = "●" if UNICODE else "*"
"""Beside what is not saved."""

PREVIEW_COLUMNS = 6


class TestRows:
    """The tests of all suites below their suites' names. The keys of rows: suite, or suite and test id."""

    __test__ = False  # not a test of this project

    def __init__(self, overview: Overview, edited: Collection[str], words: str = "") -> None:
        """`edited`: keys of tests with an edit that is not saved. `words`: only tests with these in id or name."""
        self._rows: list[tuple[str, str, str, str]] = []  # key, what, outcome, id or name
        self._edited = edited
        wanted = words.lower().split()
        for suite in overview.suites:
            loaded = suite.loaded
            tests = {test.id.casefold(): test for test in loaded.suite.tests} if loaded.suite else {}
            rows = []
            for folded in loaded.test_nodes:
                test = tests.get(folded)
                name = test.id if test is not None else folded
                text = f"{name} {test.name if test is not None else ''}".lower()
                if all(word in text for word in wanted):
                    state = outcome_of(suite.summaries.get(name)) if test is not None else "error"
                    rows.append((f"{loaded.key}\x1f{name}", "test", state, name))
            if rows or not wanted:
                title = loaded.suite.name if loaded.suite else loaded.path.name
                self._rows += [(loaded.key, "suite", "", title), *rows]

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def key(self, index: int) -> str:
        """What row `index` is."""
        return self._rows[index][0]

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        key, what, outcome, name = self._rows[index]
        if what == "suite":
            return fit(((" ", ""), (one_line(name), "bold")), width)
        end: tuple[Cell, ...] = ((EDITED, "bold"), (" ", "")) if key in self._edited else ()
        return spread(((" ", ""), mark(outcome), (" ", ""), (one_line(name), "")), end, width)


class CriterionRows:
    """The criteria of the open test."""

    def __init__(self, criteria: Sequence[CriterionForm], bad: Mapping[int, str], changed: Collection[int]) -> None:
        """`bad`: the worst severity of a criterion's problems; `changed`: those that differ from the file."""
        self._criteria, self._bad, self._changed = list(criteria), dict(bad), set(changed)

    def __eq__(self, other: object) -> bool:
        """Do they look the same?"""
        if not isinstance(other, CriterionRows):
            return NotImplemented
        alike = [one.values for one in self._criteria] == [one.values for one in other._criteria]
        return alike and (self._bad, self._changed) == (other._bad, other._changed)

    __hash__ = None  # type: ignore[assignment]  # two are compared, none is a key

    def count(self) -> int:
        """How many criteria there are."""
        return len(self._criteria)

    def key(self, index: int) -> str:
        """Its place."""
        return str(index)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        values = self._criteria[index].values
        sign: Cell = ("!", "error") if index in self._bad else (EDITED, "bold") if index in self._changed else (" ", "")
        name = one_line(values["name"]) or "(no name)"
        facts = [values["prototype_class"]]
        if values["severity"] not in ("", "error"):
            facts.append(values["severity"])
        if values["weight"] not in ("", "1"):
            facts.append(f"×{values['weight']}")
        if values["negate"]:
            facts.append("not")
        right = one_line(" ".join(facts), 40)
        return spread(((" ", ""), sign, (" ", ""), (name, "")), ((right, "dim"), (" ", "")), width)


def problem_rows(
    problems: Sequence[FieldProblem], error: str, names: Sequence[str], width: int, most: int
) -> list[Line]:
    """What is wrong, the worst first, at most `most` lines; the last says how many more there are."""
    if not error and not problems:
        return [fit(((" no problems", "dim"),), width)]
    if error:
        return [((" ", ""), *line) for line in paragraph(f"! {error}", width - 2, "error")][:most]
    lines: list[Line] = []
    whole: list[list[Cell]] = []
    for one in in_order(problems):
        problem = one.problem
        where = one.field
        if one.criterion is not None:
            name = names[one.criterion] if one.criterion < len(names) else ""
            where = f"{one_line(name, 30) or f'criterion {one.criterion + 1}'}{'.' + one.field if one.field else ''}"
        sign, style = ("!", "error") if problem.severity == "error" else ("·", "dim")
        cells: list[Cell] = [(f" {sign} ", style)]
        if where:
            cells += [(where, "bold"), ("  ", "")]
        cells.append((one_line(problem.message, 300), ""))
        if problem.fix:
            cells.append((f"  ({one_line(problem.fix, 120)})", "dim"))
        lines.append(fit(cells, width))
        whole.append(cells)
    if len(whole) == 1:
        # Where there is room, all of what is wrong, and how it is put right.
        said = hanging(tuple(whole[0]), width)
        return said if len(said) <= most else lines
    if len(lines) > most:
        more = len(lines) - most + 1
        lines = [*lines[: most - 1], fit(((f"   … {count(more, 'more problem')}: F8 goes to the next", "dim"),), width)]
    return lines


def in_order(problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """Errors, then warnings, then the rest; in the order of the file."""
    rank = {"error": 0, "warning": 1}
    return sorted(problems, key=lambda one: (rank.get(one.problem.severity, 2), one.problem.line, one.problem.column))


def dataset_lines(rows: Sequence[Mapping[str, Any]], error: str, width: int) -> list[Line]:
    """The first rows of a dataset: its columns, and a line each."""
    if error:
        return paragraph(f"! {error}", width, "error")[:3]
    if not rows:
        return []
    columns = list(dict.fromkeys(key for row in rows for key in row))
    shown = columns[:PREVIEW_COLUMNS]
    room = max((width - 2 * len(shown)) // max(len(shown), 1), 4)
    wide = {
        name: min(max([len(one_line(name, room)), *(len(one_line(_cell(row.get(name)), room)) for row in rows)]), room)
        for name in shown
    }
    more: Cell = (f"+{len(columns) - len(shown)}" if len(columns) > len(shown) else "", "dim")
    lines = [fit([*((left(one_line(name, room), wide[name]) + "  ", "bold") for name in shown), more], width)]
    for row in rows:
        cells = [(left(one_line(_cell(row.get(name)), room), wide[name]) + "  ", "dim") for name in shown]
        lines.append(fit(cells, width))
    return lines


def _cell(value: Any) -> str:
    import json

    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
