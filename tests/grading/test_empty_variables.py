"""What is looked for comes out of the data and is empty: an error that names row and column, never a pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence, verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

CALL = ToolCall("c", "find", {"q": "x", "note": ""}, result="[]")
HOLE = "{{hole}}"

# Each would hold of nearly everything, or of an empty answer, if the hole were taken for what is looked for.
NEEDLES: list[tuple[str, dict[str, Any]]] = [
    *(("TextResponse", {"type": "TextMatch", name: HOLE}) for name in (
        "equals", "equals_ignore_case", "contains", "contains_ignore_case", "starts_with", "ends_with")),
    *(("TextResponse", {"type": "TextMatch", name: [HOLE]}) for name in (
        "contains_all", "contains_any", "not_contains_any", "starts_with_any", "ends_with_any")),
    ("TextResponse", {"type": "TextMatch", "contains_all": ["Berlin", HOLE]}),
    ("TextResponse", {"type": "TextMatch", "contains": f" {HOLE}\n"}),
    ("TextResponse", {"type": "TextMatch", "contains": f"{HOLE} {HOLE}"}),
    ("TextResponse", {"type": "TextMatch", "contains": "{{deep.hole}}"}),
    ("TextResponse", {"type": "Keywords", "keywords": [HOLE]}),
    ("TextResponse", {"type": "Keywords", "keywords": ["Berlin", HOLE], "min_fraction": 0.5}),
    ("TextResponse", {"type": "Regex", "pattern": HOLE}),
    ("TextResponse", {"type": "Regex", "pattern": f"/{HOLE}/i"}),
    ("TextResponse", {"type": "Regex", "pattern": f"^(?:{HOLE})"}),
    ("TextResponse", {"type": "Regex", "pattern": f"\\b{HOLE}\\b"}),
    ("TextResponse", {"type": "Regex", "pattern": HOLE, "not": True}),
    ("TextResponse", {"type": "Lexical", "to": HOLE, "min": 0}),
    ("TextResponse", {"type": "Similarity", "to": HOLE}),
    ("TextResponse", {"type": "Classification", "label": HOLE}),
    ("TextResponse", {"type": "Leak", "secrets": [HOLE]}),
    ("TextResponse", {"type": "Injection", "canary": HOLE}),
    ("TextResponse", {"type": "Judge", "criteria": "Is it right?", "reference": HOLE}),
    ("TextResponse", {"type": "Judge", "criteria": HOLE}),
    ("TextResponse", {"type": "Human", "question": HOLE}),
    ("JsonResponse", {"type": "Json", "equals": HOLE}),
    ("JsonResponse", {"type": "Json", "required_keys": [HOLE]}),
    ("JsonResponse", {"type": "Json", "schema": {"pattern": HOLE}}),
    ("JsonResponse", {"type": "Json", "schema": {"pattern": f"^{HOLE}"}}),
    ("ToolResponse", {"type": "ToolCheck", "forbidden_tools": [HOLE]}),
    ("ToolResponse", {"type": "ToolCheck", "tools": [{"name": HOLE, "required": False}]}),
    ("ToolResponse", {"type": "ToolCheck", "tools": [{"name": "find", "arguments": {"note": HOLE, "q": "x"}}]}),
    *(("ToolResponse", {"type": "ToolCheck", "tools": [{"name": "find", "arguments": {"note": "", "q": matcher}}]})
      for matcher in ({"$contains": HOLE}, {"$regex": f".*{HOLE}"}, {"$ignore_case": HOLE}, {"$one_of": [HOLE, "x"]},
                      {"$not": {"$contains": HOLE}})),
    ("ToolResponse", {"type": "Trajectory", "mode": "none", "calls": [{"name": HOLE}]}),
    ("Retrieval", {"type": "Retrieval", "relevant": [HOLE], "min_recall": 0}),
]  # fmt: skip
BLANKS: list[Any] = ["", "  \n", None]


def checked(
    prototype: str, metric: dict[str, Any], variables: dict[str, Any], answer: str = '"Berlin"', **more: Any
) -> CriterionResult:
    talk = Transcript(
        (Message("user", "?"), Message("assistant", answer, tool_calls=(0,))), (CALL,), final_output=answer
    )
    return compile_criterion(CriterionSpec("c", prototype, {"metrics": [metric]}, **more)).check(talk, variables)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("blank", BLANKS, ids=repr)
@pytest.mark.parametrize(("prototype", "metric"), NEEDLES, ids=[json.dumps(metric)[:70] for _, metric in NEEDLES])
def test_a_hole_is_an_error_that_names_it(prototype: str, metric: dict[str, Any], blank: Any, negate: bool) -> None:
    inside = any_json_inside(metric)
    variables = {"hole": blank, "deep": {"hole": blank}, "more": "x"}
    for answer in ('"Berlin"', "", '""'):
        result = checked(prototype, metric, variables, answer, negate=negate)
        if blank is None and inside:
            # Null is a value in an object of arguments.
            assert result.outcome is not Outcome.PASSED or negate or "$one_of" in json.dumps(metric)
            continue
        assert result.outcome is Outcome.ERROR
        assert 'no value for "hole"' in criterion_sentence(result) or 'no value for "deep.hole"' in criterion_sentence(
            result
        )


def any_json_inside(metric: dict[str, Any]) -> bool:
    """Whether the hole stands inside of JSON that keeps types, where null is a value like any other."""
    text = json.dumps(metric)
    if '"schema"' in text or "$regex" in text:
        return False
    return (
        metric["type"] in ("ToolCheck", "Trajectory", "Json")
        and "forbidden" not in text
        and ('"arguments"' in text or '"calls"' in text)
    )


@pytest.mark.parametrize(
    ("metric", "variables"),
    [
        ({"type": "TextMatch", "contains": "Berlin{{hole}}"}, {"hole": ""}),
        ({"type": "TextMatch", "contains": "{{hole}}{{city}}"}, {"hole": "", "city": "Berlin"}),
        ({"type": "TextMatch", "contains": "{{city}}"}, {"hole": "", "city": "Berlin"}),
        ({"type": "TextMatch", "contains": "{{n}}", "contains_any": ["{{f}}"]}, {"n": 0, "f": False}),
        ({"type": "TextMatch", "contains": '{{ "Berlin" }}{{hole}}'}, {"hole": ""}),
        ({"type": "TextMatch", "contains": "", "ends_with": '"'}, {"hole": ""}),
    ],
)
def test_what_is_written_beside_a_hole_is_looked_for(metric: dict[str, Any], variables: dict[str, Any]) -> None:
    assert checked("TextResponse", metric, variables, '"Berlin 0 false"').outcome is Outcome.PASSED


def test_a_function_may_take_an_empty_text() -> None:
    metric = {"type": "Python", "function": "nothing:nobody", "note": HOLE}
    assert "no value" not in criterion_sentence(checked("TextResponse", metric, {"hole": ""}))


@pytest.mark.parametrize("kind", ["Lexical", "Similarity", "Classification"])
@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_an_empty_expected_value_is_nothing_to_compare_with(kind: str, blank: Any) -> None:
    for variables, more in (({"expected_value": blank}, {}), ({"hole": blank}, {"expected_value": HOLE})):
        result = checked("TextResponse", {"type": kind}, variables, "", **more)
        assert result.outcome is Outcome.ERROR


@pytest.mark.parametrize("value", [None, "", {}])
def test_an_empty_schema_out_of_the_data_is_a_hole(value: Any) -> None:
    assert checked("JsonResponse", {"type": "Json", "schema": "{{s}}"}, {"s": value}).outcome is Outcome.ERROR


def test_the_error_names_the_row() -> None:
    spec = CriterionSpec("c", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": HOLE}]})
    talk = Transcript((Message("assistant", "x"),), final_output="x")
    verdict = grade(talk, [spec], {"hole": ""}, row=7)
    assert verdict.outcome is Outcome.ERROR
    assert (
        verdict_sentence(verdict)
        == 'c: row 7 of the dataset has no value for "hole", so `{{hole}}` would look for nothing'
    )


SUITE = """\
agent: shop
agents: {shop: {kind: demo, version: v1, pace: 0}}
tests:
  - id: capital
    prompt: "Where is my order #W1042, {{country}}?"
    dataset: {file: capitals.csv}
    criteria:
      - name: Names it
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "{{expected_value}}"}]}
      - name: Comes close
        severity: info
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Lexical, min: 0}]}
"""


def test_validate_warns_of_the_rows_and_a_run_of_them_is_in_error(tmp_path: Any) -> None:
    from agenteval_tui.analysis.lint import check_suites
    from agenteval_tui.cli.main import main

    suite = tmp_path / "a.suite.yaml"
    suite.write_text(SUITE, "utf-8")
    (tmp_path / "capitals.csv").write_text("country,expected_value\nFrance,W1042\nGermany,\nItaly, \n", "utf-8")
    found = [one for one in check_suites([suite])[1] if one.code == "empty-value"]
    assert [(one.line, one.severity) for one in found] == [(3, "warning")] * 2
    assert "and 1 more row" in found[0].message
    assert '"expected_value"' in found[0].message
    assert main(["run", str(suite)], launch_app=lambda start: 0) == 3
    suite.write_text(SUITE.replace("dataset: {file: capitals.csv}", 'variables: {country: X, expected_value: ""}'))
    assert [one.code for one in check_suites([suite])[1]].count("empty-value") == 2


@pytest.mark.parametrize(
    ("variable", "outcome", "score"),
    [
        (["Berlin", "in the north"], Outcome.FAILED, 0.5),
        (["Berlin, north", 5], Outcome.FAILED, 0.0),
        ("Berlin, here", Outcome.PASSED, 1.0),
        ("[Berlin], here", Outcome.FAILED, 0.5),
        ([], Outcome.ERROR, None),
        ([" "], Outcome.ERROR, None),
    ],
)
def test_keywords_that_are_a_list_in_the_data(variable: Any, outcome: Outcome, score: float | None) -> None:
    metric = {"type": "Keywords", "keywords": "{{words}}"}
    result = checked("TextResponse", metric, {"words": variable}, answer="Berlin is here.")
    assert (result.outcome, result.score) == (outcome, score)
