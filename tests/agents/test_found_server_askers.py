"""Programs that ask a model's server by themselves, with an HTTP client and no SDK, are found by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import agents_of, only

from agenteval_tui.agents.discovery.model import Sign

URL = "https://api.openai.com/v1/chat/completions"
RECORDED = {"capture": "model", "answer": "auto"}
PYTHON = {
    "requests": f"import requests\ndef ask():\n    print(requests.post('{URL}', json=[input('> ')]).json())\n",
    "httpx": "import httpx\nBASE = 'https://openrouter.ai/api/v1'\ndef ask():\n    with httpx.Client() as client:\n"
    "        print(client.post(BASE + '/chat/completions', json=[input('> ')]).json())\n",
    "aiohttp": "import aiohttp\nURL = 'https://api.anthropic.com/v1/messages'\nasync def ask():\n"
    "    async with aiohttp.ClientSession() as session:\n        await session.post(URL, json=[input('> ')])\n",
    "urllib": "import json, os, urllib.request\nHOST = os.environ.get('HOST', 'http://10.0.0.1')\ndef ask():\n"
    "    print(urllib.request.urlopen(HOST + '/v1/chat/completions', json.dumps([input('> ')])).read())\n",
}
IN_A_LOOP = "while True:\n    ask()\n"
GUARDED = "def main():\n    ask()\nif __name__ == '__main__':\n    main()\n"


@pytest.mark.parametrize("runs", [IN_A_LOOP, GUARDED])
@pytest.mark.parametrize("client", PYTHON)
def test_a_program_in_python(tmp_path: Path, client: str, runs: str) -> None:
    agent = only(tmp_path, {"bot.py": PYTHON[client] + runs})
    assert (agent.sign, agent.framework) == (Sign.PROGRAM, client)
    assert agent.config == {"kind": "command", "command": ["python3", "bot.py"], "input": "text", **RECORDED}


def test_a_function_with_a_prompt_is_asked_itself_unless_its_import_asks(tmp_path: Path) -> None:
    text = f"import requests\ndef ask(prompt):\n    return requests.post('{URL}', json=[prompt]).json()\n"
    agent = only(tmp_path / "one", {"bot.py": text})
    assert (agent.sign, agent.config) == (
        Sign.FUNCTION,
        {"kind": "python", "callable": "bot.py:ask", "capture": "model"},
    )
    program = only(tmp_path / "two", {"bot.py": text + "print(ask(input()))\n"})
    assert (program.sign, program.place, program.source) == (Sign.PROGRAM, "bot.py:4", "print(ask(input()))")


@pytest.mark.parametrize("path", ["/api/chat", "/v1/chat/completions"])
def test_what_ollama_is_asked_is_recorded(tmp_path: Path, path: str) -> None:
    text = PYTHON["requests"].replace(URL, f"http://localhost:11434{path}") + GUARDED
    assert only(tmp_path, {"bot.py": text}).config["capture"] == "model"


@pytest.mark.parametrize(
    "text",
    [
        PYTHON["requests"] + GUARDED + "from telegram.ext import Application\n",
        PYTHON["requests"].replace(URL, "https://example.com/orders") + GUARDED,
        PYTHON["requests"].replace(URL, "https://api.openai.com/v1/models") + GUARDED,
        PYTHON["requests"].replace(URL, "https://example.com") + GUARDED + f'def told():\n    "Not {URL}."\n',
        PYTHON["requests"].replace("import requests", "import os\nos.get_terminal_size()") + GUARDED,
    ],
    ids=["waits for others", "another server", "only lists models", "only a description", "needs a terminal"],
)
def test_what_is_none_in_python(tmp_path: Path, text: str) -> None:
    assert agents_of(tmp_path, {"bot.py": text}) == []


AXIOS = f"const axios = require('axios');\nasync function ask(q) {{ return axios.post('{URL}', q); }}\n"
FETCH = f"const ask = async (content) => (await fetch('{URL}', {{ method: 'POST', body: content }})).json();\n"


@pytest.mark.parametrize(
    ("text", "client", "options"),
    [
        (AXIOS + "ask('Where is my order?');\n", "axios", {"input": "text"}),
        (AXIOS.replace(URL, "http://localhost:11434/api/chat") + "ask('x');\n", "axios", {"input": "text"}),
        (FETCH + "ask(process.argv[2]);\n", "fetch", {"command": ["node", "bot.js", "{{prompt}}"]}),
        (FETCH + "const io = require('readline').x();\nio.question('> ', ask);\nmain();\n", "fetch", {"input": "line"}),
        (f"const https = require('https');\nrun();\nasync function run() {{ https.request('{URL}') }}\n", "https", {}),
    ],
    ids=["axios", "ollama", "a word", "a line", "https"],
)
@pytest.mark.parametrize("package", [None, '{"dependencies": {"axios": "1"}}'])
def test_a_program_for_node(
    tmp_path: Path, text: str, client: str, options: dict[str, Any], package: str | None
) -> None:
    agent = only(tmp_path, {"bot.js": text, **({"package.json": package} if package else {})})
    assert (agent.sign, agent.framework) == (Sign.PROGRAM, client)
    assert {**agent.config, **options} == agent.config
    assert agent.config["capture"] == "model"


@pytest.mark.parametrize(
    "text",
    [
        FETCH + "document.body.onclick = ask;\nmain();\n",
        FETCH + "const { Client } = require('discord.js');\nmain();\n",
        FETCH,
        FETCH.replace(URL, "https://example.com/orders") + "main();\n",
    ],
    ids=["in a browser", "waits for others", "only a module", "another server"],
)
def test_what_is_none_for_node(tmp_path: Path, text: str) -> None:
    assert agents_of(tmp_path, {"bot.js": text}) == []


def test_a_route_of_a_server_for_node(tmp_path: Path) -> None:
    text = AXIOS + "const express = require('express');\nconst app = express();\n"
    text += "app.post('/ask', async (req, res) => res.json(await ask(req.body.question)));\napp.listen(3030);\n"
    agent = only(tmp_path, {"package.json": '{"dependencies": {"express": "4"}}', "server.js": text})
    assert (agent.sign, agent.config["url"]) == (Sign.ROUTE, "http://127.0.0.1:3030/ask")
    assert agent.config["body"] == {"question": "{{ prompt }}"}
