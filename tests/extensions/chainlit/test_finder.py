"""Chainlit apps are found by reading them."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.agents.discovery.model import Sign
from agenteval_tui.agents.discovery.search import find_agents

APP = """
import chainlit as cl
from chainlit import on_message
from shop import chain

@cl.set_starters
async def starters():
    return [cl.Starter(label="Orders", message="Where is my order?")]

@on_message
async def answer(message: cl.Message):
    await cl.Message(content=await chain(message.content)).send()
"""


def test_an_app_that_answers_messages_is_an_agent(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (agent,) = find_agents(tmp_path).agents
    assert (agent.sign, agent.framework, agent.line) == (Sign.APP, "Chainlit", 10)
    assert agent.config == {"kind": "python", "callable": "app.py", "capture": "model"}
    assert "Where is my order?" in agent.prompts


def test_one_that_answers_none_is_no_agent(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("@on_message", "@cl.on_chat_end"))
    assert not find_agents(tmp_path).agents
