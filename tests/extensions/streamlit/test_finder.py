"""How a Streamlit app is asked is found by reading it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.agents.discovery.model import AgentCandidate, Sign
from agenteval_tui.agents.discovery.search import find_agents

ASKS = "from openai import OpenAI\nimport streamlit as st\n"
ANSWERS = "st.write(OpenAI().chat.completions.create(model='m', messages=[]))\n"


def agents(folder: Path, text: str, **others: str) -> list[AgentCandidate]:
    (folder / "app.py").write_text(text)
    for name, other in others.items():
        (folder / f"{name}.py").write_text(other)
    return list(find_agents(folder).agents)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ("q = st.chat_input('Say')\n", None),
        ("q = st.text_input('City')\nn = st.text_area('Ask anything')\n", {"Ask anything": "{{prompt}}"}),
        (
            "topic = st.text_input('Subject')\nst.button('Clear')\nst.button('Go')\n",
            {"Subject": "{{prompt}}", "Go": True},
        ),
        (
            "with st.sidebar:\n    key = st.text_input('Enter your Groq API Key:', type='password')\n"
            "if key:\n    q = st.text_input('Query')\n    st.button('One')\n    st.button('Two', type='primary')\n",
            {"Enter your Groq API Key:": "${GROQ_API_KEY}", "Query": "{{prompt}}", "Two": True},
        ),
        (
            "import os\nsecret = st.text_input('Key', type='password')\nos.environ['OPENAI_API_KEY'] = secret\n"
            "form = st.form('f')\nq = form.text_area('Message')\nform.form_submit_button('Send')\n",
            {"Key": "${OPENAI_API_KEY}", "Message": "{{prompt}}", "Send": True},
        ),
        (
            "import os\nst.text_input('Key', type='password', value=os.getenv('OPENAI_API_KEY'))\n"
            "st.session_state.serp_key = st.text_input('Search', type='password')\nst.chat_input('Say')\n",
            {"Search": "${SERP_KEY}", "Say": "{{prompt}}"},
        ),
        # A page on which people log in, and one on which they write their key.
        (
            "if use_login and not st.session_state.authenticated:\n    with st.form('login'):\n"
            "        st.text_input('Password', type='password')\n        st.form_submit_button('Login')\n"
            "    st.stop()\nst.chat_input('Say')\n",
            None,
        ),
        (
            "api_key = st.text_input('Key', type='password')\nif not api_key:\n    st.stop()\nst.chat_input('Say')\n",
            {"Key": "${API_KEY}", "Say": "{{prompt}}"},
        ),
    ],
)
def test_fields_and_buttons(tmp_path: Path, fields: str, asked: dict[str, object] | None) -> None:
    (agent,) = agents(tmp_path, ASKS + fields + ANSWERS)
    assert (agent.sign, agent.framework) == (Sign.APP, "Streamlit")
    rest = {} if asked is None else {"input": asked}
    assert dict(agent.config) == {"kind": "python", "callable": "app.py", "capture": "model", **rest}


def test_its_own_examples_are_the_first_prompts(tmp_path: Path) -> None:
    field = "q = st.text_area("
    field += "'Ask', placeholder='e.g., Which plants need little light?', value='Type your question')\n"
    (agent,) = agents(tmp_path, ASKS + field + ANSWERS)
    assert agent.prompts == ("Which plants need little light?",)


def test_an_app_whose_own_module_asks_is_found_and_is_no_program(tmp_path: Path) -> None:
    app = (
        "import streamlit as st\nfrom desk import answer\n\ndef main():\n    st.write(answer(st.chat_input('Say')))\n\n"
    )
    desk = "from openai import OpenAI\ndef answer(text):\n    return _ask(text)\ndef _ask(text):\n"
    desk += "    return OpenAI().chat.completions.create(model='m', messages=[text])\n"
    first = agents(tmp_path, app + "if __name__ == '__main__':\n    main()\n", desk=desk)[0]
    assert (first.sign, first.place) == (Sign.APP, "app.py:5")


def test_an_agent_that_the_app_always_makes_is_found_beside_it(tmp_path: Path) -> None:
    made = (
        "from agno.agent import Agent\nimport streamlit as st\nalways = Agent(name='desk')\nq = st.chat_input('Say')\n"
    )
    made += "if q:\n    sometimes = Agent(name='other')\n"
    assert [(agent.sign, agent.line) for agent in agents(tmp_path, made)] == [(Sign.OBJECT, 3), (Sign.APP, 4)]


def test_an_app_without_a_field_for_a_prompt_is_none(tmp_path: Path) -> None:
    assert agents(tmp_path, ASKS + "st.file_uploader('A file')\n" + ANSWERS) == []
