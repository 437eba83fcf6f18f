"""Agents that get only the prompt are not asked to continue a conversation: what they did would be no answer to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, ScriptedServer

from agenteval_tui.transcripts.model import Message, ToolCall

ANSWERED = (Message("user", "My order?"), Message("assistant", "It is 7."), Message("user", "Where is it?"))
AFTER_CALL = (Message("user", "Where?"), Message("assistant", tool_calls=(0,)), Message("tool", "lost", tool_call=0))
CALL = (ToolCall("c", "find", {}, result="lost", message=1),)
CODE = """
def by_prompt(prompt):
    return "asked: " + prompt

def by_messages(messages):
    return "asked: " + messages[-1]["content"]

def by_request(request):
    return "asked: " + request["messages"][0]["content"]

def by_inputs(inputs: dict):
    return "asked: " + str(len(inputs))
"""
# Each gets the last prompt alone.
PROGRAMS = [
    {"kind": "python", "callable": "agent:by_prompt"},
    {"kind": "command", "command": "cat", "input": "text"},
    {"kind": "command", "command": ["echo", "{{prompt}}"]},
]
NAMES = ["python", "text", "word"]


@pytest.fixture(autouse=True)
def _code(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(CODE)


@pytest.mark.parametrize("config", PROGRAMS, ids=NAMES)
@pytest.mark.parametrize(("messages", "calls"), [(ANSWERED, ()), (AFTER_CALL, CALL)], ids=["answer", "result"])
async def test_it_is_refused(run_agent: Any, config: dict[str, Any], messages: Any, calls: Any) -> None:
    ran = await run_agent(config, messages=messages, tool_calls=calls)
    assert ran.transcript.error is not None
    assert "has answers already" in ran.transcript.error.message
    assert ran.transcript.final_output == ""


@pytest.mark.parametrize("config", PROGRAMS, ids=NAMES)
async def test_later_turns_of_the_run_itself_may_be_remembered(run_agent: Any, config: dict[str, Any]) -> None:
    ran = await run_agent(config, messages=ANSWERED, turn=2)
    assert ran.transcript.error is None
    assert "Where is it?" in ran.transcript.final_output


@pytest.mark.parametrize("config", PROGRAMS, ids=NAMES)
async def test_several_questions_at_once_have_no_answers(run_agent: Any, config: dict[str, Any]) -> None:
    ran = await run_agent(config, messages=(Message("system", "Be brief."), Message("user", "a"), Message("user", "b")))
    assert ran.transcript.error is None


@pytest.mark.parametrize("name", ["by_messages", "by_request", "by_inputs"])
async def test_who_gets_the_messages_is_asked(run_agent: Any, name: str) -> None:
    ran = await run_agent({"kind": "python", "callable": f"agent:{name}"}, messages=ANSWERED)
    assert ran.transcript.error is None
    assert ran.transcript.final_output.startswith("asked: ")


async def test_a_template_of_the_prompt_may_hold_the_messages(run_agent: Any) -> None:
    config = {"kind": "python", "callable": "agent:by_prompt", "input": "{{ messages[0].content }} {{ prompt }}"}
    ran = await run_agent(config, messages=ANSWERED)
    assert ran.transcript.error is None
    assert ran.transcript.final_output == "asked: My order? Where is it?"


@pytest.mark.parametrize(
    ("options", "refused"), [({"body": {"q": "{{ prompt }}"}}, True), ({"body": {"m": "{{ messages }}"}}, False)]
)
async def test_servers(run_agent: Any, options: dict[str, Any], refused: bool) -> None:
    async with ScriptedServer(lambda _: Answer(body='{"answer": "ok"}')) as server:
        config = {"kind": "http", "url": f"{server.url}/ask", **options}
        ran = await run_agent(config, messages=ANSWERED)
        assert len(server.requests) == (not refused)
    assert (ran.transcript.error is not None) == refused
