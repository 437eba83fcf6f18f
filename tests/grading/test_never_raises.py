"""Whatever transcript and config there is: no exception, scores within 0..1, errors that are never verdicts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.explain import explain, headline, render_text
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_words = st.text(max_size=30) | st.text("ab 1.\n`İß#e\u0301„“", max_size=40) | st.just("x\n```sql\nSELECT 1\n```\nend")
_calls = st.lists(
    st.builds(
        ToolCall,
        id=st.just("c"),
        name=st.sampled_from(["get_order", "query", "", "GET_ORDER"]) | st.text(max_size=5),
        arguments=st.dictionaries(st.sampled_from(["order_id", "limit", "x"]), _json, max_size=3) | _json,
        malformed=st.booleans(),
    ),
    max_size=4,
)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    texts = draw(st.lists(_words, max_size=3))
    final = draw(st.sampled_from(texts) | _words) if texts else draw(_words)
    messages = tuple(Message("assistant" if n % 2 else "user", text) for n, text in enumerate(texts))
    return Transcript(messages, tuple(draw(_calls)), final_output=final)


_needle = (
    st.text("ab 1.\nİß#e\u0301\"'", max_size=8) | st.text(max_size=4) | st.sampled_from(["{{x}}", "{{y}}", "{{ ! }}"])
)
_needles = st.lists(_needle, max_size=3)
_match = st.fixed_dictionaries(
    {"type": st.just("TextMatch")},
    optional={
        **dict.fromkeys(["equals", "equals_ignore_case", "contains", "contains_ignore_case"], _needle),
        **dict.fromkeys(["starts_with", "ends_with"], _needle),
        **dict.fromkeys(["contains_all", "contains_any", "not_contains_any"], _needles),
        **dict.fromkeys(["starts_with_any", "ends_with_any"], _needles),
        "weight": st.sampled_from([0, 1, 2.5]),
    },
)
_matcher = _json | st.dictionaries(
    st.sampled_from(["$any", "$contains", "$gt", "$lte", "$not", "$type", "$one_of", "$regex", "$ignore_case"]),
    st.just(True) | st.integers(-5, 5) | _needle | st.just("number") | st.lists(st.integers(), max_size=2),
    max_size=2,
)
_tool = st.fixed_dictionaries(
    {"name": st.sampled_from(["get_order", "query", "get_orders"])},
    optional={
        "required": st.booleans(),
        "min_calls": st.integers(0, 3),
        "max_calls": st.integers(0, 3),
        "arguments": st.dictionaries(st.sampled_from(["order_id", "limit"]), _matcher, max_size=2),
        "allow_additional_arguments": st.booleans(),
    },
)
_tools = st.fixed_dictionaries(
    {"type": st.just("ToolCheck")},
    optional={
        "tools": st.lists(_tool, max_size=3),
        "forbidden_tools": st.lists(st.sampled_from(["query", "", "x"]), max_size=2),
        "tool_call_forbidden": st.booleans(),
    },
)
_config = st.fixed_dictionaries(
    {"metrics": st.lists(_match | _tools, max_size=3)},
    optional={
        "extract_by_regex": st.sampled_from(["/(a)|b/", "/b(/", "a+", "/(?<n>[a-z]*)/i", "/$/m", "{{x}}"]),
        "extract_code_block": st.integers(0, 3),
        "code_language": st.sampled_from(["sql", ""]),
        "with_block": st.booleans(),
        "extract_match": st.integers(0, 3),
    },
)
_broken = _config.map(lambda config: json.dumps(config)[:-3]) | st.text(max_size=60) | _json | _config


def lengths(transcript: Transcript, value: str | None, span: Span) -> int:
    if span.kind == "message":
        return len(transcript.messages[span.index].content)
    return len(value if value is not None else transcript.final_output)


def sound(result: CriterionResult, transcript: Transcript) -> None:
    scores = [result.score, *(metric.score for metric in result.metrics)]
    assert all(score is None or 0.0 <= score <= 1.0 for score in scores)
    if result.outcome is Outcome.ERROR:
        assert result.score is None
        assert result.rating is None
        assert result.reason
    if any(metric.outcome is Outcome.ERROR for metric in result.metrics):
        assert result.outcome is Outcome.ERROR
    spans = [*result.value_spans]
    for metric in result.metrics:
        for one in metric.evidence:
            assert one.reason
            spans += [*one.spans, *one.near]
    for span in spans:
        if span.kind in ("message", "value"):
            assert 0 <= span.start <= span.end <= lengths(transcript, result.value, span)
        else:
            assert 0 <= span.index < len(transcript.tool_calls)
    if result.value is not None and result.prototype_class == "TextResponse" and result.value_spans:
        (span,) = result.value_spans
        if span.kind == "message":
            assert transcript.messages[span.index].content[span.start : span.end] == result.value


@settings(max_examples=500, deadline=None)
@given(transcripts(), _broken, st.sampled_from(["TextResponse", "ToolResponse"]), st.booleans(), _json)
def test_grading_never_raises(transcript: Transcript, config: Any, prototype: str, negate: bool, x: Any) -> None:
    spec = CriterionSpec("it", prototype, config, negate=negate)
    checker = Checker(spec)
    result = checker.check(transcript, {"x": x})
    sound(result, transcript)
    quick = checker.check(transcript, {"x": x}, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    plain = Checker(CriterionSpec("it", prototype, config)).check(transcript, {"x": x})
    assert (plain.outcome is Outcome.ERROR) == (result.outcome is Outcome.ERROR)
    if negate and plain.score is not None:
        assert {plain.outcome, result.outcome} == {Outcome.PASSED, Outcome.FAILED}
    verdict = verdict_of([result, plain])
    assert verdict.score is None or 0.0 <= verdict.score <= 1.0
    assert headline(result).startswith("it: ")
    assert render_text(explain([result]))
    checker.diagnostics  # noqa: B018


@settings(max_examples=150, deadline=None)
@given(transcripts(), _config)
def test_results_survive_json(transcript: Transcript, config: Any) -> None:
    result = Checker(CriterionSpec("it", "TextResponse", config)).check(transcript, {"x": "a"})
    text = json.dumps(result_to_json(result))
    again = result_from_json(json.loads(text))
    assert json.dumps(result_to_json(again)) == text
    assert (again.outcome, again.score, again.rating) == (result.outcome, result.score, result.rating)
