"""Finds the agent that a name means. Apart from `agents`: whoever only reads executions does not load the suites."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.ids import content_hash
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.variation import deep_merge
from agenteval_tui.suites.agents_file import resolve_agent
from agenteval_tui.suites.model import AgentConfig, Suite


def agent_plan(
    name: str,
    suite: Suite | None,
    folder: Path,
    user_agents: Mapping[str, AgentConfig],
    config: Mapping[str, Any] | None = None,
) -> AgentPlan:
    """The agent of that name as the suite in `folder` sees it, with `config` merged in. Raises `AgentevalError`."""
    merged = resolve_agent(name, suite, user_agents).as_dict()
    if config:
        merged = deep_merge(merged, config)
    # Relative paths of an agent are meant from the file that describes it.
    base_dir = folder if suite is not None and name in suite.agents else config_dir()
    return AgentPlan(name, merged, base_dir, content_hash([name, merged, str(base_dir)]))
