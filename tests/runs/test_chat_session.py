"""A scratch conversation: turns, errors, and the test that is made of it. Configured agents and their places."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents import base as agents
from agenteval_tui.agents.permission import NOTHING
from agenteval_tui.analysis.drafted_test import GoodRuns, drafted_test
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs import agent_factory, chat_session
from agenteval_tui.runs.agent_factory import Configured, check_configured, configured_agents, options_of
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.suites.editing import add_test
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import RunError, Usage


@dataclass
class Scripted:
    """Answers each request with the events of the next list; None: waits until it is cancelled."""

    script: list[list[Any] | None]
    requests: list[agents.AgentRequest] = field(default_factory=list)
    closed: bool = False

    async def run(self, request: agents.AgentRequest) -> AsyncIterator[agents.AgentEvent]:
        self.requests.append(request)
        events = self.script[len(self.requests) - 1]
        if events is None:
            yield agents.TextDelta("half an ans")
            await asyncio.Event().wait()
        for event in events or []:
            yield event

    async def check(self, thorough: bool = False) -> agents.CheckReport:
        raise RuntimeError("broken inside")

    async def close(self) -> None:
        self.closed = True


def talk_to(monkeypatch: pytest.MonkeyPatch, script: list[list[Any] | None]) -> tuple[Conversation, Scripted]:
    agent = Scripted(script)
    monkeypatch.setattr(chat_session, "make_configured", lambda one, permission, **_: agent)
    return Conversation(Configured("a", {"kind": "demo"}, Path("x.suite.yaml"), 1, "X")), agent


CALL = [
    agents.ToolCallStarted(0, "c1", "look"),
    agents.ToolArgumentsDelta(0, '{"id": "#1", "note": "{{x}}"}'),
    agents.ToolCallFinished(0, "found"),
    agents.TextDelta("It is "),
    agents.TextDelta("there."),
    agents.UsageReported(Usage(10, 5, cost=0.01)),
    agents.Done(model="m"),
]


async def test_turns_add_up_and_each_is_sent_with_what_was_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    chat, agent = talk_to(monkeypatch, [CALL, CALL])
    seen: list[str] = []
    said = await chat.say("Where?", lambda: seen.append(chat.transcript.messages[-1].content))
    assert said.error is None
    assert said.usage.cost == 0.01
    assert seen[0] == "Where?"
    assert "It is " in seen, "the answer is there while it streams"
    await chat.say("And now?", lambda: None)
    whole = chat.transcript
    assert [m.role for m in whole.messages] == ["user", "assistant", "tool", "assistant"] * 2
    assert [m.tool_calls for m in whole.messages if m.tool_calls] == [(0,), (1,)]
    assert [whole.messages[call.message or 0].tool_calls for call in whole.tool_calls] == [(0,), (1,)]
    assert (chat.usage.input_tokens, chat.usage.cost) == (20, 0.02)
    second = agent.requests[1]
    assert [m.content for m in second.messages] == ["Where?", "", "found", "It is there.", "And now?"]
    assert len(second.tool_calls) == 1
    assert (second.turn, second.run) == (2, agent.requests[0].run)
    await chat.close()
    assert agent.closed


async def test_what_failed_or_was_cancelled_is_shown_and_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [agents.TextDelta("par"), agents.Failed(RunError("timeout", "too slow", "wait"))]
    chat, agent = talk_to(monkeypatch, [failed, None, [], CALL])
    assert (await chat.say("one", lambda: None)).error == RunError("timeout", "too slow", "wait")
    task = asyncio.create_task(chat.say("two", lambda: None))
    while chat.transcript.messages[-1].content != "half an ans":
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not chat.busy
    assert chat.turns[-1].error is not None
    assert chat.turns[-1].error.kind == "cancelled"
    nothing = await chat.say("three", lambda: None)
    assert nothing.error is not None
    assert nothing.error.kind == "protocol"
    with pytest.raises(AgentevalError, match="no answer yet"):
        drafted_test(GoodRuns((chat.answered,)))
    await chat.say("four", lambda: None)
    assert [m.content for m in agent.requests[3].messages] == ["four"]
    assert [m.content for m in chat.transcript.messages if m.role == "user"] == ["one", "two", "three", "four"]
    assert drafted_test(GoodRuns((chat.answered,)))["prompt"] == "four"


async def test_a_conversation_becomes_a_test_that_passes_on_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from agenteval_tui.grading.grade import grade
    from agenteval_tui.runs.criteria import Specs

    chat, _ = talk_to(monkeypatch, [CALL, CALL])
    await chat.say("Where is {{ it }}?", lambda: None)
    path = tmp_path / "a.suite.yaml"
    path.write_text("tests:\n")
    test = drafted_test(GoodRuns((chat.answered,)), "where", "Where")
    assert test["prompt"] == "{% raw %}Where is {{ it }}?{% endraw %}"
    saved = add_test(load_suite(path), test)
    assert saved.ok, saved.problems
    assert saved.suite is not None
    specs = Specs().of(saved.suite.tests[0].criteria)
    assert str(grade(chat.transcript, specs, {}).outcome) == "passed"
    await chat.say("And then?", lambda: None)
    assert drafted_test(GoodRuns((chat.answered,)))["turns"][1] == "And then?"


def test_agents_are_found_with_their_lines_and_without_their_keys(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(
        "# mine\nagents:\n  mine:\n    kind: openai\n    model: m\n    base_url: https://me:pw@host/v1?key=sk-1\n"
        "    api_key_env: MY_KEY\n    headers: {X-Api: sk-2, Y: '${OTHER}'}\n    extra_body: {token: sk-3, n: 1}\n"
    )
    suite = tmp_path / "a.suite.yaml"
    suite.write_text("name: A\nagents:\n  own: {kind: command, command: [run, --api-key, sk-4, x]}\ntests: []\n")
    found, problems = configured_agents([load_suite(suite)], tmp_path)
    assert not problems
    assert [(one.name, one.line, one.suite) for one in found] == [("mine", 3, ""), ("own", 3, "A")]
    assert found[0].address == "m  https://host/v1?…"
    assert found[0].keys({"OTHER": "x"}) == [("MY_KEY", False), ("OTHER", True)]
    assert found[1].executes()
    shown = f"{[options_of(one.config) for one in found]} {[one.address for one in found]}"
    assert "sk-" not in shown
    assert "pw" not in shown
    assert "MY_KEY" in shown
    assert "${OTHER}" in shown


async def test_a_check_that_can_not_be_made_or_breaks_is_a_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = await check_configured(Configured("a", {"kind": "demo", "verison": "v1"}, tmp_path / "x", 1), NOTHING)
    assert not wrong.ok
    assert "verison" in wrong.message
    (tmp_path / ".env").write_text("no variable\n")
    (tmp_path / "pyproject.toml").touch()
    place = await check_configured(Configured("a", {"kind": "demo"}, tmp_path / "x", 1), NOTHING)
    assert place.message.startswith(f"{tmp_path}/.env:1:1: this line does not have the form NAME=VALUE")
    (tmp_path / ".env").unlink()
    demo = await check_configured(Configured("a", {"kind": "demo"}, tmp_path / "x", 1), NOTHING, thorough=True)
    assert demo.ok
    monkeypatch.setattr(agent_factory, "make_configured", lambda one, permission, **_: Scripted([]))
    broken = await check_configured(Configured("a", {"kind": "demo"}, tmp_path / "x", 1), NOTHING)
    assert not broken.ok
    assert "broken inside" in broken.message
