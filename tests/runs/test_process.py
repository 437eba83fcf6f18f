"""Executions in processes of their own: they outlive whoever started or watches them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prestarted
import pytest
from msgspec import convert

from agenteval_tui.core.directories import data_dir, history_file
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError, InfrastructureError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import Attachment, attach, find, live_executions, start
from agenteval_tui.runs.events import Command, Event, Snapshot
from agenteval_tui.runs.live_registry import ExecutionRequest, Live, card_path
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.options import PlanOptions

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
ANSWER = "hello " * 40

# Recordings that are given back at the recorded speed: `total_ms` says how long a run takes.
SUITE = """
name: Recorded
agent: recorded
agents:
  recorded:
    kind: replay
    pace: 1
    beyond: repeat
    transcripts:
      hello: {{version: 1, messages: [{{role: user, content: hi}}, {{role: assistant, content: "{answer}"}}],
              timing: {{total_ms: {total_ms}}}}}
tests:
  - id: hello
    name: Says hello
    prompt: hi
    repeat: {repeat}
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{{"metrics": [{{"type": "TextMatch", "contains": "hello"}}]}}'
"""

# Runs that say something again and again, and do not end before the file `go` is there: what a test wants to find
# running is running, however busy the machine is.
WAITING = """
  - id: waits
    name: Waits for a file
    agent: waiting
    prompt: hi
    repeat: {repeat}
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{{"metrics": [{{"type": "TextMatch", "contains": "hello"}}]}}'
agents:
  waiting: {{kind: command, command: [sh, waiting.sh]}}
"""
WAITING_SH = """
cat > /dev/null
until [ -e go ]; do
  printf '{"type": "text", "text": "hello "}\\n'
  sleep 0.05
done
printf '{"type": "text", "text": "hello"}\\n{"type": "done"}\\n'
"""


def written(folder: Path, total_ms: int, repeat: int, waiting: int = 0) -> Path:
    """A suite of recordings that take `total_ms` each, and of `waiting` runs, which come first."""
    path = folder / "recorded.suite.yaml"
    text = SUITE.format(answer=ANSWER, total_ms=total_ms, repeat=repeat)
    if waiting:
        (folder / "waiting.sh").write_text(WAITING_SH)
        tests, agents = WAITING.format(repeat=waiting).split("agents:\n")
        head, recorded = text.split("tests:\n")
        recorded = recorded if repeat else ""
        text = f"{head}{agents}tests:{tests}{recorded}"
    path.write_text(text)
    return path


@pytest.fixture
def begin(tmp_path: Path) -> Any:
    """Start an execution of such a suite; whatever still lives at the end is killed."""
    started: list[Live] = []

    def begin(total_ms: int = 100, repeat: int = 2, waiting: int = 0, **options: Any) -> Live:
        path = written(tmp_path, total_ms, repeat, waiting)
        live = start(ExecutionRequest((str(path),), PlanOptions(trust=bool(waiting), **options)))
        started.append(live)
        return live

    yield begin
    for live in started:
        try:
            os.kill(live.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Watcher:
    """A watcher that applies what comes to a view."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self.view = ExecutionView()
        self.events: list[Event] = []
        self._iterator = aiter(attachment)

    async def until(self, condition: Callable[[ExecutionView], object]) -> None:
        """Read events until `condition` holds of the view; fails when the execution ends before."""
        async with asyncio.timeout(250):
            while not condition(self.view):
                event = await anext(self._iterator)
                self.events.append(event)
                self.view.apply(event)


async def watch(live: Live) -> Watcher:
    return Watcher(await attach(live))


async def gone(live: Live) -> None:
    """Wait until the process has ended."""
    async with asyncio.timeout(250):
        while True:
            try:
                state = Path(f"/proc/{live.pid}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                return
            if state == "Z":
                return
            await asyncio.sleep(0.02)


def statuses(live: Live) -> list[str]:
    with Store.open(history_file()) as store:
        return [row.status for row in store.runs_of_execution(live.execution)]


@pytest.mark.usefixtures("started_anew")
async def test_start_watch_and_end(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=300, repeat=3)
    assert [one.execution for one in live_executions()] == [live.execution]
    assert stat.S_IMODE(os.stat(live.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(Path(live.socket).parent).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(card_path(Path(live.socket))).st_mode) == 0o600
    watcher = await watch(live)
    await watcher.until(lambda view: view.ended)
    assert type(watcher.events[0]) is Snapshot
    assert watcher.view.count("passed") == 3
    assert [run.text for run in watcher.view.runs.values()] == [ANSWER] * 3
    await watcher.attachment.close()
    await gone(live)
    assert live_executions() == []
    assert list(Path(live.socket).parent.iterdir()) == []
    assert statuses(live) == ["passed"] * 3
    async with asyncio.timeout(250):
        while list((data_dir() / "logs").iterdir()):  # an empty log is removed
            await asyncio.sleep(0.02)


async def test_two_watchers_see_the_same_and_one_may_watch_one_run(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=1500, repeat=2)
    first, second = await watch(live), await watch(live)
    chosen = None

    async def choose() -> None:
        nonlocal chosen
        await second.until(lambda view: view.total)
        chosen = list(second.view.runs)[1]
        await second.attachment.send(Command("watch", chosen))
        await second.until(lambda view: view.ended)

    await asyncio.gather(first.until(lambda view: view.ended), choose())
    assert chosen is not None
    assert first.view.runs[chosen] == second.view.runs[chosen]
    assert first.view.runs[chosen].text == ANSWER
    assert first.view.counts == second.view.counts


async def test_a_watcher_that_is_killed_stops_nothing_and_another_sees_everything(
    begin: Callable[..., Live], tmp_path: Path
) -> None:
    live = await asyncio.to_thread(begin, total_ms=10, repeat=2, waiting=2, concurrency=2)
    # A watcher in a process of its own, which says when it has seen text, and is then killed.
    program = """
        import asyncio, sys
        from agenteval_tui.runs.client import attach, live_executions
        from agenteval_tui.runs.events import TextStreamed

        async def main():
            async for event in await attach(live_executions()[0]):
                if isinstance(event, TextStreamed):
                    print("seen", flush=True)
        asyncio.run(main())
    """
    child = prestarted.popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    assert await asyncio.to_thread(child.stdout.readline) == b"seen\n"
    child.kill()
    child.wait()
    child.stdout.close()
    watcher = await watch(live)
    await watcher.until(lambda view: view.total)
    assert not watcher.view.ended
    (tmp_path / "go").touch()
    await watcher.until(lambda view: view.ended)
    assert watcher.view.count("passed") == 4
    with Store.open(history_file()) as store:
        kept = {row.id: store.transcript(row.id).final_output for row in store.runs_of_execution(live.execution)}
    assert {run: seen.text for run, seen in watcher.view.runs.items()} == kept
    assert list(kept.values())[2:] == [ANSWER] * 2
    assert statuses(live) == ["passed"] * 4


async def test_the_death_of_who_started_it_and_a_hang_up_stop_nothing(
    begin: Callable[..., Live], tmp_path: Path
) -> None:
    begin(total_ms=10, repeat=1)  # writes the suite
    path = tmp_path / "recorded.suite.yaml"
    path.write_text(SUITE.format(answer=ANSWER, total_ms=1000, repeat=2))
    program = f"""
        import json, time
        from msgspec import to_builtins
        from agenteval_tui.runs.client import start, ExecutionRequest
        print(json.dumps(to_builtins(start(ExecutionRequest(({str(path)!r},))))), flush=True)
        time.sleep(600)
    """
    child = prestarted.popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert child.stdout is not None
    live = convert(json.loads(await asyncio.to_thread(child.stdout.readline)), Live)
    os.killpg(child.pid, signal.SIGKILL)  # the whole session of the terminal
    child.wait()
    child.stdout.close()
    os.kill(live.pid, signal.SIGHUP)
    watcher = await watch(live)
    await watcher.until(lambda view: view.ended)
    assert watcher.view.count("passed") == 2
    await gone(live)
    assert statuses(live) == ["passed"] * 2


@pytest.mark.parametrize("how", ["command", signal.SIGTERM, signal.SIGINT])
async def test_cancel(begin: Callable[..., Live], how: str | signal.Signals) -> None:
    live = await asyncio.to_thread(begin, total_ms=12_000, repeat=3, concurrency=2)
    watcher = await watch(live)
    await watcher.until(lambda view: any(run.text for run in view.runs.values()))
    if isinstance(how, signal.Signals):
        os.kill(live.pid, how)
    else:
        await watcher.attachment.send(Command("cancel"))
    await watcher.until(lambda view: view.ended)
    assert watcher.view.ended is not None
    assert watcher.view.ended.status == "cancelled"
    await watcher.attachment.close()
    await gone(live)
    assert statuses(live) == ["cancelled"] * 3
    with Store.open(history_file()) as store:
        assert store.execution(live.execution).status == "cancelled"


async def test_commands_from_a_watcher(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=12_000, repeat=4, concurrency=1)
    watcher = await watch(live)
    await watcher.attachment.send(Command("pause"))
    await watcher.until(lambda view: view.paused)
    await watcher.attachment.send(Command("resume"))
    await watcher.attachment.send(Command("set_concurrency", number=3))
    await watcher.until(lambda view: view.count("running") == 3)
    await watcher.attachment.send(Command("cancel", next(iter(watcher.view.runs))))
    await watcher.until(lambda view: view.count("cancelled") == 1 and view.count("running") == 3)
    # What is no command is no reason to stop anything.
    watcher.attachment._writer.write(b"nonsense\n{}\n" + b"x" * 100 + b"\n")
    await watcher.attachment.send(Command("cancel"))
    await watcher.until(lambda view: view.ended)


async def test_who_reads_nothing_holds_nothing_up(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=400, repeat=20, concurrency=10)
    idle = await attach(live)
    watcher = await watch(live)
    await watcher.until(lambda view: view.ended)
    assert watcher.view.count("passed") == 20
    await idle.close()
    await gone(live)


async def test_what_is_killed_is_not_shown_as_living(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=12_000)
    watcher = await watch(live)
    await watcher.until(lambda view: view.count("running"))
    os.kill(live.pid, signal.SIGKILL)
    with pytest.raises(StopAsyncIteration):
        await watcher.until(lambda view: view.ended)
    await gone(live)
    async with asyncio.timeout(250):
        while live_executions():  # the process is dead when all its threads are
            await asyncio.sleep(0.02)
    assert list(Path(live.socket).parent.iterdir()) == []
    with pytest.raises(InfrastructureError, match="is no longer running"):
        await attach(live)
    with Store.open(history_file()) as store:
        assert store.execution(live.execution).status == "interrupted"


@pytest.mark.sweep
@pytest.mark.parametrize("graded", [1, 7, 23])
async def test_what_was_told_to_have_ended_survives_kill_9(begin: Callable[..., Live], graded: int) -> None:
    # One of them does not end: the others go as fast as they can, and it is killed in their midst or just behind.
    live = await asyncio.to_thread(begin, total_ms=10, repeat=400, waiting=1, concurrency=5)
    watcher = await watch(live)
    await watcher.until(lambda view: view.done >= graded)
    os.kill(live.pid, signal.SIGKILL)
    with pytest.raises(StopAsyncIteration):  # what was on its way still comes in
        await watcher.until(lambda view: view.ended)
    assert 0 < watcher.view.done <= 400 < watcher.view.total
    with Store.open(history_file()) as store:
        stored = {row.id: row.status for row in store.runs_of_execution(live.execution)}
    for run in watcher.view.ended_runs:
        assert stored[run] == watcher.view.runs[run].status == "passed"


async def test_an_end_before_anybody_could_attach_is_still_seen(begin: Callable[..., Live]) -> None:
    live = await asyncio.to_thread(begin, total_ms=0, repeat=1)
    watcher = await watch(live)
    await watcher.until(lambda view: view.ended)
    assert watcher.view.count("passed") == 1


async def test_what_was_killed_is_resumed_in_a_process_of_its_own(begin: Callable[..., Live], tmp_path: Path) -> None:
    killed = await asyncio.to_thread(begin, total_ms=10, repeat=3, waiting=5, concurrency=6)
    watcher = await watch(killed)
    await watcher.until(lambda view: view.done >= 2)
    os.kill(killed.pid, signal.SIGKILL)
    with pytest.raises(StopAsyncIteration):  # what was on its way still comes in
        await watcher.until(lambda view: view.ended)
    await gone(killed)
    (tmp_path / "go").touch()
    with Store.open(history_file()) as store:
        before = {row.id: row for row in store.runs_of_execution(killed.execution)}
    ended = {run for run, row in before.items() if row.status == "passed"}
    assert 2 <= len(ended) < 8
    again_trusted = PlanOptions(trust=True)
    live = await asyncio.to_thread(start, ExecutionRequest((), again_trusted, resume=killed.execution[:14]))
    assert (live.execution, live.title) == (killed.execution, killed.title)
    assert live.pid != killed.pid
    again = await watch(live)
    await again.until(lambda view: view.total)
    assert list(again.view.runs) == list(before)  # all of it is shown, in its order
    assert again.view.done >= len(ended)
    await again.until(lambda view: view.ended)
    assert (again.view.count("passed"), again.view.total) == (8, 8)
    await again.attachment.close()
    await gone(live)
    with Store.open(history_file()) as store:
        after = {row.id: row for row in store.runs_of_execution(killed.execution)}
        assert {run: after[run] for run in ended} == {run: before[run] for run in ended}
        assert [row.status for row in after.values()] == ["passed"] * 8
        assert [row.status for row in store.executions()] == ["finished"]
    with pytest.raises(AgentevalError, match="all 8 runs of this execution have ended"):
        await asyncio.to_thread(start, ExecutionRequest(resume="last"))


async def test_executions_are_found_by_what_people_type(begin: Callable[..., Live]) -> None:
    with pytest.raises(AgentevalError, match="no execution is running"):
        find("last")
    first = await asyncio.to_thread(begin, total_ms=120_000)
    assert find() == find(first.execution.lower()) == find(first.execution[:20]) == first
    second = await asyncio.to_thread(begin, total_ms=120_000)
    assert find("last") == second
    assert find(first.execution) == first
    with pytest.raises(AgentevalError, match="more than one execution is running") as raised:
        find()
    assert first.execution in raised.value.fix
    with pytest.raises(AgentevalError, match="matches more than one"):
        find(first.execution[:3])
    with pytest.raises(AgentevalError, match="no execution 'zzz' is running"):
        find("zzz")
    # One that is running is not resumed by a second process, which would run everything twice.
    with pytest.raises(AgentevalError, match="is running"):
        await asyncio.to_thread(start, ExecutionRequest(resume=first.execution))


async def test_the_death_of_both_sides_loses_nothing(tmp_path: Path) -> None:
    # Two runs end when they are let: it can't be over before it is killed.
    path = written(tmp_path, total_ms=10, repeat=8, waiting=2)
    program = f"""
        import asyncio, json, sys
        from msgspec import to_builtins
        from agenteval_tui.runs.client import attach, start, ExecutionRequest
        from agenteval_tui.runs.events import Graded
        from agenteval_tui.runs.plan.planner import PlanOptions

        async def main():
            live = start(ExecutionRequest(({str(path)!r},), PlanOptions(trust=True)))
            print(json.dumps(to_builtins(live)), flush=True)
            async for event in await attach(live):
                if isinstance(event, Graded):
                    print(event.run, flush=True)
        asyncio.run(main())
    """
    child = prestarted.popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert child.stdout is not None
    live = convert(json.loads(await asyncio.to_thread(child.stdout.readline)), Live)
    told = {(await asyncio.to_thread(child.stdout.readline)).decode().strip() for _ in range(2)}
    os.killpg(child.pid, signal.SIGKILL)
    os.kill(live.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    await gone(live)
    with Store.open(history_file()) as store:
        ended = {row.id for row in store.runs_of_execution(live.execution) if row.status == "passed"}
    assert told <= ended
    assert len(ended) <= 8
    (tmp_path / "go").touch()
    request = ExecutionRequest(options=PlanOptions(trust=True), resume=live.execution)
    again = await watch(await asyncio.to_thread(start, request))
    await again.until(lambda view: view.ended)
    assert statuses(live) == ["passed"] * 10


async def test_two_apps_and_a_headless_run_on_one_history(tmp_path: Path) -> None:
    path = tmp_path / "recorded.suite.yaml"
    path.write_text(SUITE.format(answer=ANSWER, total_ms=10, repeat=60))
    program = "import sys; from agenteval_tui.__main__ import main; sys.exit(main())"
    headless = prestarted.popen(
        [sys.executable, "-c", program, "run", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    lives = await asyncio.gather(*(asyncio.to_thread(start, ExecutionRequest((str(path),))) for _ in range(2)))
    with Store.open(history_file()) as app, Store.open(history_file()) as other:
        watchers = [await watch(live) for live in lives]
        # Two apps that read, and write what people say, while three processes write runs.
        labels = 0
        following = asyncio.gather(*(watcher.until(lambda view: view.ended) for watcher in watchers))
        while not following.done():
            for store in (app, other):
                (run,) = store.run_rows(store.run_ids()[:1])
                await asyncio.wrap_future(store.label(run.id, 3))
                labels += 1
        await following
        out, errors = await asyncio.to_thread(headless.communicate, timeout=60)
        assert headless.returncode == 0, (out, errors)
        rows = app.executions()
        assert [(row.status, row.passed) for row in rows[:3]] == [("finished", 60)] * 3
        assert {live.execution for live in lives} < {row.id for row in rows}
        assert len(other.labels()) == labels
        assert app.counts().passed == 180


def test_what_stops_the_start_is_said_as_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "broken.suite.yaml"
    path.write_text("name: x\ntests:\n  - promt: y\n")
    with pytest.raises(AgentevalError) as raised:
        start(ExecutionRequest((str(path),)))
    assert "the suite can't be run" in raised.value.what
    assert raised.value.where.startswith(f"{path}:3:")
    assert raised.value.exit_code == 2
    with pytest.raises(AgentevalError) as raised:
        start(ExecutionRequest((str(tmp_path / "absent.suite.yaml"),)))
    assert "absent.suite.yaml" in str(raised.value)
    assert live_executions() == []


def test_a_history_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "recorded.suite.yaml"
    path.write_text(SUITE.format(answer=ANSWER, total_ms=1, repeat=1))
    folder = tmp_path / "a-folder"
    folder.mkdir()
    with pytest.raises(AgentevalError) as raised:
        start(ExecutionRequest((str(path),), db=str(folder)))
    assert str(folder) in str(raised.value)


def test_a_path_too_long_for_a_socket_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "recorded.suite.yaml"
    path.write_text(SUITE.format(answer=ANSWER, total_ms=1, repeat=1))
    monkeypatch.setenv("AGENTEVAL_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    with pytest.raises(InfrastructureError) as raised:
        start(ExecutionRequest((str(path),)))
    assert "AGENTEVAL_RUNTIME_DIR" in raised.value.fix
    assert raised.value.exit_code == INFRASTRUCTURE


def test_a_process_that_dies_at_once_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InfrastructureError, match="did not start"):
        start(ExecutionRequest((str(tmp_path),)))


def test_who_started_an_execution_need_not_wait_for_its_end(begin: Callable[..., Live]) -> None:
    before = set(threading.enumerate())
    begin(waiting=1)
    waiting = [one for one in set(threading.enumerate()) - before if one.name == "reap-execution"]
    assert [one.daemon for one in waiting] == [True]


@pytest.mark.parametrize("said", ["", "first\nno such module: x"])
def test_the_last_words_of_a_process_that_dies_are_said_and_an_empty_log_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    """Whoever started it waits for its end, so that no zombie is left."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-started\nprintf '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(InfrastructureError) as raised:
        start(ExecutionRequest((str(tmp_path),)))
    assert (tmp_path / "was-started").exists()
    assert raised.value.what == "the execution's process did not start" + (": no such module: x" if said else "")
    log = Path(raised.value.where)
    assert log.parent == data_dir() / "logs"
    if said:
        assert log.read_text() == said
        return
    for thread in threading.enumerate():
        if thread.name == "reap-execution":
            thread.join(100)
    assert not log.exists()


def test_modules_in_the_working_folder_are_not_run(
    begin: Callable[..., Live], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("import os\nos.mkdir('was-run')\n")
    monkeypatch.chdir(tmp_path)
    begin(total_ms=1, repeat=1)
    assert not (tmp_path / "was-run").exists()
