"""Chainlit apps as agents: a whole file, which gets a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import Failed
from agenteval_tui.transcripts.model import Message, RunError
from tests.agents.conftest import Ran, Run
from tests.agents.framework_runs import interpreter_of

APP = """
import chainlit as cl

@cl.set_chat_profiles
async def profiles():
    return [cl.ChatProfile("small", "The small one."), cl.ChatProfile("large", "The large one.", default=True)]

@cl.step(type="tool")
async def search(words):
    return "found " + words

@cl.on_chat_start
async def begin():
    await cl.Message("Welcome.").send()
    cl.user_session.set("history", [{"role": "system", "content": "Be kind."}])

@cl.on_message
async def answer(message: cl.Message):
    if message.content == "raise":
        raise ValueError("no answer")
    history = cl.user_session.get("history")
    history.append({"role": "user", "content": message.content})
    thinking = await cl.Message("Wait ...").send()
    reply = cl.Message("")
    await search(message.content)
    for word in " / ".join(each["content"] for each in history[1:]):
        await reply.stream_token(word)
    await reply.update()
    await thinking.remove()
    await cl.Message(cl.user_session.get("chat_profile")).send()
"""
CONVERSATION = (Message("user", "One"), Message("assistant", "Two"), Message("user", "Three"))


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "app.py").write_text(APP)
    return {"kind": "python", "callable": "app.py", "python": interpreter_of("chainlit", "chainlit")}


def failure(ran: Ran) -> RunError:
    assert isinstance(ran.events[-1], Failed), ran.events
    return ran.events[-1].error


async def test_it_gets_the_message_and_what_it_sends_then_is_the_answer(run_agent: Run, config: dict[str, Any]) -> None:
    assert (await run_agent(config, "Hello")).transcript.final_output == "Hello\n\nlarge"


async def test_it_continues_a_conversation_that_it_keeps(
    run_agent: Run, config: dict[str, Any], tmp_path: Path
) -> None:
    assert (await run_agent(config, messages=CONVERSATION)).transcript.final_output == "One / Two / Three\n\nlarge"
    text = "[each['content'] for each in cl.chat_context.to_openai()]"
    app = f"import chainlit as cl\n@cl.on_message\nasync def answer():\n    await cl.Message(str({text})).send()\n"
    (tmp_path / "app.py").write_text(app)
    assert (await run_agent(config, messages=CONVERSATION)).transcript.final_output == "['One', 'Two', 'Three']"


async def test_one_that_keeps_none_says_so(run_agent: Run, config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import chainlit as cl\n@cl.on_message\nasync def f(m): await cl.Message('I: ' + m.content).send()\n"
    )
    assert (await run_agent(config, "Hello")).transcript.final_output == "I: Hello"
    assert "can't continue a conversation" in failure(await run_agent(config, messages=CONVERSATION)).message


async def test_an_exception_of_the_app_keeps_its_traceback(run_agent: Run, config: dict[str, Any]) -> None:
    error = failure(await run_agent(config, "raise"))
    assert "raised ValueError: no answer" in error.message
    assert error.traceback is not None
    last = error.traceback.exceptions[-1].frames[-1]
    assert (Path(last.file).name, last.function, last.source.strip()) == (
        "app.py",
        "answer",
        'raise ValueError("no answer")',
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import chainlit as cl\n@cl.on_message\nasync def f(m) pass\n", "(app.py, line 3)"),
        ("import chainlit as cl\nimport not_there\n", "No module named 'not_there' (app.py, line 2)"),
        (
            "import chainlit as cl\n@cl.on_chat_start\nasync def f(): cl.nothing\n@cl.on_message\nasync def g(): ...\n",
            "line 3)",
        ),
        ("import chainlit as cl\n", "it has no function with `@cl.on_message`"),
    ],
)
async def test_an_app_that_is_broken_is_told(
    run_agent: Run, config: dict[str, Any], tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "app.py").write_text(text)
    assert words in failure(await run_agent(config)).message
