"""Json: what is JSON, schemas, keys, deep equality, and where each of them fails."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.metrics.json import differences
from agenteval_tui.grading.metrics.matchers import same_json
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.uxon.serialize import to_text

ORDER = '{"id": "W1", "total": 12.5, "items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 0}], "due": "2026-02-30"}'


def run(text: str, prototype: str = "TextResponse", variables: Any = None, **metric: Any) -> CriterionResult:
    transcript = Transcript((Message("assistant", text),), final_output=text)
    checker = Checker(CriterionSpec("it", prototype, {"metrics": [{"type": "Json", **metric}]}))
    result = checker.check(transcript, variables)
    quick = checker.check(transcript, variables, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


def missed(text: str, result: CriterionResult, near: bool = False) -> list[tuple[str, list[str]]]:
    return [
        (evidence_sentence(line), [text[one.start : one.end] for one in (line.near if near else line.spans)])
        for line in result.metrics[0].evidence
        if line.passed is False
    ]


def said(**metric: Any) -> dict[str, str]:
    config = {"metrics": [{"type": "Json", **metric}]}
    return {one.code: one.message for one in diagnose(to_text(config), "TextResponse")}


@pytest.mark.parametrize(
    ("schema", "reason", "place"),
    [
        ({"type": "array"}, "not of type array", ORDER),
        ({"required": ["id", "name", "date"]}, "`name` and `date` are missing from the value", ORDER),
        ({"properties": {"total": {"type": "string"}}}, "total is 12.5 (number), not of type string", "12.5"),
        ({"properties": {"total": {"maximum": 10}}}, "total is 12.5, not at most 10", "12.5"),
        ({"properties": {"id": {"enum": ["W2", "W3"]}}}, 'id is "W1", not one of ["W2", "W3"]', '"W1"'),
        ({"properties": {"id": {"const": "W2"}}}, 'id is "W1", not "W2"', '"W1"'),
        ({"properties": {"id": {"pattern": "^#"}}}, 'id is "W1", which is not what matches ^#', '"W1"'),
        ({"properties": {"due": {"format": "date"}}}, "which is not what is a date", '"2026-02-30"'),
        (
            {"properties": {"items": {"items": {"properties": {"n": {"exclusiveMinimum": 0}}}}}},
            "items[1].n is 0, not more than 0",
            "0",
        ),
        (
            {"properties": {"id": {}}, "patternProperties": {"^t": {}}, "additionalProperties": False},
            "`items` and `due` are not expected here",
            ORDER,
        ),
        ({"$ref": "#/$defs/o", "$defs": {"o": {"properties": {"id": {"type": "null"}}}}}, "not of type null", '"W1"'),
    ],
)
def test_what_does_not_fit_a_schema(schema: dict[str, Any], reason: str, place: str) -> None:
    result = run(ORDER, schema=schema)
    assert (result.outcome, result.score) == (Outcome.FAILED, 0.0)
    ((text, places),) = missed(ORDER, result)
    assert reason in text
    assert places == [place]


def test_what_fits() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["id"],
        "properties": {"items": {"type": "array", "prefixItems": [{"required": ["sku"]}], "minItems": 2}},
    }
    result = run(ORDER, schema=schema, required_keys=["items.1.sku", "total"])
    assert (result.outcome, result.score) == (Outcome.PASSED, 1.0)
    assert {line.passed for line in result.metrics[0].evidence} == {True}
    assert run("{}", schema={"$ref": "https://json-schema.org/draft/2020-12/schema"}).outcome is Outcome.PASSED


def test_references_are_never_fetched(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        local = tmp_path / "schema.json"
        local.write_text("{}")
        for reference in (address, local.as_uri()):
            result = run("{}", schema={"$ref": reference})
            assert result.outcome is Outcome.ERROR
            assert "nothing is fetched" in criterion_sentence(result)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_keys() -> None:
    result = run('{"a": {"b.c": [1]}, "d": null}', required_keys=["a.b.c.0", "d", "", "a.x", "a.b.c.1"])
    assert (result.outcome, result.score) == (Outcome.FAILED, 0.5)
    reasons = [reason for reason, _ in missed("", result)]
    assert reasons == ['"a.x" is missing: a has the keys b.c', '"a.b.c.1" is missing: a.b.c is a list of 1']
    text = '{"a": {"b": 1}}'
    assert missed(text, run(text, required_keys=["a.c"]), near=True)[0][1] == ['{"b": 1}']


def test_deep_equality() -> None:
    assert run('{"b": [1.0, true], "a": null}', equals={"a": None, "b": [1, True]}).outcome is Outcome.PASSED
    assert run("null", equals=None).outcome is Outcome.PASSED
    assert run("0", equals=None).outcome is Outcome.FAILED
    assert run("1", equals=True).outcome is Outcome.FAILED
    text = '{"a": 1, "b": [1, 2, 3], "x": "y"}'
    found = missed(text, run(text, equals={"a": "1", "b": [1, 5], "c": 0}))
    assert found == [
        ('a is 1 (number), expected "1"', ["1"]),
        ("b[1] is 2, expected 5", ["2"]),
        ("b[2] = 3 is not expected", ["3"]),
        ("`c` is missing from the value (expected 0)", [text]),
        ('x = "y" is not expected', ['"y"']),
    ]


def test_a_variable_keeps_its_type() -> None:
    assert run('{"n": 5}', variables={"n": 5}, equals={"n": "{{n}}"}).outcome is Outcome.PASSED
    assert run('{"n": "5"}', variables={"n": 5}, equals={"n": "{{n}}"}).outcome is Outcome.FAILED


def test_what_is_no_json() -> None:
    assert run("{}").outcome is Outcome.PASSED
    text = 'Here: {"a": 1}'
    result = run(text)
    assert result.outcome is Outcome.FAILED
    assert "expecting value (line 1, column 1)" in criterion_sentence(result)
    assert missed(text, result, near=True)[0][1] == ['{"a": 1}']
    fenced = '```json\n{"a": 1}\n```'
    assert "the prototype class JsonResponse extracts it" in criterion_sentence(run(fenced))
    assert run(fenced, "JsonResponse").outcome is Outcome.PASSED
    assert "the text is empty" in criterion_sentence(run(""))


def test_findings() -> None:
    assert "not a JSON Schema" in said(schema={"type": "objekt"})["wrong-value"]
    assert "cannot-fail" in said(schema={})
    assert "checks-nothing" in said(required_keys=[])
    assert "not in what `equals` wants" in said(required_keys=["b"], equals={"a": 1})["contradictory"]
    assert "does not fit the schema" in said(schema={"type": "object"}, equals=[1])["contradictory"]
    assert said(schema={"type": "object"}, equals={"a": 1}, required_keys=["a"]) == {}
    assert said() == {}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(_json, _json)
def test_there_are_differences_where_values_differ(left: Any, right: Any) -> None:
    assert bool(list(differences(left, right))) is not same_json(left, right)
    result = run(json.dumps(right), equals=left)
    assert (result.outcome is Outcome.PASSED) is same_json(left, right)


def test_schemas_are_loaded_when_one_is_used() -> None:
    code = (
        "import sys; from agenteval_tui.grading.compile import Checker\n"
        "from agenteval_tui.grading.spec import CriterionSpec\n"
        "from agenteval_tui.grading.config.diagnostics import diagnose\n"
        "from agenteval_tui.transcripts.model import Transcript\n"
        'diagnose(\'{"metrics": [{"type": "Json"}]}\', \'JsonResponse\')\n'
        "spec = CriterionSpec('a', 'TextResponse', {'metrics': [{'type': 'Json', 'equals': 1}]})\n"
        "Checker(spec).check(Transcript())\n"
        "assert not {'jsonschema', 'jmespath', 'rapidfuzz'} & set(sys.modules)\n"
        "Checker(CriterionSpec('a', 'TextResponse', {'metrics': [{'type': 'Json', 'schema': {'type': 'null'}}]}))\n"
        "assert 'jsonschema' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('so {"a": 1} it', "passed"),
        ('first {"b": {"a": 1}}, then {"a": 2}', "passed"),
        ('first {"b": 1}, then {"c": 2}', "failed"),
        ('{"b": {"a": 1}}', "failed"),  # what is inside of an object is no object of the text
        ("[1, 2]", "failed"),
        ("{broken {", "failed"),
        ("", "failed"),
        ('{"x": ' * 10_000, "error"),  # nobody can look at all of it
    ],
)
def test_json_anywhere_in_a_text(text: str, outcome: str) -> None:
    result = run(text, anywhere=True, required_keys=["a"])
    assert result.outcome == outcome
    spans = [text[one.start : one.end] for line in result.metrics[0].evidence for one in line.spans]
    assert outcome != "passed" or any('"a"' in part or part.isdecimal() for part in spans)


def test_nothing_anywhere_is_said() -> None:
    assert criterion_sentence(run("no", anywhere=True)) == "the value is not JSON: the text has no JSON object"


@pytest.mark.parametrize(("number", "factor", "holds"), [
    ("19.99", 0.01, True), ("0.3", 0.1, True), ("1.1", 0.1, True), ("4.35", 0.01, True), ("19.995", 0.01, False),
    ("1e-9", 0.01, False), ("0", 0.01, True), ("-19.99", 0.01, True), ("7", 2.5, False), ("7.5", 2.5, True),
    ("9007199254740993", 3, True), ("1e308", 1e-300, True), ("1E400", 2, False), ("3", 1, True), ("3.0", 2, False),
])  # fmt: skip
@pytest.mark.parametrize("draft", ["", "http://json-schema.org/draft-07/schema#"])
def test_a_multiple_is_one_of_the_decimal_numbers(number: str, factor: float, holds: bool, draft: str) -> None:
    schema = {"multipleOf": factor, **({"$schema": draft} if draft else {})}
    assert (run(number, schema=schema).outcome is Outcome.PASSED) is holds


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**4), st.integers(0, 8))
def test_multiples_of_decimals_are_those_of_their_digits(number: int, factor: int, places: int) -> None:
    text, step = f"{number}e-{places}", float(f"{factor}e-{places}")
    whole = number % factor == 0
    assert (run(text, schema={"multipleOf": step}).outcome is Outcome.PASSED) is whole
