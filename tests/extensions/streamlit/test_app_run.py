"""Streamlit apps as agents: a whole file, whose fields are filled in and whose buttons are pressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import Failed
from agenteval_tui.transcripts.model import Message, RunError
from tests.agents.conftest import Ran, Run

FORM = """
import streamlit as st
st.title("Desk")
key = st.sidebar.text_input("API key", type="password")
if key:
    question = st.text_input("Your question")
    with st.expander("About"):
        st.write("It answers.")
    if st.button("Ask"):
        if not question:
            st.warning("Write a question.")
        elif question == "raise":
            def answer():
                raise ValueError("no answer")
            answer()
        elif question == "fail":
            st.error("The server is down.")
        else:
            st.subheader("Answer")
            if question == "half":
                st.error("The server went.")
                st.stop()
            st.write(f"{question} with {key}")
            st.table({"word": question.split()})
else:
    st.warning("Write your key.")
"""
FILLED = {"API key": "k-1", "Your question": "{{prompt}}", "Ask": True}
CHAT = """
import streamlit as st
if "messages" not in st.session_state:
    st.session_state.messages = []
for message in st.session_state.messages:
    with st.chat_message(message["role"]):
        st.markdown(message["content"])
if prompt := st.chat_input("Say something"):
    st.session_state.messages.append({"role": "user", "content": prompt})
    with st.chat_message("user"):
        st.markdown(prompt)
    with st.chat_message("assistant"):
        words = [each["content"] for each in st.session_state.messages]
        st.write_stream(iter(" / ".join(words)))
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return tmp_path / "my app.py"


def python(**more: Any) -> dict[str, Any]:
    return {"kind": "python", "callable": "my app.py", **more}


def failure(ran: Ran) -> RunError:
    assert isinstance(ran.events[-1], Failed), ran.events
    return ran.events[-1].error


async def test_its_fields_are_filled_in_and_what_it_then_shows_is_the_answer(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    ran = await run_agent(python(input=FILLED), "How late is it?")
    assert ran.transcript.final_output == "Answer\n\nHow late is it? with k-1\n\nword\nHow\nlate\nis\nit?\n"


async def test_output_takes_a_part_of_what_it_shows(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    ran = await run_agent(python(input=FILLED, output="shown[?type=='markdown'].text | [0]"), "Hello")
    assert ran.transcript.final_output == "Hello with k-1"


async def test_an_exception_of_the_app_keeps_its_traceback(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    error = failure(await run_agent(python(input=FILLED), "raise"))
    assert "raised ValueError: no answer" in error.message
    assert error.traceback is not None
    last = error.traceback.exceptions[-1].frames[-1]
    assert (Path(last.file).name, last.function, last.source.strip()) == (
        "my app.py",
        "answer",
        'raise ValueError("no answer")',
    )


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("import streamlit as st\nif st.chat_input(:\n", "SyntaxError", 2),
        ("import streamlit as st\nimport not_there\nst.chat_input('Say')\n", "No module named 'not_there'", 2),
        ("import streamlit as st\nst.chat_input('Say')\nst.nothing()\n", "has no attribute 'nothing'", 3),
    ],
)
async def test_an_app_that_is_broken_is_told_with_its_line(
    run_agent: Run, app: Path, text: str, words: str, line: int
) -> None:
    app.write_text(text)
    error = failure(await run_agent(python()))
    assert words in error.message
    assert f"(my app.py, line {line})" in error.message


async def test_an_app_that_is_not_there_is_named(run_agent: Run) -> None:
    assert "there is no file my app.py" in failure(await run_agent(python())).message


async def test_an_error_that_is_all_it_shows_is_an_error_of_the_run(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    assert "The server is down." in failure(await run_agent(python(input=FILLED), "fail")).message


async def test_an_error_beside_other_texts_is_a_part_of_the_answer(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    ran = await run_agent(python(input=FILLED), "half")
    assert ran.transcript.final_output == "Answer\n\nThe server went."


async def test_a_field_that_is_not_there_is_told_with_those_that_are(run_agent: Run, app: Path) -> None:
    app.write_text(FORM)
    fields = {"API key": "k-1", "Question": "{{prompt}}", "Ask": True}
    error = failure(await run_agent(python(input=fields)))
    assert "no field or button 'Question'; it has the fields 'Your question', 'API key' and the buttons 'Ask'" in (
        error.message
    )


async def test_without_a_chat_it_says_what_to_write(run_agent: Run, app: Path) -> None:
    app.write_text(FORM.replace("if key:", "if True:"))
    error = failure(await run_agent(python()))
    assert '`input: {"Your question": "{{prompt}}", "Ask": true}`' in error.message


async def test_a_chat_gets_the_prompt_and_continues_a_conversation(run_agent: Run, app: Path) -> None:
    app.write_text(CHAT)
    ran = await run_agent(python(), "Hello")
    assert ran.transcript.final_output == "Hello"
    conversation = (Message("user", "One"), Message("assistant", "Two"), Message("user", "Three"))
    ran = await run_agent(python(), messages=conversation)
    assert ran.transcript.final_output == "One / Two / Three"


async def test_a_chat_that_keeps_no_messages_continues_none(run_agent: Run, app: Path) -> None:
    app.write_text(
        'import streamlit as st\nif p := st.chat_input("Say"):\n    st.chat_message("ai").write("I: " + p)\n'
    )
    assert (await run_agent(python(), "Hello")).transcript.final_output == "I: Hello"
    conversation = (Message("user", "One"), Message("assistant", "Two"), Message("user", "Three"))
    assert "can't continue a conversation" in failure(await run_agent(python(), messages=conversation)).message


async def test_it_imports_what_lies_beside_it(run_agent: Run, app: Path) -> None:
    (app.parent / "desk.py").write_text("def answer(prompt): return prompt.upper()\n")
    app.write_text('import streamlit as st\nfrom desk import answer\nst.write(answer(st.chat_input("Say") or ""))\n')
    assert (await run_agent(python(), "hello")).transcript.final_output == "HELLO"
