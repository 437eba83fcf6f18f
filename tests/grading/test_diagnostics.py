"""Diagnostics of configs: places, fixes, and agreement with what grading itself refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.config.schema import config_schema, metric_schema
from agenteval_tui.grading.registry import metric_names, prototype_names
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, ScalarType, UnionType


def found(
    config: str, prototype: str = "TextResponse", variables: list[str] | None = None
) -> list[tuple[str, str, str]]:
    return [(one.severity, one.code, config[one.start : one.end]) for one in diagnose(config, prototype, variables)]


def metric(**properties: Any) -> str:
    return json.dumps({"metrics": [properties]}, ensure_ascii=False)


def codes(config: str) -> dict[str, str]:
    return {code: text for _, code, text in found(config)}


def test_a_good_config_has_none() -> None:
    assert found(metric(type="TextMatch", contains_all=["a", "b"], not_contains_any=["c"])) == []
    tools = [{"name": "f", "arguments": {"a": {"$gte": 1}}, "max_calls": 2}]
    assert found(metric(type="axenox.GenAI.ToolCheck", tools=tools, forbidden_tools=["g"]), "ToolResponse") == []
    assert found('{"extract_by_regex": "/a/"}') == []


def test_schema_is_made_of_the_models() -> None:
    schema = config_schema("axenox\\GenAI\\TextResponseTestCriterion.php")
    assert schema.name == "TextResponse"
    regex = schema.property("extract_by_regex")
    assert regex is not None
    assert regex.type == ScalarType("regex")
    assert "PHP" in regex.doc
    block = schema.property("extract_code_block")
    assert block is not None
    assert block.type == ScalarType("integer", minimum=1)
    metrics = schema.property("metrics")
    assert metrics is not None
    assert isinstance(metrics.type, ArrayType)
    assert metrics.type.item is metric_schema()
    variants = metric_schema().variants
    assert variants is not None
    assert set(variants.options) == set(metric_names()) >= {"TextMatch", "ToolCheck"}
    assert variants.normalise("axenox.GenAI.TextMatch") == "TextMatch"
    assert set(prototype_names()) >= {"TextResponse", "ToolResponse"}
    check = variants.options["ToolCheck"]
    tools = check.property("tool")
    assert tools is not None
    assert tools.name == "tools"
    assert isinstance(tools.type, ArrayType)
    assert isinstance(tools.type.item, ObjectType)
    data = {prop.name: prop for prop in tools.type.item.properties}
    assert data["name"].required
    assert data["required"].default is True
    anything = MapType(ScalarType("any"))
    assert data["arguments"].type == UnionType((anything, ArrayType(anything)))
    for option in variants.options.values():
        assert option.doc
        assert all(prop.doc for prop in option.properties)


@pytest.mark.parametrize(
    ("config", "code", "text"),
    [
        (metric(type="TextMatch", contains_all="x"), "wrong-type", '"x"'),
        (metric(type="TextMatch", contain_all=["x"]), "unknown-property", '"contain_all"'),
        (metric(type="TextMach", contains="x"), "unknown-type", '"TextMach"'),
        (metric(contains="x"), "missing-required", "{"),
        (metric(type="ToolCheck", tools=[{}]), "missing-required", "{"),
        ('{"extract_by_regex": "/a(b/", "metrics": []}', "bad-regex", "("),
        ('{"extract_code_block": 0}', "out-of-range", "0"),
        (metric(type="TextMatch"), "checks-nothing", '"TextMatch"'),
        (metric(type="TextMatch", contains_any=[]), "checks-nothing", "["),
        (metric(type="TextMatch", contains=""), "checks-nothing", '""'),
        (metric(type="ToolCheck"), "checks-nothing", '"ToolCheck"'),
        ("{}", "checks-nothing", "{"),
        ('{"metrics": []}', "checks-nothing", "["),
        (metric(type="TextMatch", contains="a", not_contains_any=["b", "a"]), "contradictory", '"a"'),
        (metric(type="TextMatch", contains_all=["ab"], not_contains_any=["b"]), "contradictory", '"b"'),
        (metric(type="TextMatch", equals="hello b", not_contains_any=["b"]), "contradictory", '"b"'),
        (metric(type="TextMatch", contains_any=["ab", "bc"], not_contains_any=["b"]), "contradictory", '"b"'),
        (metric(type="TextMatch", equals="hello", starts_with="Hello"), "contradictory", '"Hello"'),
        (metric(type="TextMatch", equals="hello", ends_with_any=["a", "b"]), "contradictory", "["),
        (metric(type="TextMatch", equals="hello", contains_all=["h", "z"]), "contradictory", '"z"'),
        (metric(type="TextMatch", equals_ignore_case="hello", contains="x"), "contradictory", '"x"'),
        (metric(type="TextMatch", equals="a", equals_ignore_case="b"), "contradictory", '"b"'),
        (metric(type="TextMatch", starts_with="ab", starts_with_any=["x", "y"]), "contradictory", "["),
        (metric(type="TextMatch", equals="hello", contains="hell"), "without-effect", '"hello"'),
        (metric(type="ToolCheck", tools=[{"name": "f", "min_calls": 3, "max_calls": 2}]), "contradictory", "3"),
        (metric(type="ToolCheck", tool=[{"name": "f", "min_calls": 3, "max_calls": 2}]), "contradictory", "3"),
        (metric(type="ToolCheck", tools=[{"name": "f", "max_calls": 0}]), "contradictory", "0"),
        (metric(type="ToolCheck", tools=[{"name": "f"}], forbidden_tools=["g", "f"]), "contradictory", '"f"'),
        (metric(type="ToolCheck", tools=[{"name": "f"}], tool_call_forbidden=True), "contradictory", "true"),
        (metric(type="ToolCheck", tools=[{"name": "f", "required": False}]), "cannot-fail", "["),
        (metric(type="ToolCheck", tools=[{"name": "f"}, {"name": "f"}]), "duplicate", '"f"'),
        (metric(type="ToolCheck", forbidden_tools=["f", "g", "f"]), "duplicate", '"f"'),
        (metric(type="ToolCheck", tools=[{"name": "f", "arguments": {"a": {"$gtt": 1}}}]), "wrong-value", '"$gtt"'),
        (metric(type="ToolCheck", tools=[{"name": "f", "arguments": {"a": {"$regex": "x(y"}}}]), "bad-regex", "("),
        (metric(type="TextMatch", contains="{{ a b }}"), "bad-placeholder", "{{ a b }}"),
    ],
)
def test_each_kind_at_its_place(config: str, code: str, text: str) -> None:
    assert codes(config).get(code) == text


@pytest.mark.parametrize(
    "config",
    [
        metric(type="TextMatch", equals_ignore_case="HELLO", contains_ignore_case="hell"),
        metric(type="TextMatch", contains_ignore_case="drop", not_contains_any=["DROP"]),
        metric(type="TextMatch", equals="{{expected_value}}", starts_with="SELECT"),
        metric(type="TextMatch", contains="{{a}}", not_contains_any=["{{a}}", "x"]),
        metric(type="TextMatch", contains_any=["ab", "c"], not_contains_any=["b"]),
        metric(type="TextMatch", starts_with="ab", starts_with_any=["a", "y"]),
        metric(type="ToolCheck", tools=[{"name": "f", "required": False, "max_calls": 0}]),
        metric(type="ToolCheck", tools=[{"name": "f", "arguments": {"a": {"$type": "{{t}}"}}}]),
        '{"extract_by_regex": "/{{name}}: (.*)/"}',
    ],
)
def test_what_may_be_meant_is_left_alone(config: str) -> None:
    assert [one for one in found(config) if one[0] != "info"] == []


def test_all_broken_matchers_in_one_go() -> None:
    arguments = {"a": {"$gtt": 1}, "b": 2, "c": {"$type": "text"}}
    config = metric(type="ToolCheck", tools=[{"name": "f", "arguments": arguments}])
    assert [text for _, _, text in found(config)] == ['"$gtt"', '"text"']
    fix = diagnose(config, "TextResponse")[0].fix
    assert fix is not None
    assert '"$gt": 1' in fix.apply(config)


def test_unknown_variables_with_a_fix() -> None:
    config = metric(type="TextMatch", contains_all=["a {{cuntry}} b", "{{ city.name }}", "{{expected_value}}"])
    (one,) = diagnose(config, "TextResponse", ["country", "city", "expected_value"])
    assert one.code == "unknown-variable"
    assert config[one.start : one.end] == "{{cuntry}}"
    assert one.fix is not None
    assert "a {{country}} b" in one.fix.apply(config)
    assert found(config) == []


def test_places_count_what_is_commented_out() -> None:
    config = """{
      // first
      "metrics": [
        {"type": "TextMatch", "//contains": "old", "contains": "x"}, // ok
        {"type": "ToolCheck", "tools": [ /* none */ {"name": "f", "min_calls": 2, "max_calls": 1}]},
      ]
    }"""
    hits = [one for one in diagnose(config, "TextResponse") if one.code == "contradictory"]
    assert [config[one.start : one.end] for one in hits] == ["2"]


def test_unknown_prototype_and_broken_text() -> None:
    assert [one.code for one in diagnose("{}", "Nothing")] == ["unknown-prototype"]
    assert "syntax" in [one.code for one in diagnose('{"metrics": [', "TextResponse")]
    diagnose("", "TextResponse")
    diagnose("", "Nothing")


def test_checker_gives_the_same_diagnostics() -> None:
    config = metric(type="TextMatch", contain="x")
    checker = Checker(CriterionSpec("it", "TextResponse", config))
    assert checker.diagnostics == diagnose(config, "TextResponse")


# Grading and the editor must not disagree about what is wrong.

_SEMANTIC = {"contradictory", "checks-nothing", "cannot-fail", "without-effect", "duplicate", "unknown-variable"}
_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from([0.5, "", "a", "f", "/a(/", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "$gt", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_texts = st.lists(st.sampled_from(["", "a", "ab", "b"]), max_size=3)
_matching = {
    "type": st.sampled_from(["TextMatch", "axenox.GenAI.TextMatch", "TextMach"]),
    "name": st.just("n") | _anything,
    "weight": st.sampled_from([0, 1, 2.5]) | _anything,
    "contains": st.just("a") | _anything,
    "contains_all": _texts | _anything,
    "not_contains_any": _texts,
    "equals": st.just("ab"),
    "contain": st.just("a"),
}
_tool = st.fixed_dictionaries(
    {"name": st.just("f") | _anything},
    optional={"min_calls": _anything, "max_calls": st.just(2), "arguments": _anything, "required": st.booleans()},
)
_checking = {
    "type": st.just("ToolCheck"),
    "tools": st.lists(_tool, max_size=2) | _anything,
    "forbidden_tools": _texts,
    "tool_call_forbidden": st.booleans() | _anything,
}
_metrics = st.fixed_dictionaries({}, optional=_matching) | st.fixed_dictionaries({}, optional=_checking)
_configs = st.fixed_dictionaries(
    {},
    optional={
        "metrics": st.lists(_metrics, max_size=2) | _anything,
        "extract_by_regex": st.sampled_from(["/a/", "(", "a"]) | _anything,
        "extract_code_block": _anything,
        "with_block": _anything,
    },
)


@settings(max_examples=120, deadline=None)
@given(_configs)
def test_errors_of_the_editor_are_errors_of_grading(config: dict[str, Any]) -> None:
    text = json.dumps(config)
    errors: list[Diagnostic] = [
        one for one in diagnose(text, "TextResponse") if one.severity == "error" and one.code not in _SEMANTIC
    ]
    problem = Checker(CriterionSpec("it", "TextResponse", text)).problem
    assert bool(errors) == bool(problem), (errors, problem)
    for one in errors:
        assert 0 <= one.start <= one.end <= len(text)
        assert "\n" not in one.message
