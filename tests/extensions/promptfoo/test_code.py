"""promptfoo's assertions that are code: functions of a module beside the suite, with promptfoo's verdicts."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agenteval_tui.cli.main import main
from agenteval_tui.extensions.promptfoo.config import tests_of as read_tests
from agenteval_tui.formats.importers.suite_import import FoundTests
from agenteval_tui.suites.load import load_suite

NODE = pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript needs Node.js")
PYTHON_FILE = """
def get_assert(output, context): return {"pass": output == context["config"]["right"], "score": 1, "reason": "r"}
def get_transform(output, context): return output.split("|")[-1]
def raises(output, context): raise KeyError("x")
def five(output, context): return {"pass": True, "score": 4.7, "reason": "of 5"}
def imports(output, context): import no_such_package
"""
JAVASCRIPT_FILE = """
module.exports = (output, context) => output.length < 5 && context.vars.n === 2;
module.exports.scored = async output => ({pass: true, score: 7, reason: output});
module.exports.raises = output => { throw new Error("never"); };
module.exports.needs = output => require("no-such-package");
"""
MODULE_FILE = "export default output => output.toUpperCase();\nexport const named = output => ({pass: false});\n"


def imported(folder: Path, assertion: dict[str, Any], **config: Any) -> FoundTests:
    (folder / "checks.py").write_text(PYTHON_FILE)
    (folder / "asserts").mkdir()
    (folder / "asserts" / "my-checks.py").write_text(PYTHON_FILE)
    (folder / "check.js").write_text(JAVASCRIPT_FILE)
    (folder / "broken.js").write_text("module.exports = output => {")
    (folder / "needs.js").write_text("module.exports = require('no-such-package')")
    (folder / "check.mjs").write_text(MODULE_FILE)
    test = {
        "vars": {
            "n": 2,
            "word": "sheep",
            "not_a_number": math.nan,
            "deep": {"x": "7", "empty": None, "list": [1, None, [2.0, "a"]], "yes": True},
        },
        "assert": [assertion],
    }
    given = {"prompts": ["q"], "providers": ["echo"], "tests": [test], **config}
    return read_tests(given, folder / "promptfooconfig.yaml")


def called(folder: Path, found: FoundTests, output: str) -> dict[str, Any]:
    """What the first criterion's function returns."""
    (metric,) = found.tests[0]["criteria"][0]["config_uxon"]["metrics"]
    assert metric["type"] == "Python", metric
    module = ModuleType("module")
    module.__file__ = str(folder / f"{found.module}.py")
    exec(compile(found.module_text, module.__file__, "exec"), module.__dict__)
    function = getattr(module, metric["function"].partition(":")[2])
    result: dict[str, Any] = function(output, {"vars": found.tests[0]["variables"]})
    return result


def verdict(folder: Path, found: FoundTests, output: str) -> bool | str:
    """Whether the first criterion passes; the name of what it raises."""
    try:
        result = called(folder, found, output)
    except Exception as error:
        return type(error).__name__
    assert 0 <= result["score"] <= 1
    return bool(result["pass"])


@pytest.mark.sweep
@NODE
@pytest.mark.parametrize(
    ("assertion", "output", "passes"),
    [
        ({"value": "output.length < 5 ? 1 : 0"}, "four", True),
        ({"value": "output.length < 5 ? 1 : 0"}, "longer", False),
        ({"value": "1 / (output.length + 1)"}, "anything", True),
        ({"value": "output.length", "threshold": 5}, "four", False),
        ({"value": "const n = output.length; n > 3"}, "four", True),
        ({"value": "const s = output; s === 'a;b'"}, "a;b", True),
        ({"value": "const s = output; s === 'a;b'"}, "a", False),
        ({"value": "let s = `;`; const t = output; [s, ';'].includes(t) ;; "}, ";", True),
        ({"value": "const s = output; /^[;]$/.test(s)"}, ";", True),
        ({"value": "const f = text => { const n = text.length; return n > 2; }; f(output)"}, "two", True),
        ({"value": "const s = output; { const t = s; } s === 'x' // that is it; yes"}, "x", False),
        ({"value": "const s = output; s === 'x' // that is it; yes"}, "x", True),
        ({"value": "const s = output; s === 'x'; /* that is it; yes */"}, "x", True),
        ({"value": "const s = output; {pass: s === 'x', score: 1, reason: ''}"}, "x", True),
        ({"value": "const s = output; return s === 'x'"}, "x", False),
        ({"value": "const s = output"}, "x", False),
        ({"value": "const value = output.length; const text = 1; value > text"}, "four", True),
        ({"value": "const a = 1;\nreturn output.includes('a;b')\n"}, "xa;b", True),
        ({"value": "JSON.parse(output).x === 1"}, '{"x": 1}', True),
        ({"value": "JSON.parse(output).x === 1"}, "no JSON", False),
        ({"value": "const r = /\\d+/;\nreturn r.test(output)"}, "a1", True),
        ({"value": "const q = '''';\nreturn true"}, "syntax error", False),
        ({"value": "output.includes('{{word}}')"}, "two sheep", True),
        ({"value": "output === '{{ deep.x }}'"}, "7", True),
        ({"value": "'{{ deep.empty }}{{ deep.missing.x }}{{ missing }}' === ''"}, "x", True),
        ({"value": "'{{ deep.list }}' === '1,,2,a' && '{{deep}}' === '[object Object]'"}, "x", True),
        ({"value": "'{{ deep.yes }} {{ n }} {{ word.length }}' === 'true 2 5'"}, "x", True),
        ({"value": "'{{ env.PATH }}'.length > 0"}, "x", True),
        ({"value": "output === context.vars.word"}, "sheep", True),
        ({"value": "context.config.most > output.length", "config": {"most": 3}}, "ab", True),
        ({"value": "context.config.most > output.length", "config": {"most": math.inf}}, "ab", True),
        ({"value": "context.config[1].most > output.length", "config": {"1": {"most": -math.inf}}}, "ab", False),
        ({"value": "Number.isNaN(context.config.list[1])", "config": {"list": [1, math.nan]}}, "ab", True),
        ({"value": "Number.isNaN(context.vars.not_a_number)"}, "ab", True),
        ({"value": "({pass: false, score: 0.9, reason: 'no'})"}, "x", False),
        ({"value": "({pass: true, score: 0.1, reason: ''})", "threshold": 0.5}, "x", True),
        ({"value": "'a text'"}, "x", False),
        ({"value": "'true'"}, "x", False),
        ({"value": "'1'"}, "x", False),
        ({"value": "JSON.stringify({pass: true, score: 1, reason: ''})"}, "x", False),
        ({"value": "[1]"}, "x", False),
        ({"value": "({pass: true})"}, "x", False),
        ({"value": "({pass: 'yes', score: 1, reason: ''})"}, "x", False),
        ({"type": "not-javascript", "value": "'false'"}, "x", False),
        ({"type": "not-javascript", "value": "NaN"}, "x", False),
        ({"value": "1 / 0"}, "x", False),
        ({"value": "undefined"}, "x", False),
        ({"value": "console.log('noise') ?? true"}, "x", True),
        ({"value": "process.mainModule.require('path').sep === '/'"}, "x", True),
        ({"type": "not-javascript", "value": "output === 'a'"}, "b", True),
        ({"type": "not-javascript", "value": "throw1(output)"}, "b", False),
        ({"value": "file://check.js"}, "four", True),
        ({"value": "file://./check.js"}, "longer", False),
        ({"value": "file://check.js:scored"}, "x", True),
        ({"value": "file://check.mjs:named"}, "x", False),
        ({"value": "file://missing.js"}, "x", "FileNotFoundError"),
        ({"value": "file://broken.js"}, "x", "NotRunError"),
        ({"value": "file://needs.js"}, "x", "NotRunError"),
        ({"value": "file://check.mjs:missing"}, "x", "NotRunError"),
        ({"type": "not-javascript", "value": "file://broken.js"}, "x", "NotRunError"),
        ({"value": "file://check.js:needs"}, "x", "NotRunError"),
        ({"value": "process.mainModule.require('no-such-package')"}, "x", "NotRunError"),
        ({"value": "file://check.js:raises"}, "x", False),
    ],
)
def test_javascript(tmp_path: Path, assertion: dict[str, Any], output: str, passes: bool | str) -> None:
    found = imported(tmp_path, {"type": "javascript", **assertion})
    assert verdict(tmp_path, found, output) == passes


@pytest.mark.parametrize(
    ("assertion", "output", "passes"),
    [
        ({"value": "len(output) < 5"}, "four", True),
        ({"value": "len(output) < 5"}, "longer", False),
        ({"value": "0.4"}, "x", True),
        ({"value": "0.4", "threshold": 0.5}, "x", False),
        ({"value": "{'pass': True, 'score': 0.4, 'reason': ''}", "threshold": 0.5}, "x", False),
        ({"value": "import re\n\nif re.search('a', output):\n    return True\nreturn 0"}, "cat", True),
        ({"value": "    x = context['vars']['n']\n    return x == 3\n"}, "x", False),
        ({"value": "json.loads(output)['x'] == 1"}, "no JSON", False),
        ({"value": "'True'"}, "x", True),
        ({"value": "'FALSE'"}, "x", False),
        ({"value": "'0.7 of 1'", "threshold": 0.6}, "x", True),
        ({"value": "'0.5'", "threshold": 0.6}, "x", False),
        ({"value": "'a text'"}, "x", False),
        ({"value": """'{"pass": true, "score": 1, "reason": ""}'"""}, "x", True),
        ({"value": "{'pass': True, 'reason': ''}"}, "x", False),
        ({"value": "{'pass': True, 'score': float('nan'), 'reason': ''}"}, "x", False),
        ({"value": "float('inf')"}, "x", False),
        ({"type": "not-python", "value": "float('nan')"}, "x", False),
        ({"type": "not-python", "value": "'NaN'"}, "x", False),
        ({"value": "None"}, "x", False),
        ({"value": "context['config'] == {'most': None}", "config": {"most": math.inf}}, "x", True),
        ({"type": "not-python", "value": "output == 'a'"}, "b", True),
        ({"value": "file://checks.py", "config": {"right": "yes"}}, "yes", True),
        ({"value": "file://checks.py", "config": {"right": "yes"}}, "no", False),
        ({"value": "file://checks.py:raises"}, "no", False),
        ({"value": "file://./checks.py:five"}, "x", True),
        ({"value": "file://asserts/my-checks.py:five", "threshold": 0.5}, "x", True),
        ({"value": "file://checks.py:imports"}, "x", "ModuleNotFoundError"),
        ({"value": "file://missing.py"}, "x", "FileNotFoundError"),
    ],
)
def test_python(tmp_path: Path, assertion: dict[str, Any], output: str, passes: bool | str) -> None:
    found = imported(tmp_path, {"type": "python", **assertion})
    assert verdict(tmp_path, found, output) == passes


@pytest.mark.sweep
@NODE
@pytest.mark.parametrize(
    ("assertion", "output", "passes"),
    [
        ({"type": "equals", "value": "b", "transform": "file://checks.py"}, "a|b", True),
        ({"type": "equals", "value": "{{word}}", "transform": "output.trim()"}, " sheep ", True),
        ({"type": "equals", "value": "{{deep.empty}}", "transform": "output.trim()"}, " ", True),
        ({"type": "contains-all", "value": ["{{deep.list}}", "b"], "transform": "output + 'b'"}, "1,,2,a", True),
        ({"type": "equals", "value": {"x": 1}, "transform": "output.slice(1)"}, '?{"x":1}', True),
        ({"type": "equals", "value": {"x": math.nan}, "transform": "output.slice(1)"}, '?{"x":1}', False),
        ({"type": "contains", "value": "B", "transform": "file://check.mjs"}, "abc", True),
        ({"type": "not-contains", "value": "B", "transform": "file://check.mjs"}, "abc", False),
        ({"type": "icontains-all", "value": "a, B", "transform": "output + 'b'"}, "A", True),
        ({"type": "contains-any", "value": ["x", "y"], "transform": "output.toLowerCase()"}, "Y", True),
        ({"type": "regex", "value": "^\\d$", "transform": "JSON.parse(output).n"}, '{"n": 5}', True),
        ({"type": "starts-with", "value": "b", "transform": "const t = output;\nreturn t.slice(1)"}, "ab", True),
        ({"type": "javascript", "value": "output.n === 5", "transform": "JSON.parse(output)"}, '{"n": 5}', True),
        ({"type": "equals", "value": "b", "transform": "JSON.parse(output)"}, "no JSON", "JavaScriptError"),
        ({"type": "equals", "value": "b", "transform": "undefined"}, "x", "ValueError"),
    ],
)
def test_an_answer_is_changed_before_it_is_looked_at(
    tmp_path: Path, assertion: dict[str, Any], output: str, passes: bool | str
) -> None:
    assert verdict(tmp_path, imported(tmp_path, assertion), output) == passes


@NODE
def test_transforms_of_a_test_and_of_its_assertion_follow_each_other(tmp_path: Path) -> None:
    assertion = {"type": "equals", "value": "AB!", "transform": "output + '!'"}
    found = imported(tmp_path, assertion, defaultTest={"options": {"transform": "output.toUpperCase()"}})
    assert verdict(tmp_path, found, "ab") is True


@NODE
def test_an_answer_of_a_schema_is_an_object(tmp_path: Path) -> None:
    providers = [{"id": "openai:gpt-4o", "config": {"response_format": {"type": "json_schema", "json_schema": {}}}}]
    found = imported(tmp_path, {"type": "javascript", "value": "output.x === 1"}, providers=providers)
    assert verdict(tmp_path, found, '{"x": 1}') is True
    assert verdict(tmp_path, found, "no JSON") is False


@pytest.mark.parametrize(
    ("assertion", "names_files"),
    [
        ({"type": "javascript", "value": "open_file(output) === 'file://x.js'"}, False),
        ({"type": "python", "value": "python_file('x', 'y') == output"}, False),
        ({"type": "equals", "value": "_file(", "transform": "output.trim()"}, False),
        ({"type": "equals", "value": "x", "transform": "file://checks.py"}, True),
        ({"type": "javascript", "value": "file://check.js"}, True),
        ({"type": "python", "value": "file://checks.py"}, True),
    ],
)
def test_code_in_files_is_told_from_code_that_speaks_of_files(
    tmp_path: Path, assertion: dict[str, Any], names_files: bool
) -> None:
    assert imported(tmp_path, assertion).names_files is names_files


@NODE
def test_the_error_names_the_file_that_can_not_be_loaded(tmp_path: Path) -> None:
    found = imported(tmp_path, {"type": "javascript", "value": "file://broken.js"})
    with pytest.raises(Exception, match=r"broken\.js: SyntaxError: Unexpected end of input$"):
        called(tmp_path, found, "x")


def test_without_node_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = imported(tmp_path, {"type": "javascript", "value": "true"})
    assert verdict(tmp_path, found, "x") == "NotRunError"


@pytest.mark.parametrize(
    "assertion",
    [
        {"type": "javascript", "value": "{{ word | upper }}"},
        {"type": "javascript", "value": "{{ true }}"},
        {"type": "javascript", "value": "'{{ deep.none }}' === ''"},
        {"type": "javascript", "value": "package:@me/checks:fn"},
        {"type": "javascript", "value": "file:///etc/x.js"},
        {"type": "python", "value": "file:///etc/x.py"},
        {"type": "python", "value": "len(output) >"},
        {"type": "python", "value": "len({{ word | upper }}) > 1"},
        {"type": "llm-rubric", "value": "polite", "transform": "output.trim()"},
        {"type": "contains", "value": "x", "transform": "file://change.rb"},
        {"type": "contains", "value": "x", "contextTransform": "output"},
    ],
)
def test_a_person_is_asked_for_what_has_no_counterpart(tmp_path: Path, assertion: dict[str, Any]) -> None:
    found = imported(tmp_path, assertion)
    (metric,) = found.tests[0]["criteria"][0]["config_uxon"]["metrics"]
    assert metric["type"] == "Human"
    assert found.module_text == ""


@pytest.mark.parametrize(
    ("assertion", "file"),
    [
        ({"type": "javascript", "value": "file://../check.js"}, "../check.js"),
        ({"type": "javascript", "value": "file://asserts/../../check.js:fn"}, "asserts/../../check.js:fn"),
        ({"type": "python", "value": "file://./..\\checks.py"}, "./..\\checks.py"),
        ({"type": "python", "value": "file:///etc/checks.py"}, "/etc/checks.py"),
        ({"type": "python", "value": "True", "transform": "file://../checks.py"}, "../checks.py"),
        ({"type": "contains", "value": "x", "transform": "file://../check.mjs"}, "../check.mjs"),
    ],
)
def test_code_outside_the_folder_is_not_called(tmp_path: Path, assertion: dict[str, Any], file: str) -> None:
    found = imported(tmp_path, assertion)
    (metric,) = found.tests[0]["criteria"][0]["config_uxon"]["metrics"]
    assert metric["type"] == "Human"
    assert found.module_text == ""
    assert f"{file} is outside the folder and is not called" in found.notes


@NODE
def test_a_path_that_comes_back_into_the_folder_is_called(tmp_path: Path) -> None:
    found = imported(tmp_path, {"type": "javascript", "value": "file://asserts/../..check.js"})
    (tmp_path / "..check.js").write_text("module.exports = () => true")
    assert verdict(tmp_path, found, "x") is True


def test_a_time_is_not_changed_by_a_transform(tmp_path: Path) -> None:
    found = imported(tmp_path, {"type": "latency", "threshold": 900, "transform": "output.trim()"})
    assert found.tests[0]["criteria"][0]["config_uxon"]["metrics"] == [{"type": "Latency", "max": 900.0}]


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "javascript", "value": "output === 'x'"},
        {"type": "equals", "value": "x", "transform": "output.trim()"},
        {"type": "llm-rubric", "value": "polite", "provider": "openai:judging"},
        {"type": "javascript", "value": "file://check.js"},
    ],
)
def test_a_set_that_a_person_decides_leaves_no_function_and_no_agent(tmp_path: Path, inner: dict[str, Any]) -> None:
    found = imported(
        tmp_path, {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "equals", "value": "x"}, inner]}
    )
    (metric,) = found.tests[0]["criteria"][0]["config_uxon"]["metrics"]
    assert metric["type"] == "Human"
    assert (found.module_text, found.agents, found.names_files) == ("", {}, False)


def run(words: list[str]) -> int:
    return main(words, launch_app=lambda start: 0)


CONFIG = """
prompts: ["Hello {{name}}"]
providers:
  - id: openai:chat:small
    config: {apiBaseUrl: "http://127.0.0.1:9/v1", temperature: 0, tools: []}
  - {id: anthropic:messages:large, label: Large one}
  - id: http
    config:
      url: "http://127.0.0.1:9/chat"
      body: {q: "{{prompt}}", who: "{{name}}"}
      transformResponse: json.reply.text
  - file://own.js
defaultTest:
  options: {provider: openai:judging}
tests:
  - vars: {name: Ada}
    assert: [{type: python, value: len(output) > 1}, {type: llm-rubric, value: polite}]
"""


def test_an_import_writes_suite_and_module_and_translates_providers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(CONFIG)
    to, module = tmp_path / "s.suite.yaml", tmp_path / "promptfooconfig_assertions.py"
    assert run(["import", str(config), "--to", str(to)]) == 0
    said = capsys.readouterr().out
    assert f"functions in {module}" in said
    assert "the provider file://own.js is not translated" in said
    assert "run with --agent for the others: large-one, endpoint" in said
    suite = load_suite(to).suite
    assert suite is not None
    assert suite.agent == "small"
    assert {name: agent.as_dict() for name, agent in suite.agents.items()} == {
        "small": {"kind": "openai", "model": "small", "base_url": "http://127.0.0.1:9/v1", "temperature": 0},
        "large-one": {"kind": "anthropic", "model": "large"},
        "endpoint": {
            "kind": "http", "url": "http://127.0.0.1:9/chat", "answer": "reply.text",
            "body": {"q": "{{ prompt }}", "who": "{{ variables.name }}"},
        },
        "judging": {"kind": "openai", "model": "judging"},
    }  # fmt: skip
    judge = next(one for one in suite.tests[0].criteria if "Judge" in str(one.config_uxon))
    assert "judging" in str(judge.config_uxon)
    before = module.read_bytes()
    assert run(["import", str(config), "--to", str(tmp_path / "again.suite.yaml")]) == 0  # the same module stays
    assert module.read_bytes() == before
    module.write_text("mine = 1\n")
    assert run(["import", str(config), "--to", str(tmp_path / "third.suite.yaml")]) == 2
    assert not (tmp_path / "third.suite.yaml").exists()
    assert module.read_text() == "mine = 1\n"


def test_a_suite_that_can_not_be_written_leaves_no_module(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    (tmp_path / "s.suite.yaml").write_text("name: mine\n")
    assert run(["import", str(tmp_path / "promptfooconfig.yaml"), "--to", str(tmp_path / "s.suite.yaml")]) == 2
    assert not (tmp_path / "promptfooconfig_assertions.py").exists()


@pytest.mark.parametrize("text", ['- role: system\n  content: Be brief\n- role: user\n  content: "{{ q }}"\n'])
@pytest.mark.parametrize("place", ["file://chat.yaml", "chat.yaml", None])
def test_a_conversation_in_yaml_is_messages(tmp_path: Path, text: str, place: str | None) -> None:
    (tmp_path / "chat.yaml").write_text(text)
    found = imported(tmp_path, {"type": "equals", "value": "x"}, prompts=[place or text])
    assert found.tests[0]["messages"] == [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": "{{ q }}"},
    ]
