"""The tests of a suite in other tools' formats. Many of these know no conversations and no datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import SUITE_EXPORTERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.suites.templates import is_template, render


class ExportedTests(Struct, frozen=True):
    """What is written: a JSON list, the number of tests in it, and notes on what the format has no place for."""

    document: list[dict[str, Any]]
    number: int
    notes: list[str]


class SuiteExporter(Struct, frozen=True):
    """A format to write the tests of suites in (entry point group `agenteval.suite_exporters`).

    `about`: what the tests are called there. `export` takes a suite, and a text that tells it from other suites.
    `not_kept`: what the format has no place for, in words.
    """

    name: str
    about: str
    export: Callable[[Suite, str], ExportedTests]
    not_kept: tuple[str, ...] = ()


def own_suite_exporters() -> list[SuiteExporter]:
    """agenteval's own, by name. No plug-in is looked for."""
    own = (suite_exporter_named(name) for name in sorted(entry_points.own(SUITE_EXPORTERS)))
    return [exporter for exporter in own if exporter is not None]


def suite_exporter_named(name: str) -> SuiteExporter | None:
    """The exporter of that name; None if there is none. Raises `AgentevalError` where it can't be loaded."""
    point = entry_points.find(SUITE_EXPORTERS, name)
    if point is None:
        return None
    loaded = point.load_as("exporter")
    if not isinstance(loaded, SuiteExporter) or loaded.name != name:
        raise AgentevalError(
            f"the exporter {name!r} is not a SuiteExporter of that name",
            where=point.target,
            fix="an exporter of suites is a `SuiteExporter` (see formats/exporters/suite_exporter.py)",
        )
    return loaded


def tests_with_a_prompt(suite: Suite, notes: list[str]) -> Iterator[tuple[Test, str]]:
    """Each test of that kind with its prompt, variables filled in. `notes` gets a line for each test left out."""
    for test in suite.tests:
        try:
            prompt = _single_prompt(test)
        except AgentevalError as error:
            notes.append(f"{test.id}: left out, {error.what}")
            continue
        if prompt is None:
            notes.append(f"{test.id}: left out, a conversation or a dataset has no single prompt")
            continue
        yield test, prompt


def _single_prompt(test: Test) -> str | None:
    """None: more than one text is asked."""
    if test.dataset is not None or test.user is not None:
        return None
    prompt = test.prompt
    if prompt is None and test.messages and len(test.messages) == 1 and isinstance(test.messages[0].content, str):
        prompt = test.messages[0].content
    if prompt is None and test.turns and len(test.turns) == 1:
        prompt = test.turns[0]
    return None if prompt is None else _filled(prompt, test.variables)


def _filled(text: str, variables: Mapping[str, Any]) -> str:
    return render(text, variables) if is_template(text) else text
