"""Evaluators with the signatures and results of the field's tools, as the metric `Python` calls them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    Done,
    Noted,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence, why_not_observed
from agenteval_tui.transcripts.model import Note

Made = Callable[..., Any]

PLAIN = '''
def accuracy(inputs: dict, outputs: dict, reference_outputs: dict) -> dict:
    score = 1.0 if reference_outputs["answer"].lower() in outputs["answer"].lower() else 0.0
    return {"key": "contains_answer", "score": score, "comment": "Expected " + inputs["question"]}

def latency(inputs, outputs, reference_outputs):
    return {"key": "latency_ok", "score": 1.0 if outputs.get("latency_ms", 0) < 2000 else 0.5}

def exactly_its_dicts(inputs, outputs, reference_outputs):
    return dict(inputs) == {"question": "Capital of France?"} and dict(reference_outputs) == {"answer": "Paris"} \\
        and dict(outputs) == {"answer": "It is Paris.", "latency_ms": 2500, "tool": "atlas"}

def alone(outputs): return outputs["output"] == "It is Paris." and outputs["messages"][-1]["role"] == "assistant"
def missing(outputs): return outputs["confidence"] > 0.5
def braintrust(input, output, expected): return expected in output and input == "Capital of France?"
def renamed(predicted: str, expected: str) -> float: return 1.0 if expected in predicted else 0.0
def judged(question, expected, actual): return question == "Capital of France?" and expected in actual
def of_the_row(output, topic, metadata): return (topic, metadata["level"]) == ("geo", 3)
def langfuse(*, input, output, expected_output, metadata, **kwargs): return expected_output in output
def get_assert(output, context):
    return {"pass": context["vars"]["topic"] == "geo", "score": 0.2, "reason": "as " + context["prompt"],
            "componentResults": [{"pass": True, "score": 1, "reason": "a part"}]}
def by_run(run, example):
    call, = run.child_runs
    return example.outputs["answer"] in run.outputs["answer"] and (call.name, call.inputs) == ("find", {"q": "Paris"})
def calls(tool_calls, messages): return [call["name"] for call in tool_calls] == ["find"] and len(messages) == 4
async def later(inputs, outputs, **kwargs): return True
def first(text_of_it): return text_of_it == "It is Paris."
def with_property(outputs, *, least): return {"score": least}
def several(outputs):
    return [{"key": "polite", "score": 0.9}, {"key": "tone", "value": "calm"}, {"key": "short", "score": True}]
def results(run, example): return {"results": [{"key": "a", "score": 1}, {"key": "b", "score": 0, "comment": "no b"}]}
def boolean_score(outputs): return {"key": "ok", "score": False, "comment": "not ok"}

def nothing(outputs): pass
def nan(outputs): return float("nan")
def pair(outputs): return (True, "why")
def nan_in_it(outputs): return {"key": "x", "score": float("inf")}
def only_a_label(outputs): return {"key": "tone", "value": "calm"}
def on_a_scale(outputs): return {"key": "helpful", "score": 4}
def no_results(outputs): return []
def in_words(outputs): return "yes"
def foo(outputs, foo): return True
def of_all(runs, examples): return True
def prints(outputs): print("looking", outputs["answer"]); return True
def prints_and_raises(outputs): print("looking"); raise ValueError("no luck")
'''  # fmt: skip


async def atlas(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    yield ToolCallStarted(0, "c1", "find")
    yield ToolArgumentsDelta(0, '{"q": "Paris"}')
    yield ToolCallFinished(0, "found", False, 1.0)
    yield TextDelta("It is Paris.")
    yield Done(outputs={"answer": "It is Paris.", "latency_ms": 2500, "tool": "atlas"})


@pytest.fixture(autouse=True)
def agent(scripts: Any) -> None:
    scripts.script = atlas


ROW = {"inputs": {"question": "Capital of France?"}, "outputs": {"answer": "Paris"}}


async def graded(execution: Made, folder: Path, name: str, row: dict[str, Any] = ROW, **metric: Any) -> Any:
    (folder / "rows.jsonl").write_text(json.dumps(row))
    target = name if ":" in name else f"checks:{name}"
    config = {"metrics": [{"type": "Python", "function": target, **metric}]}
    criterion = {"name": "Judged", "prototype_class": "TextResponse", "config_uxon": config}
    test = {"id": "t", "dataset": {"file": "rows.jsonl"}, "criteria": [criterion]}
    suite = {"name": "S", "agent": "bot", "agents": {"bot": {"kind": "scripted"}}, "tests": [test]}
    made = execution(json.dumps(suite), trust=True)
    await made.run()
    made.store.flush()
    (run,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    (result,) = made.store.results(run.id)
    return result


BLIND = '''
def by_calls(value, tool_calls): return len(tool_calls) == 0
def by_absence(tool_calls): return not tool_calls
def by_messages(messages): return not any(message.get("tool_calls") for message in messages)
def by_keys(trajectory): return not any("tool_calls" in message for message in trajectory)
def by_outputs(outputs): return not [m for m in outputs["messages"] if m.get("tool_calls")]
def by_transcript(transcript): return not transcript.get("tool_calls")
def by_run(run, example): return not (run.child_runs or [])
def by_case(test_case): return test_case.tools_called == []
async def later(tool_calls): return tool_calls == []
def catches(tool_calls):
    try:
        return len(tool_calls) == 0
    except Exception:
        return True
def looks_elsewhere(value, tool_calls, messages): return "Paris" in value and messages[-1]["role"] == "assistant"
'''  # fmt: skip


async def text_only(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    yield Noted(Note("text_only", "str"))
    yield TextDelta("It is Paris.")
    yield Done()


@pytest.mark.sweep
@pytest.mark.parametrize("name", re.findall(r"^(?:async )?def (\w+)", BLIND, re.MULTILINE))
async def test_an_evaluator_judges_no_calls_that_nobody_could_see(
    execution: Made, tmp_path: Path, scripts: Any, name: str
) -> None:
    scripts.script = text_only
    (tmp_path / "checks.py").write_text(BLIND)
    result = await graded(execution, tmp_path, name)
    if name == "looks_elsewhere":
        assert result.outcome is Outcome.PASSED
    else:
        assert (result.outcome, result.metrics[0].code) == (Outcome.ERROR, Code.NOT_OBSERVED)
        assert "its tool calls are not known" in why_not_observed(result)


async def test_what_the_agent_returned_is_stored_with_the_run(execution: Made, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    criterion = {"name": "x", "prototype_class": "TextResponse", "config_uxon": {"metrics": [{"type": "Length"}]}}
    test = {"id": "t", "dataset": {"file": "rows.jsonl"}, "criteria": [criterion]}
    suite = {"name": "S", "agent": "bot", "agents": {"bot": {"kind": "scripted"}}, "tests": [test]}
    made = execution(json.dumps(suite), trust=True)
    await made.run()
    made.store.flush()
    (run,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert made.store.transcript(run.id).outputs == {"answer": "It is Paris.", "latency_ms": 2500, "tool": "atlas"}


def lines(result: Any) -> dict[str, str]:
    return {line.condition: evidence_sentence(line) for line in result.metrics[0].evidence}


@pytest.mark.parametrize(
    "name",
    ["accuracy", "exactly_its_dicts", "braintrust", "renamed", "judged", "langfuse", "by_run", "calls", "later",
     "first"],
)  # fmt: skip
async def test_a_function_gets_what_its_parameters_are_called(execution: Made, tmp_path: Path, name: str) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    result = await graded(execution, tmp_path, name)
    assert result.outcome is Outcome.PASSED, criterion_sentence(result)


async def test_variables_of_the_row_and_properties_go_in_by_name(execution: Made, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    row = {"input": "Capital of France?", "topic": "geo", "metadata": {"level": 3}}
    assert (await graded(execution, tmp_path, "of_the_row", row)).outcome is Outcome.PASSED
    assert (await graded(execution, tmp_path, "with_property", least=0.8)).score == 0.8
    promptfoo = await graded(execution, tmp_path, "get_assert", row)
    assert (promptfoo.outcome, promptfoo.score) == (Outcome.PASSED, 0.2)
    assert lines(promptfoo) == {"function": "as Capital of France?", "evidence[1]": "a part"}


async def test_the_key_and_the_comment_are_shown(execution: Made, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    assert lines(await graded(execution, tmp_path, "accuracy")) == {"contains_answer": "Expected Capital of France?"}
    late = await graded(execution, tmp_path, "latency")
    assert (late.outcome, late.score) == (Outcome.FAILED, 0.5)
    assert lines(late) == {"latency_ok": "checks:latency returned 0.5 (it passes from 0.7)"}
    assert lines(await graded(execution, tmp_path, "boolean_score")) == {"ok": "not ok"}


async def test_several_results_all_pass_or_the_metric_fails(execution: Made, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    several = await graded(execution, tmp_path, "several")
    assert (several.outcome, several.score) == (Outcome.PASSED, pytest.approx(0.95))
    assert [line.passed for line in several.metrics[0].evidence] == [True, None, True]
    assert lines(several)["tone"] == '"calm"'
    results = await graded(execution, tmp_path, "results")
    assert (results.outcome, results.score, lines(results)["b"]) == (Outcome.FAILED, 0.5, "no b")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", ("returned None (checks.py, line", "return a bool, a score from 0 to 1")),
        ("nan", ("returned nan (checks.py, line", "return a bool")),
        ("pair", ("something of type tuple (checks.py, line", "return a bool")),
        ("nan_in_it", ("returned inf (checks.py, line",)),
        ("only_a_label", ("does not say whether it passed", "return a bool")),
        ("on_a_scale", ("returned 4: a score is from 0 to 1; divide it",)),
        ("no_results", ("returned []", "return a bool")),
        ("in_words", ('"yes"', "neither a bool nor a number", "return a bool")),
        ("foo", ("(checks.py, line", "asks for 'foo'", "reference_outputs", "here: expected_value, outputs, question")),
        ("of_all", ("asks for 'examples'", "judges one", "agenteval stats")),
        ("missing", ("KeyError", "confidence (there is: answer, latency_ms, tool)", "checks.py, line")),
        ("first", ("has no parameter 'wrong'", "text_of_it")),
    ],
)
async def test_what_is_no_verdict_is_an_error_with_place_and_remedy(
    execution: Made, tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    result = await graded(execution, tmp_path, name, **({"wrong": 1} if name == "first" else {}))
    assert (result.outcome, result.score) == (Outcome.ERROR, None)
    said = criterion_sentence(result)
    assert all(word in said for word in words), said


async def test_what_an_evaluator_prints_is_kept(execution: Made, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(PLAIN)
    result = await graded(execution, tmp_path, "prints")
    assert (result.outcome, lines(result)["printed"]) == (Outcome.PASSED, "looking It is Paris.")
    result = await graded(execution, tmp_path, "prints_and_raises")
    assert "ValueError: no luck (checks.py, line" in criterion_sentence(result)
    assert result.metrics[0].evidence[0].found == "looking\n"


# Evaluators of packages

PACKAGES = """
from dataclasses import dataclass

def langsmith():
    from langsmith.evaluation import EvaluationResult, run_evaluator
    from langsmith.schemas import Example, Run

    def typed(r: Run, e: Example):
        assert type(r) is Run and type(e) is Example, (r, e)
        return EvaluationResult(key="typed", score=e.outputs["answer"] in r.outputs["answer"], comment="by run")

    @run_evaluator
    def decorated(run, example=None):
        return {"results": [EvaluationResult(key="tool", score=run.outputs["tool"] == "atlas")]}
    return typed, decorated

def pydantic_evals():
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext

    @dataclass
    class Has(Evaluator):
        word: str = "Paris"
        async def evaluate(self, ctx: EvaluatorContext):
            assert ctx.expected_output == "Paris" and ctx.inputs["question"] == "Capital of France?"
            return {"has": EvaluationReason(self.word in ctx.output, "it is there"), "words": 3, "tone": "calm"}
    return Has

def deepeval():
    from deepeval.metrics import BaseMetric, ExactMatchMetric, PatternMatchMetric

    class Mine(BaseMetric):
        def __init__(self, threshold: float = 0.5): self.threshold = threshold
        def measure(self, case):
            self.score = float(case.expected_output in case.actual_output and case.tools_called[0].name == "find")
            self.reason, self.success = "because of " + case.input, self.score >= self.threshold
            return self.score
        async def a_measure(self, case): return self.measure(case)
        def is_successful(self): return self.success
        @property
        def __name__(self): return "My metric"
    return ExactMatchMetric(), PatternMatchMetric(pattern=".*Paris.*"), Mine

def autoevals():
    from autoevals import Levenshtein
    return Levenshtein()
"""


def checks_of(folder: Path, package: str, names: str) -> None:
    """A project whose module has evaluators of a package; the test is skipped where nothing has the package."""
    place = Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "")) / "evaluators"
    if "AGENTEVAL_FRAMEWORKS" in os.environ and place.is_dir():
        (folder / ".venv").symlink_to(place.absolute())
    elif importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed, and AGENTEVAL_FRAMEWORKS names no folder that has it")
    (folder / "checks.py").write_text(f"{PACKAGES}\n{names} = {package}()\n")


@pytest.mark.sweep("package")
@pytest.mark.parametrize(
    ("package", "names", "name", "outcome", "line"),
    [
        ("langsmith", "typed, decorated", "typed", "passed", ("typed", "by run")),
        ("langsmith", "typed, decorated", "decorated", "passed", ("tool", "returned true")),
        ("pydantic_evals", "Has", "Has", "passed", ("has", "it is there")),
        ("deepeval", "exact, pattern, Mine", "exact", "failed", ("Exact Match", "different")),
        ("deepeval", "exact, pattern, Mine", "pattern", "passed", ("Pattern Match", "matches the pattern")),
        ("deepeval", "exact, pattern, Mine", "Mine", "passed", ("My metric", "because of Capital of France?")),
        ("deepeval", "exact, pattern, Mine", "deepeval.metrics:ExactMatchMetric", "failed", ("Exact Match", "differ")),
        ("autoevals", "near", "near", "failed", ("Levenshtein", "passes from 0.7")),
        ("autoevals", "near", "autoevals:Levenshtein", "failed", ("Levenshtein", "passes from 0.7")),
        (
            "openevals",
            "None; openevals = lambda: 0; near",
            "openevals.exact:exact_match",
            "failed",
            ("exact_match", ""),
        ),
    ],
)
async def test_evaluators_of_packages_are_called_as_they_are(
    execution: Made, tmp_path: Path, package: str, names: str, name: str, outcome: str, line: tuple[str, str]
) -> None:
    checks_of(tmp_path, package, names)
    result = await graded(execution, tmp_path, name, timeout=60.0)
    assert result.outcome == outcome, criterion_sentence(result)
    assert line[1] in lines(result)[line[0]]


async def test_of_a_package_only_evaluators_may_be_named(execution: Made, tmp_path: Path) -> None:
    checks_of(tmp_path, "autoevals", "near")
    for target, words in (
        ("autoevals:init", "is not an evaluator"),
        ("autoevals.score:dataclasses.replace", "can't be a metric"),
        ("autoevals.score:sys.exit", "can't be a metric"),
    ):
        result = await graded(execution, tmp_path, target, timeout=60.0)
        assert result.outcome is Outcome.ERROR
        assert words in criterion_sentence(result)


async def test_a_class_without_its_arguments_says_so(execution: Made, tmp_path: Path) -> None:
    checks_of(tmp_path, "pydantic_evals", "Has")
    result = await graded(execution, tmp_path, "Has", wrong=1)
    assert "no object can be made with the properties of the metric" in criterion_sentence(result)
