"""Umbraco AI's tests as suites and back: what each type of grader says of an answer stays the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.main import main
from agenteval_tui.extensions.umbraco.exporter import tests_of as exported_tests
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.import_file import open_source
from agenteval_tui.formats.importers.suite_import import FoundTests, suite_text
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.runs.criteria import spec_of
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import Suite
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

TEST = {
    "alias": "returns-policy",
    "name": "Returns policy",
    "description": "Knows how long returns are possible.",
    "testFeatureId": "agent",
    "testTargetId": "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
    "profileId": "11111111-8b86-d011-b42d-00cf4fc964ff",
    "contextIds": ["22222222-8b86-d011-b42d-00cf4fc964ff"],
    "testFeatureConfig": {"message": "How long can I return {{ headphones }}?", "threadId": None},
    "graders": [
        {"graderTypeId": "contains", "name": "Says 14 days", "config": {"searchPattern": "14 days"}, "weight": 0.5},
        {"graderTypeId": "contains", "name": "No promise", "config": {"searchPattern": "forever", "ignoreCase": False},
         "negate": True, "severity": "Warning"},
        {"graderTypeId": "llm-judge", "name": "Polite", "severity": 0, "description": "Tone",
         "config": {"evaluationCriteria": "Is it polite?", "passThreshold": 0.8}},
    ],
    "variations": [
        {"name": "mini", "profileId": "33333333-8b86-d011-b42d-00cf4fc964ff", "runCount": 5, "contextIds": None,
         "testFeatureConfig": None},
    ],
    "runCount": 3,
    "tags": ["smoke", "policy"],
    "baselineRunId": "44444444-8b86-d011-b42d-00cf4fc964ff",
    "version": 4,
}  # fmt: skip


def imported(folder: Path, document: Any) -> tuple[Suite, FoundTests]:
    (folder / "t.json").write_text(json.dumps(document))
    with open_source(folder / "t.json") as source:
        known = detect(source)
        assert (known.name, known.tests is not None) == ("umbraco", True)
        assert known.tests is not None
        found = known.tests(source)
    (folder / "t.suite.yaml").write_text(suite_text(found, source="t.json"))
    loaded = load_suite(folder / "t.suite.yaml")
    assert [one for one in loaded.problems if one.severity == "error"] == []
    assert loaded.suite is not None
    return loaded.suite, found


def test_everything_of_a_test_comes_along(tmp_path: Path) -> None:
    suite, found = imported(tmp_path, TEST)
    (test,) = suite.tests
    assert (test.id, test.name, test.repeat, test.tags) == ("returns-policy", "Returns policy", 3, ["smoke", "policy"])
    assert test.prompt is not None
    assert "headphones" in json.dumps(test.variables) or "headphones" in test.prompt
    assert [(one.severity, one.weight, one.negate) for one in test.criteria] == [
        ("error", 0.5, False), ("warning", 1.0, True), ("info", 1.0, False),
    ]  # fmt: skip
    assert test.context is not None
    own = test.context.as_dict()["umbraco"]
    assert (own["testTargetId"], own["profileId"]) == (TEST["testTargetId"], TEST["profileId"])
    assert own["baselineRunId"] == TEST["baselineRunId"]
    (variation,) = test.variations
    assert (variation.name, variation.repeat) == ("mini", 5)
    assert variation.context is not None
    assert variation.context.as_dict()["umbraco"]["profileId"].startswith("3333")
    assert any("agenteval baseline set" in note for note in found.notes)


@pytest.mark.parametrize("shape", ["page", "list", "pascal", "strings"])
def test_in_every_shape(tmp_path: Path, shape: str) -> None:
    alone, _ = imported(tmp_path, TEST)
    document: Any = {"items": [TEST], "total": 1}
    if shape == "list":
        document = [TEST]
    elif shape == "pascal":
        document = {f"{key[0].upper()}{key[1:]}": value for key, value in TEST.items()}
    elif shape == "strings":
        graders = [{**one, "config": json.dumps(one["config"])} for one in TEST["graders"]]  # type: ignore[attr-defined]
        document = {**TEST, "testFeatureConfig": json.dumps(TEST["testFeatureConfig"]), "graders": graders}
    assert imported(tmp_path, document)[0].tests == alone.tests


# (grader type, config, answer, whether Umbraco passes it), from its sources
CASES: list[tuple[str, dict[str, Any], str, bool]] = [
    ("exact-match", {"expectedValue": "Paris"}, " paris\n", True),
    ("exact-match", {"expectedValue": "Paris", "ignoreCase": False}, "paris", False),
    ("exact-match", {"expectedValue": "a+b (c)"}, "a+b (c)", True),
    ("exact-match", {"expectedValue": "Paris"}, "Paris.", False),
    ("contains", {"searchPattern": "PARIS"}, "in paris", True),
    ("contains", {"searchPattern": "PARIS", "ignoreCase": False}, "in paris", False),
    ("contains", {"searchPattern": "a.c"}, "abc", False),
    ("contains", {"searchPattern": "{{x}}"}, "see {{X}}", True),
    ("regex", {"pattern": "^ord-\\d+"}, "ORD-12", True),
    ("regex", {"pattern": "^b", "ignoreCase": False}, "a\nb", False),
    ("regex", {"pattern": "^b", "multiline": True}, "a\nb", True),
    ("regex", {"pattern": "a.b"}, "a\nb", False),
    ("json-schema", {"expectedKeys": "a, b.c"}, '{"a": 1, "b": {"c": null}}', True),
    ("json-schema", {"expectedKeys": "a, b.c"}, '{"a": 1, "b": {}}', False),
    ("json-schema", {"expectedKeys": "a, b", "requireAllKeys": False}, '{"b": 1}', True),
    ("json-schema", {"expectedKeys": "a"}, "[1]", False),
    ("json-schema", {"expectedKeys": "a"}, "no JSON", False),
    ("json-schema", {}, "5", True),
    ("guardrail", {"evaluatorId": "contains", "evaluatorConfig": {"searchPattern": "secret"}}, "a secret", True),
    ("guardrail", {"evaluatorId": "contains", "evaluatorConfig": {"searchPattern": "secret"}}, "nothing", False),
    ("guardrail", {"evaluatorId": "regex", "evaluatorConfig": {"pattern": "\\d{4}"}}, "pin 1234", True),
    ("guardrail", {"evaluatorId": "pii"}, "mail to ann@example.com", True),
    ("guardrail", {"evaluatorId": "pii"}, "nothing", False),
]
TOOLS: list[tuple[dict[str, Any], list[str], bool]] = [
    ({"expectedTools": "search"}, ["Search", "book"], True),
    ({"expectedTools": "search"}, ["book"], False),
    ({"expectedTools": ""}, ["book"], False),
    ({"expectedTools": "search, book", "validationMode": "All"}, ["book", "x", "search"], True),
    ({"expectedTools": "search, book", "validationMode": "All"}, ["search"], False),
    ({"expectedTools": "search, book", "validationMode": "Exact"}, ["book", "search"], True),
    ({"expectedTools": "search, book", "validationMode": "Exact"}, ["book", "search", "x"], False),
    ({"expectedTools": "search", "validationMode": "None"}, ["book"], True),
    ({"expectedTools": "search", "validationMode": "None"}, ["search"], False),
    ({"expectedTools": "a, b", "validationMode": "All", "validateOrder": True}, ["a", "x", "b"], True),
    ({"expectedTools": "a, b", "validationMode": "All", "validateOrder": True}, ["b", "a"], False),
    ({"expectedTools": "a, b", "validationMode": "All", "validateOrder": True}, ["a", "b", "a"], False),
    ({"expectedTools": "a, b", "validationMode": "Exact", "validateOrder": True}, ["a", "b"], True),
    ({"expectedTools": "a, b", "validationMode": "Exact", "validateOrder": True}, ["b", "a"], False),
]


def verdict(folder: Path, grader: dict[str, Any], transcript: Transcript) -> str:
    suite, found = imported(folder, {**TEST, "graders": [grader]})
    assert not any("a person decides" in note for note in found.notes), found.notes
    first = compile_criterion(spec_of(suite.tests[0].criteria[0])).check(transcript, {}).outcome
    exported = exported_tests(suite, "x").document
    again, _ = imported(folder, exported)
    assert compile_criterion(spec_of(again.tests[0].criteria[0])).check(transcript, {}).outcome == first
    return str(first)


def answered(text: str, tools: list[str] | None = None) -> Transcript:
    calls = tuple(ToolCall(str(number), name, {}, "ok", message=1) for number, name in enumerate(tools or ()))
    messages = (Message("user", "q"), Message("assistant", text, tool_calls=tuple(range(len(calls)))))
    return Transcript(messages, calls, final_output=text)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(("kind", "config", "answer", "passes"), CASES)
def test_a_grader_says_what_it_says_in_umbraco(
    tmp_path: Path, kind: str, config: dict[str, Any], answer: str, passes: bool, negate: bool
) -> None:
    grader = {"graderTypeId": kind, "name": "g", "config": config, "negate": negate}
    assert verdict(tmp_path, grader, answered(answer)) == ("passed" if passes != negate else "failed")


@pytest.mark.parametrize(("config", "calls", "passes"), TOOLS)
def test_a_grader_of_tool_calls(tmp_path: Path, config: dict[str, Any], calls: list[str], passes: bool) -> None:
    grader = {"graderTypeId": "tool-call", "name": "g", "config": config}
    assert verdict(tmp_path, grader, answered("done", calls)) == ("passed" if passes else "failed")


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("sentiment", {"min": 0.4}, "there is no grader type 'sentiment'"),
        ("regex", {"pattern": "(?<"}, "its pattern is not read here"),
        ("guardrail", {"evaluatorId": "toxic"}, "the guardrail evaluator 'toxic' is not known"),
        ("tool-call", {"validationMode": "all"}, "`validationMode` 'all' is not known"),
        ("llm-judge", {"passThreshold": 7}, "threshold 7 is not from 0 to 1"),
    ],
)
def test_what_has_no_counterpart_is_named_and_asks_a_person(
    tmp_path: Path, kind: str, config: dict[str, Any], words: str
) -> None:
    suite, found = imported(tmp_path, {**TEST, "graders": [{"graderTypeId": kind, "name": "Mine", "config": config}]})
    (note,) = [note for note in found.notes if "a person decides" in note]
    assert note.startswith("returns-policy, graders[0] 'Mine': ")
    assert words in note
    criterion = suite.tests[0].criteria[0]
    assert json.dumps(config)[1:-1] in criterion.description
    assert "Human" in json.dumps(criterion.config_uxon)


def test_variations_of_one_name_are_told_apart(tmp_path: Path) -> None:
    suite, found = imported(tmp_path, {**TEST, "variations": [{"name": "mini"}, {"name": "Mini"}, {"name": "mini"}]})
    assert [variation.name for variation in suite.tests[0].variations] == ["mini", "Mini 2", "mini 3"]
    assert "returns-policy: several variations are called 'Mini': one is 'Mini 2' here" in found.notes


@pytest.mark.parametrize(("setting", "value"), [("severity", "Critical"), ("weight", -1), ("negate", "true")])
def test_a_setting_of_a_grader_that_is_not_known_is_said(tmp_path: Path, setting: str, value: Any) -> None:
    grader = {"graderTypeId": "contains", "name": "C", "config": {"searchPattern": "x"}, setting: value}
    suite, found = imported(tmp_path, {**TEST, "graders": [grader]})
    (criterion,) = suite.tests[0].criteria
    assert (criterion.severity, criterion.weight, criterion.negate) == ("error", 1, False)
    assert f"returns-policy, graders[0] 'C': its {setting} {value!r} is not known, and left out" in found.notes


def test_a_suite_goes_out_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, _ = imported(tmp_path, TEST)
    to = tmp_path / "out.json"
    words = ["export", str(tmp_path / "t.suite.yaml"), str(to), "--format", "umbraco"]
    assert main(words, launch_app=lambda start: 0) == 0
    assert "1 test as Umbraco tests" in capsys.readouterr().out
    (written,) = json.loads(to.read_text())
    for key in ("alias", "name", "description", "testFeatureId", "testTargetId", "profileId", "contextIds", "runCount"):
        assert written[key] == TEST[key]
    assert written["testFeatureConfig"]["message"] == "How long can I return {{ headphones }}?"
    assert written["variations"][0] | {"id": ""} == {**TEST["variations"][0], "id": ""}  # type: ignore[index]
    given = TEST["graders"]
    assert [(one["graderTypeId"], one["negate"], one["severity"], one["weight"]) for one in written["graders"]] == [
        ("contains", False, "Error", 0.5),
        ("contains", True, "Warning", 1.0),
        ("llm-judge", False, "Info", 1.0),
    ]
    assert len({one["id"] for one in written["graders"]}) == len(given)  # type: ignore[arg-type]
    assert imported(tmp_path, written)[0].tests == suite.tests


def test_braces_that_are_text_go_out_as_they_came(tmp_path: Path) -> None:
    grader = {
        "graderTypeId": "exact-match",
        "name": "is it",
        "config": {"expectedValue": "{{ a }}", "ignoreCase": True},
    }
    suite, _ = imported(tmp_path, {**TEST, "graders": [grader]})
    exported = exported_tests(suite, "k")
    (written,) = exported.document[0]["graders"]
    assert (written["config"], exported.notes) == (grader["config"], [])


def test_what_umbraco_has_no_place_for_is_said(tmp_path: Path) -> None:
    (tmp_path / "s.suite.yaml").write_text(
        """
name: S
tests:
  - id: a
    prompt: hi
    criteria:
      - {name: Short, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, max_words: 3}]}}
  - id: b
    turns: [one, two]
    criteria:
      - {name: Short, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, max_words: 3}]}}
"""
    )
    loaded = load_suite(tmp_path / "s.suite.yaml")
    assert loaded.suite is not None
    exported = exported_tests(loaded.suite, "s")
    written, notes = exported.document, exported.notes
    assert [one["alias"] for one in written] == ["a"]
    assert notes == [
        "a: write the id of the agent in Umbraco as `testTargetId`",
        "a: not kept: criterion 'Short', no grader of Umbraco checks the same",
        "b: left out, a conversation or a dataset has no single prompt",
    ]
