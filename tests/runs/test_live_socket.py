"""The socket of an execution, with watchers that behave badly."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.runs.client import attach
from agenteval_tui.runs.events import (
    Command,
    Ended,
    Event,
    Graded,
    Planned,
    RunRef,
    RunStarted,
    TextStreamed,
    ToolFinished,
    ToolStarted,
)
from agenteval_tui.runs.live_registry import Live, live_dir
from agenteval_tui.runs.live_socket import MOST_EVENTS, EventServer
from agenteval_tui.runs.live_view import ExecutionView

RUNS = [f"run-{number}" for number in range(20)]
PLANNED = Planned(1, "e", "t", tuple(RunRef(run, "t", "T", "", 0, 1, "a") for run in RUNS), 4, 0)


@pytest.fixture
def path() -> Path:
    return live_dir() / "x.sock"


def live(path: Path) -> Live:
    return Live("e", 1, str(path), "t", 0)


async def until_gone(server: EventServer, watchers: int = 0) -> None:
    async with asyncio.timeout(250):
        while len(server._watchers) > watchers:
            await asyncio.sleep(0.005)


async def test_a_watcher_that_does_not_read_costs_a_bounded_amount_and_catches_up(path: Path) -> None:
    commands: list[Command] = []
    server = EventServer(commands.append)
    await server.listen(path)
    server.tell(PLANNED)
    slow = await attach(live(path))
    async with asyncio.timeout(250):
        while not server._watchers:
            await asyncio.sleep(0.005)
    (watcher,) = server._watchers
    seq, most = 1, 0

    def tell(kind: type[Event], *values: object) -> None:
        nonlocal seq
        seq += 1
        server.tell(kind(seq, *values))

    for run in RUNS:
        tell(RunStarted, run, 1, 0)
    for number in range(40_000):
        run = RUNS[number % len(RUNS)]
        tell(ToolStarted, run, number, "t")
        tell(ToolFinished, run, number, "r" * 200, False)
        tell(TextStreamed, run, "x" * 50)
        most = max(most, len(watcher._outbox._events))
        if number % 500 == 0:
            await asyncio.sleep(0.001)
    assert most <= MOST_EVENTS + 1
    for run in RUNS:
        tell(Graded, run, "passed", 1.0, (), 1.0)
    tell(Ended, "finished", "")
    view = ExecutionView()
    events = 0

    async def read() -> None:
        nonlocal events
        async for event in slow:
            view.apply(event)
            events += 1

    await asyncio.gather(read(), server.close())
    assert events < 20_000  # of 120,000
    assert view.snapshot() == server.view.snapshot()


async def test_a_watcher_that_never_reads_does_not_hold_up_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.runs.live_socket.CLOSE_S", 0.1)
    server = EventServer(lambda command: None)
    await server.listen(path)
    server.tell(PLANNED)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(str(path))
        async with asyncio.timeout(250):
            while not server._watchers:
                await asyncio.sleep(0.005)
        server.tell(RunStarted(2, RUNS[0], 1, 0))
        for number in range(3, 200):
            server.tell(TextStreamed(number, RUNS[0], "x" * 10_000))
            await asyncio.sleep(0)
        server.tell(Ended(200, "finished", ""))
        await asyncio.wait_for(server.close(), 250)


async def test_the_server_is_closed_when_a_slow_watcher_has_all_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval_tui.runs.live_socket.LINGER_S", 0.0)
    server = EventServer(lambda command: None)
    await server.listen(path)
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        kernel = one.send(bytes(10_000_000))
    # So much that a little waits in the process, which ends when the server is closed.
    server.tell(replace(PLANNED, title="x" * (kernel + 20_000)))
    left: list[int] = []
    with socket.socket(socket.AF_UNIX) as slow:
        slow.settimeout(250)
        slow.connect(str(path))
        async with asyncio.timeout(250):
            while not server._watchers:
                await asyncio.sleep(0)
        (watcher,) = server._watchers
        transport = watcher._writer.transport
        server.tell(Ended(2, "finished", ""))
        closing = asyncio.create_task(server.close())
        closing.add_done_callback(lambda _: left.append(transport.get_write_buffer_size()))
        while not closing.done():
            await (asyncio.to_thread(slow.recv, 4096) if transport.get_write_buffer_size() else asyncio.sleep(0))
        await asyncio.sleep(0)  # what is called back comes after that
    assert left == [0]


async def test_a_watcher_that_talks_nonsense_is_heard_no_more_and_one_that_leaves_is_forgotten(path: Path) -> None:
    commands: list[Command] = []
    server = EventServer(commands.append)
    await server.listen(path)
    server.tell(PLANNED)
    polite = await attach(live(path))
    rude = await attach(live(path))
    rude._writer.write(b'{"verb": "explode"}\n\xff\xfe\n{"verb": "pause"}\n')
    rude._writer.write(b"[" * 50_000 + b'\n{"verb": [1]}\n{"verb": "pause", "number": 1e999}\n')
    rude._writer.write(b'{"verb": "cancel", "run": ' + b"[" * 900 + b"]" * 900 + b"}\n")
    rude._writer.write(b"x" * 1_000_000)
    await polite.send(Command("watch", RUNS[1]))
    await polite.send(Command("cancel", RUNS[1]))
    async with asyncio.timeout(250):
        while len(commands) < 2:
            await asyncio.sleep(0.005)
    assert sorted(command.verb for command in commands) == ["cancel", "pause"]
    await until_gone(server, 1)
    await polite.close()
    await until_gone(server)
    await server.close()


async def test_nobody_came(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.runs.live_socket.FIRST_WATCHER_S", 0.05)
    server = EventServer(lambda command: None)
    await server.close()
    await server.listen(path)
    await asyncio.wait_for(server.close(), 5)


async def test_a_watcher_that_speaks_before_it_reads_the_end_loses_nothing_of_it(path: Path) -> None:
    server = EventServer(lambda _: None)
    await server.listen(path)
    server.tell(PLANNED)
    watching = await attach(live(path))
    events = aiter(watching)
    await anext(events)
    for number, run in enumerate(RUNS):
        server.tell(Graded(2 + number, run, "passed", 1.0, (), 1.0))
    server.tell(Ended(99, "finished", ""))
    closing = asyncio.create_task(server.close())
    # All is sent, and nothing of it read, when this watcher wants to see another run: three times, as it may fail late.
    async with asyncio.timeout(250):
        while not watching._reader._buffer:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)
        for turn in range(100):
            if turn % 40 == 0:
                await watching.send(Command("watch", run=RUNS[0]))
            await asyncio.sleep(0)
        read = [event async for event in events]
    assert sum(isinstance(event, Graded) for event in read) == len(RUNS)
    assert isinstance(read[-1], Ended)
    await watching.close()
    await closing
