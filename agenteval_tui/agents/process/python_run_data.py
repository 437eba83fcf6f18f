"""What an evaluator may look at in a run, as the field's tools have it. Runs in the child: only the standard library,
of Python 3.8 or later. Objects of a tool's own types are made where its package is imported already.
"""

from __future__ import annotations

import datetime
import json
import sys
import types
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

# Fields of a row that are no input of the agent.
_NO_INPUTS = ("expected_value", "outputs", "reference_outputs", "metadata")
TEXTS = (
    *("output", "completion", "response", "prediction", "predicted", "actual", "actual_output", "answer", "text"),
    *("generated", "final_output", "content", "result"),
)
PROMPTS = ("input", "prompt", "question", "query", "user_input", "user_prompt", "message", "task", "text")
EXPECTED = (
    *("expected", "expected_output", "expected_value", "expected_response", "expected_answer", "reference"),
    *("reference_output", "reference_answer", "target", "ground_truth", "ideal", "label", "answer", "output"),
)


class Named(dict):  # type: ignore[type-arg]
    """What a row or an agent has, by name. What else tools may ask for is in `more`, which isn't part of the dict: the
    names that they have for its one main value, say. `missing`: what is said where there is nothing."""

    def __init__(self, what: dict[str, Any], more: dict[str, Any], missing: str = "") -> None:
        super().__init__(what)
        self._more, self._reason = {name: value for name, value in more.items() if value is not None}, missing

    def __missing__(self, name: str) -> object:
        if name in self._more:
            return self._more[name]
        there = "there is: " + ", ".join(map(str, self)) if self else self._reason or "there is nothing"
        raise KeyError(str(name) + " (" + there + ")")

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self._more

    def get(self, name: str, default: object = None) -> object:
        """As a dict's."""
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`


def inputs_of(variables: dict[str, Any], prompt: object, messages: list[dict[str, Any]]) -> Named:
    """The inputs of a row: its variables; a prompt that isn't among them is found by the names that tools have for
    it, the conversation as `messages`."""
    own = {name: value for name, value in variables.items() if name not in _NO_INPUTS}
    if not own:
        own = {"messages": messages} if len(messages) > 1 else {"input": prompt}
    return Named(own, dict(dict.fromkeys(PROMPTS, prompt), messages=messages))


class NotObservedError(Exception):
    """An evaluator looked for tool calls in a run whose calls weren't observed."""


class UnseenCalls:
    """The tool calls of a run whose calls weren't observed: looking at them is an error, and is remembered, since the
    evaluator may catch that. Made of none, they would be judged by their absence."""

    def __init__(self) -> None:
        self.looked = False

    def _look(self, *_: object) -> NoReturn:
        self.looked = True
        raise NotObservedError("the tool calls of this run could not be seen")

    __iter__ = __len__ = __bool__ = __contains__ = __getitem__ = __add__ = __radd__ = __reversed__ = _look
    __eq__ = __ne__ = __repr__ = _look
    __hash__ = None  # type: ignore[assignment]


class _WithoutCalls(dict):  # type: ignore[type-arg]
    """A message or a transcript of such a run."""

    def __init__(self, fields: dict[str, Any], calls: UnseenCalls) -> None:
        super().__init__(fields)
        self._calls = calls

    def __getitem__(self, name: str) -> object:
        return self._calls if name == "tool_calls" else super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._calls if name == "tool_calls" else super().__contains__(name)

    def get(self, name: str, default: object = None) -> object:
        """As a dict's."""
        return self._calls if name == "tool_calls" else super().get(name, default)


class RunData:
    """One run, as evaluators ask for it: `value` is what the prototype class found in it."""

    def __init__(self, request: dict[str, Any]) -> None:
        offered = request["offered"]
        self.value = request["value"]
        self.transcript = offered["transcript"]
        # A transcript that doesn't say what was observed is one whose calls were.
        self.unseen = UnseenCalls() if "tool_calls" not in self.transcript.get("observes", ("tool_calls",)) else None
        self.variables = offered["variables"]
        self.expected = offered["expected"]
        if self.expected is None:
            self.expected = self.variables.get("expected_value")
        self.messages = offered.get("messages") or self.transcript.get("messages") or []
        # Both hold calls: an evaluator must not get around `unseen` by the way that it takes.
        if self.unseen is not None:
            own = [_WithoutCalls(message, self.unseen) for message in self.transcript.get("messages") or ()]
            self.transcript = _WithoutCalls(dict(self.transcript, messages=own), self.unseen)
            self.messages = [_WithoutCalls(message, self.unseen) for message in self.messages]
        self.prompt = next(
            (message.get("content") for message in reversed(self.messages) if message.get("role") == "user"), ""
        )

    @property
    def given(self) -> list[dict[str, Any]]:
        """The messages before the agent's first."""
        answers = (number for number, message in enumerate(self.messages) if message.get("role") == "assistant")
        return self.messages[: next(answers, len(self.messages))]

    @property
    def inputs(self) -> Named:
        first = next((message.get("content") for message in self.given if message.get("role") == "user"), self.prompt)
        return inputs_of(self.variables, first, self.given)

    @property
    def input(self) -> object:
        """The row's `input`, or the prompt."""
        return self.variables.get("input", self.prompt)

    @property
    def outputs(self) -> Named:
        """What the agent returned: an object, or its answer by the name that the row has for it; as `messages` the
        conversation."""
        # What the agent returned beside its answer, else an answer that is an object itself.
        own = self.transcript.get("outputs") or _object_in(self.value)
        own = own or _object_in(self.transcript.get("final_output"))
        if not own:
            reference = list(self.reference_outputs)
            own = {reference[0] if len(reference) == 1 else "output": self.value}
        return Named(own, dict(dict.fromkeys(TEXTS, self.value), messages=self.messages))

    @property
    def reference_outputs(self) -> Named:
        """What the row says is right."""
        row = self.variables.get("outputs", self.variables.get("reference_outputs"))
        own = row if isinstance(row, dict) else self.expected if isinstance(self.expected, dict) else None
        if own is None and self.expected is not None:
            own = {
                next((name for name in EXPECTED if self.variables.get(name) == self.expected), "answer"): self.expected
            }
        missing = "the test has no expected value: write `expected_value`"
        return Named(own or {}, dict.fromkeys(EXPECTED, self.expected), missing)

    @property
    def metadata(self) -> dict[str, Any]:
        row = self.variables.get("metadata")
        return row if isinstance(row, dict) else self.variables

    @property
    def tool_calls(self) -> list[dict[str, Any]] | UnseenCalls:
        """[{"id", "name", "arguments", "result", ...}] of all calls."""
        return self.transcript.get("tool_calls") or [] if self.unseen is None else self.unseen

    @property
    def seconds(self) -> float:
        return ((self.transcript.get("timing") or {}).get("total_ms") or 0) / 1000

    @property
    def usage(self) -> dict[str, Any]:
        return self.transcript.get("usage") or {}

    # The objects of other tools.

    @property
    def run(self) -> object:
        """LangSmith's run, with its tool calls as child runs."""
        calls = self.tool_calls if self.unseen is None else ()
        children = [
            self._run(str(call["name"]), "tool", call.get("arguments"), {"output": call.get("result")}, ())
            for call in calls
        ]
        whole = self._run("agent", "chain", self.inputs, self.outputs, children)
        # Put in once more: the model of LangSmith has made plain dicts of them, which know no other names.
        whole = _with(whole, inputs=self.inputs, outputs=self.outputs)
        return whole if self.unseen is None else _with(whole, child_runs=self.unseen)

    def _run(self, name: str, kind: str, inputs: object, outputs: object, children: Sequence[object]) -> object:
        # Evaluators measure the time between both; when the run really was is not known here.
        end = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 - Python 3.8
        fields = {
            "id": uuid.uuid4(),
            "name": name,
            "run_type": kind,
            "outputs": outputs,
            "error": None,
            "end_time": end,
            "start_time": end - datetime.timedelta(seconds=self.seconds),
            "child_runs": list(children),
            "inputs": inputs if isinstance(inputs, dict) else {"input": inputs},
            "extra": {"metadata": {}},
            "tags": [],
        }
        fields["trace_id"] = fields["id"]
        return _made("langsmith.schemas", "Run", fields)

    @property
    def example(self) -> object:
        """LangSmith's example."""
        fields = {"id": uuid.uuid4(), "dataset_id": uuid.uuid4(), "metadata": self.metadata}
        fields.update(inputs=self.inputs, outputs=self.reference_outputs)
        return _with(_made("langsmith.schemas", "Example", fields), inputs=self.inputs, outputs=self.reference_outputs)

    @property
    def evaluator_context(self) -> object:
        """pydantic-evals' context."""
        fields = {
            "name": None,
            "metadata": self.metadata,
            "expected_output": self.expected,
            "output": self.value,
            "duration": self.seconds,
            "attributes": {},
            "metrics": {name: figure for name, figure in self.usage.items() if figure is not None},
            "inputs": self.input if not self.variables or "input" in self.variables else self.inputs,
        }
        errors = sys.modules.get("pydantic_evals.otel._errors")
        # An evaluator that looks for spans raises pydantic-evals' own error for that.
        fields["_span_tree"] = errors and errors.SpanTreeRecordingError("agenteval records no spans for evaluators")
        return _made("pydantic_evals.evaluators", "EvaluatorContext", fields)

    @property
    def test_case(self) -> object:
        """DeepEval's test case of one turn."""
        fields = {
            "input": str(self.input),
            "actual_output": self.value,
            "expected_output": _text(self.expected),
            "context": _texts(self.variables.get("context")),
            "completion_time": self.seconds,
            "retrieval_context": _texts(self.variables.get("retrieval_context")),
            "tools_called": None,
        }
        if self.unseen is None:
            fields["tools_called"] = [self._deepeval_call(tool_call) for tool_call in self.tool_calls]
        expected = self.variables.get("expected_tools")
        if isinstance(expected, list):
            named = [call if isinstance(call, dict) else {"name": str(call)} for call in expected]
            fields["expected_tools"] = [self._deepeval_call(call) for call in named]
        case = _made("deepeval.test_case", "LLMTestCase", fields)
        return case if self.unseen is None else _with(case, tools_called=self.unseen)

    @property
    def conversation(self) -> object:
        """DeepEval's test case of a conversation."""
        turns = [
            _made("deepeval.test_case", "Turn", {"role": message["role"], "content": message.get("content") or ""})
            for message in self.messages
            if message.get("role") in ("user", "assistant")
        ]
        fields = {"turns": turns}
        for name in ("scenario", "expected_outcome", "user_description", "chatbot_role"):
            if isinstance(self.variables.get(name), str):
                fields[name] = self.variables[name]
        return _made("deepeval.test_case", "ConversationalTestCase", fields)

    def _deepeval_call(self, call: dict[str, Any]) -> object:
        arguments = call.get("arguments", call.get("input_parameters"))
        fields = {"name": call["name"], "input_parameters": arguments if isinstance(arguments, dict) else None}
        return _made("deepeval.test_case", "ToolCall", dict(fields, output=call.get("result")))

    @property
    def promptfoo(self) -> dict[str, Any]:
        """The context that promptfoo calls `get_assert` with."""
        test = {"vars": self.variables, "metadata": self.metadata}
        return {
            "prompt": self.prompt,
            "vars": self.variables,
            "test": test,
            "config": {},
            "logProbs": None,
            "providerResponse": {"output": self.value, "tokenUsage": self.usage},
        }


def _made(module: str, name: str, fields: dict[str, Any]) -> object:
    """An object of a tool's type, where it is imported; else one with the same fields."""
    # Not imported here: the evaluator has imported the tool, or does not look at the type.
    model = getattr(sys.modules.get(module), name, None)
    return types.SimpleNamespace(**fields) if model is None else model(**fields)


def _with(record: object, **fields: object) -> object:
    """The object with these fields as they are: a type of pydantic would copy a dict into a plain one."""
    if isinstance(record, types.SimpleNamespace):
        return types.SimpleNamespace(**dict(vars(record), **fields))
    copy = getattr(record, "model_copy", None) or getattr(record, "copy", None)
    return record if copy is None else copy(update=fields)


def _object_in(text: object) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) and text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _texts(value: object) -> list[str | None] | None:
    return None if value is None else [_text(text) for text in (value if isinstance(value, list) else [value])]
