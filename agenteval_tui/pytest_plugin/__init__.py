"""The pytest plug-in: suites are collected as tests, and the fixture `agenteval` grades what a test has in hand.

pytest imports this module in every session where agenteval is installed. What takes long to import is imported where a
suite is collected, or the fixture is used: the third lazy boundary, beside the tables of commands and of screens.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.pytest_plugin.checks import Checks, SessionRecord

import pytest

from agenteval_tui.pytest_plugin.session import TRUST, session_executions

_SUITES = "agenteval_suites"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plug-in."""
    group = parser.getgroup("agenteval", "agenteval: tests of AI agents")
    group.addoption("--agenteval-agent", metavar="NAME", help="Use this agent instead of the suites' agents.")
    group.addoption("--agenteval-repeat", type=int, metavar="N", help="Run every test of a suite N times.")
    group.addoption("--agenteval-max-cost", type=float, metavar="USD", help="Stop a suite that costs more than this.")
    group.addoption("--agenteval-db", type=Path, metavar="FILE", help="The history file (default: your own).")
    group.addoption("--agenteval-name", default="", metavar="TEXT", help="Call the executions this.")
    group.addoption(
        "--agenteval-meta",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Keep metadata with the executions; may be repeated.",
    )
    group.addoption(
        TRUST,
        action="store_true",
        help="Let suites use code of other repositories, and send secrets to addresses that you haven't agreed to.",
    )
    parser.addini(_SUITES, "Collect suite files (*.suite.yaml) as tests.", type="bool", default=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A suite file is a file of tests."""
    if not file_path.name.endswith((".suite.yaml", ".suite.yml")) or not parent.config.getini(_SUITES):
        return None
    from agenteval_tui.pytest_plugin.suite_items import SuiteFile

    file: pytest.Collector = SuiteFile.from_parent(parent, path=file_path)
    return file


@pytest.fixture(scope="session")
def _agenteval_record(pytestconfig: pytest.Config) -> Iterator[SessionRecord]:
    """The execution that all checks of the session belong to."""
    from agenteval_tui.pytest_plugin.checks import SessionRecord

    record = SessionRecord(
        pytestconfig.rootpath,
        pytestconfig.getoption("--agenteval-db"),
        pytestconfig.getoption("--agenteval-name"),
        pytestconfig.getoption("--agenteval-meta"),
    )
    yield record
    if record.execution:
        session_executions(pytestconfig).append(record.execution)
    record.close()


@pytest.fixture
def agenteval(request: pytest.FixtureRequest, _agenteval_record: SessionRecord) -> Checks:
    """Grades what a test has in hand, and runs suites; all of it is in the history. See `checks.Checks`."""
    from agenteval_tui.pytest_plugin.checks import Checks

    return Checks(_agenteval_record, request.node, trust=bool(request.config.getoption(TRUST)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Where what ran can be looked at."""
    executions = session_executions(config)
    if executions:
        terminalreporter.write_sep("-", "agenteval")
        db = config.getoption("--agenteval-db")
        options = f" --db {shlex.quote(str(db))}" if db is not None else ""
        for execution in executions:
            terminalreporter.write_line(f"execution {execution}: agenteval show {execution}{options}")
        terminalreporter.write_line(f"open it in the app: agenteval{options}")
