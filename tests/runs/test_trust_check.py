"""What a plan would start on this machine, and whether it may."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import NotTrustedError, TrustRequirement
from agenteval_tui.core import directories
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.plan.planner import make_untrusted_plan as untrusted
from agenteval_tui.runs.trust_check import check_trust, needs_of
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.trust import Trust

HARMLESS = {"kind": "openai", "base_url": "http://127.0.0.1:1", "model": "m"}
PROGRAM = {"kind": "command", "command": ["./bot", "--fast"]}
CHECK = {"type": "Python", "function": "checks:good"}
TEXT = {"type": "TextMatch", "contains": "a"}
JUDGE = {"type": "Judge", "criteria": "good?"}


@pytest.fixture
def suite_at(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """A suite's file in a folder of its own."""

    def made(
        agent: dict[str, Any] | None, *, metric: dict[str, Any] = TEXT, test: dict[str, Any] | None = None, **more: Any
    ) -> LoadedSuite:
        folder = tmp_path / "suites"
        folder.mkdir(exist_ok=True)
        criterion = {"name": "c", "prototype_class": "TextResponse", "config_uxon": {"metrics": [metric]}}
        data = {
            "name": "S",
            "agent": "bot",
            "agents": {**({"bot": agent} if agent else {}), **more},
            "tests": [{"id": "t", "prompt": "hi", "criteria": [criterion], **(test or {})}],
        }
        path = folder / "s.suite.yaml"
        path.write_text(json.dumps(data), "utf-8")
        return load_suite(path)

    return made


def needs(
    loaded: LoadedSuite, agents: dict[str, AgentConfig] | None = None, **options: Any
) -> tuple[TrustRequirement, ...]:
    plan: Plan = untrusted([loaded], PlanOptions(**options), user_agents=agents or {})
    return needs_of(plan)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"agent": HARMLESS}, None),
        ({"agent": {"kind": "demo"}}, None),
        ({"agent": PROGRAM}, "command: ./bot --fast"),
        ({"agent": {"kind": "python", "callable": "bots:run"}}, "python agent bots:run"),
        ({"agent": {**HARMLESS, "tools": [{"name": "t", "python": "tools:t"}]}}, "python tool tools:t"),
        ({"agent": {**HARMLESS, "tools": [{"mcp": {"command": ["srv"]}}]}}, "MCP server srv"),
        ({"agent": HARMLESS, "metric": CHECK}, "python function checks:good"),
        ({"agent": HARMLESS, "metric": JUDGE, "judge": PROGRAM}, "command: ./bot --fast"),
        ({"agent": HARMLESS, "metric": JUDGE, "judge": HARMLESS}, None),
        ({"agent": HARMLESS, "other": PROGRAM}, None),  # nobody runs it
        ({"agent": HARMLESS, "other": PROGRAM, "test": {"variations": [{"name": "v", "agent": "other"}]}},
         "command: ./bot --fast"),
        ({"agent": HARMLESS, "test": {"variations": [{"name": "v", "config": PROGRAM}]}}, "command: ./bot --fast"),
        ({"agent": {"kind": "replay", "file": "r.jsonl"}}, None),
        ({"agent": {"kind": "replay", "file": "../r.jsonl"}}, "reads recordings from ../r.jsonl"),
        ({"agent": {**HARMLESS, "tools": "../tools.yaml"}}, "reads tools from ../tools.yaml"),
        ({"agent": HARMLESS, "test": {"dataset": {"file": "../rows.jsonl"}}}, "reads the dataset ../rows.jsonl"),
        ({"agent": HARMLESS, "test": {"dataset": {"file": "rows.jsonl"}}}, None),
    ],
)  # fmt: skip
def test_what_would_be_started_or_read(
    suite_at: Callable[..., LoadedSuite], tmp_path: Path, given: dict[str, Any], what: str | None
) -> None:
    (tmp_path / "suites").mkdir()
    for folder in (tmp_path, tmp_path / "suites"):
        (folder / "rows.jsonl").write_text('{"input": "a"}\n')
    found = needs(suite_at(**given))
    assert found == (() if what is None else (TrustRequirement(tmp_path / "suites", (what,)),))


def test_each_program_is_said_once(suite_at: Callable[..., LoadedSuite]) -> None:
    test = {"repeat": 3, "variations": [{"name": "v", "config": {"timeout": 3}}]}
    (need,) = needs(suite_at(PROGRAM, metric=CHECK, test=test))
    assert need.what == ("command: ./bot --fast", "python function checks:good")


def test_what_the_user_configured_is_trusted_as_it_is(suite_at: Callable[..., LoadedSuite]) -> None:
    agents = {"bot": AgentConfig(**PROGRAM)}
    assert needs(suite_at(None), agents) == ()
    assert needs(suite_at(None, metric=JUDGE), {**agents, "judge": AgentConfig(**PROGRAM)}) == ()


def test_a_suite_that_changes_what_the_user_configured_must_be_trusted(
    suite_at: Callable[..., LoadedSuite], tmp_path: Path
) -> None:
    agents = {"bot": AgentConfig(**PROGRAM)}
    loaded = suite_at(None, test={"variations": [{"name": "v", "config": {"env": {"LD_PRELOAD": "evil.so"}}}]})
    assert needs(loaded, agents) == (TrustRequirement(tmp_path / "suites", ("command: ./bot --fast",)),)
    assert needs(loaded, agents, variation="default") == ()


def test_mock_tools_need_no_trust(suite_at: Callable[..., LoadedSuite]) -> None:
    loaded = suite_at(None, test={"context": {"sample_tools": {"t": {"sample_response": "x"}}}})
    assert needs(loaded, {"bot": AgentConfig(**HARMLESS)}) == ()


def test_a_plan_is_refused_until_the_folder_is_trusted(suite_at: Callable[..., LoadedSuite], tmp_path: Path) -> None:
    loaded, folder = suite_at(PROGRAM), tmp_path / "suites"
    with pytest.raises(NotTrustedError) as raised:
        make_plan([loaded], PlanOptions(), user_agents={})
    error = raised.value
    assert error.where == str(folder)
    assert "command: ./bot --fast" in error.what
    assert "not trusted yet" in error.what
    assert "--trust" in error.fix
    assert error.needs == (TrustRequirement(folder, ("command: ./bot --fast",)),)
    assert make_plan([loaded], PlanOptions(trust=True), user_agents={}).permission.trusted
    Trust.load().trust(folder)
    assert make_plan([loaded], PlanOptions(), user_agents={}).permission.trusted
    (folder / "bot.py").write_text("changed")
    assert make_plan([loaded], PlanOptions(), user_agents={}).permission.trusted


def test_the_environment_allows_everything(
    suite_at: Callable[..., LoadedSuite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = suite_at(PROGRAM)
    (tmp_path / "suites" / ".env").write_text("AGENTEVAL_TRUST=1\n")
    for value, allowed in (("", False), ("0", False), ("1", True), ("true", True)):
        monkeypatch.setenv("AGENTEVAL_TRUST", value)
        with contextlib.nullcontext() if allowed else pytest.raises(NotTrustedError):
            make_plan([loaded], PlanOptions(), user_agents={})


@pytest.mark.parametrize("written", ["the file", "a module", "a folder of modules", "a tool", "a metric", "a link"])
def test_code_in_another_repository_needs_that_one_to_be_trusted(
    suite_at: Callable[..., LoadedSuite], tmp_path: Path, written: str
) -> None:
    other, suites = tmp_path / "other", tmp_path / "suites"
    inner = suites / "vendor"
    for folder in (other, inner):
        (folder / ".git").mkdir(parents=True)
        (folder / "bots.py").write_text("def run(value): return True\n")
    (suites / "linked.py").symlink_to(other / "bots.py")
    agent: dict[str, Any] = {"kind": "python", "callable": "bots:run"}
    loaded, at, what = {
        "the file": ({"agent": {**agent, "callable": "../other/bots.py:run"}}, other, "agent ../other/bots.py:run"),
        "a module": ({"agent": {**agent, "callable": "vendor.bots:run"}}, inner, "agent vendor.bots:run"),
        "a folder of modules": ({"agent": {**agent, "path": ["../other"]}}, other, "agent bots:run"),
        "a tool": ({"agent": {**HARMLESS, "tools": [{"name": "t", "python": "vendor.bots:run"}]}}, inner,
                   "tool vendor.bots:run"),
        "a metric": ({"agent": HARMLESS, "metric": {**CHECK, "function": "vendor.bots:run"}}, inner,
                     "function vendor.bots:run"),
        "a link": ({"agent": {**agent, "callable": "linked:run"}}, other, "agent linked:run"),
    }[written]  # fmt: skip
    Trust.load().trust(suites)
    with pytest.raises(NotTrustedError) as raised:
        make_plan([suite_at(**loaded)], PlanOptions(), user_agents={})
    assert raised.value.needs == (TrustRequirement(at, (f"python {what}",)),)
    Trust.load().trust(at)
    assert make_plan([suite_at(**loaded)], PlanOptions(), user_agents={}).permission.trusted


def test_a_plan_that_starts_nothing_gets_no_trust(suite_at: Callable[..., LoadedSuite], tmp_path: Path) -> None:
    Trust.load().trust(suite_at(HARMLESS).path.parent)
    assert not make_plan([suite_at(HARMLESS)], PlanOptions(), user_agents={}).permission.trusted
    assert make_plan([suite_at(HARMLESS)], PlanOptions(trust=True), user_agents={}).permission.trusted


def test_many_programs_are_said_briefly(suite_at: Callable[..., LoadedSuite]) -> None:
    tools = [{"name": f"t{number}", "command": [f"program-{number}"]} for number in range(9)]
    plan = untrusted([suite_at({**HARMLESS, "tools": tools})], PlanOptions(), user_agents={})
    with pytest.raises(NotTrustedError) as raised:
        check_trust(plan)
    assert "and 4 more" in raised.value.what
    assert len(raised.value.needs[0].what) == 9


def test_bundled_suites_need_no_trust() -> None:
    for path in directories.bundled("sample_suites").glob("*.suite.yaml"):
        make_plan([load_suite(path)], PlanOptions(), user_agents={})
