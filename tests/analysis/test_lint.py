"""What can be found wrong without running: all of it at once, each at its place."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core import directories, entry_points
from agenteval_tui.core.entry_points import EMBEDDERS
from agenteval_tui.core.errors import Problem

BASE = """\
name: S
agent: shop
agents:
  shop: {kind: demo}
tests:
  - id: one
    prompt: "Hi {{name}}"
    variables: {name: Ann}
    criteria:
      - name: c
        prototype_class: TextResponse
        config_uxon: |
          {
            "metrics": [{"type": "TextMatch", "contains": "x"}]
          }
"""


def problems_of(tmp_path: Path, text: str) -> list[Problem]:
    path = tmp_path / "s.suite.yaml"
    path.write_text(text, "utf-8")
    return check_suites([path])[1]


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(one) for one in problems]
    return problems[0]


def test_nothing_wrong(tmp_path: Path) -> None:
    assert problems_of(tmp_path, BASE) == []


def test_a_mistake_inside_a_config_has_its_place_in_the_file(tmp_path: Path) -> None:
    problem = only(problems_of(tmp_path, BASE.replace('"contains": "x"', '"contains": 5')))
    assert (problem.severity, problem.code) == ("error", "wrong-type")
    line = BASE.splitlines()[problem.line - 1]
    assert problem.line == 14
    assert line[problem.column - 1 :].startswith('"x"')
    assert (problem.end_line, problem.end_column) == (14, problem.column + 1)


def test_a_mistake_in_a_config_written_as_yaml(tmp_path: Path) -> None:
    head, _, _ = BASE.partition("        config_uxon")
    text = head + "        config_uxon: {metrics: [{type: TextMatch, contians: x}]}\n"
    problem = only(problems_of(tmp_path, text))
    assert problem.code == "unknown-property"
    assert "contains" in problem.message
    assert text.splitlines()[problem.line - 1][problem.column - 1 :].startswith("contians")


def test_all_problems_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        BASE.replace("agent: shop\n", "agent: shp\n").replace("{{name}}", "{{nmae}}").replace("TextMatch", "TextMach")
    )
    problems = problems_of(tmp_path, text)
    assert [one.code for one in problems] == ["unknown-agent", "unknown-variable", "unknown-type"]
    agent, variable, metric = problems
    assert (agent.line, agent.column) == (2, 8)
    assert "did you mean shop?" in (agent.fix or "")
    assert text.splitlines()[6][variable.column - 1 :].startswith("nmae")
    assert "name" in (variable.fix or "")
    assert "TextMatch" in metric.message


@pytest.mark.parametrize("mistake", ["repeat: 0", "promt: x", "messages: [{role: user, content: hi}]", "tags: smoke"])
def test_an_error_of_a_test_hides_none_of_its_agent_and_configs(tmp_path: Path, mistake: str) -> None:
    text = BASE.replace("  - id: one\n", f"  - id: one\n    {mistake}\n    agent: shp\n").replace(
        "TextMatch", "TextMach"
    )
    codes = [problem.code for problem in problems_of(tmp_path, text)]
    assert len(codes) == 3
    assert {"unknown-agent", "unknown-type"} < set(codes)
    unknown = text.replace("TextResponse", "TextRespons")
    assert "unknown-prototype" in [problem.code for problem in problems_of(tmp_path, unknown)]


def test_half_of_a_test_is_not_blamed_for_what_its_config_lacks(tmp_path: Path) -> None:
    text = BASE.replace("TextMatch", "TextMach") + "  - id: two\n    prompt: 'x\n"
    assert "unknown-prototype" not in [problem.code for problem in problems_of(tmp_path, text)]


def test_an_agent_with_an_error_is_not_called_absent(tmp_path: Path) -> None:
    problem = only(problems_of(tmp_path, BASE.replace("shop: {kind: demo}", "shop: {knd: demo}")))
    assert problem.code == "missing-required"
    assert 'agent "shop" has no kind' in problem.message


def test_a_placeholder_of_a_config_that_nothing_fills(tmp_path: Path) -> None:
    assert problems_of(tmp_path, BASE.replace('"contains": "x"', '"contains": "{{name}}"')) == []
    problem = only(problems_of(tmp_path, BASE.replace('"contains": "x"', '"contains": "a {{expected_value}}"')))
    assert (problem.code, problem.line) == ("unknown-variable", 14)
    line = BASE.replace('"contains": "x"', '"contains": "a {{expected_value}}"').splitlines()[13]
    assert line[problem.column - 1 : problem.end_column - 1] == "{{expected_value}}"


def test_an_unknown_prototype(tmp_path: Path) -> None:
    problem = only(problems_of(tmp_path, BASE.replace("TextResponse", "TextRespons")))
    assert (problem.code, problem.line, problem.column) == ("unknown-prototype", 11, 26)
    assert "TextResponse" in (problem.fix or "")


def test_a_test_that_can_not_fail_is_a_warning(tmp_path: Path) -> None:
    problem = only(
        problems_of(tmp_path, BASE.replace("      - name: c\n", "      - name: c\n        severity: info\n"))
    )
    assert (problem.severity, problem.code, problem.line) == ("warning", "cannot-fail", 6)


@pytest.mark.parametrize(
    ("top", "keys", "code", "line", "said"),
    [
        ("", "gate: {pass_rate: 0.8}", "gate-without-effect", 7, "with `repeat: 1`, 0.8 means its only run"),
        ("gate: {pass_rate: 0.9}", "repeat: 9", "gate-without-effect", 1, "with `repeat: 9`, 0.9 means all 9 runs"),
        ("", "gate: {pass_rate: 0}", "gate-never-missed", 7, "can't miss its gate"),
        ("gate: {pass_rate: 0.6}", "repeat: 5; stop: {threshold: 0.8}", "gate-and-stop", 9, "against 0.8"),
        ("gate: {pass_rate: 1}", "repeat: 5; stop: {}", "gate-and-stop", 9, "its gate is 1"),
        ("gate: {pass_rate: 0.9}", "repeat: 10", "", 0, ""),
        ("gate: {pass_rate: 0.9}", "gate: {pass_rate: 1}", "", 0, ""),
        ("gate: {pass_rate: 0.6}", "repeat: 5; stop: {alpha: 0.1}", "", 0, ""),
        ("", "gate: {pass_rate: 1.2}", "wrong-value", 7, "at most 1, not 1.2"),
        ("", "gate: 0.8", "wrong-type", 7, "must be an object"),
        ("gate: {rate: 0.8}", "repeat: 5", "missing-required", 1, "pass_rate"),
    ],
)
def test_gates_that_can_not_do_what_they_say(
    tmp_path: Path, top: str, keys: str, code: str, line: int, said: str
) -> None:
    """`keys` of the test stand in lines of their own, which are separated by `; ` here."""
    of_test = "".join(f"    {one}\n" for one in keys.split("; "))
    text = (top + "\n" if top else "") + BASE.replace("  - id: one\n", f"  - id: one\n{of_test}")
    found = [(one.code, one.line) for one in problems_of(tmp_path, text) if not code or said in one.message]
    assert found == ([(code, line)] if code else [])


def test_no_agent_at_all_is_a_warning_because_the_command_line_can_name_one(tmp_path: Path) -> None:
    problem = only(problems_of(tmp_path, BASE.replace("agent: shop\n", "")))
    assert (problem.severity, problem.code) == ("warning", "no-agent")


def test_options_of_an_agent(tmp_path: Path) -> None:
    problem = only(problems_of(tmp_path, BASE.replace("{kind: demo}", "{kind: demo, verison: v1}")))
    assert (problem.severity, problem.code, problem.line, problem.column) == ("error", "agent-option", 4, 22)
    assert "version" in problem.message
    # What a variable stands for is not known before it is run.
    assert problems_of(tmp_path, BASE.replace("{kind: demo}", "{kind: demo, version: '${V}'}")) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("kind: demo, verison: '${V}'", "unknown option `verison`"),
        ("kind: openai, model: m, headers: {X: '${V}', Y: 5}", "`headers.Y`"),
        ("kind: openai, model: m, temperature: '${T}'", "`temperature` must be number"),
    ],
)
def test_a_variable_excuses_its_own_text_only(tmp_path: Path, options: str, said: str) -> None:
    """It becomes a text: never a number, and no option becomes known by it."""
    problem = only(problems_of(tmp_path, BASE.replace("kind: demo", options)))
    assert problem.code == "agent-option"
    assert said in problem.message


def test_a_variable_may_become_one_of_several_texts(tmp_path: Path) -> None:
    for options in ("kind: openai, model: m, seed: '${S}'", "kind: openai, model: m, base_url: '${URL}'"):
        assert problems_of(tmp_path, BASE.replace("kind: demo", options)) == []


def test_the_users_agents_count_and_their_mistakes_too(tmp_path: Path) -> None:
    folder = directories.config_dir()
    folder.mkdir(parents=True)
    agents = folder / "agents.yaml"
    agents.write_text("mine: {kind: demo}\n", "utf-8")
    assert problems_of(tmp_path, BASE.replace("agent: shop\n", "agent: mine\n")) == []
    agents.write_text("mine: {api_key: secret}\n", "utf-8")
    problems = problems_of(tmp_path, BASE)
    assert {one.file for one in problems} == {str(agents)}
    assert any(one.code == "secret" for one in problems)


def test_an_unreadable_file_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "a.suite.yaml").write_bytes(b"name: x\n\xff\n")
    (tmp_path / "b.suite.yaml").write_text(BASE, "utf-8")
    loaded, problems = check_suites([tmp_path])
    assert [one.path.name for one in loaded] == ["b.suite.yaml"]
    problem = only(problems)
    assert (problem.code, problem.line, problem.column) == ("unreadable", 2, 1)
    assert "UTF-8" in problem.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_text(BASE, "utf-8")
    path.chmod(0)
    assert only(check_suites([path])[1]).code == "unreadable"


def test_the_sample_suites_are_right() -> None:
    loaded, problems = check_suites([directories.bundled("sample_suites")])
    assert loaded
    assert problems == []


@pytest.mark.parametrize(
    ("metric", "unknown"),
    [
        ('{"type": "Judge", "criteria": "x", "judge": "nobody"}', True),
        ('{"type": "Judge", "criteria": "x", "judge": "{{who}}"}', False),
        ('{"type": "Judge", "criteria": "x", "judge": "no{{who}}"}', False),
        ('{"type": "Judge", "criteria": "x", "judge": ""}', False),
        ('{"type": "Judge", "criteria": "x", "judge": null}', False),
        ('{"type": "Judge", "criteria": "x", "judge": 5}', False),
        ('{"type": "Judge", "criteria": "x", "judge": ["nobody"]}', False),
        ('{"type": "Judge", "criteria": "x"}', False),
        ('{"type": ["Judge"], "judge": "nobody"}', False),
        ('{"judge": "nobody"}', False),
        ('"judge"', False),
        # another metric's property of that name means nobody
        ('{"type": "TextMatch", "contains": "x", "judge": "nobody"}', False),
        ('{"type": "Similarity", "embedder": "vectors", "judge": "nobody"}', False),
    ],
)
def test_a_name_of_a_judge_that_nobody_can_look_up_is_not_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str, unknown: bool
) -> None:
    monkeypatch.setitem(entry_points.own(EMBEDDERS), "vectors", "local_embedder:Vectors")
    path = tmp_path / "judged.suite.yaml"
    criterion = {"name": "C", "prototype_class": "TextResponse", "config_uxon": f'{{"metrics": [{metric}]}}'}
    test = {"id": "t", "name": "T", "prompt": "hi", "variables": {"who": "body"}, "criteria": [criterion]}
    data = {"name": "J", "agent": "shop", "agents": {"shop": {"kind": "demo"}}, "tests": [test]}
    path.write_text(json.dumps(data), "utf-8")
    assert ("unknown-agent" in [one.code for one in check_suites([path])[1]]) == unknown


def test_judges_and_embedders_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(entry_points.own(EMBEDDERS), "vectors", "local_embedder:Vectors")
    path = tmp_path / "judged.suite.yaml"
    path.write_text(
        textwrap.dedent(
            """\
            name: Judged
            agent: shop
            agents:
              shop: {kind: demo}
              strict: {kind: openai, model: m}
            tests:
              - id: t
                name: T
                prompt: hi
                criteria:
                  - name: C
                    prototype_class: TextResponse
                    expected_value: hi
                    config_uxon: |
                      {
                        "metrics": [
                          {"type": "Judge", "criteria": "x", "judge": "strict"},
                          {"type": "Safety", "judge": "strikt"},
                          {"type": "Similarity", "embedder": "vectors"},
                          {"type": "Similarity", "embedder": "strict"},
                          {"type": "Similarity", "embedder": "shop"},
                          {"type": "Similarity", "embedder": "vectorss"}
                        ]
                      }
            """
        ),
        "utf-8",
    )
    _, problems = check_suites([path])
    found = [(one.code, one.line, one.column, one.severity) for one in problems]
    lines = path.read_text("utf-8").splitlines()
    wanted = [(18, '"strikt"'), (21, '"shop"'), (22, '"vectorss"')]
    assert [lines[line - 1].count(text) for line, text in wanted] == [1, 1, 1]
    assert found == [("unknown-agent", line, lines[line - 1].index(text) + 1, "error") for line, text in wanted]
    assert "strict" in (problems[0].fix or "")
    assert "gives no embeddings" in problems[1].message


def test_the_same_mistake_in_the_same_config_of_two_tests_is_said_at_both(tmp_path: Path) -> None:
    head, tests = BASE.replace('"contains": "x"', '"contains": "{{nme}}"').split("tests:\n")
    twice = f"{head}tests:\n{tests}{tests.replace('id: one', 'id: two')}"
    other = tests.replace("id: one", "id: three").replace("{name: Ann}", "{name: Ann, nme: x}")
    found = problems_of(tmp_path, twice + other)
    assert [(one.code, one.line) for one in found] == [("unknown-variable", 14), ("unknown-variable", 24)]
    assert all("did you mean name?" in one.message for one in found)


USER = BASE.replace(
    """    prompt: "Hi {{name}}"
""",
    """    user:
      agent: shop
      goal: Greet {{name}}
      knows: {order: "{{name}}", more: [a, "{{name}}"]}
""",
)


def test_what_can_be_wrong_with_a_simulated_user(tmp_path: Path) -> None:
    assert problems_of(tmp_path, USER) == []
    problem = only(problems_of(tmp_path, USER.replace("      agent: shop", "      agent: shpo")))
    assert (problem.code, problem.line, problem.column) == ("unknown-agent", 8, 14)
    problem = only(problems_of(tmp_path, USER.replace('more: [a, "{{name}}"]', 'more: [a, "{{nome}}"]')))
    assert (problem.code, problem.line) == ("unknown-variable", 10)
    problem = only(problems_of(tmp_path, USER.replace("Greet {{name}}", "Greet order #W12")))
    assert (problem.code, problem.line) == ("cut-text", 9)
    tools = USER.replace("tests:\n", "  customer: {kind: openai, model: m, tools: 'builtin:demo-shop'}\ntests:\n")
    problem = only(problems_of(tmp_path, tools.replace("      agent: shop", "      agent: customer")))
    assert (problem.code, problem.severity, problem.line) == ("user-has-tools", "warning", 9)
    # An agent that is there, and can't be read, plays nobody: only that is told.
    broken = USER.replace("agents:\n  shop:", "agents:\n  shop: {$odd: 1}\n  other:")
    assert {problem.code for problem in problems_of(tmp_path, broken)} == {"missing-required"}
    (tmp_path / "rows.jsonl").write_text('{"name": "Ada"}\n{"who": "Bo"}\n', "utf-8")
    rows = USER.replace("    variables: {name: Ann}\n", "    dataset: {file: rows.jsonl}\n")
    assert "the simulated user" in only(problems_of(tmp_path, rows)).message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("      goal: Greet {{name}}\n", "", "user has no goal"),
        ("goal: Greet {{name}}", "goal: ''", "goal is empty"),
        ("goal: Greet {{name}}", "goal: g\n      max_turns: 0", "max_turns must be at least 1, not 0"),
        ("goal: Greet {{name}}", "goal: g\n      person: x", 'user has no "person"'),
        ("goal: Greet {{name}}", "goal: g\n      stop_when: [x, y]", "stop_when must be a text, not a list"),
    ],
)
def test_what_a_simulated_user_must_have(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "s.suite.yaml").write_text(USER.replace(old, new), "utf-8")
    problem = only(check_suites([tmp_path])[1])
    assert said in problem.message


@pytest.mark.parametrize(
    ("prompt", "dataset", "said"),
    [
        ("{{ 'x' * 999999999 }}", "", "makes more than"),
        ("{{ name * 99999999 }}", "", "makes more than"),
        ("{{ 'x'.center(99999999) }}", "", "makes more than"),
        ("{{ who }}{{ 'x' * 999999999 }}", "    dataset: {file: rows.csv}\n", "makes more than"),
        ("{{ 1 / 0 }}", "", "division by zero"),
        ("{{ 'x' * 10 }}{{ name | upper }}", "", ""),
        ("{{ 12 / who }}", "    dataset: {file: rows.csv}\n", ""),
    ],
)
def test_a_template_that_a_run_would_refuse_is_said_with_its_place(
    tmp_path: Path, prompt: str, dataset: str, said: str
) -> None:
    (tmp_path / "rows.csv").write_text("who\n3\n", "utf-8")
    problems = problems_of(tmp_path, BASE.replace('    prompt: "Hi {{name}}"\n', f'    prompt: "{prompt}"\n{dataset}'))
    if not said:
        assert problems == []
        return
    problem = only(problems)
    assert said in problem.message
    assert (problem.code, problem.severity, problem.line) == ("template", "error", 7)


def test_a_probe_that_the_test_does_not_have(tmp_path: Path) -> None:
    text = (
        BASE.replace("TextResponse", "State")
        .replace("tests:", "state:\n  order: {file: order.txt}\ntests:")
        .replace(
            '            "metrics": [{"type": "TextMatch", "contains": "x"}]',
            '            "probe": "ordr", "metrics": [{"type": "TextMatch", "contains": "x"}]',
        )
    )
    (problem,) = problems_of(tmp_path, text)
    assert (problem.code, problem.severity, problem.fix) == ("unknown-probe", "error", 'did you mean "order"?')
    assert text.splitlines()[problem.line - 1][problem.column - 1 :].startswith('"ordr"')
    assert problems_of(tmp_path, text.replace("ordr", "order")) == []


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ("{}", "a probe has to say what it reads"),
        ("{file: a, url: 'http://x'}", "a probe reads one thing; this one has file and url"),
        ("{sql: select 1}", "`sql` needs the SQLite database that it reads"),
        ("{file: a, database: b}", "only `sql` reads a database"),
        ("{command: ''}", "`command` is empty"),
        ("{python: nothing}", "`python` is written package.module:name or path/to/file.py:name, not 'nothing'"),
        ("{fil: a}", None),
        ("{file: a, timeout: 0}", None),
        ("a.txt", None),
    ],
)
@pytest.mark.parametrize("where", ["suite", "test"])
def test_probes_that_are_wrong(tmp_path: Path, probe: str, message: str | None, where: str) -> None:
    if where == "suite":
        text = BASE.replace("tests:", f"state:\n  p: {probe}\ntests:")
    else:
        text = BASE.replace("    criteria:", f"    state:\n      p: {probe}\n    criteria:")
    problems = [one for one in problems_of(tmp_path, text) if one.severity == "error"]
    assert problems
    assert message is None or message in [one.message for one in problems]
    assert all(
        "state" in text.splitlines()[one.line - 1] or "p:" in text.splitlines()[one.line - 1] for one in problems
    )
