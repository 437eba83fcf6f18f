"""Projects in which agents are looked for."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.agents.discovery.model import AgentCandidate, Sign
from agenteval_tui.agents.discovery.search import find_agents


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def agents_of(folder: Path, files: dict[str, str]) -> list[AgentCandidate]:
    return list(find_agents(project(folder, files)).agents)


def only(folder: Path, files: dict[str, str]) -> AgentCandidate:
    agents = agents_of(folder, files)
    assert len(agents) == 1, [agent.place for agent in agents]
    return agents[0]


PROMPTS = 'RULES = """You are a cook. Recipes only."""\n'


def assert_object_is_found(folder: Path, framework: str, code: str) -> None:
    """`code` binds an agent of a framework to `x`. Where it names RULES, these are its instructions."""
    agent = only(folder, {"app/bot.py": PROMPTS + code})
    assert (agent.sign, agent.framework, agent.file) == (Sign.OBJECT, framework, "app/bot.py")
    assert agent.config["callable"] == "app/bot.py:x"
    assert agent.line == (PROMPTS + code).split("\nx = ")[0].count("\n") + 2
    if "RULES" in code:
        assert agent.instructions == "You are a cook. Recipes only."
