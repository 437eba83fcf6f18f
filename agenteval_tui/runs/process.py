"""An execution in a process of its own: `python -m agenteval_tui.runs.process`, the request as JSON on stdin.

It belongs to no terminal and outlives whoever started it. How it went with the start is said in one line on the file
descriptor that `--ready` names; what happens then, on a unix socket (see `server`). `client.start` starts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.runs import live as living
from agenteval_tui.runs.live import ExecutionRequest, Live
from agenteval_tui.runs.loop import run_to_end
from agenteval_tui.text.problems import AgentevalError, InfrastructureError

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.plan import Plan
    from agenteval_tui.suites.load import LoadedSuite

log = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Read the request from stdin, run it to its end. Gives the exit code: 0, or that of the error at the start."""
    given = sys.argv[1:] if arguments is None else arguments
    ready = int(given[given.index("--ready") + 1]) if "--ready" in given else sys.stdout.fileno()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    # The terminal may go away; that is what this process is for.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    handshake = _Handshake(ready)
    try:
        request = ExecutionRequest.from_json(json.loads(sys.stdin.buffer.read()))
        return run_to_end(_execute(request, handshake))
    except AgentevalError as error:
        log.error("%s", error)
        handshake.say(living.said_error(error))
        return error.exit_code
    except Exception as error:
        log.exception("the execution broke")
        broken = InfrastructureError(f"an error in the program: {type(error).__name__}: {error}")
        handshake.say(living.said_error(broken))
        return broken.exit_code


class _Handshake:
    """The pipe to whoever started this process; spoken on once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, line: bytes) -> None:
        """Say how the start went and close the pipe. Whoever started this may be gone already: no matter."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            os.write(self._descriptor, line)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1


async def _execute(request: ExecutionRequest, handshake: _Handshake) -> int:
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.engine import Engine
    from agenteval_tui.runs.events import Command, Event
    from agenteval_tui.runs.server import EventServer
    from agenteval_tui.text.identity import now_ms

    # Relative paths of the user's agents are meant from the folder that was asked for.
    os.environ["AGENTEVAL_CONFIG_DIR"] = request.config_dir
    folder = living.live_dir()
    store = Store.open(Path(request.db))
    try:
        plan = _plan(request, store)
        path = living.socket_path(folder, plan.execution_id)
        live = Live(plan.execution_id, os.getpid(), str(path), plan.title, now_ms())
        planned = asyncio.Event()

        def emit(event: Event) -> None:
            server.tell(event)
            planned.set()

        engine = Engine(plan, store, emit)
        engine.prepare()
        server = EventServer(engine.command)
        await server.listen(path)
        try:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, engine.command, Command("cancel"))
            running = asyncio.create_task(engine.run())
            # The first event comes when the store has taken the execution in: from then on it can be watched.
            first = asyncio.create_task(planned.wait())
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
            if not planned.is_set():
                await running  # raises why it could not begin
            with living.shown(live):
                handshake.say(living.said_well(live))
                await running
                await server.close()
        finally:
            path.unlink(missing_ok=True)
        return 0
    finally:
        store.close()


def _plan(request: ExecutionRequest, store: Store) -> Plan:
    from agenteval_tui.runs.plan import make_plan
    from agenteval_tui.suites.agents_file import load_agents

    loaded = _load(request.paths)
    return make_plan(loaded, request.options, user_agents=load_agents(Path(request.config_dir)), store=store)


def _load(paths: tuple[str, ...]) -> list[LoadedSuite]:
    """All suites in these files and folders. Raises `AgentevalError` when one can't be read."""
    from agenteval_tui.suites.discover import discover
    from agenteval_tui.suites.load import load_suite

    return [load_suite(path) for path in discover([Path(path) for path in paths])]


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # An agent that does not let go of its task or thread must not keep the process alive.
    os._exit(code)
