"""What the Editor asks in threads: what is wrong with what is typed, and the first rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.check_edit import FieldProblem, check_edit
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.text.problems import AgentevalError, Problem
from agenteval_tui.tui.presenters.test_form import TestForm, edit_of, yaml_problems
from agenteval_tui.uxon.diagnostics import Diagnostic

if TYPE_CHECKING:
    from agenteval_tui.suites.model import AgentConfig


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong: by field; at all (it could not be saved); in fields of YAML; in the chosen config."""

    problems: list[FieldProblem] = field(default_factory=list)
    error: str = ""
    bad_yaml: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


def checked(
    loaded: LoadedSuite,
    test_id: str,
    base: TestForm,
    form: TestForm,
    agents: Mapping[str, AgentConfig],
    config: str,
    prototype_class: str,
) -> Checked:
    """Check a form as `validate` checks what would be saved; what can't be read as YAML stays as it was in the file."""
    from agenteval_tui.grading.diagnose import diagnose

    bad = yaml_problems(form)
    for key in bad:
        form.values[key] = base.values[key]
    diagnostics = tuple(diagnose(config, prototype_class)) if prototype_class else ()
    try:
        problems = check_edit(loaded, test_id, edit_of(base, form), agents)
    except AgentevalError as error:
        said = f"{error.what} ({error.mend})" if error.mend else error.what
        return Checked([], said, bad, diagnostics)
    problems += [FieldProblem(_syntax(loaded, said), key) for key, said in bad.items()]
    return Checked(problems, "", bad, diagnostics)


def _syntax(loaded: LoadedSuite, said: str) -> Problem:
    return Problem(str(loaded.path), 1, 1, 1, 1, "error", "syntax", said)


def first_rows(folder: Path, file: str, limit: str, most: int) -> tuple[list[Mapping[str, Any]], str]:
    """The first rows of a dataset as a person typed its file, and what is wrong with it."""
    from agenteval_tui.suites.datasets import read_rows
    from agenteval_tui.suites.model import Dataset

    number = int(limit) if limit.isdecimal() and int(limit[:9]) > 0 else None
    rows: list[Mapping[str, Any]] = []
    try:
        for row in islice(read_rows(Dataset(file=file, limit=number), folder), most):
            rows.append(row.variables)
    except AgentevalError as error:
        return rows, f"{error.where}: {error.what}" if error.where and rows else error.what
    return rows, ""
