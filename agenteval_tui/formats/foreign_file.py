"""Files of other tools where a suite is expected: whose they are, and what to do with them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.import_file import open_source
from agenteval_tui.suites.discover import discover, is_suite_name

_CODE = {
    "deepeval": ("DeepEval", "coming-from/deepeval"),
    "inspect_ai": ("Inspect", "coming-from/inspect"),
    "langsmith": ("LangSmith", "coming-from/langsmith-course"),
    "pydantic_evals": ("pydantic-evals", "coming-from/pydantic-evals"),
    "vizra": ("Vizra", "coming-from/vizra"),
}
"""By the package that a file imports: the tool, and its page."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+(deepeval|inspect_ai|langsmith|pydantic_evals)\b|^use (Vizra)\\", re.MULTILINE
)
_READ = 200_000  # characters of a program
_PROGRAMS = (".py", ".php")
_DATA = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".xlsx", ".eval")
_LOOKED_AT = 200  # files of a folder


class ForeignFile(Struct, frozen=True):
    """A file of another tool. `what`: in words, after "is". `page`: of the documentation, "" where there is none.
    `tests`, `runs`: what an import reads in it; neither of a program."""

    path: Path
    what: str
    page: str = ""
    tests: bool = False
    runs: bool = False

    @property
    def remedies(self) -> tuple[str, ...]:
        """Commands, the first one first."""
        name = shlex.quote(str(self.path))
        suite = shlex.quote(f"{self.path.name.partition('.')[0]}.suite.yaml")
        return (
            *((f"agenteval import {name} --to {suite}",) if self.tests else ()),
            *((f"agenteval import {name}",) if self.runs and not self.tests else ()),
            *((f"agenteval docs {self.page}",) if self.page else ()),
        )


def foreign_file(path: Path) -> ForeignFile | None:
    """What a file is, if it is not a suite. None for an unknown file, and for a suite, even a broken one."""
    if is_suite_name(path.name) or not path.is_file():
        return None
    kind = path.suffix.lower()
    if kind in _PROGRAMS:
        return _program(path)
    if kind not in _DATA:
        return None
    try:
        with open_source(path) as source:
            file_format = detect(source)
    except AgentevalError:
        return None
    page = file_format.page_for(path) or ("exchange" if file_format.tests is not None else "")
    return ForeignFile(path, file_format.title, page, file_format.tests is not None, file_format.recordings is not None)


def foreign_files(folder: Path) -> tuple[ForeignFile, ...]:
    """The files of other tools that lie directly in a folder, and have a page of the documentation; named from the
    working directory, where they are below it."""
    if folder.resolve().is_relative_to(here := Path.cwd()):
        folder = folder.resolve().relative_to(here)
    try:
        listed = sorted(path for path in folder.iterdir() if path.suffix.lower() in (*_PROGRAMS, *_DATA))
    except OSError:
        return ()
    foreign_files: Iterable[ForeignFile | None] = map(foreign_file, listed[:_LOOKED_AT])
    return tuple(file for file in foreign_files if file is not None and file.page)


def one_for_each_page(paths: Sequence[Path]) -> tuple[ForeignFile, ...]:
    """The files of other tools among these, and of folders without suites the first one for each page."""
    named = [file for path in paths if path.is_file() and (file := foreign_file(path)) is not None]
    beside = [file for path in paths if path.is_dir() and not discover([path]) for file in foreign_files(path)]
    # Turned round twice, so that of several files for a page the first one stays.
    pages = {file.page: file for file in reversed(beside)}
    return (*named, *reversed(pages.values()))


def _program(path: Path) -> ForeignFile | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            # Imports stand at the beginning of a program.
            hit = _IMPORT.search(file.read(_READ))
    except OSError:
        return None
    if hit is None:
        return None
    tool, page = _CODE[(hit[1] or hit[2]).lower()]
    return ForeignFile(path, f"a program that uses {tool}", page)
