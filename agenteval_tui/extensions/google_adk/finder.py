"""How agents of Google ADK look in a project: the object `root_agent`, or root_agent.yaml, as `adk web` expects it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import yaml

from agenteval_tui.agents.discovery.frameworks import FrameworkFinder
from agenteval_tui.agents.discovery.model import AgentCandidate, FoundTool, Sign, agent_name
from agenteval_tui.agents.discovery.project_files import ProjectFiles
from agenteval_tui.agents.discovery.python_module import Module, Modules, keyword

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A field of the session's state in an instruction, which must be there; `{name?}` need not."""
_DEEPEST = 4


def _of_yaml(files: ProjectFiles, path: str) -> Iterator[AgentCandidate]:
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
    yield AgentCandidate(
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


def _needed_state(modules: Modules, module: Module, call: ast.Call) -> list[str]:
    """The fields of the session's state that the instructions of an agent and its sub-agents name, and that no agent
    among them writes."""
    needed: dict[str, None] = {}
    outputs: set[str] = set()
    for home, made in _with_sub_agents(modules, module, call, 0):
        for name in ("instruction", "global_instruction"):
            needed.update(dict.fromkeys(_FIELD.findall(modules.text(home, keyword(made, name)))))
        outputs.add(modules.text(home, keyword(made, "output_key")))
    return [name for name in needed if name not in outputs]


def _with_sub_agents(modules: Modules, module: Module, call: ast.Call, depth: int) -> Iterator[tuple[Module, ast.Call]]:
    yield module, call
    listed = keyword(call, "sub_agents")
    for node in listed.elts if isinstance(listed, ast.List) and depth < _DEEPEST else ():
        place = modules.value(module, node)
        if place is not None and isinstance(place[1], ast.Call):
            yield from _with_sub_agents(modules, place[0], place[1], depth + 1)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


FINDER = FrameworkFinder(
    framework="Google ADK",
    files={"root_agent.yaml": _of_yaml},
    root="root_agent",
    needed_state=_needed_state,
    beside_root=("app", "runner", "agent"),
)
