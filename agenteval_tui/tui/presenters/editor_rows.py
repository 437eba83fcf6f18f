"""What the Editor lists: tests with their state, criteria, problems, the first rows of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis.edit_validation import FieldProblem
from agenteval_tui.analysis.overview import Overview
from agenteval_tui.core.display import one_line
from agenteval_tui.core.json_values import json_text
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.status_style import DOT, mark
from agenteval_tui.tui.presenters.test_form import CriterionForm
from agenteval_tui.tui.presenters.test_status import outcome_of
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, hanging, indented, left, paragraph, spread

PREVIEW_COLUMNS = 6


class TestRows:
    """The tests of all suites below their suites' names. The keys of rows: suite, or suite and test id."""

    __test__ = False  # not a test of this project

    def __init__(self, overview: Overview, edited: Collection[str], words: str = "") -> None:
        """`edited`: keys of tests with an edit that is not saved. `words`: only tests with these in id or name."""
        self._rows: list[tuple[str, str, str, str]] = []  # key, what, outcome, id or name
        self._edited = edited
        query_words = words.lower().split()
        for suite in overview.suites:
            loaded = suite.loaded
            tests = {test.id.casefold(): test for test in loaded.suite.tests} if loaded.suite else {}
            rows = []
            for folded in loaded.test_nodes:
                test = tests.get(folded)
                name = test.id if test is not None else folded
                text = f"{name} {test.name if test is not None else ''}".lower()
                if all(word in text for word in query_words):
                    state = outcome_of(suite.summaries.get(name)) if test is not None else "error"
                    rows.append((f"{loaded.key}\x1f{name}", "test", state, name))
            if rows or not query_words:
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
        end: tuple[Cell, ...] = ((DOT, "bold"), (" ", "")) if key in self._edited else ()
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
        alike = [criterion.values for criterion in self._criteria] == [
            criterion.values for criterion in other._criteria
        ]
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
        sign: Cell = ("!", "error") if index in self._bad else (DOT, "bold") if index in self._changed else (" ", "")
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


class ProblemLines(Struct, frozen=True):
    """What is wrong, and `owners`: which problem (its number in order, -1: several) each line belongs to."""

    lines: list[Line]
    owners: list[int]


def problem_rows(
    problems: Sequence[FieldProblem],
    error: str,
    names: Sequence[str],
    width: int,
    most: int,
    selected: int = 0,
    next_key: str = "F8",
) -> ProblemLines:
    """What is wrong, the worst first, in at most `most` lines. `next_key` goes to the next problem.

    The `selected` one is whole, with how it is put right, and so are the others as far as there is room; of those that
    are not, there is a line. The last line says how many more there are.
    """
    if not error and not problems:
        return ProblemLines([fit(((" no problems", "dim"),), width)], [-1])
    if error:
        error_lines = indented(paragraph(f"! {error}", width - 2, "error"))[:most]
        return ProblemLines(error_lines, [-1] * len(error_lines))
    whole = [_problem_lines(field_problem, names, width) for field_problem in in_order(problems)]
    sizes = _sizes([len(lines) for lines in whole], min(selected, len(whole) - 1), most)
    lines: list[Line] = []
    owners: list[int] = []
    for number, size in enumerate(sizes):
        cut = size < len(whole[number])
        lines += [fit((*line, (" …", "dim")), width) if cut else line for line in whole[number][:size]]
        owners += [number] * size
    if more := sizes.count(0):
        lines.append(fit(((f"   … {count(more, 'more problem')}; press {next_key} for the next", "dim"),), width))
        owners.append(-1)
    return ProblemLines(lines, owners)


def _sizes(heights: Sequence[int], selected: int, most: int) -> list[int]:
    """How many lines each problem gets of `most`: the selected one what it wants, the others around it a line, then
    what they want, in their order. Where not all have one, a line is kept for saying so."""
    if sum(heights) <= most:
        return list(heights)
    whole = min(heights[selected], most)
    room = most if whole + len(heights) - 1 <= most else most - 1
    whole = max(min(whole, room), 1)
    others = min(room - whole, len(heights) - 1)
    start = max(selected - others, 0)
    sizes = [0] * len(heights)
    sizes[start : start + others + 1] = [1] * (others + 1)
    sizes[selected] = whole
    room -= whole + others
    for number, size in enumerate(sizes):
        if size and heights[number] - size <= room:
            room -= heights[number] - size
            sizes[number] = heights[number]
    return sizes


def _problem_lines(field_problem: FieldProblem, names: Sequence[str], width: int) -> list[Line]:
    """A problem, where it is, and how it is put right."""
    problem, where = field_problem.problem, field_problem.field
    if field_problem.criterion is not None:
        name = names[field_problem.criterion] if field_problem.criterion < len(names) else ""
        name = one_line(name, 30) or f"criterion {field_problem.criterion + 1}"
        where = f"{name}.{field_problem.field}" if field_problem.field else name
    sign, style = ("!", "error") if problem.severity == "error" else ("·", "dim")
    cells: list[Cell] = [(f" {sign} ", style)]
    if where:
        cells += [(where, "bold"), ("  ", "")]
    cells.append((one_line(problem.message, 300), ""))
    if problem.fix:
        cells.append((f"  ({one_line(problem.fix, 120)})", "dim"))
    return hanging(tuple(cells), width)


def problem_height(problems: Sequence[FieldProblem], error: str, names: Sequence[str], width: int) -> int:
    """How many lines all of it takes."""
    if error or not problems:
        return len(paragraph(f"! {error}", width - 2)) if error else 1
    return sum(len(_problem_lines(problem, names, width)) for problem in problems)


def in_order(problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """Errors, then warnings, then the rest; in the order of the file."""
    rank = {"error": 0, "warning": 1}
    return sorted(
        problems,
        key=lambda field_problem: (
            rank.get(field_problem.problem.severity, 2),
            field_problem.problem.line,
            field_problem.problem.column,
        ),
    )


def dataset_lines(rows: Sequence[Mapping[str, Any]], error: str, width: int) -> list[Line]:
    """The first rows of a dataset: its columns, and a line each."""
    if error:
        return paragraph(f"! {error}", width, "error")[:3]
    if not rows:
        return []
    columns = list(dict.fromkeys(key for row in rows for key in row))
    visible = columns[:PREVIEW_COLUMNS]
    room = max((width - 2 * len(visible)) // max(len(visible), 1), 4)
    wide = {
        name: min(
            max(cell_len(one_line(text, room)) for text in (name, *(json_text(row.get(name)) for row in rows))), room
        )
        for name in visible
    }
    more: Cell = (f"+{len(columns) - len(visible)}" if len(columns) > len(visible) else "", "dim")
    lines = [fit([*((left(one_line(name, room), wide[name]) + "  ", "bold") for name in visible), more], width)]
    for row in rows:
        cells = [(left(one_line(json_text(row.get(name)), room), wide[name]) + "  ", "dim") for name in visible]
        lines.append(fit(cells, width))
    return lines
