"""How agents of Google ADK look in a project: the object `root_agent`, or root_agent.yaml, as `adk web` expects it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from agenteval_tui.agents.finding.framework_finder import FrameworkFinder
from agenteval_tui.agents.finding.model import FoundAgent, FoundTool, Sign, agent_name
from agenteval_tui.agents.finding.project_files import ProjectFiles


def _of_yaml(files: ProjectFiles, path: str) -> Iterator[FoundAgent]:
    """An agent of Google ADK that is written as YAML: ADK's own function makes it."""
    try:
        config = yaml.load((files.text(path) or b"").decode("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(config, dict) or not isinstance(config.get("name"), str):
        return
    folder, own = files.project_of(path), path.rpartition("/")[0]
    inside = path.removeprefix(f"{folder}/") if folder else path
    # Names of its Python functions begin with the name of its folder.
    outer = inside.rpartition("/")[0].rpartition("/")[0] if "/" in inside else ".."
    tools = [entry.get("name") for entry in _listed(config.get("tools")) if isinstance(entry, dict)]
    yield FoundAgent(
        sign=Sign.ROOT,
        name=agent_name(config["name"] or own, path, files.root),
        framework="Google ADK",
        file=path,
        line=1,
        source=f"name: {config['name']}",
        folder=folder,
        config={
            "kind": "python",
            "callable": "google.adk.agents.config_agent_utils:from_config",
            "settings": {"config_path": inside},
            **({"path": [outer]} if outer else {}),
        },
        instructions=instruction if isinstance(instruction := config.get("instruction"), str) else "",
        tools=tuple(FoundTool(name.rpartition(".")[2]) for name in tools if isinstance(name, str)),
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


FINDER = FrameworkFinder(
    framework="Google ADK",
    files={"root_agent.yaml": _of_yaml},
    root="root_agent",
    beside_root=("app", "runner", "agent"),
)
