"""Whether a module is a Chainlit app, found by reading it: it answers messages."""

from __future__ import annotations

from agenteval_tui.agents.discovery.frameworks import FrameworkFinder
from agenteval_tui.agents.discovery.model import FoundApp
from agenteval_tui.agents.discovery.python_module import Module, Modules, code_of, keyword


def _app(modules: Modules, module: Module) -> FoundApp | None:
    for function in module.functions.values():
        for decorator in function.decorator_list:
            if module.qualified(decorator) == "chainlit.on_message":
                return FoundApp(
                    framework="Chainlit",
                    line=decorator.lineno,
                    source=f"@{code_of(decorator)}",
                    prompts=_starters(modules, module),
                    is_chat=True,
                )
    return None


def _starters(modules: Modules, module: Module) -> tuple[str, ...]:
    """The messages that the app proposes to begin with."""
    calls = (call for call in module.calls if module.qualified(call.func) == "chainlit.Starter")
    return tuple(filter(None, (modules.text(module, keyword(call, "message")) for call in calls)))


FINDER = FrameworkFinder(framework="Chainlit", app=_app)
