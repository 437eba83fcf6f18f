"""Which module knows the objects of a Python framework. Runs in the child: only the standard library.

Such a module has `runner(found, target)` (as python_objects.runner) and a class `Pieces`, which reads what the
framework gives into a conversation: `read(piece)` says whether it could. It may have `messages_of(piece, note)`, for
lists of messages, `whole_of(piece, streamed)`, which says what to give instead of an answer that does not tell the
calls before it ("" for all else), and `result_of(piece)`, for the option `output`. It is loaded when there is such an
object.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Read, Run

    class PieceReader(Protocol):
        """Reads what a framework gives into a conversation."""

        def read(self, piece: Any) -> bool:
            """Whether this could be read."""
            ...

    class Framework(Protocol):
        """Such a module. `messages_of`, `whole_of` and `result_of` are looked for by their names."""

        @property
        def Pieces(self) -> Callable[[Conversation, Read], PieceReader]:  # noqa: N802 - a class in the module
            """Makes a reader."""
            ...

        def whole_of(self, piece: Any, streamed: bool, /) -> str:
            """What to give instead of a run's last piece alone."""
            ...

        def runner(self, agent: Any, target: str, /) -> Run | None:
            """What runs an object; None for what is none of the framework's agents."""
            ...


_MODULES = {
    "smolagents": "python_smolagents",
    "autogen_agentchat": "python_autogen",
    "crewai": "python_crewai",
    "google.adk": "python_google_adk",
    "llama_index": "python_llama_index",
    "workflows": "python_llama_index",
    "strands": "python_strands",
    "agno": "python_agno",
    "haystack": "python_haystack",
    "semantic_kernel": "python_semantic_kernel",
    "dspy": "python_dspy",
    "claude_agent_sdk": "python_claude_agent",
}


def of(value: object) -> Framework | None:
    """The module that knows this object; None where there is none."""
    for cls in type(value).__mro__:
        package, _, rest = cls.__module__.partition(".")
        name = getattr(cls, "agenteval_reader", None)
        name = name or _MODULES.get(package) or _MODULES.get(package + "." + rest.partition(".")[0])
        if name:
            return _module(name)
    return None


def _module(name: str) -> Framework:
    if not __name__.startswith("_agenteval_"):
        return importlib.import_module("agenteval_tui.agents.process." + name)
    own = "_agenteval_" + name
    if own not in sys.modules:  # in the child, where this package need not be installed
        place = __file__.rpartition("/")[0] + "/" + name + ".py"
        spec: Any = importlib.util.spec_from_file_location(own, place)
        sys.modules[own] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[own])
    return sys.modules[own]
