"""`agenteval agents`: which agents are configured, and whether they are there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.agents.permission import NotTrustedError, Permission
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.trust_prompt import ask_permission
from agenteval_tui.core import directories
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError
from agenteval_tui.formats.documents.listings import ListedAgent
from agenteval_tui.runs.agent_factory import Configured, check_configured, configured_agents
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.trust_check import check_agents
from agenteval_tui.suites.load import load_suites
from agenteval_tui.views.agents import agents_view

_VERBS = ("list", "check")


@click.command("agents")
@click.argument(
    "verb",
    metavar="[list|check]",
    required=False,
    default=_VERBS[0],
    shell_complete=lambda *typed: [*shell_completion.choice(lambda: _VERBS)(*typed), *shell_completion.files(*typed)],
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--agent", "names", multiple=True, metavar="A", help="Only this agent.", shell_complete=shell_completion.agents
)
@click.option("--quick", is_flag=True, help="check: do not ask for an answer unless necessary.")
@click.option("--trust", is_flag=True, help="check: let programs in the suites' folders run; look at them first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    verb: str,
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    quick: bool,
    trust: bool,
    as_json: bool,
) -> int:
    """List the agents of your agents.yaml and of the suites at PATHS; `check` tests that each one works.

    A check tests step by step that an agent responds, accepts the key, knows the model, streams and calls a tool. That
    costs a few tokens; --quick skips the steps that do. Exit code 3 when a checked agent does not work.
    """
    if verb not in _VERBS:
        verb, paths = _VERBS[0], (Path(verb), *paths)
    agents = configured_beside(paths)
    if names:
        unknown = [name for name in names if name not in {agent.name for agent in agents}]
        if unknown:
            configured = ", ".join(agent.name for agent in agents) or "none"
            raise AgentevalError(f"there is no agent {unknown[0]!r}", fix=f"configured: {configured}")
        agents = [agent for agent in agents if agent.name in names]
    reports: dict[int, CheckReport] = {}
    if verb == "check":
        reports = check_all(agents, _permission(invocation, agents, trust), thorough=not quick)
    if as_json:
        invocation.out.json([_data(agent, reports.get(number)) for number, agent in enumerate(agents)])
    elif agents:
        invocation.out.view(agents_view(agents, reports))
    else:
        invocation.out.line("no agents are configured; name a suite, or add some to:")
        invocation.out.line(f"  {directories.config_dir() / 'agents.yaml'}")
    return INFRASTRUCTURE if any(not report.ok for report in reports.values()) else 0


def configured_beside(paths: Sequence[Path]) -> list[Configured]:
    """The user's agents, then those of the suites at `paths`."""
    # What is wrong in agents.yaml is said by whoever asks for one of its agents, and by `doctor`.
    return configured_agents(load_suites(paths), directories.config_dir())[0]


def check_all(
    agents: Sequence[Configured], permission: Permission | None = None, *, thorough: bool = False
) -> dict[int, CheckReport]:
    """What each reports about itself, by its number; all are asked at once. An agent that can't be built gives a report
    as well.

    `thorough` also asks for a streamed answer and a call of a tool. `permission`: of `trust_check.check_agents`;
    without one each agent is checked by itself, and one that lacks trust reports that and is not asked.
    """

    async def check(agent: Configured) -> CheckReport:
        try:
            may = permission if permission is not None else await asyncio.to_thread(check_agents, [agent])
        except NotTrustedError as error:
            return CheckReport(False, error.problem, fix=error.fix)
        return await check_configured(agent, may, thorough=thorough)

    async def check_at_once() -> list[CheckReport]:
        return list(await asyncio.gather(*map(check, agents)))

    return dict(enumerate(run_to_end(check_at_once())))


def _permission(invocation: Invocation, agents: Sequence[Configured], trust: bool) -> Permission | None:
    """The permission for all programs, if the user at the terminal says yes; None: each needs its own."""
    try:
        return ask_permission(invocation, lambda yes: check_agents(agents, trusted=trust or yes))
    except NotTrustedError:
        return None


def _data(agent: Configured, report: CheckReport | None) -> ListedAgent:
    return ListedAgent(
        agent=agent.name,
        kind=agent.kind,
        file=str(agent.file),
        description=agent.about,
        ok=None if report is None else report.ok,
        message="" if report is None else report.message,
        fix="" if report is None else report.fix,
        latency_ms=None if report is None else report.latency_ms,
        steps=() if report is None else report.steps,
    )
