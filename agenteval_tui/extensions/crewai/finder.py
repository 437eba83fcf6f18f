"""How crews and flows of CrewAI look in a project."""

from __future__ import annotations

import ast
from typing import Any

from agenteval_tui.agents.discovery import module_description
from agenteval_tui.agents.discovery.frameworks import ClassAgent, FrameworkFinder, Frameworks, Line
from agenteval_tui.agents.discovery.model import FoundTool, Sign
from agenteval_tui.agents.discovery.python_module import Module, Modules


def _of_class(modules: Modules, line: Line, is_made: bool) -> ClassAgent | None:
    """A class with `@CrewBase`, or a flow."""
    module, cls = line[0]
    decorators = [module.qualified(node.func if isinstance(node, ast.Call) else node) for node in cls.decorator_list]
    bases = [module.qualified(base) for base in cls.bases]
    if not any(name.startswith("crewai") and name.endswith("CrewBase") for name in decorators) and not any(
        name.startswith("crewai") and name.endswith(".Flow") for name in bases
    ):
        return None
    tools: list[FoundTool] = []
    for node in ast.walk(cls):
        if isinstance(node, ast.Call) and Frameworks(modules).maker_of(module, node.func) is not None:
            tools += module_description.tools_of(modules, module, node, "")
    return ClassAgent(Sign.CLASS, _variables(modules, module, cls.name), tuple(tools))


def _variables(modules: Modules, module: Module, name: str) -> dict[str, Any]:
    """What the class's own module, or the main.py beside or above it that imports the class, gives its crew."""
    folder = module.folder
    mains = (f"{folder}/main.py" if folder else "main.py", f"{folder.rpartition('/')[0]}/main.py".lstrip("/"))
    others = [module, *(other for main in mains if (other := modules.get(main)) is not None and name in other.imports)]
    return next((variables for other in others if (variables := module_description.inputs_in(modules, other))), {})


FINDER = FrameworkFinder(framework="CrewAI", part="Agent", of_class=_of_class)
