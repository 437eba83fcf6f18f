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
from agenteval_tui.suites.templates import render_option


def mapping_of(options: PythonOptions, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the child is told beside the request (`document`). Raises `AgentevalError` when a template can't be filled.

    The fields of the context are the agent's, then those of the test's `context` that aren't of Power UI, then those of
    a variable `context` with an object, as a row of a dataset has it.
    """
    # The fields of the request win: a variable `prompt` must not take the place of the prompt.
    variables = {**document["variables"], **document}
    how: dict[str, Any] = {} if options.context is None else {"context_option": True}
    if options.context_factory:
        how["factory"] = options.context_factory
    elif options.context is not None:
        how["context"] = render_option("context", options.context, variables)
    written = {name: value for name, value in document["context"].items() if name not in Context.model_fields}
    own = render_option("context", written, variables)
    row = document["variables"].get("context")
    # A context that is no object, such as a text, can't be added to.
    for fields in (own, row if isinstance(row, Mapping) else {}):
        if fields and isinstance(how.get("context", {}), dict):
            how["context"] = {**how.get("context", {}), **fields}
    if options.input is not None:
        how["input"] = render_option("input", options.input, variables)
    how.update({name: path for name in ("output", "messages") if (path := getattr(options, name)) is not None})
    return how


class ToldText:
    """The text of the last message that an agent told. None: it has told nothing yet."""

    def __init__(self) -> None:
        self.text: str | None = None
        self._open = False

    def add(self, event: Mapping[str, Any]) -> None:
        """An event that it told."""
        kind, text = event.get("type"), event.get("text")
        if kind == "text" and isinstance(text, str):
            self.text = (self.text or "") + text if self._open else text
            self._open = True
        # After each of these, text belongs to another message.
        elif kind in ("tool_call", "tool_result", "message_end", "restart"):
            self.text, self._open = self.text or "", False


def events_of_state(
    state: object, options: PythonOptions, document: Mapping[str, Any], streamed: str | None = None
) -> Iterator[dict[str, Any]]:
    """The events of the state that came out. `streamed`: the text of the last message that was told already, where the
    agent streamed; then the answer is a message of its own, unless it is that one. Raises `AgentevalError` where a path
    finds nothing in the state."""
    if streamed is not None:
        if options.messages is not None:
            raise AgentevalError(
                "`messages` can't be used on an agent that tells its messages itself",
                fix="remove `messages`; `output` alone says what the answer is",
            )
        answer = _at("output", options.output or "@", state)
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        # An agent that streamed its answer has told it already.
        if text.strip() != streamed.strip():
            yield {"type": "message_end"}
            yield {"type": "text", "text": text}
        return
    # The state is plain data by now, and is read as if the agent had given it in this process.
    reader = python_answers.Reader(document["messages"])
    if options.messages is not None:
        messages = _at("messages", options.messages, state)
        yield from reader.take({"messages": messages if isinstance(messages, list) else [messages]}, False)
    elif options.output is None:
        yield from reader.take(state, False)  # only `input` is written: what comes out is read like any other answer
    if options.output is not None:
        answer = _at("output", options.output, state)
        if options.messages is not None:
            reader.conversation.final(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
        else:
            yield from reader.take(answer, False)
    yield from reader.end()


def _at(option: str, path: str, state: object) -> object:
    try:
        value = compile_path(path).search(state)
    except PathFailedError as error:
        raise AgentevalError(f"`{option}: {path}` can't be used on the agent's state: {error}") from None
    if value is None:
        has = f"an object with {', '.join(map(str, state))}" if isinstance(state, Mapping) else type(state).__name__
        raise AgentevalError(
            f"`{option}: {path}` finds nothing in the agent's state, {has}",
            fix=f"write a path into that state in `{option}`",
        )
    return value
