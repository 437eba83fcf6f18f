"""What was found in a folder: agents, where they are, and what is known about each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agenteval_tui.core.document import Document
from agenteval_tui.suites.slugs import slug


class Sign(StrEnum):
    """Why something is taken for an agent. The order is that of the list: what a project says itself comes first."""

    DECLARED = "declared"
    """`[tool.agenteval]` in pyproject.toml."""
    CONFIGURED = "configured"
    """A file that its framework reads names it: langgraph.json, or a table of pyproject.toml."""
    ROOT = "root"
    """The object or file that its framework's own tools look for."""
    CLASS = "class"
    """A class that its framework makes an agent of."""
    OBJECT = "object"
    """An object of a framework, at module level."""
    FACTORY = "factory"
    """A function or class that makes such an object."""
    SCRIPT = "script"
    """A script of package.json or pyproject.toml that runs a program that asks a model."""
    APP = "app"
    """A whole file that a framework runs, with a field for the prompt."""
    ROUTE = "route"
    """A route that takes a message."""
    FUNCTION = "function"
    """A function that takes a prompt and asks a model."""
    METHOD = "method"
    """A method of a class that the project's own code asks."""
    PROGRAM = "program"
    """A program that asks a model."""
    SERVER = "server"
    """A configured model server."""


class ConsoleScript(Struct, frozen=True):
    """A command that a project installs, as line `line` of the file `declared` says in `source`."""

    name: str
    declared: str
    line: int
    source: str
    is_main: bool
    """Whether the project is called as it is."""

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return f"{self.declared}:{self.line}"


class FoundTool(Struct, frozen=True):
    """A tool of an agent, the first line of what its description says, the names of the values that a model gives it,
    and an example of one, in the words of its description."""

    name: str
    description: str = ""
    parameters: tuple[str, ...] = ()
    example: str = ""


class AgentCandidate(Struct, frozen=True, kw_only=True):
    """An agent. Paths are relative to the folder that was searched, with `/`."""

    sign: Sign
    name: str
    """What the agent is called in its suite."""
    framework: str
    """The library, by the name of its project; "" if none is known."""
    file: str
    line: int
    """From 1."""
    source: str
    """The expression that was seen, on one line."""
    folder: str
    """The folder of its suite: that of its project."""
    config: Mapping[str, Any]
    """As under `agents:` in a suite of that folder."""
    services: Mapping[str, Any] = {}
    """As under `services:`, for an agent behind a server."""
    instructions: str = ""
    tools: tuple[FoundTool, ...] = ()
    prompts: tuple[str, ...] = ()
    """What the project's own code asks it."""
    variables: Mapping[str, Any] = {}
    """What the project's own code gives it, by name."""
    export: str = ""
    """The object of a source for Node that it is, as FILE:NAME; what another agent is, its `config` names."""
    is_part: bool = False
    """Another agent of the same file uses it."""
    incomplete: tuple[str, ...] = ()
    """Fields of its context that nothing could be written for."""
    examples: tuple[str, ...] = ()
    """What holds an example for want of a better value, as `input.FIELD` or as a setting of its maker."""

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"


class FoundApp(Struct, frozen=True, kw_only=True):
    """How an app is asked. `input`: as the agent's option (None: the app has one field for messages); `prompts`:
    examples that the app gives; `line` and `source`: the field for the prompt; `is_chat`: it answers messages, even if
    its file asks no model."""

    framework: str
    line: int
    source: str
    input: Mapping[str, Any] | None = None
    prompts: tuple[str, ...] = ()
    is_chat: bool = False


class SearchExtent(Document, frozen=True, kw_only=True):
    """What a search for agents read."""

    files: Annotated[int, Meta(description="how many files were read")] = 0
    reason: Annotated[Literal["", "files", "time"], Meta(description='the limit that ended the search; "": none')] = ""
    notebooks: Annotated[int, Meta(description="how many notebooks there are, which are not read")] = 0


class Findings(SearchExtent, frozen=True, kw_only=True):
    """The agents of a folder, the best first."""

    agents: tuple[AgentCandidate, ...] = ()


_GENERIC = frozenset(
    (
        *("agent", "agents", "graph", "root-agent", "root", "crew", "app", "main", "workflow", "team"),
        *("chain", "index", "server", "api", "src", "--init--", "init", "create-agent", "get-agent"),
        *("build-agent", "make-agent", "run", "my-agent", "assistant", "route", "chat", "example"),
        *("create-graph", "build-graph", "get-graph", "new"),
    )
)


def agent_name(name: str, path: str, root: Path) -> str:
    """A name for an agent: its own, else that of its file or of a folder around it."""
    parts = path.rpartition(".")[0].split("/")
    for candidate in [name, *reversed(parts), root.resolve().name]:
        text = slug(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", candidate))[:40].strip("-._").lower()
        if text and text not in _GENERIC:
            return text
    return slug(name)[:40].strip("-._").lower() or "agent"


def relative(path: str, folder: str) -> str:
    """A path within a folder that it lies in."""
    return path.removeprefix(f"{folder}/") if folder else path
