"""A recording that is watched while it goes on: shown, stopped, and begun in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.runs import client
from agenteval_tui.runs.events import Command, Event, EventSink
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.recorded_program import (
    Program,
    live_recording,
    permission_of,
    record,
    store_ungraded,
    ungraded,
)
from agenteval_tui.runs.recording_request import ListeningRequest, RecordingRequest

PROGRAM = """\
import json, os, sys, time, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)).read()
if "waits" in sys.argv:
    time.sleep(600)
"""


def model(request: Request) -> Answer:
    message = {"role": "assistant", "content": "Hello to you."}
    return Answer(body=json.dumps({"model": "m", "choices": [{"index": 0, "message": message}]}))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    with serving(model) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


async def test_it_is_shown_as_it_comes_and_stopped_by_who_watches(server: ScriptedServer, tmp_path: Path) -> None:
    words = (sys.executable, "-I", "-S", "agent.py", "waits")
    program = Program(words, tmp_path, {"PATH": "/bin"}, {"openai": server.url})
    live = live_recording(program, None)
    view, told = ExecutionView(), list[Event]()

    def tell(event: Event) -> None:
        told.append(event)
        view.apply(event)
        (run,) = view.runs.values()
        if run.text == "Hello to you." and not live.stopped.is_set():
            live._command(Command("pause"))  # there is nothing to pause
            live._command(Command("cancel"))

    live._events = EventSink(tell)
    with Store.open(tmp_path / "h.db") as store:
        await live.begin()
        async with asyncio.timeout(60):
            recording = await record(program, permission_of(program), live=live)
        execution = store_ungraded(store, program, recording, ids=(live.execution, live.run))
        live.end(recording.transcript, ungraded(recording), recording.duration_ms)
        await live.close()
        (row,) = store.runs_of_execution(execution)
        assert (row.id, row.status, store.execution(execution).status) == (live.run, "cancelled", "cancelled")
        assert store.transcript(row.id).final_output == "Hello to you."
    (run,) = view.runs.values()
    assert (run.ref.test, run.status) == ("agent", "cancelled")
    assert view.ended is not None
    assert view.ended.status == "cancelled"


@pytest.mark.usefixtures("started_anew")
def test_why_a_process_did_not_begin_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []

    def quick(*given: str) -> list[str]:
        words.extend(given)
        return [sys.executable, "-I", "-S", "-c", "raise SystemExit('a note\\nagenteval: port 1 is not free')"]

    monkeypatch.setattr(client, "own_command", quick)
    with pytest.raises(AgentevalError) as caught:
        client.start_verb(["listen", "--port", "1"], tmp_path / "h.db")
    assert caught.value.what == "port 1 is not free"
    assert words == ["agenteval_tui", "--db", str(tmp_path / "h.db"), "listen", "--port", "1"]


def test_what_is_asked_becomes_a_command(tmp_path: Path) -> None:
    kept = tmp_path / "c.jsonl"
    asked: Any = RecordingRequest("python 'my agent.py'", "t", str(kept), "mcp.json")
    assert asked.command(Path("s.yaml"), "t", trust=True) == [
        "record", "--watched", "--suite", "s.yaml", "--test", "t", "--cassette", str(kept), "--mcp-config", "mcp.json",
        "--trust", "--", "python", "my agent.py",
    ]  # fmt: skip
    kept.touch()  # what is there is not paid for again
    words = asked.command(None, "", trust=False)
    assert words[2:6] == ["--cassette", str(kept), "--replay", "--live-after-miss"]
    assert ListeningRequest(4318, "c.yaml").command() == ["listen", "--port", "4318", "--criteria", "c.yaml"]
    for wrong in ("", "python 'agent.py"):
        with pytest.raises(AgentevalError):
            assert RecordingRequest(wrong).argv
