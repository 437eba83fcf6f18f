"""Tests of promptfoo, pydantic-evals, LangSmith and Power UI as suites, and suites as Power UI's test cases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.power_ui.exporter import LOSSES, SheetLoss, sheets_of
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.import_file import import_file, open_source
from agenteval_tui.formats.importers.suite_import import FoundTests, checked, suite_text
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.suites.load import load_bytes
from agenteval_tui.suites.model import Criterion, Suite, Test
from agenteval_tui.transcripts.model import Transcript

Read = Callable[..., tuple[Suite, FoundTests]]


@pytest.fixture
def suite(tmp_path: Path) -> Read:
    """The suite that a foreign file becomes: written, read again, without errors."""

    def read(given: Any, name: str = "f.json", format_name: str = "") -> tuple[Suite, FoundTests]:
        path = tmp_path / name
        path.write_text(given if isinstance(given, str) else json.dumps(given), "utf-8")
        with open_source(path) as source:
            known = detect(source)
            assert format_name in ("", known.name)
            assert known.tests is not None
            found = known.tests(source)
            loaded = load_bytes(suite_text(found, source=name).encode(), tmp_path / "x.suite.yaml")
        assert [one for one in loaded.problems if one.severity == "error"] == []
        assert loaded.suite is not None
        return loaded.suite, found

    return read


def metrics(criterion: Any) -> list[dict[str, Any]]:
    config = criterion.config_uxon
    return json.loads(config)["metrics"] if isinstance(config, str) else config["metrics"]


@pytest.mark.parametrize(
    "text",
    ["red \x1b[31m\nline", "a\r\nb", "a\rb\n", "\tcode\n\tmore", "\n\n\tcode", "a\x00\nb", "page\x0c\nnext", "a\x85b\n",
     "\u2028\nb", "\ufeffa\nb", "a\x7f\nb", "a\ufffe\nb", "  a\nb\n\n", "a\x0bb\n"],
    ids=ascii,
)  # fmt: skip
def test_no_text_of_a_test_makes_a_suite_that_is_not_read(text: str) -> None:
    """A block of YAML has no escapes, and takes other line ends for its own."""
    found = FoundTests("name", tests=[
        {"name": text, "prompt": text, "variables": {"list": [text], "deep": {"text": text}},
         "criteria": [checked(text, {"type": "TextMatch", "contains": text}, expected_value=text)]},
    ])  # fmt: skip
    loaded = load_bytes(suite_text(found, source="f.json").encode(), Path("x.suite.yaml"))
    assert loaded.suite is not None
    (test,) = loaded.suite.tests
    (criterion,) = test.criteria
    assert isinstance(criterion.config_uxon, dict)
    assert test.name == text.strip()
    written = (test.prompt, test.variables["list"][0], test.variables["deep"]["text"], criterion.name,
               criterion.expected_value, criterion.config_uxon["metrics"][0]["contains"])  # fmt: skip
    assert written == (text,) * 6


def test_half_a_character_does_not_stop_an_import(suite: Read) -> None:
    """JavaScript cuts emoji in two where it cuts texts."""
    tests = [{"vars": {"q": "cut \ud83d"}}, {"vars": {"q": "é"}}]
    given = {"prompts": ["Say {{q}}"], "providers": ["echo"], "tests": tests}
    made, found = suite(given, "promptfooconfig.json")
    assert [one.variables for one in made.tests] == [{"q": "cut \ufffd"}, {"q": "é"}]
    said = [note for note in found.notes if "half a character" in note]
    assert said == [f"{made.tests[0].id}: half a character was replaced by \ufffd"]


PROMPTFOO = """
# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json
description: Two prompts
prompts:
  - "Answer {{q}}"
  - '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{q}}"}]'
providers: [openai:gpt-4o]
defaultTest:
  assert: [{type: latency, threshold: 3000}]
tests:
  - description: Oslo
    vars: {q: "Oslo?", since: 2026-01-02}
    threshold: 0.5
    assert:
      - {type: icontains, value: oslo, weight: 2, metric: names it}
      - {type: not-contains-any, value: [a, b]}
      - {type: equals, value: {a: 1}}
      - {type: regex, value: "^O"}
      - {type: is-json, value: {type: object}}
      - {type: llm-rubric, value: Is polite., threshold: 0.8}
      - {type: similar, value: Norway}
      - {type: word-count, value: {max: 9}}
      - {type: trajectory:tool-used, value: {name: search, min: 2}}
      - {type: trajectory:tool-args-match, value: {name: search, args: {q: x}}}
      - {type: javascript, value: "output.length > 3"}
      - {type: contains, value: x, weight: 0}
      - type: assert-set
        assert: [{type: starts-with, value: O}]
  - vars: {q: [Rome, Bern]}
"""


def test_promptfoos_configuration(suite: Read) -> None:
    made, found = suite(PROMPTFOO, "promptfooconfig.yaml", "promptfoo-config")
    assert made.name == "Two prompts"
    assert len(made.tests) == 6  # three of variables, two prompts
    first, second = made.tests[:2]
    assert (first.prompt, first.variables) == ("Answer {{q}}", {"q": "Oslo?", "since": "2026-01-02"})
    assert second.messages is not None
    assert second.messages[0].content == "Be brief."
    assert first.pass_threshold == 0.5
    assert {test.variables["q"] for test in made.tests} == {"Oslo?", "Rome", "Bern"}
    types = [[one["type"] for one in metrics(criterion)] for criterion in first.criteria]
    assert types == [
        ["TextMatch"], ["TextMatch"], ["Json"], ["Regex"], ["Json"], ["Judge"], ["Similarity"], ["Regex"],
        ["ToolCheck"], ["Trajectory"], ["Python"], ["TextMatch"], ["TextMatch"], ["Latency"],
    ]  # fmt: skip
    named, negated, *_ = first.criteria
    assert (named.name, named.weight, metrics(named)[0]["contains_ignore_case"]) == ("names it", 2, "oslo")
    assert (negated.negate, metrics(negated)[0]["contains_any"]) == (True, ["a", "b"])
    assert metrics(first.criteria[10])[0]["function"] == "promptfooconfig_assertions:assertion_1"
    assert "javascript('output.length > 3', output, context)" in found.module_text
    assert first.criteria[11].severity == "info"
    assert metrics(first.criteria[8])[0]["tools"] == [{"name": "search", "min_calls": 2}]
    assert made.agents["gpt-4o"].as_dict() == {"kind": "openai", "model": "gpt-4o"}


def test_every_criterion_of_promptfoos_configuration_can_be_compiled(suite: Read) -> None:
    from agenteval_tui.grading.grade import grade
    from agenteval_tui.runs.criteria import spec_of
    from agenteval_tui.transcripts.codec import from_openai_messages

    made, _ = suite(PROMPTFOO, "promptfooconfig.yaml")
    transcript = from_openai_messages([{"role": "user", "content": "q"}, {"role": "assistant", "content": "Oslo"}])
    specs = [spec_of(one) for one in made.tests[0].criteria]
    verdict = grade(transcript, specs, made.tests[0].variables)
    asks = {"Judge", "Similarity", "Python", "Latency"}  # these need somebody's answer, or a time
    for criterion, result in zip(made.tests[0].criteria, verdict.results, strict=True):
        if not asks & {one["type"] for one in metrics(criterion)}:
            assert result.outcome in ("passed", "failed"), (criterion.name, criterion_sentence(result))


def test_prompts_in_files_are_read_from_the_folder_alone(suite: Read, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("Say {{q}}", "utf-8")
    config = {"prompts": ["file://p.txt", "file:///etc/passwd", "file://../x.txt"], "tests": [{"vars": {"q": "x"}}]}
    made, found = suite(config, "c.json")
    assert [test.prompt for test in made.tests] == ["Say {{q}}"]
    assert sum("outside the folder" in note for note in found.notes) == 2


def test_pydantic_evals(suite: Read) -> None:
    text = """
name: capitals
cases:
  - name: France
    inputs: {question: "Capital of {{France}}?"}
    expected_output: Paris
    evaluators: [EqualsExpected, {Contains: Par}, {LLMJudge: {rubric: Polite}}, {IsInstance: str}]
  - inputs: just text
    expected_output: {a: 1}
evaluators:
  - MaxDuration: 2.0
"""
    made, _ = suite(text, "capitals.yaml", "pydantic-evals")
    first, second = made.tests
    assert (first.id, first.prompt, first.variables["question"]) == (
        "france",
        "{{ question }}",
        "Capital of {{France}}?",
    )
    kinds = [metrics(one)[0]["type"] for one in first.criteria]
    assert kinds == ["TextMatch", "TextMatch", "Judge", "Human", "Latency"]
    assert metrics(first.criteria[4])[0]["max"] == 2000
    assert {one.expected_value for one in first.criteria} == {"Paris"}
    assert second.variables == {"input": "just text"}
    assert suite({"cases": [{"inputs": "x"}]}, "c.json", "pydantic-evals")[0].tests[0].criteria


def test_langsmiths_datasets(suite: Read) -> None:
    lines = [
        {"inputs": {"question": "Where is {{it}}?"}, "outputs": {"answer": "Here."}},
        {"inputs": {"messages": [{"role": "user", "content": "hi"}]}, "outputs": {"message": "hello"}},
        {"inputs": {"a": "x", "b": 2}, "outputs": {"answer": "y", "tool_used": "z"}},
    ]
    made, found = suite("\n".join(json.dumps(one) for one in lines) + "\nbroken", "d.jsonl", "langsmith-dataset")
    first, second, third = made.tests
    assert (first.prompt, first.variables, first.criteria[0].expected_value) == (
        "{{ question }}", {"question": "Where is {{it}}?"}, "Here.",
    )  # fmt: skip
    assert second.messages is not None
    assert second.criteria[0].expected_value == "hello"
    assert third.variables["outputs"] == {"answer": "y", "tool_used": "z"}
    assert len(found.skipped) == 1


CASE = {
    "_EXPORT_SUMMARY": "SQL", "UID": "0xAB01", "NAME": "SQL", "PROMPT": "Alle Kunden aus {{Land}}?", "AI_AGENT": "0x1",
    "DESCRIPTION": "Prüft SQL", "CONTEXT": {
        "object_alias": "exface.Core.LOG", "input_data": {"rows": [{"id": "F0"}]}, "filter_context": 1,
        "sample_concepts": {"intro": ["// Multiline text delimited by `\\n`", "one", "two"]},
    },
}  # fmt: skip
CRITERION = {
    "UID": "0xC1", "AI_TEST_CASE": "0xab01", "NAME": "Filter", "WEIGHT": "2.000", "EXPECTED_VALUE": "SELECT",
    "PROTOTYPE": "axenox/genai/AI/TestCriteria/TextResponseTestCriterion.php", "DESCRIPTION": "",
    "CONFIG_UXON": {"//": "note", "metrics": [{"type": "TextMatch", "contains": "DE"}]},
}  # fmt: skip


def sheet(alias: str, *rows: Any) -> dict[str, Any]:
    return {"object_alias": f"axenox.GenAI.{alias}", "columns": [{"name": "UID"}], "rows": list(rows)}


@pytest.mark.parametrize("shape", ["list", "named", "nested", "beside"])
def test_power_uis_exports_in_every_shape(suite: Read, tmp_path: Path, shape: str) -> None:
    given: Any = [sheet("AI_TEST_CASE", CASE), sheet("AI_TEST_CRITERION", CRITERION)]
    if shape == "named":
        given = {"AI_TEST_CASE": [CASE], "AI_TEST_CRITERION": {"rows": [CRITERION]}}
    elif shape == "nested":
        given = sheet("AI_TEST_CASE", {**CASE, "AI_TEST_CRITERION": {"rows": [CRITERION]}})
    elif shape == "beside":
        (tmp_path / "04_AI_TEST_CRITERION.json").write_text(json.dumps(given[1]), "utf-8")
        given = given[0]
    made, found = suite(given, "03_AI_TEST_CASE.json", "power-ui")
    (test,) = made.tests
    assert (test.name, test.description) == ("SQL", "Prüft SQL")
    assert (test.prompt, test.variables) == ("{{ prompt_text }}", {"prompt_text": "Alle Kunden aus {{Land}}?"})
    assert test.context is not None
    assert test.context.sample_concepts == {"intro": "one\ntwo"}
    assert test.context.object_alias == "exface.Core.LOG"
    (criterion,) = test.criteria
    assert (criterion.name, criterion.weight, criterion.expected_value) == ("Filter", 2, "SELECT")
    assert criterion.prototype_class == "TextResponseTestCriterion.php"
    assert '"//": "note"' in str(criterion.config_uxon)
    assert any("filter_context" in note for note in found.notes)


def test_an_own_prototype_class_of_power_ui_asks_a_person(suite: Read) -> None:
    own = {**CRITERION, "PROTOTYPE": "my/app/MyTestCriterion.php", "DESCRIPTION": "Mine"}
    made, found = suite([sheet("AI_TEST_CASE", CASE), sheet("AI_TEST_CRITERION", own)], "t.json", "power-ui")
    (criterion,) = made.tests[0].criteria
    assert (metrics(criterion)[0]["type"], criterion.weight) == ("Human", 2)
    assert (criterion.description or "").startswith("Mine Not translated: Power UI's criterion")
    assert any("there is no prototype class 'MyTestCriterion.php': a person decides" in note for note in found.notes)


@pytest.mark.parametrize(("weight", "expected"), [("0,5", 0.5), ("0.5", 0.5), (None, 1), ("viel", 1), ("-1", 1)])
def test_power_uis_weights(suite: Read, weight: str | None, expected: float) -> None:
    sheets = [sheet("AI_TEST_CASE", CASE), sheet("AI_TEST_CRITERION", {**CRITERION, "WEIGHT": weight})]
    made, found = suite(sheets, "t.json", "power-ui")
    assert made.tests[0].criteria[0].weight == expected
    assert any(f"its weight {weight!r}" in note for note in found.notes) == (weight in ("viel", "-1"))


def test_suites_become_power_uis_test_cases_and_come_back(suite: Read, tmp_path: Path) -> None:
    text = """
tests:
  - id: one
    name: One
    prompt: "Kunden aus {{land}}"
    variables: {land: "DE"}
    context: {sample_system_prompt: Kurz., sample_tools: {find: {sample_response: x}}}
    criteria:
      - {name: A, weight: 2, expected_value: x, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains: DE}]}}
      - name: B
        prototype_class: ToolResponse
        config_uxon: |
          {"metrics": [{"type": "ToolCheck", "forbidden_tools": ["x"]}], // why
          }
  - {id: rows, name: Rows, prompt: "{{q}}", dataset: {file: d.csv}, criteria: [
      {name: A, prototype_class: TextResponse, config_uxon: {metrics: [{type: Human}]}}]}
"""
    (tmp_path / "d.csv").write_text("q\nx\n", "utf-8")
    loaded = load_bytes(text.encode(), tmp_path / "a.suite.yaml")
    assert loaded.suite is not None
    exported = sheets_of(loaded.suite, "a")
    sheets, notes = exported.document, exported.notes
    assert [one["object_alias"] for one in sheets] == ["axenox.GenAI.AI_TEST_CASE", "axenox.GenAI.AI_TEST_CRITERION"]
    assert any("rows: left out" in note for note in notes)
    made, _ = suite(sheets)
    (test,) = made.tests
    assert test.prompt == "Kunden aus DE"
    assert test.context is not None
    assert [tool.name for tool in test.context.tools()] == ["find"]
    assert [(one.name, one.weight, one.expected_value) for one in test.criteria] == [("A", 2, "x"), ("B", 1, None)]
    assert metrics(test.criteria[0]) == [{"type": "TextMatch", "contains": "DE"}]
    assert "// why" in str(test.criteria[1].config_uxon)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("prompts: [a\ntests: [", "c.yaml", "not YAML"),
        ("prompts: [a]\ntests: []\nproviders: x\n" + "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
         + "".join(f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * 9) + "]\n" for n in range(1, 9)), "c.yaml", "values"),
        ('{"object_alias": "axenox.GenAI.AI_TEST_CRITERION", "rows": []}', "c.json", "no test cases"),
        ('{"cases": []}', "c.json", "no tests"),
        ('{"cases": ' + "[" * 150 + "]" * 150 + "}", "c.json", "levels"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_said(suite: Read, text: str, name: str, said: str) -> None:
    with pytest.raises(AgentevalError, match=said):
        suite(text, name)


def test_tests_are_no_runs(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(PROMPTFOO, "utf-8")
    with pytest.raises(AgentevalError, match="tests in this file") as caught:
        import_file(path, store)
    assert "--to" in caught.value.fix


def test_inspects_samples(suite: Read) -> None:
    def sample(number: int, epoch: int, target: Any, scorer: str) -> dict[str, Any]:
        said = {"role": "assistant", "content": "x"}
        return {"id": number, "epoch": epoch, "input": "Is {{x}} it?", "target": target, "messages": [said],
                "scores": {scorer: {"value": "C"}}}  # fmt: skip

    samples = [sample(1, 1, "yes", "includes"), sample(1, 2, "yes", "includes"), sample(2, 1, ["a", "b"], "match")]
    made, _ = suite({"version": 2, "eval": {"model": "m"}, "samples": samples}, "log.json", "inspect")
    first, second = made.tests
    assert (first.id, first.variables["prompt_text"], first.criteria[0].expected_value) == ("1", "Is {{x}} it?", "yes")
    assert metrics(first.criteria[0]) == [{"type": "TextMatch", "contains_ignore_case": "yes"}]
    assert metrics(second.criteria[0])[0]["type"] == "Regex"
    assert metrics(second.criteria[0])[0]["pattern"].startswith("(?:a|b)")


@pytest.mark.parametrize(
    ("options", "answer", "passes"),
    [
        ({}, "It is (Paris).", True),
        ({}, "Paris it is", False),
        ({"location": "begin"}, "'Paris' it is", True),
        ({"location": "begin"}, "It is Paris", False),
        ({"location": "exact"}, " Paris!\n", True),
        ({"location": "exact"}, "It is Paris", False),
        ({"location": "any"}, "It is Paris, I think", True),
        ({"ignore_case": False}, "It is paris", False),
        ({"ignore_case": True}, "It is paris", True),
    ],
)
def test_inspects_match_is_what_it_was_called_with(
    suite: Read, options: dict[str, Any], answer: str, passes: bool
) -> None:
    made, _ = suite(inspect_log("match", options, target="Paris."), "log.json", "inspect")
    (metric,) = metrics(made.tests[0].criteria[0])
    assert metric["type"] == "Regex"
    assert (re.search(metric["pattern"], answer, re.IGNORECASE if metric.get("flags") else 0) is not None) == passes


def inspect_log(scorer: str, options: dict[str, Any], target: str, choices: list[str] | None = None) -> dict[str, Any]:
    said = {"role": "assistant", "content": "x"}
    sample = {"id": 1, "epoch": 1, "input": "Where?", "target": target, "messages": [said],
              "choices": choices, "scores": {scorer: {"value": "C"}}}  # fmt: skip
    evaluation = {"model": "m", "scorers": [{"name": scorer, "options": options}]}
    return {"version": 2, "eval": evaluation, "samples": [sample]}


def test_inspects_choices_come_along(suite: Read) -> None:
    made, found = suite(inspect_log("choice", {}, "B", ["Oslo", "Paris"]), "log.json", "inspect")
    (test,) = made.tests
    assert test.variables["choices"] == ["Oslo", "Paris"]
    assert metrics(test.criteria[0]) == [{"type": "Classification", "labels": ["A", "B"], "label": "B"}]
    assert any("its variable `choices`" in note for note in found.notes)


def test_what_is_not_translated_of_inspects_scorers_is_said(suite: Read) -> None:
    made, _ = suite(inspect_log("match", {"numeric": True}, "12"), "log.json", "inspect")
    assert "match(numeric=True)" in (made.tests[0].criteria[0].description or "")
    _, found = suite(inspect_log("model_graded_qa", {"template": "Grade: {answer}"}, "12"), "log2.json", "inspect")
    assert any("model_graded_qa has its own `template`" in note for note in found.notes)


def test_names_and_texts_of_any_kind_make_a_valid_suite(suite: Read) -> None:
    odd = ["- x: y # z", "{{ broken", "\u0085\x1b[31m\x00", "no", "1e3", "a\n\n b\n", "'\"\\", "x" * 3000, "🚀", ""]
    given = {
        "cases": [
            {"name": one, "inputs": one, "expected_output": one, "evaluators": [{"Contains": one}]} for one in odd
        ]
    }
    made, _ = suite(given)
    assert [test.variables["input"] for test in made.tests] == odd
    assert len({test.id for test in made.tests}) == len(odd)


# What a configuration of promptfoo names: files of variables and of tests, scenarios, templates

CONTAINS = {"type": "contains", "value": "x"}
CSV = (
    "q, place ,__expected,__expected1,__expected2,__description,__threshold,__metadata:a,"
    "__config:__expected3:threshold\n"
    'One?,Oslo,contains:Oslo,"icontains-any:""a, b"",c",similar:far,first,0.5,m,0.7\n'
    "Two?,Rome,plain text,fn: output.length > 3,grade: is polite,,,m,\n"
    "Three?,Bern,,,,,,,\n"
)
FILES = {
    "v.yaml": "q: Seven?\nplace: [Oslo, Rome]\n",
    "w.json": json.dumps({"q": "Eight?"}),
    "list.yaml": "- 1\n",
    "tests.yaml": "- vars: {q: Nine?}\n  assert: [{type: contains, value: x}]\n- vars: {q: Ten?}\n",
    "more/a.json": json.dumps([{"vars": {"q": "A?"}, "assert": [CONTAINS]}]),
    "more/b.jsonl": json.dumps({"vars": {"q": "B?"}, "assert": [CONTAINS]}) + "\n{broken\n",
    "rows.csv": CSV,
    "plain.csv": "q,place\nOne?,Oslo\n",
    "schema.json": json.dumps({"type": "object", "required": ["a"]}),
    "default.yaml": "assert: [{type: contains, value: shared}]\nvars: {place: Bern}\n",
    "text.txt": "expected text",
}


@pytest.fixture
def promptfoo(suite: Read, tmp_path: Path) -> Callable[..., tuple[Any, FoundTests]]:
    (tmp_path / "more").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")

    def read(**config: Any) -> tuple[Any, FoundTests]:
        return suite({"prompts": ["{{q}}"], "providers": ["echo"], **config}, "promptfooconfig.json")

    return read


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_promptfoos_tables_as_excel_writes_them(
    promptfoo: Callable[..., tuple[Any, FoundTests]], tmp_path: Path, delimiter: str, encoding: str
) -> None:
    rows = delimiter.join(("q", "__expected")) + "\r\n" + delimiter.join(("Wie groß?", "contains:grün")) + "\r\n"
    (tmp_path / "excel.csv").write_bytes(rows.encode(encoding))
    made, report = promptfoo(tests="file://excel.csv")
    (test,) = made.tests
    assert (test.variables["q"], metrics(test.criteria[0])[0]["contains"]) == ("Wie groß?", "grün")
    (tmp_path / "excel.csv").write_bytes(rows.replace("__expected", "other").encode(encoding))
    assumed = [note for note in report.notes if "excel.csv is read" in note]
    assert bool(assumed) == (delimiter != "," or encoding == "cp1252")
    made, _ = promptfoo(tests="file://excel.csv")
    assert made.tests[0].dataset.encoding == ("windows-1252" if encoding == "cp1252" else None)


def types_of(test: Any) -> list[str]:
    return [metrics(one)[0]["type"] for one in test.criteria]


VARIABLES: list[tuple[Any, list[dict[str, Any]]]] = [
    ("file://v.yaml", [{"q": "Seven?", "place": "Oslo"}, {"q": "Seven?", "place": "Rome"}]),
    ("file://w.json", [{"q": "Eight?"}]),
    ("w.json", [{"q": "Eight?"}]),
    (["file://v.yaml", "file://w.json"], [{"q": "Eight?", "place": "Oslo"}, {"q": "Eight?", "place": "Rome"}]),
    ("file://w*.json", [{"q": "Eight?"}]),
]


@pytest.mark.parametrize(("given", "expected"), VARIABLES)
def test_variables_in_files(promptfoo: Any, given: Any, expected: list[dict[str, Any]]) -> None:
    made, _ = promptfoo(tests=[{"vars": given, "assert": [CONTAINS]}])
    assert [one.variables for one in made.tests] == expected
    assert all(types_of(one) == ["TextMatch"] for one in made.tests)


@pytest.mark.parametrize(
    ("given", "said"),
    [("file://none.yaml", "no such file"), ("file://../x.yaml", "outside"), ("file://list.yaml", "not objects"),
     ("file://none*.yaml", "no such file")],
)  # fmt: skip
def test_variables_that_cannot_be_read_are_said(promptfoo: Any, given: str, said: str) -> None:
    _, found = promptfoo(tests=[{"vars": given, "assert": [CONTAINS]}])
    assert any(said in note for note in found.notes)


@pytest.mark.parametrize("name", ["a\0b.yaml", f"{'long' * 100}.yaml", "\ud800.yaml", "\ud800*.yaml"],
                         ids=["a null byte", "too long", "half a character", "a pattern"])  # fmt: skip
def test_names_that_no_file_can_have(promptfoo: Any, name: str) -> None:
    _, found = promptfoo(tests=[{"vars": f"file://{name}", "assert": [CONTAINS]}])
    assert any("no such file" in note for note in found.notes)


def test_what_a_configuration_has_too_much_of_is_said(promptfoo: Any, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(1_001):
        (tmp_path / "many" / f"{number:04}.json").write_text('{"vars": {"q": "A?"}}', "utf-8")
    many = {"vars": {"q": [str(one) for one in range(50)], "p": [str(one) for one in range(50)]}}
    made, found = promptfoo(tests=[many, {"vars": {"q": "Z?"}, "assert": [CONTAINS] * 501}])
    assert (len(made.tests), len(made.tests[-1].criteria)) == (1_001, 500)
    assert found.notes[:3] == [
        "only the first 1,000 of 2,500 combinations of variables became tests",
        "tests without assertions pass with any answer, as in promptfoo",
        "only the first 500 of 501 assertions of a test became criteria",
    ]
    _, found = promptfoo(tests="file://many/*.json")
    assert found.notes[:1] == ["only the first 1,000 of 1,001 files that match many/*.json were read"]


TESTS: list[tuple[Any, list[str], int]] = [
    ("file://tests.yaml", ["Nine?", "Ten?"], 0),
    (["file://tests.yaml", {"vars": {"q": "Mine?"}}], ["Nine?", "Ten?", "Mine?"], 0),
    ("tests.yaml", ["Nine?", "Ten?"], 0),
    ("file://more/*", ["A?", "B?"], 1),
    (["file://more/a.json"], ["A?"], 0),
    ("file://rows.csv", ["One?", "Two?", "Three?"], 0),
]


@pytest.mark.parametrize(("given", "questions", "skipped"), TESTS)
def test_tests_in_files(promptfoo: Any, given: Any, questions: list[str], skipped: int) -> None:
    made, found = promptfoo(tests=given)
    assert [one.variables["q"] for one in made.tests] == questions
    assert len(found.skipped) == skipped


@pytest.mark.parametrize(
    "given",
    ["file://make.py", [{"path": "file://make.py:f", "config": {}}], "https://example.com/tests.csv",
     "huggingface://datasets/a/b"],
)  # fmt: skip
def test_tests_that_programs_or_servers_make_are_said(promptfoo: Any, tmp_path: Path, given: Any) -> None:
    (tmp_path / "make.py").write_text("1", "utf-8")
    _, found = promptfoo(tests=[*(given if isinstance(given, list) else [given]), {"vars": {"q": "Mine?"}}])
    assert any("can't be read" in one for one in found.skipped)


def test_expected_columns_of_a_csv_file(promptfoo: Any) -> None:
    made, found = promptfoo(tests="file://rows.csv", defaultTest="file://default.yaml")
    first, second, third = made.tests
    assert types_of(first) == ["TextMatch", "Regex", "Similarity", "TextMatch"]
    assert (first.name, first.pass_threshold, first.variables) == ("first", 0.5, {"q": "One?", "place": "Oslo"})
    assert metrics(first.criteria[1])[0]["pattern"] == r"(?:a,\ b|c)"
    assert metrics(first.criteria[2])[0]["min"] == 0.7
    assert {one.severity for one in first.criteria} == {"warning"}  # only their mean counts
    assert types_of(second) == ["TextMatch", "Python", "Judge", "TextMatch"]
    assert metrics(second.criteria[0])[0]["equals"] == "plain text"
    assert "javascript('output.length > 3', output, context)" in found.module_text
    assert types_of(third) == ["TextMatch"]
    assert any("__metadata:a" in note for note in found.notes)
    assert not any("assertions" in note for note in found.notes)


def test_a_csv_file_of_variables_alone_is_a_dataset(promptfoo: Any) -> None:
    made, _ = promptfoo(tests="file://plain.csv", defaultTest={"assert": [CONTAINS]})
    (test,) = made.tests
    assert test.dataset.file == "plain.csv"


def test_scenarios_are_multiplied(promptfoo: Any) -> None:
    scenario = {
        "config": [{"vars": {"place": "Oslo"}, "assert": [CONTAINS]}, {"vars": {"place": "Rome"}}],
        "tests": [{"vars": {"q": "One?"}, "assert": [{"type": "is-json"}]}, {"vars": {"q": "Two?"}}],
    }
    made, _ = promptfoo(scenarios=[scenario])
    assert [(one.variables["place"], one.variables["q"], types_of(one)) for one in made.tests] == [
        ("Oslo", "One?", ["TextMatch", "Json"]), ("Oslo", "Two?", ["TextMatch"]),
        ("Rome", "One?", ["Json"]), ("Rome", "Two?", ["Regex"]),
    ]  # fmt: skip


def test_templates_schemas_transforms_and_scoring_functions(promptfoo: Any) -> None:
    made, _ = promptfoo(
        assertionTemplates={"named": CONTAINS},
        tests=[
            {"vars": {"q": "1"}, "assert": [{"$ref": "#/assertionTemplates/named"}, {"$ref": "#/nothing"}]},
            {"vars": {"q": "2"}, "assert": [{"type": "is-json", "value": "file://schema.json"},
                                            {"type": "equals", "value": "file://text.txt"},
                                            {"type": "contains", "value": "file://check.js"}]},
            {"vars": {"q": "3"}, "assert": [CONTAINS], "options": {"transform": "output.text"}},
            {"vars": {"q": "4"}, "assert": [CONTAINS], "assertScoringFunction": "file://score.js"},
            {"vars": {"q": "5"}, "assert": [CONTAINS], "options": {"prefix": "Say: ", "suffix": "!"}},
            {"vars": {"q": "6"}, "assert": [CONTAINS], "threshold": 7},
        ],
    )  # fmt: skip
    assert [types_of(one) for one in made.tests] == [
        ["TextMatch", "Human"], ["Json", "TextMatch", "Human"], ["Python"], ["TextMatch", "Human"], ["TextMatch"],
        ["TextMatch", "Human"],
    ]  # fmt: skip
    assert metrics(made.tests[1].criteria[0])[0]["schema"]["required"] == ["a"]
    assert metrics(made.tests[1].criteria[1])[0]["equals"] == "expected text"
    assert made.tests[3].criteria[0].severity == "info"
    assert made.tests[4].prompt == "Say: {{q}}!"


LOST_BY_POWER_UI: dict[str, dict[str, Any]] = {
    "repeat": {"repeat": 2}, "variations": {"variations": [{"name": "a", "variables": {}}]},
    "severity": {"severity": "warning"}, "negate": {"negate": True}, "pass_threshold": {"pass_threshold": 0.5},
    "tags": {"tags": ["slow"]}, "category": {"category": "happy-path"}, "agent": {"agent": "a"},
    "timeout": {"timeout": 5}, "stop": {"stop": {"threshold": 0.5}}, "gate": {"gate": {"pass_rate": 0.5}},
}  # fmt: skip


@pytest.mark.parametrize("one", LOSSES, ids=[one.code for one in LOSSES])
def test_power_ui_says_just_what_it_cannot_keep(one: SheetLoss) -> None:
    criterion: dict[str, Any] = {
        "name": "A", "prototype_class": "TextResponse", "weight": 2, "expected_value": "x", "description": "why",
        "config_uxon": {"metrics": []},
    }  # fmt: skip
    plain = Suite.model_validate({"name": "s", "tests": [{"id": "t", "prompt": "q", "criteria": [criterion]}]})
    assert sheets_of(plain, "k").notes == []
    more = LOST_BY_POWER_UI[one.code]
    of_criterion = one.code in ("severity", "negate")
    test = Test.model_construct(**{**dict(plain.tests[0]), **({} if of_criterion else more)})
    if of_criterion:
        test.criteria = [Criterion.model_validate({**criterion, **more})]
    made = plain.model_copy(update={"tests": [test]})
    assert sheets_of(made, "k").notes == [f"t: not kept: {one.description}"]


# What js-yaml 4.3.2 makes of plain scalars, and how JavaScript writes them.
JS_YAML = {
    "no": "no", "yes": "yes", "on": "on", "off": "off", "y": "y", "12:30:45": "12:30:45", "190:20:30": "190:20:30",
    "0123": 123, "08": 8, "0o17": 15, "-0o17": -15, "0x1F": 31, "+0x1f": 31, "0b11": 3, "0o8": "0o8",
    "1_000": "1_000", "1_0.5": "1_0.5", "+12": 12, "-0": 0, "1.": 1, ".5": 0.5, "-.5": "-.5", "1e3": 1000, "1.10": 1.1,
    "1.0": 1, "0.1e-2": 0.001, "1e400": "1e400", "12345678901234567890": 12345678901234567000, "=": "=", "<<": "<<",
    "2024-01-01": "2024-01-01", "2024-01-01T10:00:00Z": "2024-01-01T10:00:00Z", "~": None, "": None, "Null": None,
    "nULL": "nULL", "TRUE": True, "True": True, "tRUE": "tRUE", "'no'": "no", '"0123"': "0123",
    "!!str 3": "3", "!!int 0o17": 15, "!!float 3": 3,
}  # fmt: skip


@pytest.mark.parametrize(("plain", "value"), JS_YAML.items())
def test_promptfoos_yaml_is_read_as_promptfoo_reads_it(plain: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(f"prompts: [a]\nproviders: [b]\nvalue: {plain}\n")
    with open_source(path) as source:
        read = read_document(source, "js-yaml")["value"]
    assert (type(read), read) == (type(value), value)


def test_a_verdict_on_a_plain_no_stays(suite: Read) -> None:
    text = "prompts: ['Q {{t}}']\nproviders: [a]\nshared: &s {t: no}\ntests:\n- vars: {<<: *s, n: 1e3}\n  assert:\n"
    text += "".join(f"  - {{type: equals, value: {one}}}\n" for one in ("no", "0123", "12:30:45", "1.0"))
    text += "  - {type: contains-any, value: [yes, off]}\n  - {type: is-json, value: 'enum: [no]'}\n"
    made, _ = suite(text, "promptfooconfig.yaml", "promptfoo-config")
    test = made.tests[0]
    assert test.variables == {"t": "no", "n": 1000}
    found = [metrics(one)[0] for one in test.criteria]
    assert [one["equals"] for one in found[:4]] == ["no", "123", "12:30:45", "1"]
    assert found[4]["contains_any"] == ["yes", "off"]
    assert found[5]["schema"]["enum"] == ["no"]


def test_yaml_of_a_tool_in_python_is_read_with_pyyaml(suite: Read) -> None:
    text = "cases:\n- {name: a, inputs: {q: no, at: 12:30, n: 0123}}\n"
    made, _ = suite(text, "cases.yaml", "pydantic-evals")
    variables = made.tests[0].variables or {}
    assert {key: variables[key] for key in ("q", "at", "n")} == {"q": False, "at": 750, "n": 83}


def test_numbers_of_promptfoos_json_are_javascripts(suite: Read) -> None:
    given = '{"prompts": ["a"], "providers": ["b"], "tests": [{"assert": [{"type": "equals", "value": 1.0}]}]}'
    made, _ = suite(given, "promptfooconfig.json", "promptfoo-config")
    assert metrics(made.tests[0].criteria[0])[0]["equals"] == "1"


@pytest.mark.parametrize(
    ("given", "name", "format_name"),
    [
        (
            {"cases": [{"inputs": "x", "expected_output": "{{ a }}", "evaluators": [
                {"Contains": "{{ a }}"}, {"Equals": {"value": "{{ a }}"}}, "EqualsExpected"]}]},
            "c.json",
            "pydantic-evals",
        ),
        (inspect_log("includes", {}, target="{{ a }}"), "log.json", "inspect"),
        (inspect_log("exact", {}, target="{{ a }}"), "log.json", "inspect"),
        ('{"inputs": {"question": "x"}, "outputs": {"words": ["{{ a }}"]}}\n', "d.jsonl", "langsmith-dataset"),
        (
            {"testFeatureId": "agent", "alias": "t", "testFeatureConfig": {"message": "x"}, "graders": [
                {"graderTypeId": "exact-match", "name": "is it", "config": {"expectedValue": "{{ a }}"}}]},
            "t.json",
            "umbraco",
        ),
    ],
    ids=["pydantic-evals", "inspect-includes", "inspect-exact", "langsmith", "umbraco"],
)  # fmt: skip
def test_braces_of_formats_without_templates_are_text(suite: Read, given: Any, name: str, format_name: str) -> None:
    """A criterion would look for a variable of the test, which has none of this name, and be an error in each run."""
    made, _ = suite(given, name, format_name)
    (test,) = made.tests
    transcript = Transcript(final_output="{{ a }}")
    verdict = grade(transcript, specs_of(test.criteria), test.variables)
    assert [str(result.outcome) for result in verdict.results] == ["passed"] * len(test.criteria)


@pytest.mark.parametrize(
    ("given", "name", "format_name"),
    [
        ({"cases": [{"inputs": "x", "evaluators": [{"Mine": "{{ a }}"}]}]}, "c.json", "pydantic-evals"),
        (inspect_log("mine", {}, target="{{ a }}"), "log.json", "inspect"),
        ({"testFeatureId": "agent", "alias": "t", "testFeatureConfig": {"message": "x"},
          "graders": [{"graderTypeId": "mine", "name": "is it", "config": {"is": "{{ a }}"}}]}, "t.json", "umbraco"),
    ],
    ids=["pydantic-evals", "inspect", "umbraco"],
)  # fmt: skip
def test_a_person_is_asked_with_the_braces_that_a_check_has(
    suite: Read, given: Any, name: str, format_name: str
) -> None:
    made, _ = suite(given, name, format_name)
    (criterion,) = made.tests[0].criteria
    (result,) = grade(Transcript(final_output="x"), specs_of([criterion]), {}).results
    assert str(result.outcome) == "needs_review"
