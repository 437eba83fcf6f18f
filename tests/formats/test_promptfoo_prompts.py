"""Prompts and variables of promptfoo that stand in files, or that a program makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.importers.promptfoo_config import tests_of as read_tests
from agenteval_tui.formats.importers.suite_import import FoundTests


def imported(folder: Path, config: dict[str, Any], **files: str) -> FoundTests:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return read_tests({"providers": ["echo"], **config}, folder)


def prompts(found: FoundTests) -> list[str]:
    return [test["prompt"] for test in found.tests]


@pytest.mark.parametrize(
    "name",
    ["prompts.py:fn", "file://prompts.py:fn", "file://prompts.py", "prompts.js", "file://prompt.mjs:create",
     "exec: python prompts.py", "exec:./prompt.sh", "prompt.sh", {"id": "file://prompts.py:fn", "label": "mine"}],
)  # fmt: skip
def test_a_prompt_that_a_program_makes_is_refused_by_name(tmp_path: Path, name: Any) -> None:
    found = imported(tmp_path, {"prompts": [name, "Say {{x}}"], "tests": [{"vars": {"x": 1}}]}, prompts__py="x")
    assert prompts(found) == ["Say {{x}}"]
    (said,) = found.skipped
    assert (name if isinstance(name, str) else name["id"]) in said
    assert "a program makes it, which is not run here" in said


def test_prompts_in_files(tmp_path: Path) -> None:
    config = {"prompts": ["file://two.txt", "one.md", "file://p*.j2", "Is this prompts.txt?"], "tests": [{}]}
    found = imported(tmp_path, config, two__txt="One {{x}}\n---\nTwo\n", one__md="# A\n---\nb", p1__j2="J {{x}}")
    assert prompts(found) == ["One {{x}}", "Two", "# A\n---\nb", "J {{x}}", "Is this prompts.txt?"]


def test_variables_in_files_are_put_in_as_promptfoo_does(tmp_path: Path) -> None:
    variables = {"text": "file://a.txt", "data": "file://d.yaml", "many": ["file://a.txt", "x"]}
    config = {"prompts": ["{{text}} {{data}}"], "tests": [{"vars": variables}]}
    found = imported(tmp_path, config, a__txt="hello\n", d__yaml="b: [1, 2]")
    assert [test["variables"]["many"] for test in found.tests] == ["hello", "x"]
    assert found.tests[0]["variables"]["text"] == "hello"
    assert found.tests[0]["variables"]["data"] == '{"b": [1, 2]}'


@pytest.mark.parametrize("file", ["file://make.py", "file://make.js:fn", "file://photo.png", "file://not_there.txt"])
def test_a_test_whose_variable_can_not_be_had_is_left_out_by_name(tmp_path: Path, file: str) -> None:
    tests = [{"description": "First", "vars": {"x": file}}, {"vars": {"x": "1"}}]
    found = imported(tmp_path, {"prompts": ["{{x}}"], "tests": tests}, make__py="1")
    assert [test["variables"] for test in found.tests] == [{"x": "1"}]
    assert found.skipped[0].startswith(f"First: variable x, {file}: ")


@pytest.mark.parametrize(
    ("value", "function"),
    [
        ("file://checks.py", "checks:get_assert"),
        ("file://asserts/quality.py:polite", "asserts.quality:polite"),
        ("file://./checks.py:fn", "checks:fn"),
        ("file://../checks.py", None),
        ("file://my-checks.py", None),
        ("len(output) > 5", None),
    ],
)
def test_an_assertion_in_a_python_file_is_called(tmp_path: Path, value: str, function: str | None) -> None:
    config = {"prompts": ["q"], "tests": [{"assert": [{"type": "python", "value": value, "threshold": 0.5}]}]}
    (criterion,) = imported(tmp_path, config).tests[0]["criteria"]
    (metric,) = criterion["config_uxon"]["metrics"]
    assert metric.get("function") == function
    assert metric["type"] == ("Human" if function is None else "Python")
    if function is not None:
        assert metric["pass_threshold"] == 0.5
