"""In a trusted repository, only a secret that would go to a new address is a question: in every way in, by its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer
from threaded import serving

import agenteval_tui as agenteval
from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import configured_agents
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.recorded_program import permission_of, program_in
from agenteval_tui.runs.trust_check import check_agents, sends_below
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.trust import Sending, Trust
from agenteval_tui.tui.analysis_context import Session

SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: openai, base_url: "%(url)s", model: m, stream: false, api_key_env: SHOP_KEY, max_attempts: 1}
  strict: {kind: openai, base_url: "%(url)s", model: judge, stream: false, api_key_env: SHOP_KEY, max_attempts: 1}
tests:
  - id: order
    prompt: "Where is my order?"
    repeat: 2
    criteria:
      - name: Helps
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Judge, judge: strict, criteria: "helpful?"}]}
      - {name: Near, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: nothing}]}}
"""


def reply(request: Request) -> Answer:
    text = json.dumps({"score": 1.0, "reasoning": "yes"})
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    choices = [{"message": message, "finish_reason": "stop"}]
    return Answer(body=json.dumps({"model": "m", "choices": choices, "usage": usage}))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving(reply) as running:
        yield running


@pytest.fixture
def suite(tmp_path: Path, cli: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of a trusted repository, with an execution that was stopped, and no agreement for its key."""
    monkeypatch.setenv("SHOP_KEY", "sk-secret")
    (tmp_path / "evals" / ".git").mkdir(parents=True)
    path = tmp_path / "evals" / "orders.suite.yaml"
    path.write_text(SUITE % {"url": server.url})
    monkeypatch.chdir(path.parent)
    assert cli("run", path, "--trust").code == 1
    assert cli("run", path, "--trust", "--max-tokens", "1", "--concurrency", "1").code == 1
    Trust.load().trust(path.parent)
    server.requests.clear()
    return path


def _record(path: Path) -> object:
    (path.parent / ".env").write_text(f"OPENAI_BASE_URL={path.read_text().split(chr(34))[1]}\n")
    return permission_of(program_in(path.parent, ["true"]))


def _app(path: Path) -> object:
    session = Session([path], directories.history_file(None))
    try:
        return session.workspace.start([path], PlanOptions())
    finally:
        session.close()


def _pytest(path: Path) -> str:
    """With no other plug-in."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "agenteval_tui.pytest_plugin"]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([*words, str(path)], capture_output=True, text=True, env=env).stdout


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "run": lambda cli, path: cli("run", path),
    "run --detach": lambda cli, path: cli("run", path, "--detach"),
    "resume": lambda cli, path: cli("resume", "last", "--max-tokens", "100000"),
    "agents check": lambda cli, path: cli("agents", "check", path, "--agent", "shop"),
    "fork": lambda cli, path: cli("fork", "order", "--at", "1", "--system", "Be brief", "-n", "1", "--yes"),
    "blame": lambda cli, path: cli("blame", "order", "--samples", "2", "--yes"),
    "shrink": lambda cli, path: cli("shrink", "order", "--yes"),
    "grade": lambda cli, path: cli("grade", path, "--execution", "last", "--judge", "strict"),
    "judge-report": lambda cli, path: cli("judge-report", "order/1", "--reask", "1"),
    "the API: run": lambda cli, path: agenteval.run(path),
    "the API: fork": lambda cli, path: agenteval.fork(newest_run(), at=1, system="Be brief", n=1),
    "the API: agents": lambda cli, path: check_agents(_configured(path)),
    "record": lambda cli, path: _record(path),
    "the app": lambda cli, path: _app(path),
    "pytest": lambda cli, path: _pytest(path),
}


def newest_run() -> str:
    with Store.open_to_look(directories.history_file(None)) as store:
        return store.runs_of_execution(store.execution("last").id)[0].id


def _configured(path: Path) -> Any:
    agents, _ = configured_agents([load_suite(path)], directories.config_dir())
    return [agent for agent in agents if agent.name == "shop"]


def said(way: Callable[[Any, Path], Any], cli: Any, path: Path) -> str:
    """What this way in says, if it ends or is refused."""
    try:
        done = way(cli, path)
    except AgentevalError as error:
        return str(error)
    return str(getattr(done, "err", done)) + str(getattr(done, "out", ""))


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_for_a_new_address_is_asked_about_by_name(
    cli: Any, suite: Path, server: ScriptedServer, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "SHOP_KEY"
    if way == "record":
        name = "OPENAI_API_KEY"
        monkeypatch.setenv(name, "sk-secret")
    check_question(" ".join(said(WAYS[way], cli, suite).split()), server, name)


def check_question(text: str, server: ScriptedServer, name: str = "SHOP_KEY") -> None:
    """It asks about that secret by its name, and nothing was sent."""
    place = server.url.removeprefix("http://").partition("/")[0]
    assert f"sends {name} to {place}" in text
    assert "is trusted, but not to send this there" in text
    assert server.requests == []


@pytest.mark.sweep
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("run --detach", "the app")])
def test_what_was_agreed_is_not_asked_about(cli: Any, suite: Path, server: ScriptedServer, way: str) -> None:
    Trust.load().trust(suite.parent, sends_below(suite.parent))
    suite.write_text(suite.read_text().replace("helpful?", "kind?"))  # or stored answers would do
    assert "trust" not in said(WAYS[way], cli, suite).replace(str(suite.parent), "")
    assert bool(server.requests) == (way not in ("the API: agents", "record"))


def test_the_address_that_was_agreed_says_nothing_for_another_port_or_variable(
    cli: Any, suite: Path, server: ScriptedServer
) -> None:
    assert cli("trust").code == 0
    agreed = sends_below(suite.parent)
    assert agreed == (Sending("SHOP_KEY", server.url.removeprefix("http://").partition("/")[0]),)
    with serving(reply) as other:
        for before, after, new in (
            (server.url, other.url, f"sends SHOP_KEY to {other.url.removeprefix('http://').partition('/')[0]}"),
            (
                "api_key_env: SHOP_KEY",
                'api_key_env: SHOP_KEY, query: {q: "${HOME}"}',
                f"sends HOME to {agreed[0].address}",
            ),
        ):
            text = suite.read_text()
            suite.write_text(text.replace(before, after, 1))
            with pytest.raises(NotTrustedError) as raised:
                agenteval.run(suite)
            (need,) = raised.value.needs
            assert (need.what, need.trusted) == ((new,), True), "nothing else is asked"
            suite.write_text(text)
        assert other.requests == []
    assert agenteval.run(suite).runs


def test_the_workbench_asks_nobody(suite: Path, server: ScriptedServer) -> None:
    """It grades with stored replies; what is missing is said."""
    with Store.open_to_look(directories.history_file(None)) as store:
        bench = Workbench.open(store, newest_run())
        assert (
            bench.judge(
                0, '{"metrics": [{"type": "Judge", "judge": "strict", "criteria": "another question"}]}'
            ).outcome
            == "error"
        )
    assert server.requests == []
