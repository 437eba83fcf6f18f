"""Running a plan in this process: what the command line does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Command, Ended, Event
from agenteval_tui.runs.loop import run_to_end
from agenteval_tui.runs.plan import Plan

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store


def run_here(plan: Plan, store: Store, emit: Callable[[Event], None]) -> tuple[Ended, bool]:
    """Run all of `plan` and wait for it. Gives the last event, and whether a signal interrupted it.

    On SIGINT, SIGTERM or SIGHUP the runs in flight are recorded as cancelled and the execution ends as cancelled.
    Raises `AgentevalError` when it can't begin. Must be called in the main thread, with no event loop running.
    """
    return run_to_end(_run(Engine(plan, store, emit)))


async def _run(engine: Engine) -> tuple[Ended, bool]:
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        engine.command(Command("cancel"))

    engine.prepare()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        return await engine.run(), interrupted
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
