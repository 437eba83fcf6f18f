"""What can be told of services and hooks before anything runs: problems, trust, the plan."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EXECUTORS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.around.plan import read_surroundings, surroundings_data
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.plan.planner import make_untrusted_plan as untrusted
from agenteval_tui.runs.plan.preview import preview_plan
from agenteval_tui.runs.trust_check import needs_of
from agenteval_tui.suites.load import LoadedSuite, load_suite

SUITE = """
name: Shop
agent: bot
agents:
  bot: {kind: demo, services: {own: {command: [serve], ready: {port: 81}}}}
TOP
tests:
  - id: hello
    prompt: PROMPT
    TEST
    criteria:
      - {name: a, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: "{{word}}"}]}}
"""
WEB = "services: {web: {command: [python, web.py], ready: {port: 80}}}"


@pytest.fixture
def shop(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """A suite with something around its runs."""

    def make(test: str = "", *, top: str = "", prompt: str = "Hello") -> LoadedSuite:
        path = tmp_path / "shop.suite.yaml"
        text = SUITE.replace("TOP", textwrap.dedent(top)).replace("TEST", test).replace("PROMPT", prompt)
        path.write_text(text)
        return load_suite(path)

    return make


def problems(loaded: LoadedSuite) -> list[str]:
    """Those of the file, with the line of each."""
    return [f"{one.line}: {one.message} ({one.fix})" for one in check_suites([loaded.path])[1]]


@pytest.mark.parametrize(
    ("test", "top", "said"),
    [
        ("", "services: {web: {command: [a], ready: {}}}", "ready by exactly one of url, port and log"),
        ("", "services: {web: {command: [a], ready: {url: u, port: 1}}}", "this one has url and port"),
        ("", "services: {web: {command: [a], ready: {url: localhost}}}", "not the address of a web server"),
        ("", "services: {web: {command: [a], ready: {log: '('}}}", "log is not a regular expression"),
        ("", "services: {web: {command: [a]}}", "web has no ready"),
        ("", "services: {web: {comand: [a], ready: {port: 1}}}", "did you mean `command`?"),
        ("", 'services: {web: {command: "a \'", ready: {port: 1}}}', "can't be split into words"),
        ("", "services: {web: {command: [a], cwd: no, ready: {port: 1}}}", "in the folder no, which does not exist"),
        ("", "services: {web: {command: [a], ready: {log: a}, reuse_existing: true}}", "that a service runs already"),
        ("before: [nothing]", "", "is not package.module:function (write a command as a list: [program, argument])"),
        ("before: [[]]", "", "a command of before is empty"),
        ("before: [{command: [a], callable: 'a:b'}]", "", "not both"),
        ("before: [{}]", "", "has either a command or a callable"),
        ("before: ['mine:nothing']", "", "mine has no nothing; did you mean something?"),
        ("before: [[python, reset_bd.py]]", "", "there is no file reset_bd.py"),
        ("before: [{command: [a], timeout: 0}]", "", "timeout must be more than 0"),
        ("beforeall: [[a]]", "", "did you mean `before_all`?"),
        ("workdir: frsh", "", "did you mean fresh?"),
        ("workdir: {copy: nothing}", "", "the folder to copy, nothing, does not exist"),
        ("workdir: {from: x}", "", 'has no "from"'),
        ("", "before: [nothing]", "is not package.module:function"),
    ],
)
def test_mistakes_have_their_place(shop: Any, tmp_path: Path, test: str, top: str, said: str) -> None:
    (tmp_path / "mine.py").write_text("def something(): pass\n")
    found = [one for one in problems(shop(test, top=top)) if 'variable "word"' not in one]
    assert any(said in one for one in found), found


def test_variables_may_come_from_hooks(shop: Any) -> None:
    assert 'the variable "word" is not known' in str(problems(shop(prompt='"{{word}}"')))
    assert problems(shop("before: [[echo]]", prompt='"{{word}}"')) == []
    assert problems(shop(top="before_all: [[echo]]", prompt='"{{word}}"')) == []


def test_trust_is_asked_for_each_service_and_hook(shop: Any) -> None:
    loaded = shop("before: [[python, reset.py]]\n    after: ['mine:end']", top=f"{WEB}\nafter_all: [[sh, -c, 'a b']]")
    plan = untrusted([loaded], PlanOptions(), user_agents={})
    (need,) = needs_of(plan)
    assert set(need.what) == {
        "service own: serve",
        "service web: python web.py",
        "before hook: python reset.py",
        "after hook: python function mine:end",
        "after_all hook: sh -c 'a b'",
    }
    with pytest.raises(NotTrustedError, match="this needs your trust"):
        make_plan([loaded], PlanOptions(), user_agents={})


def test_a_copy_from_outside_needs_trust(shop: Any) -> None:
    plan = untrusted([shop("workdir: {copy: ../other}")], PlanOptions(), user_agents={})
    assert "copies the folder ../other" in str(needs_of(plan))


def test_the_plan_shows_services_and_hooks(shop: Any) -> None:
    loaded = shop("before: [[python, reset.py]]\n    workdir: fresh\n    exclusive: db", top=WEB)
    preview = preview_plan(untrusted([loaded], PlanOptions(), user_agents={}), None)
    assert preview.around == (
        "service web: python web.py",
        "service own: serve",
        "before hook: python reset.py",
        "working folder: a fresh one",
        "one after another: tests that use db",
    )


@pytest.mark.parametrize("test", ["before: [[a]]", "workdir: fresh", "exclusive: db"])
def test_a_cluster_has_nothing_of_this_machine(shop: Any, test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "farming", SimpleNamespace(Farm=SimpleNamespace(address_variable="FARM")))
    monkeypatch.setitem(entry_points.own(EXECUTORS), "farm", "farming:Farm")
    loaded = shop(test)
    options = PlanOptions(executor="farm", scheduler="tcp://127.0.0.1:1", trust=True)
    with pytest.raises(AgentevalError, match="its agent would run on a cluster"):
        make_plan([loaded], options, user_agents={})  # its agent has a service
    text = loaded.path.read_text().replace(", services: {own: {command: [serve], ready: {port: 81}}}", "")
    loaded.path.write_text(text)
    if test.startswith("exclusive"):
        assert make_plan([load_suite(loaded.path)], options, user_agents={}).runs
    else:
        with pytest.raises(AgentevalError, match="its agent would run on a cluster"):
            make_plan([load_suite(loaded.path)], options, user_agents={})


def test_what_is_kept_of_it_has_no_secret(shop: Any) -> None:
    hook = "{command: [a], env: {SHOP_TOKEN: sk-secret-12345, OTHER: '${SHOP_TOKEN}', LANG: C}}"
    (run,) = untrusted([shop(f"before: [{hook}]")], PlanOptions(), user_agents={}).runs
    kept = surroundings_data(run.around)
    assert "sk-secret" not in str(kept)
    assert read_surroundings(kept).hooks[0].env == {"OTHER": "${SHOP_TOKEN}", "LANG": "C"}
