"""agenteval in Python: load suites, run and grade them, ask why, and read the history.

`import agenteval_tui as agenteval` gives these names, and those of extensions (the entry points `agenteval.api`). They
are stable by semantic versioning; everything else in the package is not. Every function raises `AgentevalError` with
what is wrong, where, and how to fix it.
"""

from __future__ import annotations

from agenteval_tui.api.changes import Change, check_change
from agenteval_tui.api.comparison import Comparison, compare
from agenteval_tui.api.drafted_tests import DraftedTest, make_test
from agenteval_tui.api.forks import Forks, fork
from agenteval_tui.api.grading import Grade, grade
from agenteval_tui.api.history import History, import_runs, why
from agenteval_tui.api.recordings import record, replay
from agenteval_tui.api.runs import Execution, Run, run
from agenteval_tui.api.suites import Suite, load
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.model import Criterion

__all__ = [
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
]
