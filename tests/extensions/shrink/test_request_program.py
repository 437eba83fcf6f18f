"""What an agent would ask, written down as a program: with what the environment has, and without any secret."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.http.exported_request import WritesRequests, WrittenRequest
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.extensions.shrink.request_program import request_program
from agenteval_tui.suites.environment import Reference, expand, pieces
from agenteval_tui.transcripts.model import Message
from tests.agents.conftest import ALLOWED

ENV = {"MY_KEY": "key-12345678", "TEAM": "blue team", "TOKEN": "tok-87654321"}
HEADERS = {
    "X-Team": "t-${TEAM}",
    "X-Place": '${PLACE:-so "far" $HOME}',
    "X-Empty": "${EMPTY-none}",
    "X-Session": "literal-99999",
    "Cookie": "${JAR:-secret-cookie}",
    "authorization": "Basic literal",
}


async def written(tmp_path: Path, **options: Any) -> WrittenRequest:
    config = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "MY_KEY", **options}
    agent = make_agent("tested", config, base_dir=tmp_path, env=ENV, permission=ALLOWED)
    assert isinstance(agent, WritesRequests)
    request = await agent.written_request(AgentRequest((Message("user", "hi"),)))
    await agent.close()
    return request


async def test_headers_come_from_the_environment_and_what_is_missing_is_named(tmp_path: Path) -> None:
    request = await written(
        tmp_path, headers=HEADERS, query={"api-version": "7"}, extra_body={"metadata": {"token": "${TOKEN}"}}
    )
    assert request.headers == {
        "x-team": "t-${TEAM}",
        "x-place": HEADERS["X-Place"],
        "x-empty": "${EMPTY-none}",
        "authorization": "Bearer ${MY_KEY}",
    }
    assert request.note == (
        "add what the agent's configuration has and is not written here: the header X-Session, the header Cookie, "
        "the parameter api-version, what is replaced by *** in the body"
    )
    python, curl = request_program(request, "python"), request_program(request, "curl")
    for secret in (*ENV.values(), "literal-99999", "secret-cookie", "Basic literal"):
        assert secret not in python
        assert secret not in curl
    sent = {
        "content-type": "application/json",
        "x-team": "t-blue team",
        "x-place": 'so "far" $HOME',
        "x-empty": "none",
        "authorization": "Bearer key-12345678",
    }
    begin, _, _ = python.partition("request = ")
    made: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENV.items():
            patch.setenv(name, value)
        exec(begin, made)
    assert made["HEADERS"] == sent
    assert f"\n# Before that: {request.note}\n" in python
    shell = f"curl() {{ for one; do printf '%s\\0' \"$one\"; done; }}\n{curl}"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **ENV}
    said = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, env=environment).stdout
    assert [one for one in said.split("\0") if ": " in one and "{" not in one] == [f"{k}: {v}" for k, v in sent.items()]


async def test_without_headers_of_its_own_there_is_nothing_to_add(tmp_path: Path) -> None:
    request = await written(tmp_path)
    assert (request.note, request.headers) == ("", {"authorization": "Bearer ${MY_KEY}"})
    assert request.url == "http://127.0.0.1:9/v1/chat/completions"
    address = await written(tmp_path, base_url="http://me:pass-word@127.0.0.1:9/v1")
    assert "pass-word" not in repr(address)
    assert "the user and password of the address" in address.note


@pytest.mark.parametrize("text", ["", "a", "${A}", "x${A}y${B:-}z", "$${A}", "${B-d e}${A}$${", "$A ${A:-$}"])
def test_the_pieces_of_a_text_are_what_is_put_into_it(text: str) -> None:
    env = {"A": "1"}
    put = (env.get(one.name) or one.default if isinstance(one, Reference) else one for one in pieces(text))
    assert "".join(put) == expand(text, env)


async def test_a_name_in_a_suite_is_no_code_of_the_program(tmp_path: Path) -> None:
    name = 'a"""\nopen("ran", "w")\n"""\\\ntouch ran\u2028touch ran\r'
    request = await written(tmp_path, query={name: "7"})
    assert name in request.note
    python, curl = request_program(request, "python"), request_program(request, "curl")
    code = [line for line in python.splitlines() if line and not line.startswith("#")]
    assert code[0] == '"""What agenteval shrank: asks the model the same, and prints its reply."""'
    assert code[1] == "import json"
    assert curl.splitlines()[1].startswith("curl -sS ")
