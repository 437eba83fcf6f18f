"""`{{...}}` in configs: the expected value and the row's variables."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.placeholders import PlaceholderError, fill, has_placeholders, names_in
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript


def check(
    text: str, metric: dict[str, Any], variables: dict[str, Any] | None = None, expected: Any = None, **config: Any
) -> CriterionResult:
    spec = CriterionSpec("it", "TextResponse", {**config, "metrics": [metric]}, expected_value=expected)
    transcript = Transcript(
        (Message("assistant", text),), (ToolCall("a", "f", {"n": 10, "who": "Ann"}),), final_output=text
    )
    return compile_criterion(spec).check(transcript, variables)


def match(**conditions: Any) -> dict[str, Any]:
    return {"type": "TextMatch", **conditions}


def test_variables_and_the_expected_value() -> None:
    assert check("5000 in Rom", match(contains_all=["{{revenue}}", "{{ city.name }}"]), _ROW).outcome == "passed"
    assert check("SELECT 1", match(equals="{{expected_value}}"), {}, "SELECT 1").outcome == "passed"
    assert check("SELECT 2", match(equals="{{expected_value}}"), {}, "SELECT 1").outcome == "failed"
    # An expected value may itself use the row; the row's own expected value serves when the criterion has none.
    assert check("in Rom", match(equals="{{expected_value}}"), _ROW, "in {{city.name}}").outcome == "passed"
    assert check("x", match(equals="{{expected_value}}"), {"expected_value": "x"}).outcome == "passed"
    assert check("total=5000", match(equals="5000"), _ROW, extract_by_regex="/total=({{revenue}})/").value == "5000"


_ROW: dict[str, Any] = {"revenue": 5000, "city": {"name": "Rom", "tags": ["a", "b"]}, "flag": True, "none": None}


def test_unknown_variables_are_errors_that_name_them() -> None:
    for metric, name in ((match(contains="{{cuntry}}"), "cuntry"), (match(contains="{{city.nam}}"), "city.nam")):
        result = check("text", metric, _ROW)
        assert result.outcome is Outcome.ERROR
        assert name in criterion_sentence(result)
        assert "revenue" in criterion_sentence(result)
    assert "expected_value" in criterion_sentence(check("x", match(equals="{{expected_value}}")))


def test_evidence_shows_what_was_put_in() -> None:
    (line,) = check("Bonn", match(contains="{{city.name}}"), _ROW).metrics[0].evidence
    assert line.expected == "Rom"


def test_each_row_is_graded_with_its_own_values() -> None:
    spec = CriterionSpec("it", "TextResponse", {"metrics": [match(contains="{{n}}")]})
    checker = compile_criterion(spec)
    transcript = Transcript((Message("assistant", "7"),), final_output="7")
    outcomes = [checker.check(transcript, {"n": n}, explain=False).outcome for n in (7, 8, "7", 7)]
    assert outcomes == ["passed", "failed", "passed", "passed"]
    for n in range(600):
        checker.check(transcript, {"n": n}, explain=False)
    assert checker.variables == {"n"}


def test_a_lone_placeholder_in_arguments_keeps_its_type() -> None:
    tools = [{"name": "f", "arguments": {"n": "{{n}}", "who": "{{who}}"}}]
    assert check("", {"type": "ToolCheck", "tools": tools}, {"n": 10, "who": "Ann"}).outcome == "passed"
    assert check("", {"type": "ToolCheck", "tools": tools}, {"n": "10", "who": "Ann"}).outcome == "failed"
    gte = [{"name": "f", "arguments": {"n": {"$gte": "{{n}}"}, "who": {"$contains": "A{{who}}"}}}]
    assert check("", {"type": "ToolCheck", "tools": gte}, {"n": 9, "who": "nn"}).outcome == "passed"
    assert check("", {"type": "ToolCheck", "tools": gte}, {"n": "9", "who": "nn"}).outcome == "error"


def test_values_are_put_in_as_they_are() -> None:
    assert fill("{{a}}", {"a": "{{b}}"}) == "{{b}}"
    assert fill(["x {{flag}} {{none}}"], _ROW) == ["x true null"]
    assert fill("{{city.tags.1}}", _ROW) == "b"
    assert fill("{{city}}", {"city": {"a": 1}}) == '{"a":1}'
    assert fill({"{{k}}": "{{k}}"}, {"k": 1}) == {"{{k}}": "1"}
    assert fill("{{a.b}}", {"a.b": "dotted column"}) == "dotted column"


def test_braces_that_are_no_placeholders() -> None:
    assert fill("{{ not closed", {}) == "{{ not closed"
    assert fill('a {{ "{{" }}name}}', {}) == "a {{name}}"
    assert not has_placeholders({"a": ["{{ b", 1, None]})
    with pytest.raises(PlaceholderError, match="cannot be read"):
        fill("{{ a | upper }}", {"a": "x"})
    assert check("x", match(contains="{{ a | upper }}"), {"a": "x"}).outcome is Outcome.ERROR


def test_names() -> None:
    assert names_in({"a": ["{{x}} {{y.z}}", {"b": '{{ "q" }}'}], "{{no}}": 1}) == {"x", "y.z"}


def test_the_expected_value_of_a_row_serves_where_the_criterion_has_none() -> None:
    """Lexical compares with the expected value: the criterion's own, else the row's."""
    metric = {"type": "Lexical", "min": 0.99}

    def outcome(expected: Any, variables: dict[str, Any]) -> Outcome:
        return check("the capital is Paris", metric, variables, expected).outcome

    right, wrong = "the capital is Paris", "something else"
    assert outcome(None, {"expected_value": right}) is Outcome.PASSED
    assert outcome(None, {"expected_value": wrong}) is Outcome.FAILED
    assert outcome(right, {"expected_value": wrong}) is Outcome.PASSED
    assert outcome(wrong, {"expected_value": right}) is Outcome.FAILED
    assert outcome(None, {"expected_value": "{{nobody}}"}) is Outcome.FAILED, "a row is data: its braces are text"
    assert outcome(None, {"expected_value": ""}) is outcome(None, {}) is Outcome.ERROR
