"""Whose failures the Causes screen shows: the newest runs of each test, an execution, or all runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis.causes import Scope, execution_scope, filter_scope, newest_scope
from agenteval_tui.core.display import one_line
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.tui.state import text, texts


class CauseScope(Struct, frozen=True):
    """Whose failures are shown: the newest runs of each test of `suites` (keys; none: of all) with these ids (none:
    all), so that a test that was run alone hides no other. `execution`: an id or "last"; only its runs. `everything`:
    all runs that there are."""

    execution: str = ""
    suites: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    everything: bool = False

    def scope(self, store: Store, projects: tuple[str, ...] = ()) -> Scope:
        """The runs, of these projects where nothing is named (none: of all). Raises `AgentevalError`."""
        if self.everything:
            return filter_scope(store, RunFilter(projects=projects))
        if self.execution:
            named = References(store, projects).execution(self.execution)
            return execution_scope(store, named.id, self.tests)
        scope = newest_scope(store, self.suites, self.tests, () if self.suites else projects)
        if not scope.runs and not (self.suites or self.tests):
            References(store, projects).execution("last")  # says that nothing ran here, and where something did
        return scope

    def next(self) -> CauseScope:
        """What the key for the scope shows next: the newest runs of each test, the last execution, everything."""
        if self.execution:
            return CauseScope(everything=True)
        if self.everything or self.suites or self.tests:
            return CauseScope()
        return CauseScope("last")

    @property
    def name(self) -> str:
        """What a key that leads here says."""
        if self.everything:
            return "all runs"
        return "last execution" if self.execution else "newest runs"

    def of_no_execution(self) -> CauseScope:
        """The same of the last execution, where a certain one is shown; and of no suites of one project."""
        return CauseScope("last" if self.execution else "", everything=self.everything)

    def words(self, scope: Scope, *, short: bool) -> str:
        """Whose failures they are, for the title: `the newest runs of order-status`; `short`: without the article."""
        text = scope.words
        if not self.everything and not self.execution:
            of = f" of {one_line(self.tests[0], 60)}" if len(self.tests) == 1 else "" if short else " of each test"
            text = f"{'' if short else 'the '}newest runs{of}"
        return text

    def to_json(self) -> dict[str, Any]:
        """As it is kept between two starts. Of a certain execution only that it was one: there are newer ones then."""
        kind = "all" if self.everything else "execution" if self.execution else "newest"
        return {"scope": kind, "suites": list(self.suites), "tests": list(self.tests)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CauseScope:
        """What was kept; the newest runs of each test where nothing was."""
        kind = text(stored, "scope")
        if kind == "all":
            return cls(everything=True)
        if kind == "execution":
            return cls("last")
        return cls("", tuple(texts(stored, "suites")), tuple(texts(stored, "tests")))
