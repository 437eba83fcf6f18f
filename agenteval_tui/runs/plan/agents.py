"""An agent of a plan: its name, and its configuration as it will be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.suites.environment import expand

if TYPE_CHECKING:
    from agenteval_tui.suites.model import AgentConfig, Suite


class AgentPlan(Struct, frozen=True):
    """An agent with a variation's configuration merged in; `${VAR}` is not yet expanded. Equal `hash`: same agent."""

    name: str
    config: Mapping[str, Any]
    base_dir: Path
    hash: str


def agent_plan(
    name: str,
    suite: Suite | None,
    folder: Path,
    user_agents: Mapping[str, AgentConfig],
    config: Mapping[str, Any] | None = None,
) -> AgentPlan:
    """The agent of that name as the suite in `folder` sees it, with `config` merged in. Raises `AgentevalError`."""
    # Here: whoever only reads executions (`ps`, `stats`) needs `AgentPlan`, and not the suites with pydantic.
    from agenteval_tui.runs.plan.variation import deep_merge
    from agenteval_tui.suites.agents_file import resolve_agent

    merged = resolve_agent(name, suite, user_agents).as_dict()
    if config:
        merged = deep_merge(merged, config)
    # Relative paths of an agent are meant from the file that describes it.
    base_dir = folder if suite is not None and name in suite.agents else config_dir()
    return AgentPlan(name, merged, base_dir, content_hash([name, merged, str(base_dir)]))


def expanded(agent: AgentPlan, env: Mapping[str, str]) -> dict[str, Any]:
    """The agent's configuration with `${VAR}` put in. Raises `AgentevalError` naming the agent."""
    try:
        return dict(expand(agent.config, env))
    except AgentevalError as error:
        raise AgentevalError(error.what, where=error.where or f"agent {agent.name!r}", fix=error.fix) from error
