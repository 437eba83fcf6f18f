"""Comparing two executions from Python."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis import comparison as analysis
from agenteval_tui.analysis.comparison_model import Comparison as Compared
from agenteval_tui.analysis.comparison_model import TestChange
from agenteval_tui.analysis.comparison_sides import BASELINE, Sides, sides_of
from agenteval_tui.api.display import Shown
from agenteval_tui.api.runs import Execution, File
from agenteval_tui.core import directories
from agenteval_tui.history.quarantines import active
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.views.comparison import comparison_page, comparison_view
from agenteval_tui.views.markdown import markdown
from agenteval_tui.views.model import View


class Comparison(Shown, Struct, frozen=True, eq=False):
    """What changed from one execution to another, test by test."""

    compared: Compared

    @property
    def regressions(self) -> tuple[TestChange, ...]:
        """The tests that got worse."""
        return tuple(change for change in self.compared.tests if change.state == "worse")

    @property
    def improvements(self) -> tuple[TestChange, ...]:
        """The tests that got better."""
        return tuple(change for change in self.compared.tests if change.state == "better")

    @property
    def tests(self) -> Sequence[TestChange]:
        """All tests of both sides."""
        return self.compared.tests

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.regressions)} worse, {len(self.improvements)} better>"

    def view(self) -> View:
        """As `agenteval compare` prints it."""
        return comparison_view(self.compared, {})

    def _repr_markdown_(self) -> str:
        return markdown(comparison_page(self.compared, {}))


def compare(a: str | Execution = "", b: str | Execution = "last", *, db: File | None = None) -> Comparison:
    """Compare execution `b` (default: the newest) with `a` (default: the baseline of its tests, else the one before).

    Tests are compared with themselves, row by row and repetition by repetition; no agent and no judge is asked. Raises
    `AgentevalError` when they have no test in common.
    """
    # Executions know their history; `db` is for those that are only named.
    first = next((execution.db for execution in (a, b) if isinstance(execution, Execution)), None)
    path = first if first is not None else directories.history_file(db)
    with Store.open_to_look(path) as store:
        references = References(store, projects_open())
        names = [_id(references, reference) for reference in (a, b)]
        left, right = sides_of(store, Sides(names[0], names[1]))
        compared = analysis.compare(store, left, right, quarantined=active(store))
        compared.check_in_common()
        return Comparison(compared)


def _id(references: References, reference: str | Execution) -> str:
    if isinstance(reference, Execution):
        return reference.id
    return reference if reference in ("", BASELINE) else references.execution(reference).id
