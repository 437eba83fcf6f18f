"""What is wrong in a dataset, all of it at once, and what its rows have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core import numbers
from agenteval_tui.core.errors import AgentevalError, Problem, Severity
from agenteval_tui.suites.datasets import DatasetRow, LineReader, dataset_path, has_prompt, rows_and_problems
from agenteval_tui.suites.files import unreadable
from agenteval_tui.suites.model import Dataset
from agenteval_tui.suites.row_keys import MissingId, RowKeys, describe_missing_key, describe_repeated_key

MAX_PROBLEMS = 100
# What `validate` reads of one dataset: a second's work.
MAX_ROWS = 100_000
MAX_CHARACTERS = 32_000_000


class Column(Struct):
    """A variable that rows give. `missing_line`: of the first row that has not got it, None when all have it.

    `empty`: rows in which it is empty, and the line of the first.
    """

    rows: int = 0
    missing_line: int | None = None
    empty: int = 0
    empty_line: int = 1


class DatasetCheck(Struct):
    """What a dataset holds. `rows` counts the rows that are right, among those that were read.

    `first_line` is where its first row begins. `unprompted`: rows that don't say what is asked, and the first one's
    line. `complete` is False when only a part was read; `read` False when nothing could be.
    """

    path: Path
    rows: int = 0
    first_line: int = 1
    columns: dict[str, Column] = field(default_factory=dict)
    unprompted: int = 0
    unprompted_line: int = 1
    complete: bool = True
    read: bool = True
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """No errors."""
        return not any(problem.severity == "error" for problem in self.problems)

    def problem(
        self, line: int, code: str, message: str, fix: str | None = None, severity: Severity = "error"
    ) -> Problem:
        """A problem with a whole line of the dataset."""
        return Problem.at(self.path, (line, 1), code, message, fix, severity=severity)

    def prompt_problems(self) -> list[Problem]:
        """What is wrong where the rows must say what the agent is asked: at most one problem."""
        if not self.rows or not self.unprompted:
            return []
        fix = "name a column `input`, `prompt` or `question`, or give the test a `prompt`"
        if self.unprompted == self.rows:
            columns = ", ".join(list(self.columns)[:8])
            message = f"the test has no prompt, and no column can be its prompt; the columns are {columns}"
            return [self.problem(1, "missing-prompt", message, fix)]
        message = f"this row has no prompt{_more(self.unprompted)}"
        return [self.problem(self.unprompted_line, "missing-prompt", message, "fill in its prompt, or remove the row")]

    def missing_problems(self, names: set[str], who: str = "the prompt") -> list[Problem]:
        """The rows without a variable that is asked for, where other rows have it: one problem for each variable."""
        problems = []
        for name in sorted(names):
            column = self.columns.get(name)
            if column is not None and column.missing_line is not None:
                without = self.rows - column.rows
                message = f'this row has no "{name}", which {who} asks for{_more(without)}'
                problems.append(self.problem(column.missing_line, "unknown-variable", message, f'add "{name}"'))
        return problems

    def empty_problems(self, names: set[str], who: str) -> list[Problem]:
        """The rows in which a variable is empty that `who` looks for: one problem for each variable."""
        problems = []
        for name in sorted(names):
            column = self.columns.get(name)
            if column is not None and column.empty:
                message = (
                    f'this row has an empty "{name}", which {who} looks for{_more(column.empty)}: '
                    "this cannot be checked"
                )
                fix = f'fill in "{name}", or remove the row'
                problems.append(self.problem(column.empty_line, "empty-value", message, fix, "warning"))
        return problems


def _more(count: int) -> str:
    return f" (and {numbers.count(count - 1, 'more row')})" if count > 1 else ""


def check_dataset(
    dataset: Dataset,
    base_dir: Path,
    *,
    trusted: bool = False,
    max_rows: int = MAX_ROWS,
    max_characters: int = MAX_CHARACTERS,
) -> DatasetCheck:
    """Read the dataset up to its `limit`, or up to these bounds, and say everything that is wrong; never raises.

    After `MAX_PROBLEMS` problems the others are counted. What was not read is said as an info.
    """
    path = base_dir / dataset.file
    check = DatasetCheck(path)
    lines: list[LineReader] = []
    reported = wrong = 0
    last = 0
    try:
        path = check.path = dataset_path(dataset, base_dir, trusted=trusted)
        keys: Any = None
        shared: list[Column] = []
        row_keys = RowKeys(dataset.row_id)
        for entry in rows_and_problems(path, dataset.limit, lines, split=dataset.split, encoding=dataset.encoding):
            problem = entry if isinstance(entry, Problem) else _key_problem(check, row_keys, entry)
            if problem is not None:
                reported += 1
                if reported <= MAX_PROBLEMS:
                    check.problems.append(problem)
                last = problem.line
            if isinstance(entry, Problem):
                wrong += 1
            else:
                # The rows of a file mostly have the same columns: these are looked up only where that changes.
                if entry.variables.keys() != keys:
                    keys = entry.variables.keys()
                    shared = _columns(check, entry)
                for column, value in zip(shared, entry.variables.values(), strict=True):
                    column.rows += 1
                    if value is None or (isinstance(value, str) and not value.strip()):
                        column.empty += 1
                        if column.empty == 1:
                            column.empty_line = entry.line
                check.rows += 1
                if check.rows == 1:
                    check.first_line = entry.line
                if not has_prompt(entry.variables):
                    check.unprompted += 1
                    if check.unprompted == 1:
                        check.unprompted_line = entry.line
                _note_missing(check, entry, shared)
            if check.rows + wrong >= max_rows or (lines and lines[0].characters > max_characters):
                check.complete = False
                break
    except AgentevalError as error:
        check.read = False
        check.problems.append(unreadable(path, error))
    if lines and (assumed := lines[0].form.describe_assumed()):
        message = f"this dataset is read {assumed}"
        check.problems.append(check.problem(lines[0].header, "assumed-form", message, severity="info"))
    if check.read and not check.rows and not wrong and not reported:
        message = "this dataset has no rows, so its test has nothing to run"
        check.problems.append(check.problem(1, "no-rows", message, "add rows below the heading", "warning"))
    if reported > MAX_PROBLEMS:
        message = f"not shown: {numbers.count(reported - MAX_PROBLEMS, 'more problem')} in this dataset"
        check.problems.append(check.problem(last, "more", message, "fix those above first"))
    if not check.complete:
        message = f"only the first {check.rows + wrong:,} rows of this dataset were checked"
        check.problems.append(check.problem(1, "partly-checked", message, severity="info"))
    return check


def _key_problem(check: DatasetCheck, keys: RowKeys, row: DatasetRow) -> Problem | None:
    """What is wrong with the id of a row; None: it has one of its own, or needs none."""
    key = keys.of(row.variables, row.line)
    if isinstance(key, str):
        return None
    if isinstance(key, MissingId):
        return check.problem(row.line, "missing-id", *describe_missing_key(key))
    return check.problem(row.line, "duplicate-id", *describe_repeated_key(key))


def _columns(check: DatasetCheck, row: DatasetRow) -> list[Column]:
    """The columns of a row, new ones made. A column that comes late is missing in the rows before."""
    columns = []
    for name in row.variables:
        column = check.columns.get(name)
        if column is None:
            column = check.columns[name] = Column(missing_line=check.first_line if check.rows else None)
        columns.append(column)
    return columns


def _note_missing(check: DatasetCheck, row: DatasetRow, present: list[Column]) -> None:
    if len(present) == len(check.columns):
        return
    for name, column in check.columns.items():
        if column.missing_line is None and name not in row.variables:
            column.missing_line = row.line
