"""The main job as a new user does it: the installed command, in a real pseudo-terminal."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from agenteval_tui.core import directories
from agenteval_tui.runs.client import live_executions

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

AGENTEVAL = str(Path(sys.executable).with_name("agenteval"))


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """The sample suites in a folder of the test's own; the agent a little slower, so that streaming can be seen."""
    target = tmp_path / "suites"
    target.mkdir()
    shutil.copy(directories.bundled("sample_suites") / "tabellen.suite.yaml", target)
    return target


def start(*arguments: str, columns: int = 140, rows: int = 45, **environment: str) -> Terminal:
    """The installed command in a terminal."""
    return Terminal([AGENTEVAL, *arguments], columns=columns, rows=rows, env=environment)


def fork(*arguments: str) -> Terminal:
    """The same, forked off a process that has imported it (servers/prestarted.py)."""
    return Terminal([sys.executable, "-m", "agenteval_tui", *arguments], columns=140, rows=45)


def test_browse_run_watch_inspect_edit_save_run_again_and_find_both(suites: Path) -> None:
    file = suites / "tabellen.suite.yaml"
    before = file.read_text(encoding="utf-8")
    with start(str(suites)) as terminal:
        terminal.wait_for("kunden-deutschland")
        assert "Nothing has run yet" in terminal.text
        terminal.send("r")  # a first start begins at the first test
        terminal.wait_for("kunden-deutschland  run")
        terminal.wait_for("5 of 5", timeout=250)
        terminal.wait_for("finished")
        terminal.send("n")
        terminal.wait_for("✗ kunden-deutschland")
        terminal.send("\r")
        terminal.wait_for("config_uxon")
        terminal.wait_for("FROM customers")
        terminal.wait_for("stored: 5 runs of 1 test")
        terminal.send("e")
        terminal.wait_for("^t run again")
        terminal.send("\x1b[1;5H")  # ctrl+home: typing begins at what failed
        # Down to the line with the needles and right to the place, as a person would.
        row = next(i for i, line in enumerate(before_lines(before)) if "contains_all" in line)
        terminal.send("\x1b[B" * row)
        line = before_lines(before)[row]
        terminal.send("\x1b[C" * (line.index("country = '") + len("country")))
        terminal.send("\x1b[3~" * len(" = '{{country}}'"))
        terminal.wait_for("then ✓✓✓✓✓ 100 %")
        terminal.wait_for("edited")
        terminal.wait_for("^s save")
        terminal.send("\x13")
        terminal.wait_for("Saved tabellen.suite.yaml")
        terminal.send("\x14")  # run again, by the criterion that was saved
        terminal.wait_for("5 of 5  ✓ 5", timeout=250)
        terminal.wait_for("finished")
        terminal.send("q")
        terminal.wait_for_end()
    after = file.read_text(encoding="utf-8")
    assert after == before.replace("\"country = '{{country}}'\"", '"country"', 1)
    with start(str(suites), columns=80, rows=24) as terminal:
        terminal.wait_for("kunden-deutschland")
        terminal.send("5")
        terminal.wait_for("2 executions")
        terminal.send("\r")
        terminal.wait_for("5 runs")
        ends_by(terminal, signal.SIGHUP)


def before_lines(text: str) -> list[str]:
    """The config's lines as the editor shows them: the first block scalar without its indentation."""
    block = text.split("config_uxon: |\n", 1)[1]
    lines = []
    for line in block.splitlines():
        if line.strip() and not line.startswith("          "):
            break
        lines.append(line[10:])
    return lines


def ends_by(terminal: Terminal, number: signal.Signals) -> None:
    """The program, sent this signal, ends and leaves the terminal as it was."""
    os.kill(terminal.pid, number)
    terminal.wait_for_end()
    written = bytes(terminal.written)
    assert written.rindex(b"\x1b[?1049l") > written.rindex(b"\x1b[?1049h")
    assert written.rindex(b"\x1b[?1000l") > written.rindex(b"\x1b[?1000h")


def test_idle_writes_nothing_and_a_signal_restores_the_terminal(suites: Path) -> None:
    with fork(str(suites)) as terminal:
        terminal.wait_for("kunden-deutschland")
        terminal.settle()
        assert terminal.read(1.0) == b""
        ends_by(terminal, signal.SIGTERM)


def test_an_app_that_is_killed_leaves_its_execution_running(suites: Path) -> None:
    slow = suites / "tabellen.suite.yaml"
    slow.write_text(slow.read_text(encoding="utf-8").replace("kind: demo,", "kind: demo, pace: 12,"), encoding="utf-8")
    with fork(str(suites)) as terminal:
        terminal.wait_for("kunden-deutschland")
        terminal.send("r")  # a first start begins at the first test
        terminal.wait_for("streaming")
    # The terminal is gone (killed); another one finds the execution and sees its end.
    with fork(str(suites)) as terminal:
        terminal.wait_for("3 run ◐")
        terminal.send("3")
        terminal.wait_for("5 of 5", timeout=250)
        terminal.send("q")
        terminal.wait_for_end()


# The app, with a terminal that is not its controlling one: nothing tells it when that goes.
UNTOLD = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "agenteval_tui", *sys.argv[1:]])
"""


@pytest.mark.sweep
@pytest.mark.parametrize("command", [["-m", "agenteval_tui"], ["-c", UNTOLD]], ids=["SIGHUP", "no signal"])
def test_an_app_whose_terminal_has_gone_ends_and_its_execution_runs_on(suites: Path, command: list[str]) -> None:
    slow = suites / "tabellen.suite.yaml"
    slow.write_text(slow.read_text(encoding="utf-8").replace("kind: demo,", "kind: demo, pace: 12,"), encoding="utf-8")
    with Terminal([sys.executable, *command, str(suites)], columns=140, rows=45) as terminal:
        terminal.wait_for("kunden-deutschland")
        terminal.send("r")
        terminal.wait_for("streaming")
        terminal.hang_up()
        terminal.wait_for_end()
        assert terminal.exit_code() == 0
    assert len(live_executions()) == 1
    assert not (directories.data_dir() / "errors.log").exists()
    with fork(str(suites)) as terminal:
        terminal.send("3")
        terminal.wait_for("5 of 5", timeout=250)
        terminal.send("q")
        terminal.wait_for_end()


# The app, which begins when its terminal has just gone, and writes more than Textual's queue takes.
GONE = """
import fcntl, select, signal, sys, termios
from agenteval_tui.cli.main import main
from agenteval_tui.tui.app import AgentevalApp

def copy_often(app):
    for number in range(40):
        app.copy(str(number))

def launch(start):
    print("ready", flush=True)
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    AgentevalApp.on_ready = copy_often
    return AgentevalApp(start).run()

signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
sys.exit(main(sys.argv[1:], launch_app=launch))
"""


def test_an_app_whose_terminal_goes_while_it_starts_ends(suites: Path) -> None:
    with Terminal([sys.executable, "-c", GONE, str(suites)], columns=140, rows=45) as terminal:
        terminal.wait_for("ready")
        terminal.hang_up()
        terminal.wait_for_end()
        assert terminal.exit_code() == 0
