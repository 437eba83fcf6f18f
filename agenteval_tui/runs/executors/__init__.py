"""Where the runs of an execution happen, when it is not in the execution's own process."""

from __future__ import annotations

from typing import Any

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EXECUTORS
from agenteval_tui.core.errors import AgentevalError

LOCAL = "local"


def executor_class(name: str) -> Any:
    """The class of that name: called with an address it gives an `Executor` (executors/base.py).

    Raises `AgentevalError` where no package offers it, or it can't be loaded.
    """
    point = entry_points.find(EXECUTORS, name)
    if point is None:
        raise AgentevalError(f"executor is {' or '.join(executor_names())}, not {name!r}")
    return point.load_as("executor")


def executor_names() -> tuple[str, ...]:
    """All that can be asked for."""
    return (LOCAL, *entry_points.names(EXECUTORS))
