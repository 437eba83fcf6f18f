"""Calls an evaluator as the tool that it was written for would, and makes plain data of what it returns. Runs in the
child: only the standard library, of Python 3.8 or later.

A function gets what its parameters are called: `(inputs, outputs, reference_outputs)` and `(run, example)` as LangSmith
has them, `(input, output, expected)` Braintrust, `(output, context)` promptfoo, `ctx` pydantic-evals, `test_case`
DeepEval; or the variables of the row. Metrics of DeepEval, scorers of autoevals, evaluators of pydantic-evals and of
LangSmith are called as they are; of their classes, an object is made with the properties of the metric.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import python_project as project
from . import python_run_data as data

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Wait
    from agenteval_tui.agents.process.python_run_data import RunData


UNUSABLE = "agenteval_unusable"
"""The key of what can't be read: {"type", "place"}."""
UNSEEN = "agenteval_unseen"
"""The key of what the evaluator looked at and that wasn't observed, as `observes` calls it."""
# Parameters that nothing else can mean, and the field of `RunData` that they get.
_VIEWS = {
    "value": "value",
    "inputs": "inputs",
    "outputs": "outputs",
    "reference_outputs": "reference_outputs",
    "expectations": "reference_outputs",
    "run": "run",
    "root_run": "run",
    "example": "example",
    "transcript": "transcript",
    "variables": "variables",
    "test_case": "test_case",
    "ctx": "evaluator_context",
}
_LATER_VIEWS = {
    "metadata": "metadata",
    "messages": "messages",
    "tool_calls": "tool_calls",
    "vars": "variables",
    "trajectory": "messages",
    "tools_called": "tool_calls",
}
_BY_TYPE = {"Run": "run", "Example": "example", "EvaluatorContext": "ctx", "LLMTestCase": "test_case"}
_WITH_OUTPUT = (
    "value",
    "outputs",
    "run",
    "root_run",
    "transcript",
    "test_case",
    "ctx",
    "messages",
    "tool_calls",
    "trajectory",
    "tools_called",
)


def call(evaluator: Any, target: str, request: dict[str, Any], wait: Wait) -> object:
    """What the evaluator says of a run, as JSON data. `wait` runs an awaitable to its end. Raises what the evaluator
    raises, and `WrongTarget`."""
    run = data.RunData(request)
    try:
        returned = _returned(evaluator, target, run, dict(request["arguments"]), wait)
    # An evaluator that looked for tool calls which nobody observed may raise anything; that it looked says more.
    except Exception:
        if run.unseen is None or not run.unseen.looked:
            raise
    if run.unseen is not None and run.unseen.looked:
        return {UNSEEN: "tool_calls"}
    try:
        return _plain(returned)
    except _UnreadableError as error:
        return {UNUSABLE: {"type": str(error), "place": place_of(evaluator)}}


def _returned(evaluator: Any, target: str, run: RunData, arguments: dict[str, Any], wait: Wait) -> object:
    kind = _kind(evaluator)
    if kind is None:
        package = target.partition(":")[0].partition(".")[0] if ".py:" not in target else ""
        if package in project.EVALUATORS and "outputs" not in _parameters(evaluator):
            raise project.WrongTarget(
                f"{target} is not an evaluator; name an evaluator of this package, or a function of the project"
            )
        returned = _function(evaluator, target, run, arguments)
    else:
        if inspect.isclass(evaluator):
            evaluator = _object(evaluator, target, arguments)
        returned = kind(evaluator, run, arguments)
    if inspect.isawaitable(returned):
        returned = wait(returned)
    if kind is _deepeval:
        returned = _verdict_of_deepeval(evaluator)
    elif kind is _pydantic_evals:
        returned = _verdict_of_pydantic(evaluator, returned)
    return returned


# Evaluators that are objects, or classes of them


def _kind(evaluator: object) -> Callable[[Any, RunData, dict[str, Any]], object] | None:
    """How an object of a tool is called; None for what is called as a function."""
    mro = (evaluator if inspect.isclass(evaluator) else type(evaluator)).__mro__
    names = {(base.__module__.partition(".")[0], base.__name__) for base in mro}
    if {("deepeval", "BaseMetric"), ("deepeval", "BaseConversationalMetric")} & names:
        return _deepeval
    if {("autoevals", "Scorer"), ("braintrust_core", "Scorer")} & names:
        return _scorer
    if ("pydantic_evals", "Evaluator") in names:
        return _pydantic_evals
    if ("langsmith", "RunEvaluator") in names or callable(getattr(evaluator, "as_run_evaluator", None)):
        return _langsmith
    return None


def _object(evaluator: Any, target: str, arguments: dict[str, Any]) -> object:
    try:
        return evaluator(**arguments)
    except TypeError as error:
        raise project.WrongTarget(
            f"{target} is a class of which no object can be made with the properties of the metric: {error}; write "
            "what it needs as properties, or name an object that a module of the project makes"
        ) from None


def _deepeval(metric: Any, run: RunData, arguments: dict[str, Any]) -> object:
    conversational = any(base.__name__ == "BaseConversationalMetric" for base in type(metric).__mro__)
    case = run.conversation if conversational else run.test_case
    way = metric.measure if not getattr(metric, "async_mode", True) else getattr(metric, "a_measure", metric.measure)
    # Else deepeval draws a spinner in what the run printed.
    quiet = {"_show_indicator": False} if "_show_indicator" in inspect.signature(way).parameters else {}
    return way(case, **quiet)


def _verdict_of_deepeval(metric: Any) -> dict[str, Any]:
    name = getattr(metric, "__name__", None) or type(metric).__name__
    if getattr(metric, "error", None):
        raise RuntimeError(f"{name}: {metric.error}")
    verdict = {"key": name, "reason": getattr(metric, "reason", None) or "", "passed": bool(metric.is_successful())}
    return dict(verdict, **({} if metric.score is None else {"score": metric.score}))


def _scorer(scorer: Any, run: RunData, arguments: dict[str, Any]) -> object:
    more = {"input": run.input, **{n: run.variables[n] for n in ("context", "criteria") if n in run.variables}}
    return scorer.eval_async(run.value, run.expected, **dict(more, **arguments))


def _pydantic_evals(evaluator: Any, run: RunData, arguments: dict[str, Any]) -> object:
    return evaluator.evaluate(run.evaluator_context)


def _verdict_of_pydantic(evaluator: object, returned: object) -> list[dict[str, Any]] | dict[str, Any] | None:
    named = returned if isinstance(returned, dict) else {type(evaluator).__name__: returned}
    results: Any = []
    for name, result in named.items():
        value = getattr(result, "value", result)
        results.append({"key": str(name), "value": value, "reason": getattr(result, "reason", None) or ""})
    if any(isinstance(result["value"], bool) for result in results):
        # Assertions decide; a number beside them is a measure, on any scale.
        results = [
            result if isinstance(result["value"], bool) else dict(result, label=result.pop("value"))
            for result in results
        ]
    return results if isinstance(returned, dict) else results[0] if returned is not None else None


def _langsmith(evaluator: Any, run: RunData, arguments: dict[str, Any]) -> object:
    if not hasattr(evaluator, "evaluate_run"):
        evaluator = evaluator.as_run_evaluator()
    return evaluator.evaluate_run(run.run, run.example)


# Functions


def _function(evaluator: Any, target: str, run: RunData, arguments: dict[str, Any]) -> object:
    """Call it with what its parameters ask for."""
    if not callable(evaluator):
        raise project.WrongTarget(f"{target} is a {type(evaluator).__name__}, not a function or an evaluator")
    try:
        parameters = list(inspect.signature(evaluator).parameters.values())
    except (TypeError, ValueError):  # written in C
        return evaluator(run.value, **arguments)
    positional: Any = []
    named: Any = {}
    rest = dict(arguments)
    names = [_name(parameter) for parameter in parameters]
    # Where no parameter has a name for the answer, the first one by place gets it.
    has_text = any(name in _WITH_OUTPUT or (name in data.TEXTS and name not in rest) for name in names)
    has_had_text = False  # whether a parameter has had the text
    for parameter, name in zip(parameters, names):  # noqa: B905 - Python 3.8
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update(rest)
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        by_place = parameter.kind is not parameter.KEYWORD_ONLY
        if parameter.name in rest:
            value = rest.pop(parameter.name)
        elif name in _VIEWS:
            value = getattr(run, _VIEWS[name])
        elif not has_text and by_place:
            value, has_text = run.value, True
        elif name == "context" and _is_of_promptfoo(parameters, parameter):
            value = run.promptfoo
        # A variable of the test may be called `output` or `answer`: the answer of the agent is handed out first.
        elif name in run.variables and (name not in data.TEXTS or has_had_text):
            value = run.variables[name]
        elif name in data.TEXTS and not has_had_text:
            value, has_had_text = run.value, True
        elif name in _LATER_VIEWS:
            value = getattr(run, _LATER_VIEWS[name])
        elif name in data.PROMPTS:
            value = run.input
        elif name in data.EXPECTED:
            value = run.expected
        elif parameter.default is not parameter.empty:
            continue
        else:
            raise project.WrongTarget(_unknown(parameter.name, target, run, evaluator))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    unused = [name for name in rest if name not in named]
    if unused:
        has = ", ".join(parameter.name for parameter in parameters)
        raise project.WrongTarget(
            f"{target} ({place_of(evaluator)}) has no parameter {unused[0]!r}, which the metric has as a property; "
            f"its parameters: {has}"
        )
    return evaluator(*positional, **named)


def _parameters(evaluator: Any) -> list[str]:
    try:
        return list(inspect.signature(evaluator).parameters)
    except (TypeError, ValueError):  # written in C, or nothing to call
        return []


def _name(parameter: inspect.Parameter) -> str:
    """Its name; of one whose type is that of a tool, the name that this tool has for it."""
    kind = parameter.annotation
    written = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return _BY_TYPE.get(written.rpartition(".")[2], parameter.name)


def _is_of_promptfoo(parameters: list[inspect.Parameter], parameter: inspect.Parameter) -> bool:
    """`(output, context)`: promptfoo's, unless its type says that it is the text of a row."""
    kind = parameter.annotation
    written = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return needed == ["output", "context"] and not written.startswith(("str", "list", "List"))


def _unknown(name: str, target: str, run: RunData, evaluator: object) -> str:
    if name in ("runs", "examples", "results"):
        return (
            f"{target} ({place_of(evaluator)}) asks for {name!r}: it judges all runs together, and a metric judges "
            "one; `agenteval stats` has the figures of all"
        )
    own = ", ".join(sorted(map(str, run.variables))) or "none"
    return (
        f"{target} ({place_of(evaluator)}) asks for {name!r}, and nothing has that name; an evaluator may ask for "
        "value, "
        f"inputs, outputs, reference_outputs, run, example, input, output, expected, context, metadata, messages, "
        f"tool_calls, transcript, properties of the metric, and variables of the test (here: {own})"
    )


def place_of(evaluator: Any) -> str:
    """`file.py, line 3` of an evaluator; its type where that is not known."""
    code = evaluator
    # Decorators and `functools.partial` hide the function that people know.
    while hasattr(code, "func") or hasattr(code, "__wrapped__"):
        code = getattr(code, "__wrapped__", None) or code.func
    for name in ("", "measure", "evaluate", "evaluate_run", "_run_eval_sync", "__call__"):
        method = code if not name else getattr(code, name, None)
        method_code = getattr(getattr(method, "__func__", method), "__code__", None)
        if method_code is not None:
            file: str = method_code.co_filename
            beside = os.path.relpath(file)
            return (file if beside.startswith("..") else beside) + ", line " + str(method_code.co_firstlineno)
    return type(evaluator).__name__


# What they return


class _UnreadableError(Exception):
    """The text is the type of what can't be read."""


def _plain(value: object, depth: int = 0) -> object:
    """A result as JSON data. Raises `_UnreadableError`."""
    if depth > 50:
        raise _UnreadableError("value that is nested too deeply")
    if value is None:
        if depth:
            return None
        raise _UnreadableError("None")
    if isinstance(value, (bool, str, int)):
        # Enumerations that are texts or numbers have their value as `value`.
        return value if type(value) in (bool, str, int) else getattr(value, "value", value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise _UnreadableError(repr(float(value)))
        return float(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(name): _field(name, member, depth) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member, depth + 1) if depth else _result(member) for member in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if fields.get("error") is not None and isinstance(fields["error"], BaseException):
            raise fields["error"]
        return _plain(_of_inspect(value, fields), depth)
    if hasattr(value, "model_dump"):
        return _plain(_of_inspect(value, value.model_dump(mode="json")), depth)
    if hasattr(value, "item") and hasattr(value, "dtype"):  # a number of numpy
        return _plain(value.item(), depth)
    names = ("passed", "score", "value", "reason", "comment", "rationale", "name", "key")
    if hasattr(value, "passed") or hasattr(value, "score") or hasattr(value, "value"):
        return _plain({name: getattr(value, name) for name in names if hasattr(value, name)}, depth)
    if isinstance(value, (set, frozenset)) and depth:
        return sorted(map(str, value))
    raise _UnreadableError(type(value).__name__)


def _result(value: object) -> object:
    if isinstance(value, list):
        raise _UnreadableError("list in a list")
    return _plain(value)


def _field(name: object, value: object, depth: int) -> object:
    """A field of a result: what decides must be readable, all else is shown."""
    if name in ("results", "score", "value", "passed", "pass", "componentResults") and value is not None:
        return _plain(value, 0 if name == "results" else depth + 1)
    try:
        return _plain(value, depth + 1)
    except _UnreadableError:
        return str(value)


def _of_inspect(value: object, fields: dict[str, Any]) -> dict[str, Any]:
    """Inspect's letters are scores: correct, partial, incorrect, no answer."""
    if type(value).__module__.startswith("inspect_ai") and fields.get("value") in ("C", "P", "I", "N"):
        return dict(fields, value={"C": 1.0, "P": 0.5}.get(fields["value"], 0.0))
    return fields
