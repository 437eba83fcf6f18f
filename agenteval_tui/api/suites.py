"""Suites: files of tests, and suites that a program makes itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis.lint import check_suites, check_text
from agenteval_tui.api.display import Shown, line, table
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Test
from agenteval_tui.views.model import View, text

Source = str | PathLike[str] | Mapping[str, Any]
"""A suite's file, a folder of suites, or a suite as a mapping with the keys of a suite file (`name`, `tests`, ...)."""
UNSAVED = "python.suite.yaml"
"""What a suite that a program made is called: relative paths in it are meant from the current folder."""


class Suite(Shown, Struct, frozen=True, eq=False):
    """A suite as it was read. `problems`: what is wrong with it, warnings too."""

    loaded: LoadedSuite
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> Path:
        """Its file."""
        return self.loaded.path

    @property
    def name(self) -> str:
        """Its name."""
        return self.loaded.suite.name if self.loaded.suite is not None else self.path.name

    @property
    def tests(self) -> tuple[Test, ...]:
        """Its tests, in the order of the file."""
        return tuple(self.loaded.suite.tests) if self.loaded.suite is not None else ()

    @property
    def ok(self) -> bool:
        """Whether it can be run: no error, though there may be warnings."""
        return not any(problem.severity == "error" for problem in self.problems)

    def __repr__(self) -> str:
        return f"<Suite {self.name!r}: {len(self.tests)} tests>"

    def view(self) -> View:
        """Its tests, and its problems."""
        rows = [(test.id, test.name, str(len(test.criteria)), ", ".join(test.tags)) for test in self.tests]
        problems = [line(text((f"{problem.where}: {problem.message}", "warn"))) for problem in self.problems]
        return (line(text((self.name, "bold"))), table(("test", "name", "criteria#", "tags"), rows), *problems)


def load(source: Source = ".", *, check: bool = True) -> list[Suite]:
    """The suites of a file, of a folder (with its folders), or of a mapping.

    Nothing of a suite runs here. Raises `AgentevalError`: nothing is there, or, with `check`, a suite can't be run; the
    error lists all problems with their places.
    """
    if isinstance(source, Mapping):
        loaded_suite, problems = check_text(_as_file(source), Path(UNSAVED).absolute())
        loaded = [loaded_suite]
    else:
        loaded, problems = check_suites([Path(source)])
    suites = [Suite(loaded_suite, tuple(_of(problems, loaded_suite))) for loaded_suite in loaded]
    if not suites:
        raise AgentevalError(
            "there are no suites", where=str(source), fix="a suite is a file `*.suite.yaml`, or `suite.yaml`"
        )
    if check:
        _refuse(suites)
    return suites


def _as_file(source: Mapping[str, Any]) -> bytes:
    """A mapping as the bytes of a suite file: JSON, which is YAML."""
    try:
        return json.dumps(dict(source), ensure_ascii=False, indent=2).encode()
    except (TypeError, ValueError) as error:
        raise AgentevalError(
            f"this suite holds what no file can hold: {error}", fix="use texts, numbers, lists and mappings"
        ) from None


def suites_of(sources: Source | Suite | Sequence[Source | Suite]) -> list[Suite]:
    """The suites that a caller means: loaded ones, files, folders, mappings. Raises `AgentevalError`."""
    # A text is a path, although it is a sequence for Python.
    several = sources if isinstance(sources, Sequence) and not isinstance(sources, str) else [sources]
    suites: list[Suite] = []
    for source in several:
        suites += [source] if isinstance(source, Suite) else load(source)
    _refuse(suites)
    return suites


def _refuse(suites: Iterable[Suite]) -> None:
    """Raise `AgentevalError` with the errors of all suites that can't be run."""
    errors = [problem for suite in suites for problem in suite.problems if problem.severity == "error"]
    if errors:
        listed = "\n".join(f"{problem.where}: {problem.message}" for problem in errors)
        many = f"{len(errors)} errors" if len(errors) > 1 else "an error"
        raise AgentevalError(f"the suites have {many}", fix=f"fix these first:\n{listed}")


def _of(problems: Iterable[Problem], suite: LoadedSuite) -> Iterable[Problem]:
    return (problem for problem in problems if problem.file == str(suite.path))
