"""Executions that live in other processes: run on a terminal, left, lost, found again, steered, taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import prestarted
import pytest
from terminal import Terminal

from agenteval_tui.core.directories import history_file
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.events import Ended, Snapshot, TextStreamed, decode_event

ROOT = Path(__file__).resolve().parents[2]
AGENTEVAL = [sys.executable, "-m", "agenteval_tui"]

pytestmark = pytest.mark.e2e


def until(condition: Callable[[], Any], what: str) -> Any:
    """What `condition` gives once it is true; fails after a minute."""
    deadline = time.monotonic() + 250
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No execution of a test outlives it."""
    yield
    for live in live_executions():
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(live.pid, signal.SIGKILL)


def paced(suite: Path, *, good: float, bad: float) -> None:
    """Give both tests of the suite an agent of their own: at pace 100 an answer takes half a minute, at 0 no time.

    What a test wants to find running must not be able to end by itself while a busy machine looks elsewhere.
    """
    text = suite.read_text("utf-8")
    agents = f"  quick: {{kind: demo, version: v1, pace: {good}}}\n  slow: {{kind: demo, version: v1, pace: {bad}}}\n"
    for test, agent in (("good", "quick"), ("bad", "slow")):
        text = text.replace(f"  - id: {test}\n", f"  - id: {test}\n    agent: {agent}\n")
    suite.write_text(text.replace("  shop: {", f"{agents}  shop: {{"), "utf-8")


@pytest.fixture
def slow(suite: Path) -> Path:
    """The suite with a test that ends at once, and one that goes on for as long as anybody looks at it."""
    paced(suite, good=0, bad=100)
    return suite


def detached(cli: Any, *arguments: object) -> str:
    """The id of an execution that was started in the background."""
    done = cli("run", *arguments, "--detach")
    assert done.code == 0, done.err
    assert "agenteval attach" in done.out
    (live,) = live_executions()
    assert live.execution in done.out
    return live.execution


def some_ended(db: Path | None = None, least: int = 1) -> bool:
    """Whether at least so many runs have ended, and not all of them."""
    with Store.open(db or history_file(), read_only=True) as store:
        row = store.execution("last")
        return least <= row.ended < row.runs


def test_ctrl_c_on_a_terminal_cancels_and_ends_with_130(slow: Path) -> None:
    with Terminal([*AGENTEVAL, "run", str(slow), "--repeat", "30"]) as terminal:
        terminal.wait_for("running")
        (live,) = live_executions()
        assert live.pid != terminal.pid
        terminal.send("\x03")
        terminal.wait_for_end()
        assert "cancelled" in terminal.text
        assert f"execution {live.execution}" in terminal.text
        assert terminal.exit_code() == 130
    until(lambda: not live_executions(), "the end of its process")
    with Store.open(history_file()) as store:
        row = store.execution("last")
        assert (row.status, row.runs, row.ended) == ("cancelled", 60, 60)


def test_a_lost_terminal_leaves_it_running_and_attach_shows_all_of_it(cli: Any, suite: Path) -> None:
    # One test ends at once, the other does not: there is something to be seen that happened before.
    paced(suite, good=0, bad=100)
    text = suite.read_text("utf-8")
    suite.write_text(text.replace("agent: slow\n", "agent: slow\n    repeat: 20\n"), "utf-8")
    terminal = Terminal([*AGENTEVAL, "run", str(suite), "--concurrency", "2"])
    terminal.wait_for("✓ good")
    (live,) = live_executions()
    os.close(terminal.fd)  # the kernel sends SIGHUP to the session
    until(lambda: terminal.exit_code() is not None, "the end of the program in the terminal")
    assert [one.execution for one in live_executions()] == [live.execution]
    listed = cli("ps", "--json").json("ps")["executions"]
    assert [(one["execution"], one["runs"], one["answers"]) for one in listed] == [(live.execution, 21, True)]
    assert live.execution in cli("ps").out

    with Terminal([*AGENTEVAL, "attach"]) as other:
        other.wait_for("✓ good")  # which ended before it came
        other.wait_for("running")
        other.send("\x03")
        other.wait_for_end()
        assert "detached; it continues" in other.text
        assert other.exit_code() == 0
    assert [one.execution for one in live_executions()] == [live.execution]
    assert "of 21 runs saved" in cli("cancel", live.execution[:12]).out
    assert live_executions() == []


def test_detach_pause_continue_attach_and_cancel(cli: Any, installed: Path, suite: Path) -> None:
    paced(suite, good=0, bad=20)
    execution = detached(cli, suite, "--repeat", "40", "--concurrency", "2")
    until(some_ended, "a run that ended")
    assert cli("pause").out.startswith("paused ")
    assert cli("ps", "--json").json("ps")["executions"][0]["status"] == "paused"
    assert "paused" in cli("ps").out
    assert cli("pause", execution).code == 0  # it is so already: no reason to wait
    assert cli("continue", execution[:14]).out.startswith("running ")
    watcher = subprocess.Popen(
        [str(installed / "agenteval"), "attach", execution, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert watcher.stdout is not None
    assert watcher.stderr is not None
    first = decode_event(watcher.stdout.readline())
    assert isinstance(first, Snapshot)
    assert len(first.planned.runs) == 80
    assert first.ended_runs
    # All of it, for whoever wants to show it: also what streams.
    until(lambda: isinstance(decode_event(watcher.stdout.readline()), TextStreamed), "a text")
    assert cli("cancel", "--all").code == 0
    # Not by `communicate`: it passes over what is read of the pipe already, and not asked for.
    rest, errors = watcher.stdout.read(), watcher.stderr.read()
    assert (watcher.wait(250), errors) == (130, b"")
    events = [decode_event(line) for line in rest.splitlines()]
    assert isinstance(events[-1], Ended)
    assert events[-1].status == "cancelled"
    assert cli("cancel", "--all").out == "no execution is running\n"
    assert cli("ps").out == "no execution is running; agenteval run PATH starts one\n"
    assert cli("ps", "--json").json("ps") == {"version": 1, "executions": []}


def test_a_run_in_a_pipe_is_seen_and_cancelled_by_others(cli: Any, slow: Path) -> None:
    process = prestarted.popen(
        [*AGENTEVAL, "run", str(slow), "--repeat", "40"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        (live,) = until(live_executions, "the execution")
        assert live.pid == process.pid  # no other process for it
        assert cli("ps", "--json").json("ps")["executions"][0]["execution"] == live.execution
        assert cli("cancel", live.execution).code == 0
        out, err = process.communicate(timeout=250)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == ""
    assert "cancelled" in out
    assert "\x1b" not in out


def test_what_is_missing_is_run_and_nothing_twice(cli: Any, suite: Path, tmp_path: Path) -> None:
    # It answers at once twice, and then when it may go on: what is missing keeps the agent that was planned. It counts
    # in a folder: a file that its command names may not change while it runs.
    answered, may = tmp_path / "answered", tmp_path / "may"
    answer = (
        f'if [ "$(ls {answered} | wc -l)" -ge 2 ]; then until [ -e {may} ]; do sleep 0.05; done; fi; '
        f"mktemp -p {answered} one.XXXXXX > /dev/null; echo W1042"
    )
    answered.mkdir()
    shop = json.dumps({"kind": "command", "command": ["sh", "-c", answer], "output": "text"})
    text = suite.read_text("utf-8")
    assert "{kind: demo, version: v1, pace: 0}" in text
    suite.write_text(text.replace("{kind: demo, version: v1, pace: 0}", shop), "utf-8")
    execution = detached(cli, suite, "--repeat", "10", "--concurrency", "1", "--test", "good", "--trust")
    # Both: one that is cancelled after its agent has counted, and before it has answered, is run again.
    until(lambda: some_ended(least=2), "the two runs that answer at once")
    assert cli("cancel").code == 0
    with Store.open(history_file()) as store:
        before = {run.id: run.started_ms for run in store.runs_of_execution(execution) if run.status == "passed"}
    assert len(before) == 2
    suite.write_text(text, "utf-8")  # another agent by now; what is missing stays as it was
    may.touch()
    report = tmp_path / "r.json"
    done = cli("resume", execution, "--json", report, "--concurrency", "8", "--trust")
    assert done.code == 0, done.err
    assert f"{10 - len(before)} of 10 runs are missing" in done.out
    assert "✓ good  10/10" in done.out
    assert "changed since this execution was planned" in done.err
    document = json.loads(report.read_text("utf-8"))
    assert document["execution"] == execution
    assert document["summary"]["passed"] == 10
    assert len(list(answered.iterdir())) == 10
    with Store.open(history_file()) as store:
        after = {run.id: run.started_ms for run in store.runs_of_execution(execution)}
        assert {run: after[run] for run in before} == before
    again = cli("run", "--resume", execution)
    assert again.code == 2
    assert "nothing is missing" in again.err


def test_an_execution_whose_process_is_killed_is_an_error_with_a_remedy(cli: Any, slow: Path) -> None:
    with Terminal([*AGENTEVAL, "run", str(slow), "--repeat", "30", "--concurrency", "2"], columns=200) as terminal:
        terminal.wait_for("running")
        until(some_ended, "a run that ended")
        (live,) = live_executions()
        os.kill(live.pid, signal.SIGKILL)
        terminal.wait_for_end()
        assert terminal.exit_code() == 3
        assert "process died" in terminal.text
        assert f"agenteval resume {short_id(live.execution)}" in terminal.text
        assert "ended and" in terminal.text.replace("\n", " ")
        assert terminal.text.count("stopped unexpectedly") == 1
    assert "stopped unexpectedly: its process died" in cli("ps").out
    (dead,) = cli("ps", "--json").json("ps")["executions"]
    assert (dead["execution"], dead["status"], dead["running"], dead["eta_s"]) == (live.execution, "died", 0, None)
    started = cli("resume", live.execution, "--detach")
    assert started.code == 0, started.err
    assert [one.execution for one in live_executions()] == [live.execution]
    assert cli("resume", live.execution).code == 2  # it is running
    assert cli("cancel").code == 0


@pytest.mark.parametrize("verb", ["attach", "cancel", "pause", "continue"])
def test_nothing_runs_or_not_that(cli: Any, verb: str) -> None:
    for arguments in ((verb,), (verb, "01ABCDEF")):
        done = cli(*arguments)
        assert done.code == 2
        assert "no execution is running" in done.err


def test_ctrl_c_while_it_starts_leaves_nothing_behind(cli: Any, slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenteval_tui.runs import client

    real = client.start

    def impatient(request: client.ExecutionRequest) -> client.Live:
        os.kill(os.getpid(), signal.SIGINT)  # before its process has said anything
        return real(request)

    monkeypatch.setattr(client, "start", impatient)
    done = cli("run", slow, "--repeat", "30", "--detach")
    assert done.code == 130
    assert live_executions() == []
    with Store.open(history_file()) as store:
        assert store.execution("last").status == "cancelled"


def test_lines_need_no_streams(cli: Any, suite: Path) -> None:
    from agenteval_tui.cli.attach_client import watch
    from agenteval_tui.runs.events import Event

    paced(suite, good=1, bad=0)
    detached(cli, suite, "--repeat", "4", "--test", "good", "--concurrency", "1")
    (live,) = live_executions()
    seen: list[Event] = []
    watched = watch(live, seen.append, leaves=False)
    assert watched.ended is not None
    graded = [event for event in seen if event.type == "graded"]
    assert len(graded) >= 2
    first = next(number for number, event in enumerate(seen) if event.type == "graded")
    assert not any(isinstance(event, TextStreamed) for event in seen[first:])


def test_an_execution_of_another_history_can_be_watched(cli: Any, suite: Path, tmp_path: Path) -> None:
    paced(suite, good=2, bad=0)
    detached(cli, suite, "--test", "good", "--db", tmp_path / "other.db")
    watched = cli("attach")
    assert watched.code == 2
    assert "note: this execution is in another history file" in watched.err
    assert "the execution has ended (finished)" in watched.err
    assert watched.out.startswith("✓ good")
