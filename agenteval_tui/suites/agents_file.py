"""The user's agents.yaml, and which configuration a name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.errors import AgentevalError, Problem, raise_first
from agenteval_tui.core.private_files import read_small_bytes
from agenteval_tui.suites.files import decode_utf8
from agenteval_tui.suites.load import read_agents
from agenteval_tui.suites.model import AgentConfig, Suite
from agenteval_tui.suites.yaml.line_index import ProblemReport
from agenteval_tui.suites.yaml.tree import MappingNode, compose, is_null, resolve


def agents_path(config_dir: Path) -> Path:
    """Where the user's agents are configured."""
    return config_dir / "agents.yaml"


def load_agents(config_dir: Path) -> dict[str, AgentConfig]:
    """The agents of agents.yaml, by name; {} when there is no such file. Not expanded.

    Raises `AgentevalError` with the first problem (and how many more there are); `read_agents_file` gives them all.
    """
    agents, problems = read_agents_file(agents_path(config_dir))
    raise_first(problems)
    return agents


def read_agents_file(path: Path) -> tuple[dict[str, AgentConfig], tuple[Problem, ...]]:
    """The agents of a file that are right, and all that is wrong in it. ({}, ()) when there is no such file.

    The file is `agents: {name: {kind: ...}}`, or the names at the top. Raises `AgentevalError` when it can't be read.
    """
    content = read_small_bytes(path, "the list of your agents")
    if content is None:
        return {}, ()
    text = decode_utf8(content, path)
    report = ProblemReport(text, path)
    root, _ = compose(text, report)
    if root is None or is_null(root):
        return {}, tuple(report.problems)
    top = resolve(root)
    listed = top.get("agents") if isinstance(top, MappingNode) else None
    if listed is not None and isinstance(top, MappingNode):
        for key in top.pairs:
            if key.text != "agents":
                report(
                    "unknown-key",
                    key.start,
                    key.end,
                    f'agents.yaml has no "{key.text}"',
                    "put an agent below `agents:`",
                )
    return read_agents(root if listed is None else listed, report), tuple(report.problems)


def resolve_agent(name: str | None, suite: Suite | None, user_agents: Mapping[str, AgentConfig]) -> AgentConfig:
    """The configuration that `name` stands for (the suite's default if None): the suite's own agents come first.

    Not expanded: `expand(config.as_dict(), env)` does that. Raises `AgentevalError` when there is no such agent.
    """
    agent_name = name or (suite.agent if suite is not None else None)
    if not agent_name:
        raise AgentevalError("no agent given", fix="write `agent: NAME` in the suite, or give --agent NAME")
    own: Mapping[str, AgentConfig] = suite.agents if suite is not None else {}
    agent_config = own.get(agent_name) or user_agents.get(agent_name)
    if agent_config is not None:
        return agent_config
    names = [*own, *(user_agent for user_agent in user_agents if user_agent not in own)]
    fix = "add it to `agents:` of the suite, or to agents.yaml in the configuration folder"
    fix = did_you_mean(agent_name, names, f"known here: {', '.join(names)}") if names else fix
    raise AgentevalError(f'there is no agent "{agent_name}"', fix=fix)
