"""Arguments whose keys begin with `$`: expected as values, by `$literal`, and made so by whatever writes criteria."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.formats.importers.derived_criteria import criteria_of_tools
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.criterion_templates import expected_argument, tools_starter
from agenteval_tui.grading.metrics.matchers import MatcherError, compile_matcher, literal
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.uxon.serialize import to_text

MONGO = {"age": {"$gte": 5}, "tags": [{"$in": ["a"]}], "name": {"$regex": "^b"}}
keys = st.sampled_from(["a", "$gte", "$in", "$literal", "$any", "$optional"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "$gte"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=6,
)


def calling(*calls: dict[str, Any]) -> Transcript:
    made = tuple(ToolCall(f"c{number}", "query", arguments, message=1) for number, arguments in enumerate(calls))
    return Transcript((Message("user", "q"), Message("assistant", "", tool_calls=tuple(range(len(made))))), made)


def metric(kind: str, arguments: Any) -> dict[str, Any]:
    call = {"name": "query", "arguments": arguments}
    return {"type": "ToolCheck", "tools": [call]} if kind == "ToolCheck" else {"type": "Trajectory", "calls": [call]}


def run(config: dict[str, Any], given: dict[str, Any]) -> CriterionResult:
    return Checker(CriterionSpec("it", "ToolResponse", {"metrics": [config]})).check(calling(given))


@pytest.mark.parametrize("kind", ["ToolCheck", "Trajectory"])
@given(value=values, other=values)
def test_a_literal_is_right_for_its_value_alone(kind: str, value: Any, other: Any) -> None:
    for expected in ({"$literal": value}, literal(value)):
        assert run(metric(kind, {"q": expected}), {"q": value}).outcome is Outcome.PASSED
        same = json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
        assert (run(metric(kind, {"q": expected}), {"q": other}).outcome is Outcome.PASSED) is same


@given(values)
def test_only_what_would_be_taken_for_a_matcher_is_wrapped(value: Any) -> None:
    try:
        plain = compile_matcher(value, named=True)
    except MatcherError:
        assert literal(value) == {"$literal": value}
    else:
        if literal(value) is value:
            assert plain.holds(value)


@pytest.mark.parametrize("kind", ["ToolCheck", "Trajectory"])
def test_where_both_texts_are_equal_the_literal_form_is_offered(kind: str) -> None:
    query = {"age": {"$gte": 5}}
    result = run(metric(kind, {"q": query}), {"q": query})
    assert result.outcome is Outcome.FAILED
    said = " ".join(evidence_sentence(line) for line in result.metrics[0].evidence)
    assert '{"$literal": ...}' in said
    spec = CriterionSpec("it", "ToolResponse", {"metrics": [metric(kind, {"q": query})]})
    offered = relaxations(spec, calling({"q": query}))
    assert "$literal" in offered[0].new_text


@pytest.mark.parametrize("kind", ["ToolCheck", "Trajectory"])
def test_a_key_that_no_matcher_has_is_an_error_that_names_the_literal_form(kind: str) -> None:
    text = to_text({"metrics": [metric(kind, {"q": {"$in": [1]}})]})
    assert any("$literal" in one.message for one in diagnose(text, "ToolResponse"))


def test_an_override_leads_into_a_literal() -> None:
    config = {
        "type": "Trajectory",
        "calls": [{"name": "query", "arguments": {"q": {"$literal": MONGO}, "page": 1}}],
        "overrides": {"query": ["q.age"]},
    }
    assert run(config, {"q": {"age": {"$gte": 5}}, "page": 2}).outcome is Outcome.PASSED
    assert run(config, {"q": {"age": {"$gte": 6}}, "page": 1}).outcome is Outcome.FAILED


def test_whatever_writes_criteria_writes_literals() -> None:
    assert expected_argument(MONGO) == {"$literal": MONGO}
    assert "$literal" in str(tools_starter([("query", {"q": MONGO})]).config)
    check_literal(criteria_of_tools([{"name": "query", "input_parameters": {"q": MONGO}}]))


def check_literal(made: Iterable[dict[str, Any]]) -> None:
    """The one criterion that was made expects `MONGO` as a value."""
    (criterion,) = made
    spec = CriterionSpec("it", criterion["prototype_class"], criterion["config_uxon"])
    assert Checker(spec).check(calling({"q": MONGO})).outcome is Outcome.PASSED
    assert Checker(spec).check(calling({"q": {"age": 5}})).outcome is Outcome.FAILED
