"""LangSmith's datasets (and the course's): `{"inputs": {...}, "outputs": {...}}`, one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_object,
    is_message,
    listed,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.suite_import import (
    LARGEST,
    FoundTests,
    checked,
    checked_literally,
    literal_prompt,
    needs_manual_work,
)
from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.metrics.matchers import literal
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.suites.datasets import EXPECTED, PROMPT_COLUMNS, variables_of
from agenteval_tui.suites.templates import literal as as_plain_text
from agenteval_tui.transcripts.codec import openai_messages
from agenteval_tui.transcripts.model import last_answer

_QUESTION = "Does the answer say what the expected value says?"
_SHORT = 80
"""Characters of an expected text that is looked for in the answer; a longer one is an example of a good answer."""
_TOOLS = re.compile(r"(expected_)?(tool|tools|tool_used|tools_used|tool_name|tool_names|tool_call|tool_calls)")
_ORDERED_TOOLS = re.compile(r"(expected_)?(trajectory|steps|tool_sequence|nodes)")
_BOUND = re.compile(r"(^|_)(min|max|minimum|maximum|least|most|threshold|tolerance|limit|budget)(_|$)", re.IGNORECASE)
_OF_ROWS = ("messages",)


def can_read(value: Any) -> bool:
    """Whether a file's first value is an example of a dataset."""
    return isinstance(value, Mapping) and isinstance(value.get("inputs"), Mapping) and "run_type" not in value


def tests(source: Source) -> FoundTests:
    """A test for each example, with the criteria that its expected values allow: a short text is in the answer, a
    number is in it, tools are called, an object is equal. Where only a person can tell, a person is asked."""
    found_tests = FoundTests(name=source.path.stem)
    number = 0
    for element in source.values():
        if isinstance(element, BrokenElement):
            (found_tests.notes if element.note else found_tests.skipped).append(
                f"line {element.line}: {element.reason}"
            )
            continue
        number += 1
        if number > LARGEST + 1:
            break
        if not can_read(element.value):
            found_tests.skipped.append(f"line {element.line}: no example: it has no `inputs`")
            continue
        found_tests.tests.append(_test(element.value, number, found_tests))
    found_tests.note("a dataset says what is expected and not how to check it: read the criteria, and change them")
    return found_tests


def _test(example: Mapping[str, Any], number: int, found_tests: FoundTests) -> dict[str, Any]:
    variables = variables_of(example)
    name = plain_text(example.get("name")) or f"example {number}"
    inputs = {str(key): value for key, value in example["inputs"].items()}
    messages: dict[str, Any] = {}
    # The first that is a conversation is asked. It is no variable then.
    for key in (*_OF_ROWS, *PROMPT_COLUMNS):
        if messages := _messages(inputs.get(key), name, found_tests):
            inputs.pop(key)
            break
    test: dict[str, Any] = {"name": name, **(messages or _prompt(inputs))}
    metadata = dict(as_object(example.get("metadata")))
    splits = [*listed(example.get("split")), *listed(metadata.pop("dataset_split", None))]
    if tags := list(dict.fromkeys(split for split in splits if isinstance(split, str) and split.strip())):
        test["tags"] = tags
    outputs = as_object(example.get("outputs"))
    values = {**inputs, **test.pop("variables", {})}
    if len(outputs) > 1:
        values["outputs"] = dict(outputs)
    # An input of that name is what the agent gets.
    if metadata and "metadata" not in values:
        values["metadata"] = metadata
    if values:
        test["variables"] = values
    criteria = [criterion for key, value in outputs.items() for criterion in _criteria(str(key), value, len(outputs))]
    if not criteria:
        criterion = needs_manual_work("As expected", _QUESTION)
        criterion.pop("description")
        criterion["config_uxon"]["metrics"][0]["question"] = _QUESTION
        criteria.append(criterion)
        if expected := plain_text(variables.get(EXPECTED)):
            criterion["expected_value"] = literally(expected)
    test["criteria"] = criteria
    return test


# What is asked


def _messages(listed: Any, name: str, found_tests: FoundTests) -> dict[str, Any]:
    """The conversation up to what the user said last, in any dialect; {} if these are not messages."""
    listed = list(map(_of_pair, listed)) if isinstance(listed, list) else listed
    if not isinstance(listed, list) or not listed or not all(map(is_message, listed)):
        return {}
    try:
        transcript = transcript_of(listed)
    except AgentevalError:
        return {}
    messages = list(transcript.messages)
    while messages and messages[-1].role not in ("user", "tool"):
        messages.pop()
    if not messages:
        return {}
    if len(messages) < len(transcript.messages):
        found_tests.note(f"{name}: the answer at the end of its messages is left out: the agent is to give it")
    # Without calls, role and content are all, and easier to read in a suite.
    if not any(message.tool_calls or message.role == "tool" for message in messages):
        return {"messages": [_message_of(message.role, message.content) for message in messages]}
    written = to_builtins(openai_messages(transcript)[: len(messages)])
    return {
        "messages": [{**message, **_message_of(message["role"], message.get("content") or "")} for message in written]
    }


def _of_pair(value: object) -> object:
    """LangChain's short form of a message, `["human", "Hi"]`, as a message."""
    if isinstance(value, list) and len(value) == 2 and value[0] in _SHORT_ROLES and isinstance(value[1], str):
        return {"type": _SHORT_ROLES[value[0]], "content": value[1]}
    return value


_SHORT_ROLES = {"human": "human", "user": "human", "ai": "ai", "assistant": "ai", "system": "system"}


def _message_of(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": as_plain_text(content)}


def _prompt(inputs: Mapping[str, Any]) -> dict[str, Any]:
    lower = {key.casefold(): key for key in inputs}
    for column in PROMPT_COLUMNS:
        key = lower.get(column)
        if key is not None and isinstance(inputs[key], str) and inputs[key].strip():
            return {"prompt": "{{ " + key + " }}"} if key.isidentifier() else literal_prompt(inputs[key])
    if len(inputs) == 1:
        key, value = next(iter(inputs.items()))
        if isinstance(value, str) and value.strip():
            return {"prompt": "{{ " + key + " }}"} if key.isidentifier() else literal_prompt(value)
    return {"prompt": "\n".join(f"{key}: {{{{ {key} }}}}" for key in inputs if key.isidentifier()) or "?"}


# What is expected


def _criteria(key: str, value: Any, of: int) -> Iterator[dict[str, Any]]:
    """What can be checked of one expected output; nothing where it is empty."""
    title = "As expected" if of == 1 else key.replace("_", " ").strip().capitalize() or "As expected"
    if isinstance(value, list) and value and all(map(is_message, value)):
        yield from _of_messages(value)
    elif isinstance(value, Mapping) and is_message(value) and _is_answer(value):
        yield from _of_messages([value])
    elif _TOOLS.fullmatch(key) and (names := _tool_names(value)):
        yield _calls(title, names)
    elif _ORDERED_TOOLS.fullmatch(key) and (names := _tool_names(value)):
        calls = [{"name": name} for name in names]
        metric = {"type": "Trajectory", "mode": "superset", "calls": calls}
        yield checked(title, metric, prototype="ToolResponse")
    elif isinstance(value, bool):
        yield _asks(title, "true" if value else "false", f"Is this right: {key} = {str(value).lower()}?")
    # A limit is not in the answer as a number.
    elif isinstance(value, int | float) and _BOUND.search(key):
        yield _asks(title, str(value), f"Does the answer keep this: {key} = {value}?")
    elif isinstance(value, int | float):
        number = re.escape(f"{value:g}" if isinstance(value, float) else str(value))
        # Not as a part of another number: 5 is not in 15, 5.2 or 1,500.
        yield checked(title, {"type": "Regex", "pattern": rf"(?<![\w.,]){number}(?![\w]|[.,]\d)"}, **_expected(value))
    elif isinstance(value, str) and value.strip():
        if len(value.strip()) <= _SHORT and "\n" not in value.strip() and "{{" not in value:
            metric = {"type": "TextMatch", "contains_ignore_case": value.strip()}
            yield checked(title, metric, **_expected(value))
        else:
            yield _asks(title, value, _QUESTION)
    elif isinstance(value, list) and value and all(isinstance(text, str) and 0 < len(text) <= _SHORT for text in value):
        yield checked_literally(title, {"type": "Keywords", "keywords": list(value)})
    elif isinstance(value, Mapping | list) and value:
        yield checked_literally(title, {"type": "Json", "equals": literal(value)}, prototype="JsonResponse")


def _is_answer(message: Mapping[str, Any]) -> bool:
    return bool({message.get("role"), message.get("type")} & {"assistant", "ai", "AIMessage", "constructor"})


def _expected(value: Any) -> dict[str, str]:
    return {"expected_value": literally(plain_text(value) if isinstance(value, str) else str(value))}


def _asks(title: str, expected: str, question: str) -> dict[str, Any]:
    return checked(title, {"type": "Human", "question": question}, expected_value=literally(expected))


def _calls(title: str, names: list[str]) -> dict[str, Any]:
    tools = [{"name": name} for name in dict.fromkeys(names)]
    return checked(title, {"type": "ToolCheck", "tools": tools}, prototype="ToolResponse")


def _tool_names(value: Any) -> list[str]:
    """The names in a name, names, or calls; [] where these are none."""
    listed = value if isinstance(value, list) else [value]
    names = []
    for entry in listed:
        name = value_at(entry, "function", "name")
        name = name or (entry.get("name") or entry.get("tool") if isinstance(entry, Mapping) else entry)
        if not isinstance(name, str) or not name.strip() or "{{" in name:
            return []
        names.append(name.strip())
    return names


def _of_messages(value: list[Any]) -> Iterator[dict[str, Any]]:
    """The tools that a recorded conversation called, and its answer."""
    try:
        transcript = transcript_of(value)
    except AgentevalError:
        return
    if names := [call.name for call in transcript.tool_calls]:
        yield _calls("Calls the same tools", names)
    if answer := last_answer(transcript.messages):
        yield from _criteria("answer", answer, 1)


FORMAT = Format(
    name="langsmith-dataset",
    title="a LangSmith dataset",
    looks_like='lines of `{"inputs": {...}, "outputs": {...}}`',
    can_read=can_read,
    tests=tests,
    page="coming-from/langsmith-course",
    rank=120,
)
