"""What goes into a Python agent with a state of its own, and what comes out of it: the options `context`, `input`,
`output` and `messages`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.process import python_answers
from agenteval_tui.agents.process.options import PythonOptions
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.json_paths import PathFailedError, compile_path
from agenteval_tui.suites.model import Context
from agenteval_tui.suites.templates import render_value


def mapping_of(options: PythonOptions, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the child is told beside the request (`document`). Raises `AgentevalError` when a template can't be filled.

    The fields of the context are the agent's, then those of the test's `context` that aren't of Power UI, then those of
    a variable `context` with an object, as a row of a dataset has it.
    """
    variables = {**document["variables"], **document}
    how: dict[str, Any] = {}
    if options.context_factory:
        how["factory"] = options.context_factory
    elif options.context is not None:
        how["context"] = _filled("context", options.context, variables)
    own = {name: value for name, value in document["context"].items() if name not in Context.model_fields}
    row = document["variables"].get("context")
    for fields in (own, row if isinstance(row, Mapping) else {}):
        if fields and isinstance(how.get("context", {}), dict):
            how["context"] = {**how.get("context", {}), **fields}
    if options.input is not None:
        how["input"] = _filled("input", options.input, variables)
    how.update({name: path for name in ("output", "messages") if (path := getattr(options, name)) is not None})
    return how


def events_of_state(state: Any, options: PythonOptions, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of the state that came out. Raises `AgentevalError` where a path finds nothing in it."""
    reader = python_answers.Reader(document["messages"])
    if options.messages is not None:
        messages = _at("messages", options.messages, state)
        yield from reader.take({"messages": messages if isinstance(messages, list) else [messages]}, False)
    if options.output is not None:
        answer = _at("output", options.output, state)
        if options.messages is not None:
            reader.said.final(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
        else:
            yield from reader.take(answer, False)
    yield from reader.end()


def _at(option: str, path: str, state: Any) -> Any:
    try:
        value = compile_path(path).search(state)
    except PathFailedError as error:
        raise AgentevalError(f"`{option}: {path}` can't be used on the agent's state: {error}") from None
    if value is None:
        has = f"an object with {', '.join(map(str, state))}" if isinstance(state, Mapping) else type(state).__name__
        raise AgentevalError(
            f"`{option}: {path}` finds nothing in the agent's state, {has}",
            mend=f"write a path into that state in `{option}`",
        )
    return value


def _filled(place: str, value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        try:
            return render_value(value, variables)
        except AgentevalError as error:
            raise AgentevalError(f"`{place}`: {error.what}", where=place, mend=error.mend) from None
    if isinstance(value, Mapping):
        return {key: _filled(f"{place}.{key}", inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(f"{place}.{number}", inner, variables) for number, inner in enumerate(value)]
    return value
