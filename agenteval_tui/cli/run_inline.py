"""An execution in this process: for pipes and CI, where there is no terminal to lose."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.run_finish import RunReport, finish
from agenteval_tui.cli.run_progress import RunProgress, progress_for
from agenteval_tui.core import directories
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.events import Command, Ended
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_untrusted_plan
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import LoadedSuite


def plan_of(store: Store, loaded: Sequence[LoadedSuite], options: PlanOptions) -> Plan:
    """What these options mean for these suites, with the user's agents: to be looked at, before it is permitted."""
    return make_untrusted_plan(loaded, options, user_agents=load_agents(directories.config_dir()), store=store)


def execute_plan(invocation: Invocation, store: Store, plan: Plan, *, quiet: bool) -> RunReport:
    """Run a plan, with its permission, in this process; prints unless `quiet`. Ctrl-C cancels, and everything that
    ended is kept."""
    progress = progress_for(invocation, store, silent=quiet)
    _, interrupted = run_to_end(_run(plan, store, progress))
    return finish(store, plan.execution_id, progress, interrupted=interrupted)


async def _run(plan: Plan, store: Store, progress: RunProgress) -> tuple[Ended, bool]:

    # Others see it and can steer it, as if it had a process of its own; where no socket can be made it runs as well.
    host = Host(plan, store, progress.apply)
    cancel = partial(host.engine.command, Command("cancel"))
    with handle_interrupt(asyncio.get_running_loop(), cancel) as interrupts:
        return await host.run(), interrupts.count > 0
