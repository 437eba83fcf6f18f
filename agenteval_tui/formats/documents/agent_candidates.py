"""The agents of a folder as the document of `agenteval init --list --json`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.agents.discovery.first_suite import suite_path
from agenteval_tui.agents.discovery.model import Findings, SearchExtent, Sign
from agenteval_tui.core.document import Document, extended


class AgentCandidateDocument(Document, frozen=True, kw_only=True):
    """An agent that was found by reading files."""

    number: Annotated[int, Meta(description="for `agenteval init --agent`, from 1")]
    name: str
    sign: Annotated[Sign, Meta(description="why it is taken for an agent")]
    framework: Annotated[str, Meta(description='"" if none is known')]
    file: Annotated[str, Meta(description="relative to the folder that was searched")]
    line: int
    source: Annotated[str, Meta(description="the expression that was seen there")]
    part: Annotated[bool, Meta(description="true: another agent of its file uses it")]
    suite: Annotated[str, Meta(description="the file that `agenteval init --agent` writes")]
    config: Annotated[dict[str, Any], Meta(description="as under `agents:` in that suite")]
    services: Annotated[dict[str, Any], Meta(description="as under `services:` in that suite")]
    tools: Annotated[tuple[str, ...], Meta(description="names of its tools, as far as they could be read")]
    incomplete: Annotated[tuple[str, ...], Meta(description="fields of its context that you must write")]


class AgentCandidatesDocument(SearchExtent, frozen=True, kw_only=True):
    """`agenteval init --list`: the agents of a folder, the best first."""

    version: Literal[1] = 1
    folder: str
    agents: tuple[AgentCandidateDocument, ...]


def agent_candidates_document(findings: Findings, root: Path) -> AgentCandidatesDocument:
    """What was found in `root`."""
    return extended(
        AgentCandidatesDocument,
        findings,
        folder=str(root),
        agents=tuple(
            AgentCandidateDocument(
                number=number,
                name=agent.name,
                sign=agent.sign,
                framework=agent.framework,
                file=agent.file,
                line=agent.line,
                source=agent.source,
                part=agent.is_part,
                suite=str(suite_path(agent, root)),
                config=dict(agent.config),
                services=dict(agent.services),
                tools=tuple(tool.name for tool in agent.tools),
                incomplete=agent.incomplete,
            )
            for number, agent in enumerate(findings.agents, 1)
        ),
    )
