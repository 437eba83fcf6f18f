"""Executions in processes of their own, as the command line watches and steers them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.runs.client import attach, live_executions
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.events import Command, Ended, Event, Snapshot
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView

LOOK_S = 5.0
"""How long an execution may take to say how it is."""
NO_RUN = "none"
"""No run has this id: who watches it gets what streams of no run."""
GONE_S = 15.0
"""How long its process may take to go, after the execution has ended: other watchers read the end first."""
STEER_S = 30.0
"""How long it may take to do what it was told: agents may clean up."""


class AttachResult(Struct, frozen=True):
    """How watching ended: with the execution (`ended`), because the user left (`left`), or its process died
    (neither). `stops`: how often its end was asked for here."""

    ended: Ended | None
    left: bool = False
    stops: int = 0


def watch(live: Live, take: Callable[[Event], None], *, leaves: bool, streams: bool = False) -> AttachResult:
    """Give every event to `take`, a snapshot first, until the execution has ended. What streams (texts, tools) is
    left out where `streams` is not set: of hundreds of runs at once that is most of all events, and no line shows it.

    Ctrl-C (and SIGTERM) leaves it where `leaves` is set; else it cancels the execution, and a second one leaves too.
    Raises `AgentevalError` when it has ended already.
    """
    return run_to_end(_watch(live, take, leaves, streams))


async def _watch(live: Live, take: Callable[[Event], None], leaves: bool, streams: bool) -> AttachResult:
    attachment = await attach(live)
    if not streams:
        await attachment.send(Command("watch", NO_RUN))
    loop = asyncio.get_running_loop()
    left = asyncio.Event()
    sent: set[asyncio.Task[None]] = set()
    stops = 0

    def stop() -> None:
        nonlocal stops
        stops += 1
        if leaves or stops > 1:
            left.set()
        else:
            sent.add(loop.create_task(attachment.send(Command("cancel"))))

    async def follow() -> Ended | None:
        async for event in attachment:
            take(event)
            last = event.ended if isinstance(event, Snapshot) else event
            if isinstance(last, Ended):
                return last
        return None

    # Both at once: who leaves must not wait for the next event, which may be minutes away.
    following = asyncio.create_task(follow())
    leaving = asyncio.create_task(left.wait())
    with handle_interrupt(loop, stop, at_hangup=False):  # the execution goes on in a process of its own
        try:
            await asyncio.wait({following, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not following.done():
                following.cancel()
            await attachment.close()
    if following.done() and not following.cancelled():
        return AttachResult(following.result(), stops=stops)
    return AttachResult(None, left=True, stops=stops)


class Interrupts(Struct):
    """How often somebody asked this process to stop."""

    count: int = 0


@contextmanager
def handle_interrupt(
    loop: asyncio.AbstractEventLoop, stop: Callable[[], None], *, at_hangup: bool = True
) -> Iterator[Interrupts]:
    """While this lasts, call `stop` on Ctrl-C and SIGTERM, and `at_hangup` also when the terminal closes (not below
    nohup). Gives how often that was."""
    added = []
    interrupts = Interrupts()

    def interrupted() -> None:
        interrupts.count += 1
        stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGHUP and (not at_hangup or signal.getsignal(number) is signal.SIG_IGN):
            continue
        try:
            loop.add_signal_handler(number, interrupted)
            signal.signal(number, _let_go)  # the loop is woken all the same
            added.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            break  # not the main thread: whoever called us has the signals
    try:
        yield interrupts
    finally:
        for number in added:
            loop.remove_signal_handler(number)


def _let_go(number: int, frame: FrameType | None) -> None:
    """A terminal that takes nothing, such as a connection that hangs, holds up what would end this process: from now
    on, what it is told goes nowhere."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            descriptor = stream.fileno()
            if os.isatty(descriptor) and not select.select([], [descriptor], [], 0)[1]:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)  # the write that waits is tried again, by the same number
                os.close(nowhere)


def views_of(executions: Sequence[Live]) -> list[ExecutionView | None]:
    """The state of each execution; None for one that does not answer in time, or has just ended."""

    async def look_at_all() -> list[ExecutionView | None]:
        return list(await asyncio.gather(*map(_look, executions)))

    return run_to_end(look_at_all())


async def _look(live: Live) -> ExecutionView | None:
    view = ExecutionView()
    try:
        attachment = await attach(live)
    except AgentevalError:
        return None
    try:
        async with asyncio.timeout(LOOK_S):
            async for event in attachment:
                view.apply(event)
                return view
    except TimeoutError:
        pass
    finally:
        await attachment.close()
    return None


def cancel(live: Live) -> ExecutionView:
    """End an execution; when this returns, it has ended and is no longer listed among the running ones.

    Raises `AgentevalError` when it does not end.
    """
    view = steer(live, Command("cancel"), lambda view: view.ended is not None)
    # It is listed until its process has gone: who cancels and starts again must not find the old one.
    until = time.monotonic() + GONE_S
    while time.monotonic() < until and any(execution.execution == live.execution for execution in live_executions()):
        time.sleep(0.01)
    return view


def steer(live: Live, command: Command, reached: Callable[[ExecutionView], bool]) -> ExecutionView:
    """Tell an execution to do something, and wait until it is so. Raises `AgentevalError` when it never is."""
    return run_to_end(_steer(live, command, reached))


async def _steer(live: Live, command: Command, reached: Callable[[ExecutionView], bool]) -> ExecutionView:
    view = ExecutionView()
    attachment = await attach(live)
    began = time.monotonic()
    try:
        async with asyncio.timeout(STEER_S):
            sent = False
            async for event in attachment:
                view.apply(event)
                # The first event is a snapshot: what is so already needs no command.
                if reached(view):
                    return view
                if not sent:
                    sent = True
                    await attachment.send(command)
    except TimeoutError:
        pass
    finally:
        await attachment.close()
    if view.ended is not None:
        return view
    waited = time.monotonic() - began
    raise InfrastructureError(
        f"the execution did not confirm it within {waited:.0f} s",
        where=f"execution {live.execution}",
        fix="`agenteval ps` shows its state",
    )
