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

from msgspec import convert

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError, InfrastructureError, program_error
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.core.private_files import log_error
from agenteval_tui.core.standard_streams import open_missing_descriptors
from agenteval_tui.history.store import Store
from agenteval_tui.runs import live_registry
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork.plan import requested_plan
from agenteval_tui.runs.handshake import Handshake
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import load_suites

log = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Read the request from stdin, run it to its end. Gives the exit code: 0, or that of the error at the start."""
    open_missing_descriptors()
    collect_less_often()
    command_line = sys.argv[1:] if arguments is None else arguments
    handshake = Handshake()
    try:
        ready = (
            int(command_line[command_line.index("--ready") + 1]) if "--ready" in command_line else sys.stdout.fileno()
        )
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
        # The terminal may go away; that is what this process is for.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        handshake = Handshake(ready)
        request = convert(json.loads(sys.stdin.buffer.read()), ExecutionRequest)
        return run_to_end(_execute(request, handshake))
    except AgentevalError as error:
        log.error("%s", error)
        handshake.failed(error)
        return error.exit_code
    except Exception as error:
        broken = InfrastructureError(program_error(error, log_error(error, "an execution", directories.data_dir())))
        log.error("%s", broken)
        handshake.failed(broken)
        return broken.exit_code


async def _execute(request: ExecutionRequest, handshake: Handshake) -> int:

    # Relative paths of the user's agents are meant from the folder that was asked for.
    os.environ["AGENTEVAL_CONFIG_DIR"] = request.config_dir
    # Without a place for a socket nobody could watch or stop it.
    live_registry.live_dir()  # said before anything else is tried
    store = Store.open(Path(request.db))
    try:
        plan, notices = _plan(request, store)
        host = Host(plan, store, detached=True, notices=(*store.notices, *notices))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, host.engine.command, Command("cancel"))
        await host.run(handshake.runs)
        return 0
    finally:
        store.close()


def _plan(request: ExecutionRequest, store: Store) -> tuple[Plan, tuple[str, ...]]:
    user_agents = load_agents(Path(request.config_dir))
    if request.resume:
        resumed = resume_plan(store, request.resume, request.options, errors=request.errors, user_agents=user_agents)
        return resumed.plan, resumed.notices

    if request.fork is not None:
        return requested_plan(store, request.fork, user_agents=user_agents), ()

    return make_plan(load_suites(request.paths), request.options, user_agents=user_agents, store=store), ()


if __name__ == "__main__":
    code = main()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    # An agent that does not let go of its task or thread must not keep the process alive.
    os._exit(code)
