"""A recording that is watched while it goes on: shown, stopped, and begun in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from plain_client import POST
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.otel.sheet import ListeningRequest
from agenteval_tui.history.store import Store
from agenteval_tui.runs import client
from agenteval_tui.runs.events import Command, Event, EventSink
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.recorded_program import (
    STOPPED,
    Program,
    live_recording,
    permission_of,
    record,
    store_ungraded,
    ungraded,
)
from agenteval_tui.runs.recording_request import RecordingRequest

PROGRAM = f"""{POST}
import sys, time
post("chat/completions", {{"model": "m", "messages": [{{"role": "user", "content": "hi"}}]}})
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
        async with live, asyncio.timeout(250):
            recording = await record(program, permission_of(program), live=live)
            execution = store_ungraded(store, program, recording, ids=(live.execution, live.run))
            live.end(recording.transcript, ungraded(recording), recording.duration_ms)
        (row,) = store.runs_of_execution(execution)
        assert (row.id, row.status, store.execution(execution).status) == (live.run, "cancelled", "cancelled")
        assert store.transcript(row.id).final_output == "Hello to you."
    (run,) = view.runs.values()
    assert (run.ref.test, run.status) == ("agent", "cancelled")
    assert view.ended is not None
    assert view.ended.status == "cancelled"


@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
async def test_all_that_a_stopped_program_started_ends(tmp_path: Path, deaf: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("agenteval_tui.agents.recording.program._END_S", 0.3)
    script = f"{deaf}sleep 600 & echo $$ $! > numbers.new; mv numbers.new numbers; wait; sleep 600"
    program = Program(("sh", "-c", script), tmp_path, {"PATH": os.defpath}, {})
    live = live_recording(program, None)
    async with live, asyncio.timeout(250):
        recording = asyncio.create_task(record(program, permission_of(program), live=live))
        while not (tmp_path / "numbers").exists():
            await asyncio.sleep(0.01)
        live._command(Command("cancel"))
        assert (await recording).exit_code == STOPPED
        for number in (tmp_path / "numbers").read_text("utf-8").split():
            with suppress(ProcessLookupError):
                while True:
                    os.kill(int(number), 0)
                    await asyncio.sleep(0.01)


async def test_who_watches_reads_that_it_was_not_stored(server: ScriptedServer, tmp_path: Path) -> None:
    words = (sys.executable, "-I", "-S", "agent.py")
    program = Program(words, tmp_path, {"PATH": "/bin"}, {"openai": server.url})
    live, view = live_recording(program, None), ExecutionView()
    live._events = EventSink(view.apply)
    store = Store.open(tmp_path / "h.db")

    async def not_stored() -> None:
        async with live:
            recording = await record(program, permission_of(program), live=live)
            store.close()
            store_ungraded(store, program, recording, ids=(live.execution, live.run))

    with pytest.raises(AgentevalError) as caught:
        await not_stored()
    assert view.ended is not None
    assert (view.ended.status, view.ended.message) == ("failed", f"this was not stored: {caught.value.sentence}")
    view = ExecutionView()
    live._events = EventSink(view.apply)
    with pytest.raises(ZeroDivisionError):
        async with live:
            raise ZeroDivisionError
    assert view.ended is not None
    assert (view.ended.status, view.ended.message) == ("failed", "this was not stored")


async def test_who_watches_reads_what_became_of_it_after_it_was_stored(server: ScriptedServer, tmp_path: Path) -> None:
    words = (sys.executable, "-I", "-S", "agent.py")
    program = Program(words, tmp_path, {"PATH": "/bin"}, {"openai": server.url})
    live, view = live_recording(program, None), ExecutionView()
    live._events = EventSink(view.apply)

    async def stored() -> None:
        with Store.open(tmp_path / "h.db") as store:
            async with live:
                recording = await record(program, permission_of(program), live=live)
                store_ungraded(store, program, recording, ids=(live.execution, live.run))
                live.end(recording.transcript, ungraded(recording), recording.duration_ms)
                raise AgentevalError("the disk is full", where="c.jsonl")

    with pytest.raises(AgentevalError):
        await stored()
    assert view.ended is not None
    assert (view.ended.status, view.ended.message) == ("failed", "the run is stored, but c.jsonl: the disk is full")


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
    assert words[:4] == ["agenteval_tui", "--db", str(tmp_path / "h.db"), "listen"]
    assert (words[4], words[6:]) == ("--ready", ["--port", "1"])


@pytest.mark.usefixtures("started_anew")
def test_a_recording_that_nobody_saw_running_has_run_all_the_same(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "live_executions", list)  # each look comes too late
    asked = RecordingRequest(f"{sys.executable} -I -S agent.py")
    live = client.start_verb(asked.command(None, "", trust=False), tmp_path / "h.db")
    assert live.title.endswith("agent.py (recorded)")
    socket_of = Path(live.socket)
    while socket_of.exists():
        time.sleep(0.01)
    with Store.open(tmp_path / "h.db") as store:
        (row,) = store.runs_of_execution(live.execution)
    assert (row.status, len(server.requests)) == ("skipped", 1)


@pytest.mark.usefixtures("server")
def test_what_keeps_it_from_its_start_is_told_with_place_and_remedy(tmp_path: Path) -> None:
    asked = RecordingRequest("no-such-program-here")
    with pytest.raises(AgentevalError) as caught:
        client.start_verb(asked.command(None, "", trust=False), tmp_path / "h.db")
    assert "no-such-program-here" in caught.value.sentence
    assert caught.value.fix
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AgentevalError) as caught:
            client.start_verb(ListeningRequest(port).command(), tmp_path / "h.db")
    assert str(port) in caught.value.sentence
    assert caught.value.fix


@pytest.mark.usefixtures("server")
def test_a_process_that_says_nothing_in_time_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = tmp_path / "number"
    script = f"import os, time; open({str(number)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    def silent(*_: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", script]

    def written(descriptor: int, timeout_s: float) -> bytes:
        while not number.exists() or not number.read_text():
            time.sleep(0.01)
        return b""

    monkeypatch.setattr(client, "own_command", silent)
    monkeypatch.setattr(client, "read_line", written)
    monkeypatch.setattr(client, "subprocess", subprocess)
    with pytest.raises(AgentevalError, match="it did not start"):
        client.start_verb(["listen"], tmp_path / "h.db")
    with suppress(ProcessLookupError):
        while True:
            os.kill(int(number.read_text()), 0)
            time.sleep(0.01)


def test_what_is_asked_becomes_a_command(tmp_path: Path) -> None:
    kept = tmp_path / "c.jsonl"
    asked: Any = RecordingRequest("python 'my agent.py'", "t", str(kept), "mcp.json")
    assert asked.command(Path("s.yaml"), "t", trust=True) == [
        "record", "--suite", "s.yaml", "--test", "t", "--cassette", str(kept), "--mcp-config", "mcp.json",
        "--trust", "--", "python", "my agent.py",
    ]  # fmt: skip
    kept.touch()  # what is there is not paid for again
    words = asked.command(None, "", trust=False)
    assert words[1:5] == ["--cassette", str(kept), "--replay", "--live-after-miss"]
    assert ListeningRequest(4318, "c.yaml").command() == ["listen", "--port", "4318", "--criteria", "c.yaml"]
    for wrong in ("", "python 'agent.py"):
        with pytest.raises(AgentevalError):
            assert RecordingRequest(wrong).argv


def test_a_typed_command_may_name_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "a b'c")
    asked = RecordingRequest("python agent.py '${A_KEY}' --key=${A_KEY} '$${A_KEY}' $A_KEY")
    assert asked.argv == ("python", "agent.py", "a b'c", "--key=a b'c", "${A_KEY}", "$A_KEY")
    with pytest.raises(AgentevalError, match="the environment variable NO_SUCH_KEY is not set"):
        assert RecordingRequest("python ${NO_SUCH_KEY}").argv
