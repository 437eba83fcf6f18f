"""The agents of a plan whose commands run installed copies of the project's code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from agenteval_tui.agents.process.installed_copy import remedy_for_copy
from agenteval_tui.core.document import Document
from agenteval_tui.runs.plan.model import RunPlan


class InstalledCopy(Document, frozen=True):
    """An agent whose command runs a copy of the code, and how to let it run the code itself."""

    agent: str
    fix: Annotated[str, Meta(description="the command that installs the package with links to the code")]

    @property
    def problem(self) -> str:
        """In words."""
        return "its command runs an installed copy of the code, which no edit changes"


def installed_copies(runs: Iterable[RunPlan]) -> tuple[InstalledCopy, ...]:
    """Those of the agents of these runs; each once. Reads a few files for each command."""
    agents = {agent.hash: agent for run in runs for agent in run.agents}.values()
    fixes = [(agent.name, remedy_for_copy(agent.config, agent.base_dir)) for agent in agents]
    return tuple([InstalledCopy(name, fix) for name, fix in fixes if fix])
