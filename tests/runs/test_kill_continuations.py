"""`kill -9` of a fork and of blame, counted at the server of the model: what is asked again by the same command.

A model, and a program whose calls are captured, continue with the request that had no answer. A program that asks by
itself begins anew: nobody saw what it was answered. Of blame only what was in flight is asked again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prestarted  # type: ignore[import-not-found]
import pytest
from plain_client import POST
from scripted import Answer, Request  # type: ignore[import-not-found]
from threaded import serving  # type: ignore[import-not-found]

from agenteval_tui.history.store import Store
from tests.sweeps import share

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("kill")]

PATIENCE_S = 60.0
AT_ONCE = 2
REQUESTS = 3
"""Of one continuation."""
SUITE = """
name: Asks
agents:
  model: {kind: openai, base_url: "%s", model: m, tools: "builtin:demo-shop"}
  captured: {kind: command, command: [%s, -I, -S, ask.py], capture: model, env: {OPENAI_BASE_URL: "%s"}}
  usual: {kind: command, command: [%s, -I, -S, ask.py], env: {OPENAI_BASE_URL: "%s"}}
  alone: {kind: command, command: [%s, -I, -S, ask.py], capture: none, env: {OPENAI_BASE_URL: "%s"}}
tests:
  - id: kettle
    prompt: Where is it?
    criteria:
      - name: Says a whale
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "whale"}]}'
"""
ASK = f"""{POST}
import sys
said = [{{"role": one["role"], "content": one["content"]}} for one in json.load(sys.stdin)["messages"]]
for _ in range(3):
    _, reply = post("chat/completions", {{"model": "m", "messages": said}})
    said += [reply["choices"][0]["message"], {{"role": "tool", "content": "x"}}]
print("done")
"""


WITH_LITELLM = """
import litellm
said = [{"role": "user", "content": "Where is it?"}]
for _ in range(3):
    answer = litellm.completion(model="openai/m", messages=said, num_retries=0).choices[0].message
    said += [{"role": "assistant", "content": answer.content}, {"role": "tool", "tool_call_id": "a", "content": "x"}]
"""
PAST_THE_PROXY = """
import json, urllib.request
for number in range(3):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": str(number)}]}).encode()
    urllib.request.urlopen(urllib.request.Request("%s/chat/completions", body)).read()
"""


class Model:
    """A model that calls two tools, then answers. Requests are counted; the one of the number `hold` (0: none), and
    those behind it, wait for `released`."""

    def __init__(self) -> None:
        self.hold = 0
        self.asked = 0
        self.whole = 0
        """All requests since the start of the server."""
        self.url = ""
        self.released = threading.Event()

    def begin(self, hold: int = 0) -> None:
        """Count anew."""
        self.hold, self.asked = hold, 0
        self.released.clear()

    async def __call__(self, request: Request) -> Answer:
        self.asked += 1
        self.whole += 1
        while self.hold and self.asked >= self.hold and not self.released.is_set():
            await asyncio.sleep(0.01)
        calls = sum(one["role"] == "tool" for one in request.json["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "It is shipped."}
        if calls < REQUESTS - 1:
            function = {"name": "get_order", "arguments": json.dumps({"order_id": f"#W104{calls}"})}
            message |= {"tool_calls": [{"id": f"c{calls}", "type": "function", "function": function}]}
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Answer(body=json.dumps({"model": "m", "choices": [choice], "usage": usage}))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    found = Model()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serving(found) as server:
        url, python = server.url, sys.executable
        (tmp_path / "asks.suite.yaml").write_text(SUITE % (url, python, url, python, url, python, url), "utf-8")
        (tmp_path / "ask.py").write_text(ASK, "utf-8")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        found.url = url
        yield found
        found.released.set()


def agenteval(*words: object, python: str = sys.executable) -> list[str]:
    return [python, "-m", "agenteval_tui", *map(str, words)]


def python_of_litellm() -> str:
    """It has an environment of its own (frameworks/install.py): the agents of OpenAI need another `openai`."""
    place = Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "")) / "litellm" / "bin" / "python"
    if "AGENTEVAL_FRAMEWORKS" in os.environ and place.is_file():
        return str(place.absolute())
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed, and AGENTEVAL_FRAMEWORKS names no folder that has it")
    return sys.executable


def killed_at(model: Model, hold: int, command: list[str]) -> None:
    """Start the command, and kill it when the server has the request of this number."""
    model.begin(hold)
    running = prestarted.popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE_S
    while model.asked < hold:
        assert running.poll() is None, "it ended by itself"
        assert time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()


def counted(model: Model, command: list[str]) -> int:
    """The requests of the whole command."""
    model.begin()
    model.released.set()
    done = prestarted.run(command)
    assert done.returncode in (0, 1), done.stderr
    return model.asked


@pytest.mark.sweep
@pytest.mark.parametrize(("agent", "again"), [("model", 1), ("captured", 1), ("usual", 1), ("alone", REQUESTS)])
def test_what_a_continuation_asks_again_after_a_kill(model: Model, agent: str, again: int) -> None:
    assert counted(model, agenteval("run", "asks.suite.yaml", "--agent", agent, "--trust", "--db", "h.db")) == REQUESTS
    command = agenteval("fork", "kettle", "--at", 1, "-n", 1, "--yes", "--trust", "--db", "h.db")
    killed_at(model, REQUESTS, command)
    assert counted(model, command) == again
    assert counted(model, command) == 0, "it is stored"


def test_a_recorded_program_that_uses_litellm_continues_after_a_kill(model: Model, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WITH_LITELLM, "utf-8")
    command = agenteval("record", "--db", "h.db", "--", python_of_litellm(), "program.py")
    killed_at(model, REQUESTS, command)
    assert counted(model, command) == 1


def test_a_recorded_program_that_does_not_ask_through_the_proxy_begins_anew(model: Model, tmp_path: Path) -> None:
    """It has an address of its own: nothing of it is seen, and the recording says so."""
    (tmp_path / "program.py").write_text(PAST_THE_PROXY % model.url, "utf-8")
    command = agenteval("record", "--db", "h.db", "--", sys.executable, "-I", "-S", "program.py")
    killed_at(model, REQUESTS, command)
    assert counted(model, command) == REQUESTS


def test_blame_that_was_killed_and_resumed_asks_no_more_than_was_in_flight_beyond_one_that_was_not(
    model: Model,
) -> None:
    for db in ("h.db", "whole.db"):
        assert counted(model, agenteval("run", "asks.suite.yaml", "--agent", "model", "--db", db)) == REQUESTS

    def blame(db: str) -> list[str]:
        return agenteval("blame", "kettle", "--samples", 6, "--concurrency", AT_ONCE, "--yes", "--db", db)

    needed = counted(model, blame("whole.db"))
    assert needed > REQUESTS
    assert counted(model, blame("whole.db")) == 0
    before, kills = model.whole, share((2, 5))
    for hold in kills:
        killed_at(model, hold, blame("h.db"))
        model.released.set()
    counted(model, blame("h.db"))
    # In flight is also what the server has answered, and the program had not read yet when it was killed.
    assert needed <= model.whole - before <= needed + AT_ONCE * len(kills)
    assert counted(model, blame("h.db")) == 0
    with Store.open_to_look(Path("h.db")) as one, Store.open_to_look(Path("whole.db")) as other:
        statuses = [
            sorted(row.status for row in store.forks_of(store.run_rows(list(store.run_ids()))[0].id)
                   if row.status in ("passed", "failed"))
            for store in (one, other)
        ]  # fmt: skip
    assert statuses[0] == statuses[1]
