"""How agents and workflows of LlamaIndex look in a project."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.discovery.frameworks import ClassAgent, FrameworkFinder, Line
from agenteval_tui.agents.discovery.python_module import Modules, code_of, is_made_with_nothing


def _tables(tools: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The workflows of `[tool.llamaagents.workflows]`, which was `[tool.llamadeploy.workflows]`."""
    for tool in ("llamaagents", "llamadeploy"):
        workflows = tools[tool].get("workflows") if isinstance(tools.get(tool), dict) else None
        for key, target in workflows.items() if isinstance(workflows, dict) else ():
            yield str(key), str(target)


def _of_class(modules: Modules, line: Line, is_made: bool) -> ClassAgent | None:
    """A workflow that its module makes, or with steps of its own or of a class that it is made of."""
    bases = [home.qualified(base) for home, cls in line for base in cls.bases]
    steps = [
        name
        for _, cls in line
        for node in cls.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in map(code_of, node.decorator_list)
        if name.partition("(")[0].endswith("step")
    ]
    is_workflow = any(base.startswith(("llama_index", "workflows")) and base.endswith(".Workflow") for base in bases)
    is_ready = is_made or (bool(steps) and is_made_with_nothing(line[0][1]))
    return ClassAgent() if is_workflow and is_ready else None


FINDER = FrameworkFinder(
    framework="LlamaIndex",
    tables=_tables,
    methods=("as_chat_engine", "as_query_engine"),
    packages=("llama_index",),
    of_class=_of_class,
)
