"""The agents of a plan whose commands run installed copies of the project's code."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval_tui.agents.process.installed_copy import remedy_for_copy
from agenteval_tui.runs.change.model import InstalledCopy
from agenteval_tui.runs.plan.model import RunPlan


def installed_copies(runs: Iterable[RunPlan]) -> tuple[InstalledCopy, ...]:
    """Those of the agents of these runs; each once. Reads a few files for each command."""
    agents = {agent.hash: agent for run in runs for agent in run.agents}.values()
    fixes = [(agent.name, remedy_for_copy(agent.config, agent.base_dir)) for agent in agents]
    return tuple([InstalledCopy(name, fix) for name, fix in fixes if fix])
