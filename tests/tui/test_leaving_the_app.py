"""What leaves the app or outlives it: copies, notes after the next key, executions that continue, a run that starts
while somebody goes elsewhere."""

from __future__ import annotations

import asyncio
import base64
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import app_on, as_they_were, screen_of, settle, text_of, until
from terminal import Terminal
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.runs import client
from agenteval_tui.runs.estimate import Estimate, ReplyEstimate
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.app import AgentevalApp, continuing

pytestmark = pytest.mark.xdist_group("screens")


@pytest.fixture(scope="module")
def samples(recorded_ran: tuple[Path, Path]) -> Iterator[tuple[Path, Path]]:
    """(folder with the recorded suite, history in which it ran once)."""
    yield from as_they_were(*recorded_ran)


def notes(app: AgentevalApp) -> list[str]:
    return [note.message for note in app._notifications]


# Copying


def fake_tmux(folder: Path, code: int) -> Path:
    """A tmux that writes down what it is given."""
    program = folder / "tmux"
    program.write_text(f'#!/bin/sh\necho "$@" > {folder}/arguments\ncat > {folder}/buffer\nexit {code}\n')
    program.chmod(0o755)
    return folder


async def copied(pilot: Pilot[int], app: AgentevalApp) -> str:
    """What was said when the command of a comparison was copied."""
    await settle(pilot)
    await pilot.press("9")
    await settle(pilot)
    await pilot.press("y")
    await settle(pilot)
    await until(pilot, lambda: bool(notes(app)))
    return notes(app)[-1]


async def test_in_tmux_it_goes_into_tmuxs_buffer(
    samples: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/somewhere,1,0")
    monkeypatch.setenv("PATH", f"{fake_tmux(tmp_path, 0)}:/usr/bin:/bin")
    app = app_on(*samples)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        said = await copied(pilot, app)
        assert said.startswith("Copied to tmux's buffer: agenteval triage ")
        assert (tmp_path / "buffer").read_text() == app.clipboard
        assert app.clipboard.endswith(f" --db {samples[1]} ")
        assert (tmp_path / "arguments").read_text().split() == ["load-buffer", "-w", "-"]


@pytest.mark.parametrize("there", [True, False])
async def test_where_tmux_refuses_the_terminal_is_asked_and_nothing_else_is_claimed(
    samples: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/somewhere,1,0")
    monkeypatch.setenv("PATH", f"{fake_tmux(tmp_path, 1)}:/bin:/usr/bin" if there else str(tmp_path / "nowhere"))
    app = app_on(*samples)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        said = await copied(pilot, app)
        assert said.startswith("Sent to the terminal's clipboard: agenteval triage ")
        assert app.clipboard.startswith("agenteval triage ")


async def test_elsewhere_it_is_said_that_it_was_sent(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("STY", "1.pts")
    app = app_on(*samples)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        assert (await copied(pilot, app)).startswith("Sent to the clipboard through screen: agenteval triage ")


@pytest.mark.e2e
@pytest.mark.xdist_group("terminals")
def test_a_real_terminal_gets_the_sequence(samples: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "agenteval_tui", "--db", str(samples[1]), str(samples[0])]
    with Terminal(command, columns=100, rows=30, env={"TMUX": "", "STY": ""}) as it:
        it.wait_for("customers-austria")
        it.send("9")
        it.wait_for("open")
        it.settle()
        it.send("y")
        it.wait_for("Sent to the terminal's clipboard")
        start = it.written.index(b"\x1b]52;c;") + 7
        text = base64.b64decode(bytes(it.written[start : it.written.index(b"\x07", start)]))
        assert text.startswith(b"agenteval triage ")
        it.send("q")
        it.wait_for_end()


# Notes


async def test_a_note_stands_above_the_last_line_in_one_line_and_goes_with_the_next_key(
    samples: tuple[Path, Path],
) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        app.say("One test was copied.")
        await until(pilot, lambda: "One test was copied." in text_of(app))
        lines = text_of(app).splitlines()
        (row,) = [at for at, line in enumerate(lines) if "One test was copied." in line]
        assert row == 22, "the last line says the keys"
        assert "? help" in lines[23]
        await pilot.press("j")
        await settle(pilot)
        assert "One test was copied." not in text_of(app)
        assert app.notices.all()[0].text == "One test was copied.", "it can be read again"


async def test_ctrl_c_names_the_key_that_quits(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+c")
        assert notes(app) == ["Press q to quit, or ^q in a text field. Running executions continue."]
        await pilot.press("slash", "ctrl+q")
    assert app.return_code == 0


# Executions


def test_what_continues_is_said_with_the_commands_that_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    live = [Live(f"01M82S3DAYEP44WPG{number}V1E8FTEA", 1, "", "shop", 0) for number in (1, 2)]
    monkeypatch.setattr(client, "live_executions", lambda: live)
    assert continuing([]) == []
    assert continuing(["one that has ended"]) == []
    assert continuing([live[0].execution]) == [
        "V1E8FTEA continues: agenteval attach V1E8FTEA | agenteval cancel V1E8FTEA"
    ]
    assert continuing([live[1].execution], " --db h.db") == [
        "V1E8FTEA continues: agenteval attach V1E8FTEA --db h.db | agenteval cancel V1E8FTEA --db h.db"
    ]
    monkeypatch.setattr(client, "live_executions", lambda: live[:1])
    assert client.find("v1e8ftea") == live[0]


async def test_who_goes_elsewhere_while_a_run_starts_stays_there(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*samples)
    started = threading.Event()
    live = Live("01M82S3DAYEP44WPG1V1E8FTEA", 1, "/nowhere", "shop", 0)

    def start(paths: object, options: object) -> tuple[Live, Estimate]:
        assert started.wait(250)
        return live, Estimate(1, 1, {}, None, None, None, ReplyEstimate(0, None, None, None))

    monkeypatch.setattr(app.session.workspace, "start", start)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("r", "6")
        assert screen_of(app).SCOPE == "compare"
        started.set()
        await until(pilot, lambda: any("The run has started. Press 3 to watch it." in note for note in notes(app)))
        assert screen_of(app).SCOPE == "compare"
        assert app.navigation.watches(live.execution)


async def test_a_run_that_starts_while_one_quits_continues_and_is_said(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*samples)
    asked, started = threading.Event(), threading.Event()
    live = Live("01M82S3DAYEP44WPG1V1E8FTEA", 1, "/nowhere", "shop", 0)

    def start(paths: object, options: object) -> tuple[Live, Estimate]:
        asked.set()
        assert started.wait(250)
        return live, Estimate(1, 1, {}, None, None, None, ReplyEstimate(0, None, None, None))

    monkeypatch.setattr(app.session.workspace, "start", start)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await until(pilot, asked.is_set)
        await app.action_quit()
    started.set()
    async with asyncio.timeout(250):
        while not app.begun:
            await asyncio.sleep(0.01)
    assert app.begun == {live.execution}


async def test_who_types_while_a_run_starts_types_on(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the word would be keys of the Run screen, where S stops the execution."""
    app = app_on(*samples)
    started = threading.Event()
    live = Live("01M82S3DAYEP44WPG1V1E8FTEA", 1, "/nowhere", "shop", 0)

    def start(paths: object, options: object) -> tuple[Live, Estimate]:
        assert started.wait(250)
        return live, Estimate(1, 1, {}, None, None, None, ReplyEstimate(0, None, None, None))

    monkeypatch.setattr(app.session.workspace, "start", start)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("r", "slash", "k", "e")
        started.set()
        await until(pilot, lambda: any("The run has started. Press 3 to watch it." in note for note in notes(app)))
        await pilot.press("t", "S")
        assert screen_of(app).SCOPE == "suites"
        assert screen_of(app).query_one("#filter", Input).value == "ketS"
        assert app.navigation.watches(live.execution)


async def test_a_note_before_the_first_screen_and_behind_the_last_breaks_nothing(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    assert not app.screen_stack
    app.say("early")
    async with app.run_test() as pilot:
        await settle(pilot)
    assert not app.screen_stack
    app.say("late")
    assert [one.text for one in app.notifier.notices.all()] == ["late", "early"]
