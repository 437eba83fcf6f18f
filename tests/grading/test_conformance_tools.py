"""Verdicts of other programs on tool calls: promptfoo, LangChain's agentevals, Berkeley's function calling checker.

Each case becomes a criterion in our own language; every case of the file is checked. Other shapes of what an agent
sent (Anthropic's, Google's, calls as text) are brought into a transcript here, as an importer does.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CONFORMANCE, TAU = SHARED / "conformance", SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")


def cases() -> list[dict[str, Any]]:
    path = CONFORMANCE / "tool_calls.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.is_file() else []
    return found


CASES = cases()


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["kind"].removeprefix("not-") in kinds]


@lru_cache(maxsize=1)
def compiled(metric: str, negate: bool) -> Checker:
    """A criterion with the metric, which is JSON; the last one is kept for the next transcript."""
    return Checker(CriterionSpec("it", "ToolResponse", {"metrics": [json.loads(metric)]}, negate=negate))


def run(transcript: Transcript, metric: dict[str, Any], negate: bool = False) -> CriterionResult:
    checker = compiled(json.dumps(metric), negate)
    result = checker.check(transcript)
    quick = checker.check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    assert result.outcome in (Outcome.PASSED, Outcome.FAILED), criterion_sentence(result)
    if result.outcome is Outcome.FAILED:
        assert negate or any(line.passed is False for one in result.metrics for line in one.evidence)
    return result


def holds(transcript: Transcript, metric: dict[str, Any], negate: bool = False) -> bool:
    return run(transcript, metric, negate).outcome is Outcome.PASSED


def transcript_of(calls: list[tuple[str, Any]]) -> Transcript:
    made = tuple(ToolCall(f"c{number}", name, given, message=0) for number, (name, given) in enumerate(calls))
    return Transcript((Message("assistant", "", tool_calls=tuple(range(len(made)))),), made)


@pytest.mark.parametrize("case", of_kind("trajectory-match"))
def test_agentevals(case: dict[str, Any]) -> None:
    metric = {
        "type": "Trajectory",
        "mode": case["mode"],
        "arguments_mode": case["args_mode"],
        "reference": case["reference"],
        **({"overrides": case["overrides"]} if case["overrides"] else {}),
    }
    assert holds(from_openai_messages(case["messages"]), metric) is case["expected"]


def f1_calls(output: Any) -> list[tuple[str, Any]]:
    """The calls in any of the shapes that promptfoo reads: OpenAI's, Anthropic's, Google's, and text with these."""
    if isinstance(output, str):
        found = []
        for line in output.splitlines():
            try:
                found += f1_calls(json.loads(line))
            except ValueError:
                continue
        return found
    if isinstance(output, list):
        return [found for item in output for found in f1_calls(item)]
    if not isinstance(output, dict):
        return []
    for key in ("tool_calls", "toolCall", "functionCalls"):
        if key in output:
            return f1_calls(output[key])
    for key in ("functionCall", "function"):
        if key in output:
            return [(output[key]["name"], {})]
    is_call = output.get("type", "function") in ("tool_use", "function_call", "function")
    return [(output["name"], {})] if is_call and "name" in output else []


@pytest.mark.parametrize("case", of_kind("tool-call-f1"))
def test_promptfoo_f1(case: dict[str, Any]) -> None:
    expected = case["expected_tools"]
    names = [name.strip() for name in expected.split(",")] if isinstance(expected, str) else expected
    # promptfoo counts each name once. Over distinct calls the score of `unordered` is this F1.
    metric = {
        "type": "Trajectory",
        "mode": "unordered",
        "arguments_mode": "ignore",
        "calls": [{"name": name} for name in dict.fromkeys(names)],
    }
    transcript = transcript_of(list({name: (name, given) for name, given in f1_calls(case["output"])}.values()))
    plain = {"prototype_class": "ToolResponse", "config": {"metrics": [metric]}, "pass_threshold": case["threshold"]}
    negate = case["kind"].startswith("not-")
    result = Checker(CriterionSpec("it", negate=negate, **plain)).check(transcript)
    assert (result.outcome is Outcome.PASSED) is case["expected"]
    assert result.metrics[0].score == pytest.approx(case["score"])


def tool_used(value: Any) -> list[dict[str, Any]]:
    """The ToolCheck entries of promptfoo's `tool-used`; a glob stands for the tools that it fits."""
    listed = value if isinstance(value, list) else [value]
    tools = []
    for one in listed:
        one = {"name": one} if isinstance(one, str) else one
        bounds = {ours: one[theirs] for theirs, ours in (("min", "min_calls"), ("max", "max_calls")) if theirs in one}
        tools.append({"name": one.get("name") or one["pattern"], **bounds})
    return tools


@pytest.mark.parametrize("case", of_kind("trajectory:tool-used"))
def test_promptfoo_tool_used(case: dict[str, Any]) -> None:
    calls = [(call["name"], call["args"] or {}) for call in case["calls"]]
    value, negate = case["value"], case["kind"].startswith("not-")
    if isinstance(value, dict) and "pattern" in value:
        # ToolCheck names tools, one by one: the pattern becomes the name of all that fit it.
        calls = [(value["pattern"] if fnmatch(name, value["pattern"]) else name, given) for name, given in calls]
    if negate and isinstance(value, list):
        # promptfoo: none of them was used.
        metric = {"type": "Trajectory", "mode": "none", "calls": [{"name": name} for name in value]}
        assert holds(transcript_of(calls), metric) is case["expected"]
        return
    metric = {"type": "ToolCheck", "tools": tool_used(value)}
    assert holds(transcript_of(calls), metric, negate) is case["expected"]


@pytest.mark.parametrize("case", of_kind("trajectory:tool-sequence"))
def test_promptfoo_tool_sequence(case: dict[str, Any]) -> None:
    value, negate = case["value"], case["kind"].startswith("not-")
    steps = value["steps"] if isinstance(value, dict) else value
    exact = isinstance(value, dict) and value.get("mode") == "exact"
    # With gaps allowed, promptfoo looks at the calls of the named tools only.
    calls = [(call["name"], {}) for call in case["calls"] if exact or call["name"] in steps]
    metric = {"type": "Trajectory", "mode": "strict", "calls": [{"name": name} for name in steps]}
    made = tuple(ToolCall(f"c{n}", name, given, message=n) for n, (name, given) in enumerate(calls))
    messages = tuple(Message("assistant", "", tool_calls=(n,)) for n in range(len(made)))
    assert holds(Transcript(messages, made), metric, negate) is case["expected"]


@pytest.mark.parametrize("case", of_kind("trajectory:tool-args-match"))
def test_promptfoo_arguments(case: dict[str, Any]) -> None:
    value, negate = case["value"], case["kind"].startswith("not-")
    calls = [(call["name"], call["args"] or {}) for call in case["calls"]]
    name = value.get("name") or next((n for n, _ in calls if fnmatch(n, value["pattern"])), value.get("pattern"))
    metric = {
        "type": "Trajectory",
        "mode": "any",
        "arguments_mode": "exact" if value.get("mode") == "exact" else "superset",
        "calls": [{"name": name, "arguments": value.get("args", value.get("arguments"))}],
    }
    assert holds(transcript_of(calls), metric, negate) is case["expected"]


_IGNORED = re.compile(r"[ ,./\-_*^]")


def accepted(value: Any) -> Any:
    """One accepted value of BFCL as a matcher: strings without case and without the signs that BFCL leaves out."""
    if isinstance(value, str):
        letters = [re.escape(char) for char in _IGNORED.sub("", value).lower()]
        gap = r"[ ,./\-_*^]*"
        return {"$regex": f"/^{gap}{gap.join(letters)}{gap}$/i".replace("'", "['\"]").replace('\\"', "['\"]")}
    if isinstance(value, list):
        return [accepted(item) for item in value]
    if isinstance(value, dict):
        return {key: {"$one_of": [accepted(one) for one in options]} for key, options in value.items()}
    return value


def expected_calls(allowed: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trajectory calls; an argument that may be left out is named where the call gives it."""
    made = []
    for entry in allowed:
        ((name, arguments),) = entry.items()
        given = {key for call in calls if call["name"] == name for key in call["arguments"]}
        wanted = {
            key: {"$one_of": [accepted(value) for value in values if value != ""]}
            for key, values in arguments.items()
            if "" not in values or key in given
        }
        made.append({"name": name, "arguments": wanted})
    return made


@pytest.mark.parametrize("case", of_kind("allowed-values"))
def test_bfcl_cases(case: dict[str, Any]) -> None:
    calls = case["calls"]
    metric = {
        "type": "Trajectory",
        "mode": "strict" if case["ordered"] else "unordered",
        "calls": expected_calls(case["allowed"], calls),
    }
    transcript = transcript_of([(call["name"], call["arguments"]) for call in calls])
    assert holds(transcript, metric) is case["expected"]


def test_no_kind_is_left_out() -> None:
    kinds = Counter(case["kind"].removeprefix("not-") for case in CASES)
    assert set(kinds) == {
        "trajectory-match",
        "tool-call-f1",
        "trajectory:tool-used",
        "trajectory:tool-sequence",
        "trajectory:tool-args-match",
        "allowed-values",
    }
    assert sum(kinds.values()) == 189


@pytest.mark.skipif(not TAU.is_file(), reason="the recordings of tau-bench are not here")
def test_agentevals_on_real_runs() -> None:
    """Six verdicts of agentevals on each of 100 real runs."""
    rows = json.loads((CONFORMANCE / "agentevals_on_tau.json").read_text())["rows"]
    runs = {(run["task_id"], run["trial"]): run for run in json.loads(TAU.read_text())}
    compared = 0
    for row in rows:
        recorded = runs[row["task_id"], row["trial"]]
        transcript = from_openai_messages(recorded["traj"])
        actions = recorded["info"]["task"]["actions"]
        assert (len(transcript.tool_calls), len(actions)) == (row["n_calls"], row["n_ref"])
        calls = [{"name": action["name"], "arguments": action["kwargs"]} for action in actions]
        for how, verdict in row["verdicts"].items():
            mode, arguments_mode = how.split("/")
            metric = {"type": "Trajectory", "mode": mode, "arguments_mode": arguments_mode, "calls": calls}
            result = run(transcript, metric)
            assert (result.outcome is Outcome.PASSED) is verdict, (row["task_id"], row["trial"], how)
            compared += 1
    assert compared == 600


def accepted_answers() -> list[tuple[str, list[dict[str, Any]]]]:
    folder = SHARED / "data" / "bfcl" / "possible_answer"
    return [
        (answer["id"], answer["ground_truth"])
        for path in sorted(folder.glob("*.json"))
        for answer in map(json.loads, path.read_text().splitlines())
    ]


def test_accepted_answers_of_bfcl_pass_our_matchers_and_others_do_not() -> None:
    """Each accepted value of each argument passes a ToolCheck of it; a value that nobody accepts does not."""
    checked = 0
    for name, truth in accepted_answers():
        by_tool: dict[str, list[dict[str, Any]]] = {}
        for entry in truth:
            ((tool, arguments),) = entry.items()
            by_tool.setdefault(tool, []).append(arguments)
        for tool, options in by_tool.items():
            if len(options) > 1:
                continue  # several calls of one tool with other values each: Trajectory's business, above
            (arguments,) = options
            named = {key: values for key, values in arguments.items() if any(value != "" for value in values)}
            wanted = {key: {"$one_of": [value for value in values if value != ""]} for key, values in named.items()}
            config = {"type": "ToolCheck", "tools": [{"name": tool, "arguments": wanted}]}
            first = {key: next(value for value in values if value != "") for key, values in named.items()}
            last = {key: [value for value in values if value != ""][-1] for key, values in named.items()}
            for given in (first, last):
                result = run(transcript_of([(tool, given)]), config)
                assert (result.outcome, result.score) == (Outcome.PASSED, 1.0), (name, criterion_sentence(result))
            for key in named:
                wrong = run(transcript_of([(tool, {**first, key: "nobody accepts this"})]), config)
                assert wrong.outcome is Outcome.FAILED, (name, key)
                assert key in criterion_sentence(wrong)
                left_out = {other: value for other, value in first.items() if other != key}
                assert run(transcript_of([(tool, left_out)]), config).outcome is Outcome.FAILED
            checked += 1
    assert checked > 300
