"""What an agent that was found is called."""

from __future__ import annotations

import re
from pathlib import Path

from agenteval_tui.suites.slugs import slug

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
