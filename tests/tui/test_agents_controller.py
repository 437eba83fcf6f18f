"""Which agents are listed, what their checks found, and the conversations with them. No app, no widget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval_tui.agents.permission import Permission
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.screens.agents_controller import AT_ONCE, AgentsController, read_agents
from agenteval_tui.tui.styled_text import Line, plain

SUITE = """\
name: Own
agents:
  shop: {kind: demo, pace: %s}
  program: {kind: command, command: [python3, agent.py], description: "a program"}
tests: []
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "own.suite.yaml").write_text(SUITE % 0)
    (folder / "broken.suite.yaml").write_bytes(b"name: \xff\n")
    opened = Session((folder,), tmp_path / "history.db")
    yield opened
    opened.close()


@pytest.fixture
def controller(session: Session) -> AgentsController:
    made = AgentsController()
    assert made.agents_heading() == ("agents", ""), "nothing was read yet"
    assert made.take(read_agents(session.workspace)) == []
    made.arrange()
    return made


def named(controller: AgentsController, name: str) -> Configured:
    return next(one for one in controller.agent_candidates.agents if one.name == name)


def shown(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


def allowed(controller: AgentsController, session: Session, agent: Configured) -> Permission:
    permission = controller.permission([agent], session.workspace)
    assert isinstance(permission, Permission)
    return permission


def test_agents_are_listed_filtered_and_described(controller: AgentsController) -> None:
    assert controller.agents_heading()[1] == "2 agents"
    assert "not UTF-8" in shown(controller.problem_lines(100))
    program = named(controller, "program")
    assert "python3" in (said := shown(controller.detail_lines(program, 80, {"agents.check": "ctrl+k"})))
    assert "Press ^k to check that it responds" in said
    assert controller.detail_lines(None, 80, {}) == []
    controller.query = "demo"
    assert controller.arrange().count() == 1
    assert controller.agents_heading()[1] == "1 of 2 agents"
    assert controller.agent_at(0) == named(controller, "shop")
    assert controller.agent_at(1) is None
    assert "No agent matches" in shown(controller.empty())
    controller.query = ""
    assert "No agents are configured" in shown(controller.empty())
    assert controller.fail().count() == 0
    assert controller.agent_at(0) is None


def test_programs_are_run_only_when_a_person_allowed_it(controller: AgentsController, session: Session) -> None:
    shop, program = named(controller, "shop"), named(controller, "program")
    assert not controller.needs_reading([shop])
    allowed(controller, session, shop)
    assert controller.needs_reading([shop, program])
    questions = controller.permission([program], session.workspace)
    assert isinstance(questions, list)
    assert "python3" in str(questions[0].need.what)
    controller.allow([program])
    allowed(controller, session, program)


async def test_an_agent_is_checked_once_at_a_time(controller: AgentsController, session: Session) -> None:
    shop = named(controller, "shop")
    permission, room = allowed(controller, session, shop), asyncio.Semaphore(AT_ONCE)
    controller.begin_checks([shop])
    assert [one.name for one in controller.unchecked(controller.agent_candidates.agents)] == ["program"]
    await controller.check(shop, room, permission)
    assert controller.agents_heading()[1].endswith("1 checked · 1 healthy")
    assert len(controller.unchecked(controller.agent_candidates.agents)) == 2
    controller.begin_checks([shop])
    full = asyncio.Semaphore(0)
    waiting = asyncio.create_task(controller.check(shop, full, permission))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "checked" not in controller.agents_heading()[1], "as if nobody had asked"
    await controller.check(shop, room, permission)
    path = session.paths[0] / "own.suite.yaml"
    path.write_text("\n".join(line for line in path.read_text().split("\n") if "shop:" not in line))
    controller.take(read_agents(session.workspace))
    assert controller.agents_heading()[1] == "1 agent", "nothing is said of one that was removed"
    path.write_text(SUITE % 0)
    controller.take(read_agents(session.workspace))
    assert controller.agents_heading()[1] == "2 agents", "it may be another one that has its name"


async def test_a_conversation_belongs_to_one_configuration(controller: AgentsController, session: Session) -> None:
    shop = named(controller, "shop")
    assert controller.chat_with(shop) is controller.chat_with(None) is None
    assert controller.chat_for_test(shop) is None
    chat = controller.shown = controller.begin_turn(shop, allowed(controller, session, shop), lambda: session.store)
    assert not controller.can_become_test
    await chat.say("Where is my order #W1042?", lambda: None)
    assert not controller.answering
    controller.end_turn(shop)
    assert controller.can_become_test
    made = controller.chat_for_test(shop)
    assert made is not None
    assert made.transcripts == (chat.answered,)
    assert controller.begin_turn(shop, allowed(controller, session, shop), lambda: session.store) is chat
    assert "to shop" in shown(controller.to_lines(shop, 80))
    assert "first token" in shown(controller.status_lines(shop, 80))
    assert controller.take(read_agents(session.workspace)) == [], "the same configuration"
    path = session.paths[0] / "own.suite.yaml"
    path.write_text(SUITE % 1)
    assert controller.take(read_agents(session.workspace)) == [chat], "another one: it is over"
    assert controller.chat_with(shop) is None
    await chat.close()
    await controller.close()
