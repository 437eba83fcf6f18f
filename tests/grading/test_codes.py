"""Codes and fields: what decides, whatever words the agent uses. Our own sentences as its words change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading import sentences
from agenteval_tui.grading.causes import cause_of
from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.blobs import pack_results, unpack_results
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

Calls = list[tuple[str, Any]]


def said(text: str, calls: Calls | None = None, error: RunError | None = None) -> Transcript:
    made = tuple(ToolCall(f"c{n}", name, given, "ok", message=1) for n, (name, given) in enumerate(calls or []))
    messages = (Message("user", "Hi"), Message("assistant", text, tool_calls=tuple(range(len(made)))))
    return Transcript(messages=messages, tool_calls=made, final_output=text, error=error)


def judged(
    transcript: Transcript, *metrics: dict[str, Any], prototype: str = "TextResponse", reply: str = "", **config: Any
) -> CriterionResult:
    checker = compile_criterion(CriterionSpec("c", prototype, {**config, "metrics": list(metrics)}))
    replies: dict[str, Reply] = {}
    for _ in range(2 if reply else 0):
        replies |= {one.hash: Reply(reply) for one in checker.requests(transcript, {}, replies)}
    return checker.check(transcript, replies=replies or None)


PIECES = [
    "key missing in body", "a must not be called", "the customer was never called back", " was ", "it was never called",
    '"', "'", "`id` is missing in the value", "\n", "; ", "calls of get_order differs in", "nothing extracted: ",
    "is no JSON", "not of type", " not at ", "; it is the 1st call", " call differs only in ", "(", "[0]", ".usage",
    "are not valid JSON", " are not an object but ", "a is missing (expected 1)", "not one of", " items, expected ",
    "waits for a person: ", "the final answer is empty", "took longer than 1 s on this text", "…", "`", "x", "",
]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join).map(lambda text: f"q{text}z")
"""Words of an agent that are ours, in any order; never empty, and never what is looked for."""

CASES: dict[str, tuple[Callable[[str], CriterionResult], str, str]] = {
    # name: what is graded with an agent's text, the signature, the code of the first line that is missed
    "contains": (
        lambda t: judged(said(t), {"type": "TextMatch", "contains": "WANTED"}),
        '["failed","c","TextResponse","TextMatch","contains"]', "missing",
    ),
    "equals": (
        lambda t: judged(said(t), {"type": "TextMatch", "equals": "WANTED"}),
        '["failed","c","TextResponse","TextMatch","equals"]', "differs",
    ),
    "forbidden text": (
        lambda t: judged(said(f"{t} WANTED"), {"type": "TextMatch", "not_contains_any": ["WANTED"]}),
        '["failed","c","TextResponse","TextMatch","not_contains_any","WANTED"]', "present",
    ),
    "any": (
        lambda t: judged(said(t), {"type": "TextMatch", "contains_any": ["WANTED", "OTHER"]}),
        '["failed","c","TextResponse","TextMatch","contains_any"]', "missing",
    ),
    "keyword": (
        lambda t: judged(said(t), {"type": "Keywords", "keywords": ["WANTED"]}),
        '["failed","c","TextResponse","Keywords","keywords","WANTED"]', "missing",
    ),
    "pattern": (
        lambda t: judged(said(t), {"type": "Regex", "pattern": "W[A]NTED"}),
        '["failed","c","TextResponse","Regex","pattern"]', "missing",
    ),
    "likeness": (
        lambda t: judged(said(t), {"type": "Lexical", "to": "WANTED 12345 67890", "min": 0.99}),
        '["failed","c","TextResponse","Lexical","ratio"]', "too_low",
    ),
    "length": (
        lambda t: judged(said(t), {"type": "Length", "min_words": 5_000}),
        '["failed","c","TextResponse","Length","min_words"]', "too_few",
    ),
    "secret": (
        lambda t: judged(said(f"{t} WANTED"), {"type": "Leak", "secrets": ["WANTED"]}),
        '["failed","c","TextResponse","Leak","secrets"]', "present",
    ),
    "canary": (
        lambda t: judged(said(f"{t} PWNED"), {"type": "Injection", "canary": "PWNED"}),
        '["failed","c","TextResponse","Injection","text"]', "present",
    ),
    "other value of an argument": (
        lambda t: judged(
            said("x", [("log_note", {"text": t})]),
            {"type": "ToolCheck", "tools": [{"name": "log_note", "arguments": {"text": "WANTED"}}]},
        ),
        '["failed","c","TextResponse","ToolCheck","arguments","log_note(text)","other value"]', "differs",
    ),
    "value that is expected in our words": (
        lambda t: judged(
            said("x", [("log_note", {"text": "WANTED"})]),
            {"type": "ToolCheck", "tools": [{"name": "log_note", "arguments": {"text": t}}]},
        ),
        '["failed","c","TextResponse","ToolCheck","arguments","log_note(text)","other value"]', "differs",
    ),
    "text as arguments": (
        lambda t: judged(
            said("x", [("log_note", t)]),
            {"type": "ToolCheck", "tools": [{"name": "log_note", "arguments": {"text": "WANTED"}}]},
        ),
        '["failed","c","TextResponse","ToolCheck","arguments","log_note","unreadable"]', "unreadable",
    ),
    "another tool": (
        lambda t: judged(said("x", [(t, {})]), {"type": "ToolCheck", "tools": [{"name": "WANTED"}]}),
        '["failed","c","TextResponse","ToolCheck","usage","WANTED","never called"]', "never_called",
    ),
    "too often": (
        lambda t: judged(
            said("x", [("a", {"x": t}), ("a", {}), (t, {})]),
            {"type": "ToolCheck", "tools": [{"name": "a", "max_calls": 1}]},
        ),
        '["failed","c","TextResponse","ToolCheck","usage","a","called another number of times"]', "too_many",
    ),
    "call that is missing": (
        lambda t: judged(
            said("x", [(t, {"x": t})]), {"type": "Trajectory", "mode": "superset", "calls": [{"name": "WANTED"}]}
        ),
        '["failed","c","TextResponse","Trajectory","calls","WANTED","never called"]', "never_called",
    ),
    "call with other arguments": (
        lambda t: judged(
            said("x", [("a", {"x": t})]),
            {"type": "Trajectory", "mode": "unordered", "calls": [{"name": "a", "arguments": {"x": "WANTED"}}]},
        ),
        '["failed","c","TextResponse","Trajectory","calls","a(x)","other arguments"]', "differs",
    ),
    "another value in JSON": (
        lambda t: judged(
            said(json.dumps({"a": t})), {"type": "Json", "equals": {"a": "WANTED"}}, prototype="JsonResponse"
        ),
        '["failed","c","JsonResponse","Json","equals","a","another value"]', "differs",
    ),
    "another type in JSON": (
        lambda t: judged(
            said(json.dumps({"a": t})),
            {"type": "Json", "schema": {"properties": {"a": {"type": "number"}}}},
            prototype="JsonResponse",
        ),
        '["failed","c","JsonResponse","Json","schema","a","another type"]', "wrong_type",
    ),
    "no match in JSON": (
        lambda t: judged(
            said(json.dumps({"a": t})),
            {"type": "Json", "schema": {"properties": {"a": {"pattern": "^WANTED$"}}}},
            prototype="JsonResponse",
        ),
        '["failed","c","JsonResponse","Json","schema","a","another value"]', "no_match",
    ),
    "key that is missing": (
        lambda t: judged(
            said(json.dumps({f"_{t}": t})), {"type": "Json", "required_keys": ["WANTED"]}, prototype="JsonResponse"
        ),
        '["failed","c","JsonResponse","Json","required_keys","WANTED","missing"]', "missing",
    ),
    "no JSON": (
        lambda t: judged(said(t), {"type": "Json"}),
        '["failed","c","TextResponse","Json","parses","","no JSON"]', "not_json",
    ),
    "nothing extracted": (
        lambda t: judged(said(t), {"type": "TextMatch", "contains": "x"}, extract_by_regex="W[A]NTED"),
        '["failed","c","TextResponse","extraction","","","no match"]', "no_pattern_match",
    ),
    "tool whose result is looked at": (
        lambda t: judged(
            said("x", [(t, {})]), {"type": "Retrieval", "relevant": ["1"]}, prototype="Retrieval", tool="WANTED"
        ),
        '["failed","c","Retrieval","extraction","","","tool not called"]', "never_called",
    ),
    "path": (
        lambda t: judged(said(json.dumps({f"_{t}": t})), prototype="JsonResponse", extract_path="WANTED"),
        '["failed","c","JsonResponse","extraction","","","nothing at the path"]', "nothing_at_path",
    ),
    "judge": (
        lambda t: judged(
            said(t), {"type": "Judge", "criteria": "x"}, reply=json.dumps({"score": 0.1, "reasoning": t})
        ),
        '["failed","c","TextResponse","Judge","score"]', "too_low",
    ),
    "negated": (
        lambda t: result_of_negated(t),
        '["failed","c","TextResponse","TextMatch","negate"]', "present",
    ),
}  # fmt: skip


def result_of_negated(text: str) -> CriterionResult:
    metric = {"type": "TextMatch", "contains": "WANTED"}
    spec = CriterionSpec("c", "TextResponse", {"metrics": [metric]}, negate=True)
    return compile_criterion(spec).check(said(f"{text} WANTED"))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15, deadline=None)
@given(text=hostile)
def test_the_agents_words_are_in_no_cause(name: str, text: str) -> None:
    grade, signature, code = CASES[name]
    result = grade(text)
    cause = cause_of(result)
    assert cause is not None
    assert cause.signature == signature
    lines = [one for metric in result.metrics for one in metric.evidence]
    first = next((one for one in lines if one.passed is False), lines[0])
    assert first.code == code
    # The same of what was stored, and of what was printed; and every line has words.
    assert cause_of(unpack_results(pack_results([result]))[0]) == cause
    printed = result_from_json(json.loads(json.dumps(result_to_json(result))))
    assert cause_of(printed) == cause
    assert (sentences.criterion_sentence(printed), [sentences.evidence_sentence(one) for one in lines]) == (
        sentences.criterion_sentence(result),
        [sentences.evidence_sentence(one) for metric in printed.metrics for one in metric.evidence],
    )
    assert all(sentences.evidence_sentence(one) and one.code in set(Code) for one in lines)


@settings(max_examples=30, deadline=None)
@given(text=hostile)
def test_the_agents_words_are_in_no_error(text: str) -> None:
    found = judged(said(text), {"type": "Judge", "criteria": "x"}, reply=f"no {text}")
    assert (found.outcome, found.metrics[0].code) == (Outcome.ERROR, Code.UNREADABLE_REPLY)
    cause = cause_of(found)
    assert cause is not None
    assert cause.signature == '["error","c","TextResponse","Judge","unreadable_reply"]'


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("it was here", {"a b": 1}),
        ("x was never called", {}),
        ("a; it is the 1st call", {"p.q": 2}),
        ('q"\n`', {"": 3}),
    ],
)
def test_tools_with_our_words_as_names(tool: str, arguments: dict[str, Any]) -> None:
    wanted = {"name": tool, "arguments": dict.fromkeys(arguments, "WANTED")}
    never = cause_of(judged(said("x"), {"type": "ToolCheck", "tools": [wanted]}))
    assert never is not None
    assert (never.about, never.way) == (tool, "never called")
    if arguments:
        found = cause_of(judged(said("x", [(tool, arguments)]), {"type": "ToolCheck", "tools": [wanted]}))
        assert found is not None
        assert (found.about, found.way) == (f"{tool}({', '.join(arguments)})", "other value")
    order = {"type": "Trajectory", "mode": "superset", "calls": [{"name": tool}]}
    missing = cause_of(judged(said("x", [("y", {})]), order))
    assert missing is not None
    assert (missing.about, missing.way) == (tool, "never called")


@pytest.mark.parametrize("code", [*Code, "of_a_newer_program"])
@pytest.mark.parametrize("fields", [{}, {"path": 7}, {"tool": [], "near": 3, "arguments": "x", "message": "m"}])
def test_fields_that_are_not_ours_make_a_sentence_too(code: str, fields: dict[str, Any]) -> None:
    line = Evidence("contains", False, code=code, fields=fields)
    assert isinstance(sentences.evidence_sentence(line), str)
    metric = MetricResult("m", "TextMatch", Outcome.ERROR, code=code, fields=fields, evidence=(line,))
    result = CriterionResult("c", Outcome.ERROR, None, metrics=(metric,), code=code, fields=fields)
    assert isinstance(
        sentences.metric_sentence(metric)
        + sentences.criterion_sentence(result)
        + sentences.own_criterion_sentence(result),
        str,
    )
    for kind in ("ToolCheck", "Trajectory", "Json", "extraction", "Python"):
        failed = MetricResult("m", kind, Outcome.FAILED, 0.0, evidence=(line,))
        cause = cause_of(CriterionResult("c", Outcome.FAILED, 0.0, metrics=(failed,)))
        assert cause is not None
        assert cause.words


def test_a_text_of_a_plug_in_is_shown_and_not_read() -> None:
    line = Evidence("polite", False, "get_order was never called: the agent called no tool")
    metric = MetricResult("p", "Polite", Outcome.FAILED, 0.0, evidence=(line,))
    result = CriterionResult("c", Outcome.FAILED, 0.0, prototype_class="TextResponse", metrics=(metric,))
    assert (line.code, sentences.evidence_sentence(line)) == (Code.MESSAGE, line.message)
    assert sentences.criterion_sentence(result) == line.message
    cause = cause_of(result)
    assert cause is not None
    assert cause.signature == '["failed","c","TextResponse","Polite","polite"]'
    assert result_from_json(json.loads(json.dumps(result_to_json(result)))) == result


def test_every_code_is_documented_and_made_words_of() -> None:
    said_of = set(sentences._EVIDENCE) | set(sentences._RESULTS)
    assert set(Code) - said_of == {Code.MESSAGE, Code.UNUSABLE_REPLY}  # whose words are others'


@pytest.mark.parametrize("explain", [True, False])
def test_no_sentence_is_made_while_grading(explain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> str:
        raise AssertionError("a sentence was made")

    of = ("evidence", "metric", "criterion", "verdict", "error")
    for name in (*(f"{one}_sentence" for one in of), "near_phrase", "syntax_phrase"):
        monkeypatch.setattr(sentences, name, refused)
    metrics = [{"type": "TextMatch", "contains": "WANTED"}, {"type": "Json"}, {"type": "Length", "min_words": 9}]
    checker = compile_criterion(CriterionSpec("quick", "TextResponse", {"metrics": metrics}, pass_threshold=0.9))
    assert checker.check(said("no"), explain=explain).outcome is Outcome.FAILED
