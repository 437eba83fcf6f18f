"""Recording from the app: what is asked, what is said beforehand, and where it ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripted import Answer
from shop import app_on, settle, text_of, until
from threaded import serving

from agenteval_tui.history.records import RunFilter
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui import reading_time
from agenteval_tui.tui.execution_launcher import ExecutionLauncher
from agenteval_tui.tui.live_executions import LiveExecutions
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.record import RecordScreen, ReplayScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.screens.trust import TrustScreen
from agenteval_tui.tui.widgets.form import Form

PROGRAM = """\
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Where is it?"}]}).encode()
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)).read()
"""
SUITE = """\
name: Little
agent: d
agents: {d: {kind: demo, pace: 0}}
tests:
  - id: where
    prompt: Where is it?
    criteria:
      - name: Says when
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: tomorrow}]}
"""


async def test_a_program_is_recorded_watched_graded_and_opened_in_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    (tmp_path / "little.suite.yaml").write_text(SUITE)
    message = {"role": "assistant", "content": "It comes tomorrow."}
    reply = json.dumps({"model": "m", "choices": [{"index": 0, "message": message}]})
    app = app_on(tmp_path, tmp_path / "h.db")
    with serving(lambda request: Answer(body=reply)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            await pilot.press("alt+c")
            await settle(pilot)
            assert isinstance(app.screen, RecordScreen)
            for words in ("A proxy on 127.0.0.1 forwards", f"OPENAI_BASE_URL → {server.url[7:-3]}",
                          "Recording costs nothing"):  # fmt: skip
                assert words in text_of(app)
            form = app.screen.query_one(Form)
            for wrong, why in (
                ("", "give a program"),
                ("python 'agent.py", "can't be split into words"),
                ("nowhere-to-find --x", "there is no program 'nowhere-to-find' in PATH (install it, or give its path)"),
            ):
                form.fill({"program": wrong})
                await pilot.press("enter")
                await settle(pilot)
                assert why in text_of(app)
            words = f"{sys.executable} -I -S agent.py"
            form.fill({"program": words, "test": "nowhere"})
            await pilot.press("enter")
            await until(pilot, lambda: any("nowhere" in one.text for one in app.notices.all()))
            await pilot.press("alt+c")
            await settle(pilot)
            form = app.screen.query_one(Form)
            assert form.values()["program"] == words  # what was asked for last
            form.fill({"test": "where"})
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen) and "It comes tomorrow." in text_of(app))
            assert "passed" in text_of(app)

            # Its program, on what it was answered: first as it was, then with another question.
            await pilot.press("alt+t")
            await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
            assert "At most about 1 request, if the first one differs · cost unknown" in text_of(app)
            form = app.screen.query_one(Form)
            assert form.values()["program"] == words
            form.fill({"max_cost": "-1"})
            await pilot.press("enter")
            assert "write US dollars" in text_of(app)
            (tmp_path / "agent.py").write_text(PROGRAM.replace("Where is it?", "And now?"))
            form.fill({"max_cost": ""})
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen) and "And now?" in text_of(app))
            fork = app.session.store.run(app.screen.shown_run)
            assert (fork.status, bool(fork.fork_of), len(server.requests)) == ("passed", True, 2)
            assert app.session.store.counts().runs == 1
            # Its difference is that from the run that it replays.
            await pilot.press("d")
            await until(pilot, lambda: "Where is it?" in text_of(app) and "And now?" in text_of(app))
            # What nothing was kept of is refused in a sentence.
            app.replay("nothing")
            await until(pilot, lambda: any("no run" in one.text for one in app.notices.all()))


async def test_a_recording_that_ends_before_it_is_watched_is_opened_in_inspect_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    (tmp_path / "little.suite.yaml").write_text(SUITE)
    reply = json.dumps({"model": "m", "choices": [{"message": {"role": "assistant", "content": "It comes tomorrow."}}]})
    watch = ExecutionLauncher.watch_recorded

    def watch_late(launcher: ExecutionLauncher, live: Live, show: bool) -> None:
        while live_executions():
            time.sleep(0.02)
        watch(launcher, live, show)

    monkeypatch.setattr(ExecutionLauncher, "watch_recorded", watch_late)
    app = app_on(tmp_path, tmp_path / "h.db")
    look = LiveExecutions.watch

    async def look_late(live: LiveExecutions) -> None:
        while live_executions() or isinstance(app.screen, (RecordScreen, RunScreen)):
            await asyncio.sleep(0.01)
        await look(live)

    monkeypatch.setattr(LiveExecutions, "watch", look_late)
    with serving(lambda request: Answer(body=reply)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            await pilot.press("alt+c")
            await settle(pilot)
            app.screen.query_one(Form).fill({"program": f"{sys.executable} -I -S agent.py", "test": "where"})
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen) and "It comes tomorrow." in text_of(app))


async def test_a_replay_runs_where_the_suites_agent_runs(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suites" / "little.suite.yaml"
    (suite.parent / "code").mkdir(parents=True)
    agent = {"kind": "command", "command": [sys.executable, "-I", "-S", "agent.py"], "capture": "model", "cwd": "code",
             "output": "text", "env": {"QUESTION": "Where is it?"}}  # fmt: skip
    suite.write_text(SUITE.replace("{kind: demo, pace: 0}", json.dumps(agent)))
    program = suite.parent / "code" / "agent.py"
    program.write_text(PROGRAM.replace('"Where is it?"', 'os.environ["QUESTION"]') + "print('tomorrow')")
    message = {"role": "assistant", "content": "It comes tomorrow."}
    reply = json.dumps({"model": "m", "choices": [{"index": 0, "message": message}]})
    with serving(lambda request: Answer(body=reply)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        db = tmp_path / "h.db"
        subprocess.run([installed / "agenteval", "run", str(suite), "--trust", "--db", str(db)], check=True)
        app = app_on(suite.parent, db)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            (number,) = app.session.store.run_ids(RunFilter())
            run = app.session.store.run_rows([number])[0].id
            app.replay(run)
            await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
            said = "with the run's input and the agent's QUESTION"
            await until(pilot, lambda: said in " ".join(text_of(app).replace("│", " ").split()))
            await pilot.press("enter")
            # What the suite says of folders and variables is its own word.
            await until(pilot, lambda: "It wants to execute" in text_of(app))
            monkeypatch.setattr(reading_time, "READ_S", 0.0)
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen) and bool(app.screen.shown_run))
            fork = app.session.store.run(app.screen.shown_run)
            assert (fork.status, bool(fork.fork_of), len(server.requests)) == ("passed", True, 1)


async def test_the_dotenv_of_a_folder_is_asked_about_before_a_program_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    app = app_on(tmp_path, tmp_path / "h.db")
    with serving(lambda request: Answer(body="{}")) as server:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={server.url}\n")
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            await pilot.press("alt+c")
            await settle(pilot)
            app.screen.query_one(Form).fill({"program": f"{sys.executable} -I -S agent.py"})
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, TrustScreen))
            assert "gives the program OPENAI_BASE_URL" in text_of(app)
            await pilot.press("escape")
            await settle(pilot)
        assert not server.requests
