"""LangSmith's datasets (and the course's): `{"inputs": {...}, "outputs": {...}}`, one a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import is_message, plain_text
from agenteval_tui.formats.importers.suite_import import LARGEST, FoundTests, needs_manual_work
from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.suites.datasets import EXPECTED, PROMPT_COLUMNS, variables_of

_ROLES = ("system", "developer", "user", "assistant", "tool")
_QUESTION = "Does the answer say what the expected value says?"


def can_read(value: Any) -> bool:
    """Whether a file's first value is an example of a dataset."""
    return isinstance(value, Mapping) and isinstance(value.get("inputs"), Mapping) and "run_type" not in value


def tests(source: Source) -> FoundTests:
    """A test for each example. What is right of an answer is not in a dataset: a person decides, or a criterion that is
    written later."""
    found = FoundTests(name=source.path.stem)
    number = 0
    for one in source.values():
        if isinstance(one, BrokenElement):
            (found.notes if one.note else found.skipped).append(f"line {one.line}: {one.reason}")
            continue
        number += 1
        if number > LARGEST + 1:
            break
        if not can_read(one.value):
            found.skipped.append(f"line {one.line}: no example: it has no `inputs`")
            continue
        found.tests.append(_test(one.value, number))
    found.note("a dataset says what is expected and not how to check it: the criteria ask a person; change them")
    return found


def _test(example: Mapping[str, Any], number: int) -> dict[str, Any]:
    variables = variables_of(example)
    expected = plain_text(variables.get(EXPECTED))
    name = plain_text(example.get("name")) or f"example {number}"
    test: dict[str, Any] = {"name": name, **_asked(example["inputs"])}
    inputs = {key: value for key, value in example["inputs"].items() if key != "messages"}
    outputs = example.get("outputs")
    if isinstance(outputs, Mapping) and len(outputs) > 1:
        inputs["outputs"] = dict(outputs)
    if inputs:
        test["variables"] = inputs
    criterion = needs_manual_work("As expected", _QUESTION)
    criterion.pop("description")
    criterion["config_uxon"]["metrics"][0]["question"] = _QUESTION
    if expected:
        criterion["expected_value"] = expected
    test["criteria"] = [criterion]
    return test


def _asked(inputs: Mapping[str, Any]) -> dict[str, Any]:
    messages = inputs.get("messages")
    if isinstance(messages, list) and messages and all(is_message(message) for message in messages):
        said = [
            {"role": message["role"], "content": plain_text(message.get("content"))}
            for message in messages
            if message.get("role") in _ROLES
        ]
        if said and said[-1]["role"] in ("user", "tool"):
            return {"messages": said}
    lower = {key.casefold(): key for key in inputs}
    for column in PROMPT_COLUMNS:
        key = lower.get(column)
        if key is not None and isinstance(inputs[key], str) and inputs[key].strip():
            return {"prompt": "{{ " + key + " }}"} if key.isidentifier() else {"prompt": inputs[key]}
    if len(inputs) == 1:
        key, value = next(iter(inputs.items()))
        if isinstance(value, str) and value.strip() and key.isidentifier():
            return {"prompt": "{{ " + key + " }}"}
    return {"prompt": "\n".join(f"{key}: {{{{ {key} }}}}" for key in inputs if key.isidentifier()) or "?"}


FORMAT = Format(
    name="langsmith-dataset",
    looks_like='a LangSmith dataset: lines of `{"inputs": {...}, "outputs": {...}}`',
    can_read=can_read,
    tests=tests,
    rank=120,
)
