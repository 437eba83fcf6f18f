"""Files of other tools where a suite is expected name their tool, the command that reads them and their page."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from agenteval_tui.cli.main import main
from agenteval_tui.formats.foreign_file import foreign_file, foreign_files

FILES = Path(__file__).parents[2] / "docs" / "coming-from" / "files"
TEXTS = {
    "test_shop.py": "import pytest\nfrom deepeval.test_case import LLMTestCase\n",
    "task.py": "from inspect_ai import Task, task\n",
    "evaluate_me.py": "import os\n\nfrom langsmith import Client, evaluate\n",
    "shop.php": "<?php\nnamespace App;\n\nuse Vizra\\VizraSdk\\Evaluations\\BaseEvaluation;\n",
    "goldens.csv": "input,actual_output,expected_output,retrieval_context\na,b,c,d\n",
    "export.csv": "id,inputs.question,outputs.answer\n1,q,a\n",
    "support.csv": "prompt,scenario_type,expected_behavior\nHi there!,greeting,friendly_greeting\n",
    "made.csv": "prompt,expected_response,description\nHi there!,Hello,a greeting\n",
    "mine.csv": "question,expected_answer\nHow far?,5 km\n",
}
PAGES = {
    "test_shop.py": "deepeval", "task.py": "inspect", "evaluate_me.py": "langsmith-course", "shop.php": "vizra",
    "goldens.csv": "deepeval", "support.csv": "vizra", "promptfooconfig.yaml": "promptfoo",
    "promptfoo-results.json": "promptfoo", "deepeval-test-run.json": "deepeval", "inspect-shop.eval": "inspect",
    "langsmith-runs.jsonl": "langsmith", "power-ui-tests.json": "power-ui", "umbraco-tests.json": "umbraco",
    "pydantic-evals-dataset.yaml": "pydantic-evals", "pydantic-evals-report.json": "pydantic-evals",
    "deepeval-goldens.csv": "deepeval", "export.csv": "langsmith-course", "made.csv": "vizra",
}  # fmt: skip
WHAT = {
    "test_shop.py": "a program that uses DeepEval", "task.py": "a program that uses Inspect",
    "shop.php": "a program that uses Vizra", "evaluate_me.py": "a program that uses LangSmith",
    "inspect-shop.eval": "an Inspect log", "pydantic-evals-dataset.yaml": "a pydantic-evals dataset",
    "promptfoo-results.json": "promptfoo results", "langsmith-runs.jsonl": "LangSmith runs",
    "mine.csv": "a table of test cases",
}  # fmt: skip
READ = {
    **dict.fromkeys(("deepeval-test-run.json", "langsmith-runs.jsonl"), (False, True)),
    **dict.fromkeys(("inspect-shop.eval", "pydantic-evals-report.json", "promptfoo-results.json"), (True, True)),
    **dict.fromkeys(("promptfooconfig.yaml", "power-ui-tests.json", "umbraco-tests.json", "mine.csv"), (True, False)),
    "pydantic-evals-dataset.yaml": (True, True),
    **dict.fromkeys(("goldens.csv", "deepeval-goldens.csv", "support.csv"), (True, False)),
    **dict.fromkeys(("test_shop.py", "task.py", "shop.php", "evaluate_me.py"), (False, False)),
}
"""Whether an import reads tests, and runs, in it."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    for file in FILES.iterdir():
        shutil.copy(file, tmp_path / file.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_foreign_file_has_its_page(folder: Path, name: str, page: str) -> None:
    found = foreign_file(Path(name))
    assert found is not None
    assert found.page == f"coming-from/{page}"
    assert (Path(__file__).parents[2] / "docs" / f"{found.page}.md").is_file()
    assert found.remedies[-1] == f"agenteval docs {found.page}"


def test_every_file_of_the_documentation_is_known() -> None:
    assert {file.name for file in FILES.iterdir()} <= PAGES.keys() & READ.keys()


@pytest.mark.parametrize(("name", "what"), WHAT.items())
def test_a_foreign_file_is_called_by_its_title(folder: Path, name: str, what: str) -> None:
    file = foreign_file(Path(name))
    assert file is not None
    assert file.what == what


@pytest.mark.parametrize(("name", "read"), READ.items())
def test_the_remedies_are_an_import_that_reads_it_and_its_page(
    folder: Path, name: str, read: tuple[bool, bool]
) -> None:
    file = foreign_file(Path(name))
    assert file is not None
    assert (file.tests, file.runs) == read
    to_suite = f"agenteval import {name} --to {name.partition('.')[0]}.suite.yaml"
    commands = (to_suite,) if file.tests else (f"agenteval import {name}",) if file.runs else ()
    assert file.remedies == (*commands, f"agenteval docs {file.page}")
    for command in commands:
        assert main(shlex.split(command)[1:], launch_app=lambda start: 0) == 0


def test_a_table_of_nobody_leads_to_the_page_of_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = foreign_file(Path("mine.csv"))
    assert file is not None
    assert file.page == "exchange"
    assert main(["import", "mine.csv", "--to", "mine.suite.yaml"], launch_app=lambda start: 0) == 0
    assert "coming-from" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.suite.yaml", "prompts: [a]\nproviders: [b]\n"),
        ("mine.yaml", "name: a\ntests:\n  - {id: a, prompt: q, criteria: []}\n"),
        ("broken.yaml", "a: [\n"),
        ("notes.md", "from deepeval import x\n"),
        ("plain.py", "# from deepeval import x\nimport os\n"),
    ],
)
def test_what_is_not_known_is_not_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert foreign_file(tmp_path / name) is None
    assert foreign_files(tmp_path) == ()


@pytest.mark.parametrize(
    "words",
    [["run", "promptfooconfig.yaml"], ["validate", "promptfooconfig.yaml"], ["show", "promptfooconfig.yaml"],
     ["compare", "promptfooconfig.yaml", "last"], ["stats", "promptfooconfig.yaml"], ["promptfooconfig.yaml"]],
)  # fmt: skip
def test_any_verb_names_the_tool_and_the_command(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[object] = []
    assert main(words, launch_app=lambda start: opened.append(start) or 0) == 2
    said = capsys.readouterr().err
    assert opened == []
    assert "promptfooconfig.yaml is a promptfoo configuration, not a suite:\n" in said
    assert "  agenteval import promptfooconfig.yaml --to promptfooconfig.suite.yaml\n" in said
    assert said.endswith("  agenteval docs coming-from/promptfoo\n")


@pytest.mark.parametrize("before", [[], ["--db", "h.db"], ["-q", "--db=h.db", "--debug"]])
def test_an_import_of_a_foreign_file_says_nothing_more(
    folder: Path, before: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*before, "import", "task.py"], launch_app=lambda start: 0) == 2
    assert "not a suite" not in capsys.readouterr().err


def test_a_right_command_says_nothing_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.suite.yaml").write_text(
        "name: a\ntests:\n  - {id: a, prompt: q, criteria: [{name: A, prototype_class: TextResponse, "
        "config_uxon: {metrics: [{type: Regex, pattern: a}]}}]}\n"
    )
    assert main(["validate", "a.suite.yaml"], launch_app=lambda start: 0) == 0
    assert "not a suite" not in "".join(capsys.readouterr())


def test_a_folder_without_suites_names_a_file_for_each_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "."], launch_app=lambda start: 0) == 2
    said = capsys.readouterr().err
    assert "there are no suites" in said
    assert said.count("agenteval docs coming-from/deepeval\n") == 1
    assert "inspect-shop.eval is an Inspect log, not a suite:\n" in said
    assert "task.py" not in said  # it has the same page


def test_the_files_of_a_folder_are_named_from_the_working_directory(folder: Path) -> None:
    assert {str(file.path) for file in foreign_files(folder)} >= {"task.py", "promptfooconfig.yaml", "shop.php"}
    assert all(file.page for file in foreign_files(folder))
