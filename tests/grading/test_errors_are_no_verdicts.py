"""A check that cannot be made is an error: with negate and without, with evidence and without."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.registry import metric, metric_names
from agenteval_tui.grading.remote import RemoteMetric
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage

SLOW = "^(a|a|aa)+$b"
ANSWER = Transcript((Message("assistant", "a" * 60),), final_output="a" * 60)
DEEP = Transcript((Message("assistant", "[" * 100_000),), final_output="[" * 100_000)
HUGE = Transcript((Message("assistant", "x" * 200_000),), final_output="x" * 200_000)
NAN = Transcript((), timing=Timing(total_ms=float("nan")), usage=Usage(cost=float("inf")))
HALF = Transcript((), usage=Usage(input_tokens=5))
TEXT = '{"a": "%s", "n": 1}' % ("a" * 60)
JSON = Transcript((Message("assistant", TEXT),), final_output=TEXT)
NUMBERS = Transcript((), final_output="1" * 5000)
FOUND = Transcript((), (ToolCall("c", "search", {}, "[" * 50_000),))

# What is configured, on what, and what the reason must say.
BROKEN: list[tuple[str, Transcript, dict[str, Any], str]] = [
    ("TextResponse", ANSWER, {"type": "TextMatch", "contains": "{{nobody}}"}, "unknown variable 'nobody'"),
    (
        "TextResponse",
        ANSWER,
        {"type": "ToolCheck", "tools": [{"name": "x", "min_calls": "2"}]},
        "must be a whole number",
    ),
    ("TextResponse", ANSWER, {"type": "Regex", "pattern": SLOW}, "took longer than"),
    ("TextResponse", ANSWER, {"type": "Regex", "pattern": "/a(/"}, "pattern"),
    ("TextResponse", ANSWER, {"type": "Regex", "pattern": "{{p}}"}, "pattern"),
    ("TextResponse", ANSWER, {"type": "Regex", "pattern": "a", "flags": "g"}, "the flag g is not known"),
    ("TextResponse", ANSWER, {"type": "Keywords", "keywords": 5}, "must be"),
    ("TextResponse", ANSWER, {"type": "Lexical"}, "nothing to compare with"),
    ("TextResponse", HUGE, {"type": "Lexical", "to": "x"}, "too many to compare"),
    ("TextResponse", DEEP, {"type": "Json"}, "nested too deeply"),
    ("TextResponse", NUMBERS, {"type": "Json"}, "cannot be read"),
    ("JsonResponse", DEEP, {"type": "Json"}, "nested too deeply"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"$ref": "http://127.0.0.1:9/other.json"}}, "nothing is fetched"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"$ref": "#/$defs/none"}}, "nothing is fetched"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"$ref": "#"}}, "refers to itself endlessly"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"properties": {"a": {"pattern": SLOW}}}}, "took longer than"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"patternProperties": {"(": {}}}}, "not a JSON Schema"),
    ("JsonResponse", JSON, {"type": "Json", "schema": {"type": "objekt"}}, "not a JSON Schema"),
    ("TextResponse", ANSWER, {"type": "Length", "max_words": -1}, "greater than or equal to 0"),
    ("ToolResponse", ANSWER, {"type": "Trajectory", "mode": "sideways", "calls": []}, "mode"),
    ("ToolResponse", ANSWER, {"type": "Trajectory", "reference": [{"content": "no role"}]}, "has no role"),
    ("TextResponse", ANSWER, {"type": "Latency", "max": 5}, "was not measured"),
    ("TextResponse", NAN, {"type": "Latency", "max": 5}, "was not measured"),
    ("TextResponse", ANSWER, {"type": "Tokens", "max": 5}, "was not measured"),
    ("TextResponse", HALF, {"type": "Tokens", "max": 5}, "was not measured"),
    ("TextResponse", HALF, {"type": "Tokens", "input_max": 5, "output_max": 5}, "the output was not measured"),
    ("TextResponse", ANSWER, {"type": "Cost", "max": 5}, "was not measured"),
    ("TextResponse", NAN, {"type": "Cost", "max": 5}, "was not measured"),
    ("TextResponse", ANSWER, {"type": "Steps", "max": 1.5}, "whole number"),
    ("TextResponse", ANSWER, {"type": "Retrieval", "relevant": ["a"]}, "not a list of documents"),
    ("Retrieval", FOUND, {"type": "Retrieval", "relevant": ["a"]}, "nested too deeply"),
    ("TextResponse", ANSWER, {"type": "Classification"}, "no label to compare with"),
    ("TextResponse", Transcript(), {"type": "Readability", "max_grade": 5}, "without words has no reading grade"),
    ("TextResponse", ANSWER, {"type": "Repetition", "max_ratio": 3}, "less than or equal to 1"),
    ("TextResponse", ANSWER, {"type": "Pii", "kinds": ["e-mail"]}, "kinds"),
    ("TextResponse", ANSWER, {"type": "Leak"}, "the system prompt was not recorded"),
    ("TextResponse", ANSWER, {"type": "Leak", "secrets": ["zzz"], "min_overlap": 4}, "was not recorded"),
    ("TextResponse", ANSWER, {"type": "Injection"}, "`metrics[0].canary` is missing"),
]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.grading.regex_search.TIME_LIMIT", 0.05)


@pytest.mark.parametrize("explain", [True, False])
@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("prototype", "transcript", "config", "said"), BROKEN, ids=[f"{c['type']}-{s[:24]}" for _, _, c, s in BROKEN]
)
def test_a_broken_check_is_an_error(
    prototype: str, transcript: Transcript, config: dict[str, Any], said: str, negate: bool, explain: bool
) -> None:
    spec = CriterionSpec("it", prototype, {"metrics": [config]}, negate=negate, pass_threshold=0.0)
    result = Checker(spec).check(transcript, {"p": "a("}, explain=explain)
    assert result.outcome is Outcome.ERROR
    assert said in criterion_sentence(result)
    assert result.score is None
    assert result.rating is None
    verdict = grade(transcript, [spec], {"p": "a("}, explain=explain)
    assert verdict.outcome is Outcome.ERROR


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("prototype", "config", "transcript", "said"),
    [
        ("JsonResponse", {"extract_path": "length(n)"}, JSON, "cannot be applied"),
        ("JsonResponse", {"extract_path": "a["}, JSON, "not a JMESPath expression"),
        ("JsonResponse", {"extract_path": " | ".join(["[@,@]"] * 40)}, JSON, "longer than"),
        ("Retrieval", {"tool": "search", "path": "to_number("}, FOUND, "not a JMESPath expression"),
        ("TextResponse", {"extract_by_regex": SLOW}, ANSWER, "took longer than"),
        ("Transcript", {"roles": "user"}, ANSWER, "must be a list"),
        ("ToolResponse", {"roles": []}, ANSWER, "is not known"),
    ],
)
def test_a_broken_extraction_is_an_error(
    prototype: str, config: dict[str, Any], transcript: Transcript, said: str, negate: bool
) -> None:
    metrics = [{"type": "TextMatch", "contains": "x"}]
    result = Checker(CriterionSpec("it", prototype, {**config, "metrics": metrics}, negate=negate)).check(transcript)
    assert result.outcome is Outcome.ERROR
    assert said in criterion_sentence(result)
    assert "known are )" not in criterion_sentence(result)
    assert "broke" not in criterion_sentence(result)


def test_every_metric_that_asks_nobody_is_among_them() -> None:
    asked = {name for name in metric_names() if issubclass(metric(name), RemoteMetric)}
    assert {config["type"] for _, _, config, _ in BROKEN} >= set(metric_names()) - asked


@pytest.mark.parametrize("name", metric_names())
@pytest.mark.parametrize("negate", [False, True])
def test_a_metric_that_raises_is_an_error(name: str, negate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = metric(name)

    def breaks(self: Metric, *given: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(model, "prepare", lambda self: lambda value, context: breaks(self))
    needed = {
        "Regex": {"pattern": "a"},
        "Keywords": {"keywords": ["a"]},
        "Retrieval": {"relevant": ["a"]},
        "Injection": {"canary": "abc"},
        "Judge": {"criteria": "is it good?"},
        "Human": {"question": "is it good?"},
        "Python": {"function": "package.module:name"},
    }.get(name, {})
    spec = CriterionSpec("broken", "TextResponse", {"metrics": [{"type": name, **needed}]}, negate=negate)
    result = Checker(spec).check(ANSWER)
    assert result.outcome is Outcome.ERROR, criterion_sentence(result)
    assert "out of order" in criterion_sentence(result)
