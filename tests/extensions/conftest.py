"""For the tests of extensions: the command line, one run of an agent, a history, imports."""

from __future__ import annotations

from tests.agents.conftest import run_agent
from tests.analysis.conftest import answered, make_history
from tests.cli.conftest import cli, program, suite, the_schema_of_suites_is_made_once
from tests.formats.conftest import imported, store
from tests.tui.conftest import samples_ran

__all__ = (
    "answered",
    "cli",
    "imported",
    "make_history",
    "program",
    "run_agent",
    "samples_ran",
    "store",
    "suite",
    "the_schema_of_suites_is_made_once",
)
