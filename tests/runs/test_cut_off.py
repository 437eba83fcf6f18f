"""What is kept of a run that is ended from outside: what its models were asked by then."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plain_client import POST
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.runs.events import Command

from .conftest import Execution

PROGRAM = f"""{POST}
import pathlib, time
post("chat/completions", {{"model": "m", "messages": [{{"role": "user", "content": "hi"}}]}})
print("thinking", flush=True)
pathlib.Path("asked").touch()
time.sleep(600)
"""
SUITE = """
name: s
agents: {a: {kind: command, command: [PYTHON, -I, -S, agent.py], input: none, capture: CAPTURE, answer: ANSWER}}
agent: a
tests:
  - {id: t, prompt: hi, criteria: [{name: Answers, prototype_class: TextResponse,
     config_uxon: {metrics: [{type: Length, min_words: 1}]}}]}
"""


def model(request: Request) -> Answer:
    message = {"role": "assistant", "content": "Hello to you."}
    return Answer(body=json.dumps({"model": "m", "choices": [{"index": 0, "message": message}]}))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving(model) as running:
        yield running


@pytest.mark.parametrize(("capture", "answer"), [("model", "model"), ("auto", "printed")])
async def test_a_program_that_is_ended_has_its_requests(
    server: ScriptedServer, tmp_path: Path, execution: Any, capture: str, answer: str
) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    text = SUITE.replace("PYTHON", sys.executable).replace("CAPTURE", capture).replace("ANSWER", answer)
    env = {"PATH": os.environ["PATH"], "OPENAI_BASE_URL": server.url}
    one: Execution = execution(text, env=env, trust=True)
    running = asyncio.create_task(one.run())
    await one.until((tmp_path / "asked").exists)
    one.engine.command(Command("cancel"))
    await running
    (row,) = one.store.runs_of_execution(one.engine.plan.execution_id)
    transcript = one.store.transcript(row.id)
    assert (row.status, len(transcript.requests.references)) == ("cancelled", 1)
    assert transcript.error is not None
    if capture == "model":  # in place of what it printed
        assert [message.content for message in transcript.messages] == ["hi", "Hello to you."]
    (exchange,) = one.store.tape(row.id)[-1:]
    assert exchange["answer"]["json"]["choices"][0]["message"]["content"] == "Hello to you."
