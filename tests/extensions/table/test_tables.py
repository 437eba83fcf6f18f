"""Tables of test cases, .json datasets, and LangSmith's datasets as suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.main import main as run_main
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.import_file import open_source
from agenteval_tui.formats.importers.suite_import import FoundTests, suite_text
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.datasets import prompt_of, read_rows
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import Dataset, Suite


def main(words: list[str]) -> int:
    return run_main(words, launch_app=lambda start: 0)


VIZRA = """input,expected_context,scenario_type
"My order is late, what's happening?",Order tracking and status updates,complaint
"Can I return this item?",Return policy and process,policy_question
"""


def imported(folder: Path, name: str, content: str) -> tuple[Suite, FoundTests]:
    """The suite that a file becomes, without an error."""
    (folder / name).write_text(content, "utf-8")
    with open_source(folder / name) as source:
        known = detect(source)
        assert known.tests is not None
        found = known.tests(source)
    path = folder / "made.suite.yaml"
    path.write_text(suite_text(found, source=name), "utf-8")
    loaded = load_suite(path)
    assert [one for one in loaded.problems if one.severity == "error"] == []
    assert loaded.suite is not None
    return loaded.suite, found


def metric(suite: Suite, index: int = 0, test: int = 0) -> dict[str, Any]:
    config = suite.tests[test].criteria[index].config_uxon
    return (json.loads(config) if isinstance(config, str) else config)["metrics"][0]


def refused(folder: Path, content: str, name: str = "t.csv") -> AgentevalError:
    with pytest.raises(AgentevalError) as caught:
        imported(folder, name, content)
    return caught.value


def test_vizras_table_is_the_dataset_of_a_suite(tmp_path: Path) -> None:
    suite, found = imported(tmp_path, "support.csv", VIZRA)
    (test,) = suite.tests
    assert test.dataset is not None
    assert (test.dataset.file, test.prompt) == ("support.csv", None)
    assert [row.variables["scenario_type"] for row in read_rows(test.dataset, tmp_path)] == [
        "complaint", "policy_question",
    ]  # fmt: skip
    assert metric(suite) == {"type": "Human", "question": "Does the answer fit this? {{expected_context}}"}
    assert found.notes[:3] == [
        "`input` is the prompt",
        "`expected_context` says in words what is expected: a person decides, or a judge",
        "1 variable: scenario_type",
    ]


def test_criteria_to_choose_from_are_a_comment_that_is_right_when_it_is_taken(tmp_path: Path) -> None:
    _, found = imported(tmp_path, "support.csv", VIZRA)
    text = (tmp_path / "made.suite.yaml").read_text("utf-8")
    head, _, templates = text.partition("\n# Criteria to choose from")
    criteria = "\n".join(line[1:] for line in templates.split("\n")[1:])
    (tmp_path / "made.suite.yaml").write_text(f"{head.rstrip()}\n{criteria}", "utf-8")
    loaded = load_suite(tmp_path / "made.suite.yaml")
    assert [one for one in loaded.problems if one.severity == "error"] == []
    assert loaded.suite is not None
    assert len(loaded.suite.tests[0].criteria) == 1 + len(found.templates) > 5


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("question,answer\nCapital?,Paris\n", {"type": "TextMatch", "contains_ignore_case": "{{answer}}"}),
        ("Frage;Erwartete_Antwort\nHauptstadt?;Paris\n",
         {"type": "TextMatch", "contains_ignore_case": "{{Erwartete_Antwort}}"}),
        ("input,Erwartete Antwort\nHauptstadt?,Paris\n",
         {"type": "TextMatch", "contains_ignore_case": "{{expected_value}}"}),
        ("User Input,Expected Output\nHauptstadt?,Paris\n",
         {"type": "TextMatch", "contains_ignore_case": "{{expected_value}}"}),
        ("prompt,must_contain\nhi,\"hello, help\"\n", {"type": "Keywords", "keywords": "{{must_contain}}"}),
        ("prompt,must_mention\nhi,\"[\"\"a\"\", \"\"b\"\"]\"\n", {"type": "Keywords", "keywords": "{{must_mention}}"}),
        ("prompt,expected\nhi," + "long " * 40 + "\n",
         {"type": "Human", "question": "Does the answer fit this? {{expected}}"}),
        ("prompt,expected\nhi,\"[\"\"a\"\", \"\"b\"\"]\"\n",
         {"type": "Human", "question": "Does the answer fit this? {{expected}}"}),
        ("prompt,topic\nhi,x\n", {"type": "Human", "question": "Is this a good answer?"}),
    ],
)  # fmt: skip
def test_the_columns_decide_the_criterion(tmp_path: Path, content: str, expected: dict[str, Any]) -> None:
    assert metric(imported(tmp_path, "t.csv", content)[0]) == expected


def test_a_column_that_no_criterion_can_name_is_said(tmp_path: Path) -> None:
    _, found = imported(tmp_path, "t.csv", "input,Gute Antwort\nHauptstadt?,Paris\n")
    assert "criteria can't use Gute Antwort: write names without spaces" in found.notes


def test_excels_table_in_the_encoding_of_windows(tmp_path: Path) -> None:
    content = "Frage;Erwartet\nWie groß ist es?;größer\n"
    (tmp_path / "t.csv").write_bytes(content.encode("cp1252"))
    with open_source(tmp_path / "t.csv") as source:
        known = detect(source)
        assert known.tests is not None
        found = known.tests(source)
    assert found.tests[0]["dataset"] == {"file": "t.csv", "encoding": "windows-1252"}
    assert any("is not UTF-8 and is read as Windows-1252" in note for note in found.notes)
    (tmp_path / "t.suite.yaml").write_text(suite_text(found, source="t.csv"))
    loaded = load_suite(tmp_path / "t.suite.yaml")
    assert loaded.suite is not None
    assert loaded.suite.tests[0].dataset is not None
    (row,) = read_rows(loaded.suite.tests[0].dataset, tmp_path)
    assert row.variables["Frage"] == "Wie groß ist es?"


def test_two_columns_could_be_the_prompt(tmp_path: Path) -> None:
    suite, found = imported(tmp_path, "t.csv", "question,input,expected\na,b,c\n")
    assert "`input` is the prompt" in found.notes
    assert 'question could be the prompt, too: write `prompt: "{{ question }}"`' in found.notes
    assert suite.tests[0].prompt is None
    other, _ = imported(tmp_path, "u.csv", "utterance,expected\nhi,c\n")
    assert other.tests[0].prompt == "{{ utterance }}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('"My order is late, what happens?",Order tracking,complaint\n"Can I return it?",Policy,policy\n',
         ("has no column names", "write a first line of names, such as input,expected")),
        ("topic,level\nx,1\n", ("no column of this table is the prompt: it has topic, level", "call the column")),
        ("input,input\na,b\n", ('the column "input" appears twice', "rename or remove one")),
        ("input,expected\n", ("it has no rows", "add rows")),
        ("", ("empty", "column names")),
    ],
)  # fmt: skip
def test_a_table_that_is_none_says_where_and_what_to_do(tmp_path: Path, content: str, words: tuple[str, str]) -> None:
    error = refused(tmp_path, content)
    assert str(tmp_path / "t.csv") in error.where
    assert words[0] in error.what
    assert words[1] in error.fix


def test_a_thousand_columns_and_wrong_rows(tmp_path: Path) -> None:
    names = ["input", "expected", *(f"c{number}" for number in range(998))]
    rows = [",".join(["hi", "hello", *("x" for _ in range(998))]), "too,short"]
    suite, found = imported(tmp_path, "wide.csv", "\n".join([",".join(names), *rows]))
    assert any(note.startswith("998 variables: c0, c1") and note.endswith("and 990 more") for note in found.notes)
    assert found.skipped == [
        "line 3: this row has 2 cells, and the header 1,000; " + found.skipped[0].partition("; ")[2]
    ]
    assert metric(suite)["contains_ignore_case"] == "{{expected}}"


def test_empty_cells_are_said(tmp_path: Path) -> None:
    _, found = imported(tmp_path, "t.csv", "input,expected\na,b\nc,\n")
    assert "`expected` is empty in 1 row: its criterion is an error there, no verdict" in found.notes


def test_an_empty_column_becomes_no_criterion(tmp_path: Path) -> None:
    suite, found = imported(tmp_path, "t.csv", "input,expected,expected_tools,expected_keywords\na,b,,\nc,d,,\n")
    assert [criterion.name for criterion in suite.tests[0].criteria] == ["As expected"]
    assert not any("expected_tools` says" in note for note in found.notes)


def test_rows_without_anything_are_no_rows(tmp_path: Path) -> None:
    imported(tmp_path, "t.csv", "input,expected\n,\na,b\n,\n")
    rows = list(read_rows(Dataset(file="t.csv"), tmp_path))
    assert [(row.number, row.line, row.variables["input"]) for row in rows] == [(1, 3, "a")]


def test_a_column_of_prompts_that_is_mostly_empty_is_said(tmp_path: Path) -> None:
    error = refused(tmp_path, "input,expected\na,b\n,c\n,d\n")
    assert error.what == "the column `input`, which would be the prompt, is empty in 2 rows of 3"


@pytest.mark.parametrize("outputs", ['{""answer"": ""Paris""}', '{""answer"": ""Paris"", ""score"": 1}'])
def test_a_table_with_langsmiths_columns_is_read_as_its_lines_are(tmp_path: Path, outputs: str) -> None:
    content = f'inputs,outputs,metadata\n"{{""question"": ""Where?""}}","{outputs}","{{}}"\n'
    suite, _ = imported(tmp_path, "t.csv", content)
    (row,) = read_rows(Dataset(file="t.csv"), tmp_path)
    assert prompt_of(row.variables) == "Where?"
    assert row.variables["expected_value"] == "Paris"
    assert suite.tests[0].prompt is None
    assert metric(suite)["contains_ignore_case"] == "{{expected_value}}"


def test_the_dataset_is_named_from_the_folder_of_the_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "support.csv").write_text(VIZRA)
    assert main(["import", str(tmp_path / "data" / "support.csv"), "--to", str(tmp_path / "s.suite.yaml")]) == 0
    loaded = load_suite(tmp_path / "s.suite.yaml")
    assert loaded.suite is not None
    assert loaded.suite.tests[0].dataset == Dataset(file="data/support.csv")
    (tmp_path / "suites").mkdir()
    assert main(["import", str(tmp_path / "data" / "support.csv"), "--to", str(tmp_path / "suites" / "s.yaml")]) == 0
    assert "../data/support.csv is outside the folder of the suite" in capsys.readouterr().out


def test_runs_are_not_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "support.csv").write_text(VIZRA)
    assert main(["import", str(tmp_path / "support.csv")]) == 2
    assert "--to NAME.suite.yaml" in capsys.readouterr().err


GOLDENS = [
    {
        "input": "Capital?",
        "actual_output": None,
        "expected_output": "Paris",
        "context": ["a"],
        "retrieval_context": None,
    },
    {"input": "River?", "actual_output": None, "expected_output": "Seine", "context": None, "retrieval_context": ["b"]},
]


@pytest.mark.parametrize("shape", [GOLDENS, {"goldens": GOLDENS, "name": "x"}, {"version": [1], "rows": GOLDENS}])
def test_deepevals_goldens_are_a_dataset(tmp_path: Path, shape: Any) -> None:
    (tmp_path / "goldens.json").write_text(json.dumps(shape, indent=2))
    rows = list(read_rows(Dataset(file="goldens.json"), tmp_path))
    assert [row.variables["expected_value"] for row in rows] == ["Paris", "Seine"]
    assert rows[1].line > rows[0].line > 1
    assert check_dataset(Dataset(file="goldens.json"), tmp_path).problems == []
    if isinstance(shape, list):
        suite, _ = imported(tmp_path, "goldens.json", json.dumps(shape))
        assert suite.tests[0].dataset == Dataset(file="goldens.json")
        assert metric(suite) == {"type": "TextMatch", "contains_ignore_case": "{{expected_output}}"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[\n {"input": "a"},\n 5]', 3, "a row of a dataset is an object"),
        ('{"input": "a"}', 1, "must be a list of objects"),
        ('[{"input": "a"},\n {"input": }]', 2, "this file is not JSON"),
        ('[{"input": NaN}]', 1, "NaN is not JSON"),
        ("[]", 1, "this dataset is empty"),
        ("", 1, "this dataset is empty"),
        ("[" * 3000, 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_in_a_json_dataset(tmp_path: Path, text: str, line: int, message: str) -> None:
    (tmp_path / "d.json").write_text(text)
    (problem,) = check_dataset(Dataset(file="d.json"), tmp_path).problems[:1]
    assert (problem.line, message in problem.message) == (line, True), problem


EXPECTATIONS: list[tuple[dict[str, Any], list[tuple[str, str, Any]]]] = [
    ({"answer": "Paris"}, [("TextResponse", "TextMatch", {"contains_ignore_case": "Paris"})]),
    ({"answer": "105", "tool_used": "calculator"},
     [("TextResponse", "TextMatch", {"contains_ignore_case": "105"}),
      ("ToolResponse", "ToolCheck", {"tools": [{"name": "calculator"}]})]),
    ({"answer": "x" * 200}, [("TextResponse", "Human", {})]),
    ({"count": 12}, [("TextResponse", "Regex", {"pattern": r"(?<![\w.,])12(?![\w]|[.,]\d)"})]),
    ({"ok": True}, [("TextResponse", "Human", {})]),
    ({"score_min": 50}, [("TextResponse", "Human", {})]),
    ({"keywords": ["a", "b"]}, [("TextResponse", "Keywords", {"keywords": ["a", "b"]})]),
    ({"person": {"name": "Ann"}}, [("JsonResponse", "Json", {"equals": {"name": "Ann"}})]),
    ({"trajectory": ["search", "book"]},
     [("ToolResponse", "Trajectory", {"calls": [{"name": "search"}, {"name": "book"}]})]),
    ({"messages": [{"role": "assistant", "content": "", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "assistant", "content": "Done."}]},
     [("ToolResponse", "ToolCheck", {"tools": [{"name": "find"}]}),
      ("TextResponse", "TextMatch", {"contains_ignore_case": "Done."})]),
    ({}, [("TextResponse", "Human", {})]),
]  # fmt: skip


@pytest.mark.parametrize(("outputs", "expected"), EXPECTATIONS)
def test_a_dataset_of_langsmith_gets_the_criteria_that_its_values_allow(
    tmp_path: Path, outputs: dict[str, Any], expected: list[tuple[str, str, Any]]
) -> None:
    suite, _ = imported(tmp_path, "d.jsonl", json.dumps({"inputs": {"question": "q"}, "outputs": outputs}))
    made = suite.tests[0].criteria
    assert [criterion.prototype_class for criterion in made] == [prototype for prototype, _, _ in expected]
    for index, (_, kind, properties) in enumerate(expected):
        found = metric(suite, index)
        assert found["type"] == kind
        assert {key: found[key] for key in properties} == properties


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "hi {{name}}"}],
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        [{"type": "human", "content": "hi"}],
        [{"type": "human", "data": {"content": "hi"}}],
        [{"id": ["langchain", "schema", "messages", "HumanMessage"], "lc": 1, "type": "constructor",
          "kwargs": {"content": "hi", "type": "human"}}],
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
         {"role": "tool", "tool_call_id": "1", "content": "x"}],
        ["hi"],
        [],
    ],
)  # fmt: skip
def test_rows_with_messages_make_a_valid_suite(tmp_path: Path, messages: list[Any]) -> None:
    row = {"inputs": {"messages": messages}, "outputs": {"answer": "x"}}
    suite, found = imported(tmp_path, "d.jsonl", json.dumps(row))
    (test,) = suite.tests
    if messages and isinstance(messages[0], dict):
        assert test.messages is not None
        assert test.messages[-1].role in ("user", "tool")
    assert ("is left out" in " ".join(found.notes)) == (len(messages) == 2 and messages[1].get("content") == "hello")


@pytest.mark.parametrize("key", ["examples", "goldens", "data"])
@pytest.mark.parametrize(
    "row", [{"inputs": {"question": "q"}, "outputs": {"answer": "a"}}, {"input": "q", "expected_value": "a"}]
)
def test_an_object_with_a_list_of_rows_is_a_table(tmp_path: Path, key: str, row: dict[str, Any]) -> None:
    suite, _ = imported(tmp_path, "d.json", json.dumps({"name": "x", key: [row]}))
    assert [prompt_of(one.variables) for one in read_rows(Dataset(file="d.json"), tmp_path)] == ["q"]
    assert metric(suite) == {"type": "TextMatch", "contains_ignore_case": "{{expected_value}}"}


@pytest.mark.parametrize("key", ["input", "messages"])
@pytest.mark.parametrize(
    "said", [{"type": "human", "data": {"content": "hi"}}, ["human", "hi"], {"role": "user", "content": "hi"}]
)
def test_a_chat_dataset_of_langsmith(tmp_path: Path, key: str, said: Any) -> None:
    row = {"inputs": {key: [said]}, "outputs": {"output": {"type": "ai", "data": {"content": "hello"}}}}
    suite, _ = imported(tmp_path, "d.jsonl", json.dumps(row))
    (test,) = suite.tests
    assert test.messages is not None
    assert [(message.role, message.content) for message in test.messages] == [("user", "hi")]
    assert metric(suite)["contains_ignore_case"] == "hello"


def test_splits_of_langsmith_are_tags_and_metadata_is_a_variable(tmp_path: Path) -> None:
    metadata = {"dataset_split": ["hard", "base"], "lang": "de"}
    row = {"inputs": {"question": "q"}, "outputs": {"answer": "a"}, "split": "test", "metadata": metadata}
    suite, _ = imported(tmp_path, "d.jsonl", json.dumps(row))
    (test,) = suite.tests
    assert list(test.tags) == ["test", "hard", "base"]
    assert test.variables["metadata"] == {"lang": "de"}
