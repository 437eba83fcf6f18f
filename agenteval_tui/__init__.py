"""agenteval: the debugger for agent tests, in your terminal, and in Python: `import agenteval_tui as agenteval`."""

from typing import Any

from agenteval_tui.core.version import __version__ as __version__

# The API's names, which `agenteval_tui.api` describes. They are looked up when they are used: the program itself needs
# none of them, and `--version` imports nothing else.
_API = (
    "AgentevalError",
    "Blame",
    "Change",
    "Comparison",
    "Criterion",
    "Execution",
    "Forks",
    "Grade",
    "History",
    "Listening",
    "MadeTest",
    "Run",
    "Shrunk",
    "Suggested",
    "Suite",
    "blame",
    "check_change",
    "compare",
    "fork",
    "grade",
    "import_runs",
    "listen",
    "load",
    "make_test",
    "record",
    "replay",
    "run",
    "shrink",
    "suggest",
    "why",
)


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    from agenteval_tui.core.platforms import ON_WINDOWS, WINDOWS

    if sys.platform == WINDOWS:
        raise ImportError(f"agenteval: {ON_WINDOWS}")

    return getattr(import_module("agenteval_tui.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
