"""What the columns of a dataset mean: which is the prompt, which the expected value, and other tools' rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PROMPT_COLUMNS = ("input", "prompt", "question")
EXPECTED_COLUMNS = ("expected", "expected_value", "expected_response", "answer")
EXPECTED = "expected_value"
"""The variable that the expected value of a row is in, whatever its column is called."""

# Outputs of the course's (and LangSmith's) rows, and the answer of OpenAI's, have more names.
_OUTPUTS = (*EXPECTED_COLUMNS, "output", "response", "text")
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))


def variables_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a row gives: its columns, and `expected_value`.

    `{"inputs": {...}, "outputs": {...}}` (the course, LangSmith): the inputs' keys are variables; `outputs`, `metadata`
    and what else stands there stay objects, for `{{outputs.tool_used}}`. `{"input": [messages], "ideal": ...}` (OpenAI
    evals): `ideal` is the expected value. `{"item": {...}}` (OpenAI's stored evals): the item's keys.
    """
    inputs, outputs = data.get("inputs"), data.get("outputs")
    if isinstance(inputs, dict) and (outputs is None or isinstance(outputs, dict)):
        variables = {key: value for key, value in data.items() if key != "inputs" and value is not None}
        variables.update(inputs)
        if EXPECTED not in variables and outputs:
            found = _first(outputs, _OUTPUTS)
            if found is None and len(outputs) == 1:
                found = next(iter(outputs.values()))
            if found is not None:
                variables[EXPECTED] = found
        return variables
    item = data.get("item")
    if isinstance(item, dict) and data.keys() <= {"item", "sample"}:
        return with_expected(dict(item))
    variables = with_expected(dict(data))
    if EXPECTED not in variables and "ideal" in data and _is_messages(data.get("input")):
        ideal = data["ideal"]
        variables[EXPECTED] = ideal[0] if isinstance(ideal, list) and len(ideal) == 1 else ideal
    return variables


def with_expected(variables: dict[str, Any]) -> dict[str, Any]:
    """`variables` itself, with `expected_value` put in from the first column that has an expected value.

    An empty cell is no expected value.
    """
    if EXPECTED not in variables:
        for name in EXPECTED_COLUMNS:
            value = variables.get(name)
            if value is not None and value != "":
                variables[EXPECTED] = value
                break
        else:
            found = _first(variables, EXPECTED_COLUMNS)
            if found is not None:
                variables[EXPECTED] = found
    return variables


def prompt_of(variables: Mapping[str, Any]) -> str | None:
    """The prompt that a row's variables hold: the first of `input`, `prompt`, `question` that is not empty.

    Numbers and objects become JSON. None when there is none, or when it is a list of chat messages: ask `messages_of`
    first.
    """
    value = _first(variables, PROMPT_COLUMNS)
    if value is None or _is_messages(value):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def messages_of(variables: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The conversation that a row begins with: the first of `input`, `prompt`, `question`, `messages` that is not
    empty, if it is a list of OpenAI chat messages; else None.
    """
    value = _first(variables, (*PROMPT_COLUMNS, "messages"))
    return [dict(one) for one in value] if _is_messages(value) else None


def has_prompt(variables: Mapping[str, Any]) -> bool:
    """Whether a row says what the agent is asked."""
    for name in PROMPT_COLUMNS:  # the quick way, for many rows
        value = variables.get(name)
        if isinstance(value, str) and value and not value.isspace():
            return True
    return prompt_of(variables) is not None or messages_of(variables) is not None


def _first(variables: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first name that has one that is not empty; then the same ignoring case. None: there is none."""
    for name in names:
        value = variables.get(name)
        if _says_something(value):
            return value
    folded: dict[str, Any] = {}
    for key, value in variables.items():
        lower = key.lower()
        if lower != key and lower in names and _says_something(value):
            folded.setdefault(lower, value)
    return next((folded[name] for name in names if name in folded), None)


def _says_something(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    return not (value is None or value == [] or value == {})


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and one.get("role") in _ROLES and "content" in one for one in value)
    )
