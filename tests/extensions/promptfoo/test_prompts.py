"""Prompts and variables of promptfoo that stand in files, or that a program makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.main import main
from agenteval_tui.extensions.promptfoo.config import tests_of as read_tests
from agenteval_tui.formats.importers.suite_import import FoundTests
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.templates import render


def imported(folder: Path, config: dict[str, Any], **files: str) -> FoundTests:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return read_tests({"providers": ["echo"], **config}, folder / "promptfooconfig.yaml")


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
    written = name if isinstance(name, str) else name["id"]
    if found.calls:  # a Python function, which an import runs where that is trusted
        assert [call.function for call in found.calls] == [written.removeprefix("file://")]
        assert written.endswith(".py:fn")
        return
    (said,) = found.skipped
    assert written in said
    assert "a program makes it, which is not run here" in said


def test_prompts_in_files(tmp_path: Path) -> None:
    config = {"prompts": ["file://two.txt", "one.md", "file://p*.j2", "Is this prompts.txt?"], "tests": [{}]}
    found = imported(tmp_path, config, two__txt="One {{x}}\n---\nTwo\n", one__md="# A\n---\nb", p1__j2="J {{x}}")
    assert prompts(found) == ["One {{x}}", "Two", "# A\n---\nb", "J {{x}}", "Is this prompts.txt?"]


@pytest.mark.parametrize("given", [{}, {"prompts": []}, {"prompts": None}])
def test_without_prompts_the_variable_prompt_is_asked(tmp_path: Path, given: dict[str, Any]) -> None:
    config = {"providers": ["echo"], "tests": [{"vars": {"prompt": "How far?"}, "assert": []}], **given}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    to = tmp_path / "s.suite.yaml"
    words = ["import", str(tmp_path / "promptfooconfig.yaml"), "--to", str(to)]
    assert main(words, launch_app=lambda start: 0) == 0
    suite = load_suite(to).suite
    assert suite is not None
    assert [render(test.prompt or "", test.variables) for test in suite.tests] == ["How far?"]


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


PROMPTS = """
def by_variable(topic): return f"Write about {topic}: {{{{ {topic} }}}}"
def by_context(context): return [{"role": "user", "content": "About " + context["vars"]["topic"]}]
def nothing(topic): pass
def raises(topic): raise ValueError("no " + topic)
"""


def run(words: list[str]) -> int:
    return main(words, launch_app=lambda start: 0)


@pytest.mark.parametrize("trust", [True, False])
def test_python_functions_make_prompts_if_that_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trust: bool
) -> None:
    (tmp_path / "prompts.py").write_text(f"open('ran', 'w')\n{PROMPTS}")
    (tmp_path / "cases.csv").write_text("topic,other\nsheep,1\nfowl,2\n")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [prompts.py:by_variable, 'file://prompts.py:by_context', prompts.py:nothing, prompts.py:raises, "
        "Plain]\n"
        "providers: [echo]\ntests: cases.csv\n"
    )
    to = tmp_path / "s.suite.yaml"
    words = ["import", str(tmp_path / "promptfooconfig.yaml"), "--to", str(to), *(["--trust"] if trust else [])]
    assert run(words) == 0
    said = capsys.readouterr().out
    suite = load_suite(to).suite
    assert suite is not None
    assert (tmp_path / "ran").exists() == trust
    if not trust:
        assert [test.prompt for test in suite.tests] == ["Plain", "Plain"]
        assert "prompt prompts.py:by_variable: a function makes it, which runs only with --trust" in said
        return
    asked = [render(test.prompt, test.variables) for test in suite.tests if test.prompt is not None]
    assert asked[2] == "Write about sheep: {{ sheep }}"
    assert asked[4] == '[{"role": "user", "content": "About sheep"}]'
    assert suite.tests[2].variables["topic"] == "sheep"
    assert "topic=sheep, other=1 (prompt 3): prompts.py:nothing returned no prompt" in said
    assert "ValueError: no sheep (prompts.py, line" in said


def test_the_older_form_of_prompts_is_an_object_of_labels(tmp_path: Path) -> None:
    config = {"prompts": {"file://one.txt": "first", "Say {{x}}": "second"}, "tests": [{"vars": {"x": 1}}]}
    assert prompts(imported(tmp_path, config, one__txt="One {{x}}")) == ["One {{x}}", "Say {{x}}"]


def test_files_of_variables_are_named_from_the_file_of_their_test(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "vars").mkdir()
    (tmp_path / "vars" / "more.yaml").write_text("x: from a file")
    (tmp_path / "tests" / "a.yaml").write_text("- vars: ../vars/m*.yaml\n- vars: [../vars/more.yaml]\n")
    found = imported(tmp_path, {"prompts": ["{{x}}"], "tests": "tests/a.yaml"})
    assert [test["variables"] for test in found.tests] == [{"x": "from a file"}] * 2
    assert not any("can't be read" in note for note in found.notes)


def test_a_variable_without_a_value_is_empty_as_in_promptfoo(tmp_path: Path) -> None:
    found = imported(tmp_path, {"prompts": ["Hello {{name}}!"], "tests": [{"description": "T", "vars": {"x": 1}}]})
    assert [render(test["prompt"], test["variables"]) for test in found.tests] == ["Hello !"]
    assert "T: it has no `name` for its prompt: empty, as in promptfoo" in found.notes


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("{% for turn in _conversation %}{{ turn.output }}{% endfor %}{{x}}", "promptfoo gives it `_conversation`"),
        ("Say {{ x | allcaps }}", "No filter named 'allcaps'"),
        ("Say {{ x", "this template has an error"),
        ("{% for a, b in x %}{{a}}{% endfor %}", "this template can't be rendered"),
    ],
)
def test_a_prompt_that_can_not_be_made_is_refused_by_name(tmp_path: Path, prompt: str, reason: str) -> None:
    found = imported(tmp_path, {"prompts": [prompt, "{{x}}"], "tests": [{"description": "T", "vars": {"x": 1}}]})
    assert prompts(found) == ["{{x}}"]
    (said,) = found.skipped
    assert said.startswith("T (prompt 1): its prompt can't be filled in: ")
    assert reason in said


def test_a_template_of_json_becomes_the_conversation_that_it_makes(tmp_path: Path) -> None:
    prompt = """[{"role": "system", "content": "{{ s }}"},
      {% for message in earlier %}{% for role, content in message %}
        {"role": "{{ role }}", "content": "{{ content }}"},
      {% endfor %}{% endfor %}
      {"role": "user", "content": "{{ question }}"}]"""
    variables = {"s": "Be {{kind}}", "question": "And he?"}
    default = {"vars": {"earlier": [{"user": "Who?"}, {"assistant": "Me."}]}}
    config = {"prompts": "file://chat.json", "defaultTest": default, "tests": [{"vars": variables}]}
    (test,) = imported(tmp_path, config, chat__json=prompt).tests
    assert "prompt" not in test
    shown = [(message["role"], render(message["content"], test["variables"])) for message in test["messages"]]
    assert shown == [("system", "Be {{kind}}"), ("user", "Who?"), ("assistant", "Me."), ("user", "And he?")]


@pytest.mark.parametrize(
    ("value", "options", "values"),
    [
        (["a", "b"], {}, ["a", "b"]),
        (["a", "b"], {"disableVarExpansion": True}, [["a", "b"]]),
        ([], {}, [[]]),
        ([1, 2], {}, [[1, 2]]),
        ([{"a": 1}, {"b": 2}], {}, [[{"a": 1}, {"b": 2}]]),
    ],
)
def test_only_a_list_of_texts_means_a_test_for_each(
    tmp_path: Path, value: list[Any], options: dict[str, Any], values: list[Any]
) -> None:
    found = imported(tmp_path, {"prompts": ["{{x}}"], "tests": [{"vars": {"x": value}, "options": options}]})
    assert [test["variables"]["x"] for test in found.tests] == values
