"""The tests that ask one text, for tools that know no conversations and no datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.suites.templates import is_template, render


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
