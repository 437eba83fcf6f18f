"""Tests that are made of runs, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis import drafted_test as analysis
from agenteval_tui.api.display import Shown
from agenteval_tui.api.runs import File, Run
from agenteval_tui.core import directories
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.views.drafted_test import drafted_test_view
from agenteval_tui.views.model import View


class DraftedTest(Shown, Struct, frozen=True, eq=False):
    """A test that was made of runs."""

    draft: analysis.DraftedTest
    runs: analysis.GoodRuns

    @property
    def id(self) -> str:
        """The test's id."""
        return self.draft.id

    @property
    def path(self) -> Path:
        """The suite's file."""
        return self.draft.path

    @property
    def test(self) -> Mapping[str, Any]:
        """The test, with the keys of a suite file."""
        return self.draft.test

    def __repr__(self) -> str:
        return f"<DraftedTest {self.id} in {self.path}>"

    def view(self) -> View:
        """As `agenteval make-test` prints it."""
        return drafted_test_view(self.draft, self.runs)


def make_test(
    runs: str | Run | Iterable[str | Run],
    suite: File | None = None,
    *,
    id: str = "",
    name: str = "",
    agent: str = "",
    dry_run: bool = False,
    db: File | None = None,
) -> DraftedTest:
    """Make a test of a run that went well, or of several that were asked the same: it asks what they were asked, and
    its criteria are what all share.

    It is written behind the last test of `suite`, which is made if it is not there (None: the suite of the runs, else
    recorded.suite.yaml). `agent` is the one that it asks (""; that of the runs, if the suite or agents.yaml has it).
    With `dry_run` nothing is written. Raises `AgentevalError`: no such run, one without an answer, or a file that can't
    hold the test.
    """
    references = [runs] if isinstance(runs, str | Run) else list(runs)
    first = next(iter(references), "")
    # Runs that are objects know their history: that of the first one is read.
    with Store.open_to_look(first.db if isinstance(first, Run) else directories.history_file(db)) as store:
        find = References(store, projects_open())
        good = analysis.stored_runs(
            store, [reference.row if isinstance(reference, Run) else find.run(reference) for reference in references]
        )
    user_agents = load_agents(directories.config_dir())
    path = None if suite is None else Path(suite)
    drafted_test = analysis.make_test(
        good, path, test_id=id, name=name, agent=agent, agents=user_agents, write=not dry_run
    )
    return DraftedTest(drafted_test, good)
