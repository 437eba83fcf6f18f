"""Whatever transcript and config there is: no exception, scores within 0..1, errors that are never verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.schema import config_schema, metric_schema
from agenteval_tui.grading.explain import explain, headline
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.registry import metric_names, prototype_names
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, ScalarType, Type, UnionType
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.terminal import plain_text

_leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8)
_json: st.SearchStrategy[Any] = _leaf
for _ in range(3):  # `st.recursive` costs twice as much
    _json = _leaf | st.lists(_json, max_size=3) | st.dictionaries(st.text(max_size=5), _json, max_size=3)
_cost = st.floats(0, 1) | st.just(float("nan"))
_words = st.text(max_size=30) | _json.map(json.dumps) | st.just('x\n```json\n{"a": {"b": [1]}}\n```')
_words |= (
    st.sampled_from(["mail to a.b@c.de, +49 30 1234567", "ab. ab! ab?", "４１ \u0664 ½"])
    | st.text(max_size=30)
    | st.text("ab 1.\n`İß#e\u0301„“", max_size=40)
    | st.just("x\n```sql\nSELECT 1\n```\nend")
)
_calls = st.lists(
    st.builds(
        ToolCall,
        id=st.just("c"),
        name=st.sampled_from(["get_order", "query", "", "GET_ORDER"]) | st.text(max_size=5),
        arguments=st.dictionaries(st.sampled_from(["order_id", "limit", "x"]), _json, max_size=3) | _json,
        result=st.none() | st.just('["a", {"id": 1}, "ab"]') | _json.map(json.dumps) | st.text(max_size=5),
        message=st.none() | st.integers(0, 2),
        malformed=st.booleans(),
    ),
    max_size=4,
)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    texts = draw(st.lists(_words, max_size=3))
    final = draw(st.sampled_from(texts) | _words) if texts else draw(_words)
    roles = draw(st.sampled_from([("user", "assistant"), ("system", "user", "assistant"), ("tool", "assistant")]))
    messages = tuple(Message(roles[n % len(roles)], text) for n, text in enumerate(texts))
    calls = tuple(draw(_calls))
    timing = Timing(total_ms=draw(st.none() | st.floats(0, 5000)))
    usage = Usage(
        draw(st.none() | st.integers(0, 99)), draw(st.none() | st.integers(0, 99)), cost=draw(st.none() | _cost)
    )
    return Transcript(messages, calls, timing, usage, final_output=final)


_needle = (
    st.text("ab 1.\nİß#e\u0301\"'", max_size=8) | st.text(max_size=4) | st.sampled_from(["{{x}}", "{{y}}", "{{ ! }}"])
)
_word = st.text("ab 1.İßé", min_size=1, max_size=8)
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


def of_type(kind: Type) -> st.SearchStrategy[Any]:
    """Values that a property of this type takes, nearly always."""
    if isinstance(kind, UnionType):
        return st.one_of([of_type(option) for option in kind.options])
    if isinstance(kind, ArrayType):
        return st.lists(of_type(kind.item), min_size=1, max_size=3) | st.just([])
    if isinstance(kind, MapType):
        return st.dictionaries(st.sampled_from(["order_id", "get_order", "a", "type"]), of_type(kind.value), max_size=2)
    if isinstance(kind, ObjectType):
        required = {one.name: of_type(one.type) for one in kind.properties if one.required}
        optional = {
            one.name: of_type(one.type) for one in kind.properties if not one.required and one.name != "metrics"
        }
        return st.fixed_dictionaries(required, optional=optional)
    assert isinstance(kind, ScalarType)
    if kind.enum:
        return st.sampled_from(list(kind.enum))
    scalars: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["a", "a.b", "order_id", "[].id", "length(@)", "ims", "query", "{{x}}"]) | _word,
        "regex": st.sampled_from(["/(a)|b/i", "a+", "/b(/", "{{x}}", "^$", "[a-z]+ 1"]),
        "integer": st.integers(int(kind.minimum or 0), 6) | st.just(-1),
        "number": st.sampled_from([0, 0.5, 1] if kind.maximum == 1 else [0, 0.5, 1, 12.5, 1000]),
        "boolean": st.booleans(),
    }
    return scalars.get(kind.kind, _json)


def _of_metric(name: str, kind: ObjectType) -> st.SearchStrategy[dict[str, Any]]:
    return of_type(kind).map(lambda given: {"type": name, **given})


_variants = metric_schema().variants
assert _variants is not None
_metrics = {name: _of_metric(name, kind) for name, kind in sorted(_variants.options.items())}
_any_metric = st.one_of(list(_metrics.values()))
_prototypes = {name: of_type(config_schema(name)) for name in prototype_names()}
_config = st.fixed_dictionaries(
    {"metrics": st.lists(_match | _tools | _any_metric, max_size=3)},
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
        assert criterion_sentence(result)
    if any(metric.outcome is Outcome.ERROR for metric in result.metrics):
        assert result.outcome is Outcome.ERROR
    spans = [*result.value_spans]
    for metric in result.metrics:
        for one in metric.evidence:
            assert evidence_sentence(one)
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


@st.composite
def of_any_prototype(draw: st.DrawFn) -> tuple[str, Any]:
    """A prototype class with its own properties, or none of them."""
    name = draw(st.sampled_from(["TextResponse", *sorted(_prototypes)]))
    return name, draw(st.just({}) | _prototypes[name])


def batched(names: list[str], size: int) -> Iterator[tuple[str, ...]]:
    """The names, so many at a time."""
    rest = iter(names)
    while some := tuple(islice(rest, size)):
        yield some


def test_all_that_is_registered_is_tried() -> None:
    assert {name for group in _GROUPS for name in group} == set(metric_names())


# Some at once: most of the time is taken to make up a transcript. Each is tried with configs of all metrics of a group.
_GROUPS = list(batched(sorted(_metrics), 4))


@pytest.mark.parametrize("group", _GROUPS, ids="-".join)
@settings(max_examples=40, deadline=None)
@given(transcripts(), of_any_prototype(), st.data(), st.booleans(), _json, _needle)
def test_no_metric_raises(
    group: tuple[str, ...],
    transcript: Transcript,
    prototype: tuple[str, Any],
    data: st.DataObject,
    negate: bool,
    x: Any,
    expected: str,
) -> None:
    name, own = prototype
    for metric in group:
        config = {**own, "metrics": [data.draw(_metrics[metric], metric)]}
        spec = CriterionSpec("it", name, config, expected_value=expected, negate=negate)
        checker = Checker(spec)
        result = checker.check(transcript, {"x": x})
        sound(result, transcript)
        # Whatever broke says it in its own words.
        assert " broke: " not in criterion_sentence(result), criterion_sentence(result)
        quick = checker.check(transcript, {"x": x}, explain=False)
        assert (quick.outcome, quick.score) == (result.outcome, result.score)
        plain = Checker(CriterionSpec("it", name, config, expected_value=expected)).check(transcript, {"x": x})
        assert (plain.outcome is Outcome.ERROR) == (result.outcome is Outcome.ERROR)
        assert plain_text((fact_tree(explain([result])),))
        checker.diagnostics  # noqa: B018


@settings(max_examples=300, deadline=None)
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
    assert plain_text((fact_tree(explain([result])),))
    checker.diagnostics  # noqa: B018


@settings(max_examples=150, deadline=None)
@given(transcripts(), _config)
def test_results_survive_json(transcript: Transcript, config: Any) -> None:
    result = Checker(CriterionSpec("it", "TextResponse", config)).check(transcript, {"x": "a"})
    text = json.dumps(result_to_json(result))
    again = result_from_json(json.loads(text))
    assert json.dumps(result_to_json(again)) == text
    assert (again.outcome, again.score, again.rating) == (result.outcome, result.score, result.rating)
