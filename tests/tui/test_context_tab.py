"""The tab `context` of Inspect, and what the model did not see: of a program that was recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from shop import app_on, settle, text_of, until

from agenteval_tui.core import directories
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.tui.screens.inspect.panes import EvidencePane
from agenteval_tui.tui.screens.inspect.run_views import ContextPane
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.widgets.lines_view import LinesView

SUITE = """
name: forgets
agents: {program: {kind: command, command: [python3, program.py], input: text, capture: model}}
agent: program
tests:
  - id: order
    prompt: My order is W1044.
    criteria:
      - name: The order is still in sight
        prototype_class: Context
        config_uxon: {metrics: [{type: TextMatch, contains: w1044}]}
      - name: It knows the order
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: W1044}]}
"""
PROGRAM = """
import json, os, sys, urllib.request

def ask(messages):
    body = json.dumps({"model": "m", "messages": [{"role": "system", "content": "You sell socks."}, *messages]})
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

messages = [{"role": "user", "content": sys.stdin.read()}]
for question in ("Which sizes do you have?", "Which colours do you have?"):
    messages += [ask(messages), {"role": "user", "content": question}]
messages.append(ask(messages))
print(ask([*messages[2:], {"role": "user", "content": "What was my order?"}])["content"])
"""


class Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        message = {"role": "assistant", "content": f"This is the answer number {len(asked)}."}
        body = json.dumps({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any, installed: Path) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("context")
    (folder / "forgets.suite.yaml").write_text(SUITE)
    (folder / "program.py").write_text(PROGRAM)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}
    command = [installed / "agenteval", "run", "forgets.suite.yaml", "--trust", "--db", "h.db"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    server.shutdown()
    assert "The order is still in sight: failed" in done.stdout, done.stdout + done.stderr
    return folder, folder / "h.db"


async def opened(pilot: Any) -> InspectScreen:
    await settle(pilot)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
    screen: InspectScreen = pilot.app.screen
    await until(pilot, lambda: screen.controller.bench is not None)
    await settle(pilot)
    return screen


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_the_tab_shows_the_request_for_an_answer(recorded: Any, size: tuple[int, int]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        await pilot.press("alt+x")
        await settle(pilot)
        assert screen.view == "context"
        shown = text_of(app)
        assert "request 4 of 4" in shown
        assert "2 messages dropped" in shown
        assert "What was my order?" in shown
        await pilot.press("p")
        await settle(pilot)
        shown = text_of(app)
        assert "request 3 of 4" in shown
        assert "2 messages added" in shown
        await pilot.press("enter")
        await settle(pilot)
        assert screen.view == "transcript"
        assert screen.transcript.view.cursor_key == ("message", 6)
        await pilot.press("alt+x")
        await settle(pilot)
        assert "request 3 of 4" in text_of(app), "that of the answer under the cursor"


async def test_what_the_model_did_not_see_is_dim(recorded: Any) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        assert "2 messages dropped" in text_of(app), "before the answer that was given without them"
        view = screen.transcript.view

        def is_dim(message: int) -> bool:
            block = view.document.index_of(("message", message))
            assert block is not None
            styles = {style for cell, style in view.document.line(view.document.top(block)) if cell.strip()}
            return styles == {"dim"}

        view.go_to_key(("message", 6))
        await settle(pilot)
        assert not any(is_dim(message) for message in range(1, 7))
        view.go_to_key(("message", 8))
        await settle(pilot)
        assert [message for message in range(1, 9) if is_dim(message)] == [1, 2]


async def test_evidence_of_a_request_leads_to_the_tab(recorded: Any) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        screen: Any = await opened(pilot)
        await until(pilot, lambda: screen.controller.looked_at is not None)
        (evidence,) = screen.controller.looked_at.metrics[0].evidence
        place = Evidence(evidence.condition, False, "", spans=(Span("request", 2, 0, 3),))
        screen.post_message(EvidencePane.Chosen(place))
        await until(pilot, lambda: screen.view == "context")
        await settle(pilot)
        assert "request 2 of 4" in text_of(app)


@pytest.fixture
def long_context(tmp_path: Path) -> tuple[Path, Path]:
    """A recording with a request of 1,500 messages, and one of 2."""
    told = [{"role": ("user", "assistant")[place % 2], "content": f"message {place}."} for place in range(1500)]
    requests = [ModelRequest(1, 1, "m", "", (told[0],)), ModelRequest(2, 1, "m", "Be kind.", tuple(told), answer=1500)]
    answer = {"role": "assistant", "content": "The end."}
    transcript = replace(from_openai_messages([*told, answer]), requests=ModelRequests.of(requests))
    store = Store.open(tmp_path / "h.db")
    record = ExecutionRecord("e", "e", "import", "s", ("s",), 1_795_262_400_000)
    run = PlannedRun("r", "s", 0, "s", "s", "long", "long", repetition=1)
    store.import_runs(record, [(run, RunEnded("r", "passed", 0.0, 1_795_262_400_000, 1000.0, 1, transcript))])
    store.close()
    return tmp_path, tmp_path / "h.db"


async def test_the_key_that_shows_older_messages_is_the_persons_own(long_context: Any) -> None:
    folder = directories.config_dir()
    folder.mkdir(parents=True)
    (folder / "keys.yaml").write_text("context.older: z\n", "utf-8")
    app = app_on(*long_context)
    async with app.run_test(size=(140, 45)) as pilot:
        app.inspect("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
        await settle(pilot)
        await pilot.press("alt+x")
        await settle(pilot)
        assert "press z to show more" in text_of(app)
        app.screen.query_one(ContextPane).query_one("#context", LinesView).focus()
        await pilot.press("z")
        await settle(pilot)
        assert "600 earlier messages" in text_of(app)


async def test_older_messages_of_a_long_request_can_be_shown(long_context: Any) -> None:
    app = app_on(*long_context)
    async with app.run_test(size=(140, 45)) as pilot:
        app.inspect("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, InspectScreen))
        await settle(pilot)
        await pilot.press("alt+x")
        await settle(pilot)
        pane = app.screen.query_one(ContextPane)
        view = pane.query_one("#context", LinesView)

        def first_shown() -> int:
            text = text_of(app)
            return min(int(number) for number in re.findall(r"message (\d+)\.", text.partition("Be kind.")[2]))

        assert "1,200 earlier messages" in text_of(app)
        assert "press + to show more" in text_of(app)
        assert first_shown() == 1200
        view.focus()
        await pilot.press("+")
        await settle(pilot)
        assert "600 earlier messages" in text_of(app)
        assert first_shown() == 600
        await pilot.press("+")
        await settle(pilot)
        assert "earlier message" not in text_of(app)
        assert first_shown() == 0
        await pilot.press("p", "n")
        await settle(pilot)
        assert first_shown() == 1200, "the next time it opens at once again"
