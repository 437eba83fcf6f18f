"""agenteval: the debugger for agent tests, in your terminal, and in Python: `import agenteval_tui as agenteval`."""

from typing import Any

from agenteval_tui.core.version import __version__ as __version__

# The API's names, which `agenteval_tui.api` describes; those of extensions are entry points. They are looked up when
# they are used: the program itself needs none of them, and `--version` imports nothing else.
_API = (
    "AgentevalError",
    "Change",
    "Comparison",
    "Criterion",
    "DraftedTest",
    "Execution",
    "Forks",
    "Grade",
    "History",
    "Run",
    "Suite",
    "check_change",
    "compare",
    "fork",
    "grade",
    "import_runs",
    "load",
    "make_test",
    "record",
    "replay",
    "run",
    "why",
)


def __getattr__(name: str) -> Any:
    import sys
    from importlib import import_module

    from agenteval_tui.core.entry_points import API, EntryPoint, own
    from agenteval_tui.core.platforms import ON_WINDOWS, WINDOWS

    target = own(API).get(name)
    if name not in _API and target is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.platform == WINDOWS:
        raise ImportError(f"agenteval: {ON_WINDOWS}")
    if target is not None:
        return EntryPoint(API, name, target, "").load()
    return getattr(import_module("agenteval_tui.api"), name)


def __dir__() -> list[str]:
    from agenteval_tui.core.entry_points import API, own

    return sorted({*globals(), *_API, *own(API)})
