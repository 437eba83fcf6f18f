"""The history from Python: what ran, why it ended so, and other tools' recordings as executions."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from msgspec.structs import replace

from agenteval_tui.api.display import Shown, table
from agenteval_tui.api.runs import Execution, File, Run, execution_of
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import moment
from agenteval_tui.formats.import_file import ImportOptions, import_file
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.references import References
from agenteval_tui.history.search import HistoryQuery
from agenteval_tui.history.store import Store
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.views.execution import ends_text
from agenteval_tui.views.model import View, plain

_LISTED = 20


class History(Shown):
    """What ran, as it is stored: in `db` (None: your own history), of the current folder's project, or with
    `all_projects` of all."""

    def __init__(self, db: File | None = None, *, all_projects: bool = False) -> None:
        self.db = directories.history_file(db)
        self.projects = () if all_projects else projects_open()

    def executions(self, limit: int = 200, *, search: str = "") -> list[Execution]:
        """The newest executions first. Their runs are read as well: name a `limit`. `search`: as `agenteval history`
        takes it, such as `name:v2 meta.model:mini`. Raises `AgentevalError` for a field with an impossible value."""
        query = HistoryQuery.parse(search)
        if query.problem:
            raise AgentevalError(query.problem, where=search)
        run_filter = replace(query.filter(now_ms()), projects=self.projects)
        with Store.open_to_look(self.db) as store:
            ids = store.execution_ids(run_filter)[:limit]
            return [execution_of(store, row, self.db) for row in store.execution_rows(list(ids))]

    def execution(self, reference: str = "last") -> Execution:
        """An execution by its id, a part of it, its name, a test's id, or `last`. Raises `AgentevalError`."""
        with Store.open_to_look(self.db) as store:
            return execution_of(store, References(store, self.projects).execution(reference), self.db)

    def run(self, reference: str = "last") -> Run:
        """A run by its id, a part of it, a test's id (its newest run), or `last`. Raises `AgentevalError`."""
        with Store.open_to_look(self.db) as store:
            return Run(References(store, self.projects).run(reference), self.db)

    def failure(self, reference: str = "") -> Run:
        """The newest run that failed or ended in an error; of an execution or test, its newest one."""
        with Store.open_to_look(self.db) as store:
            return Run(References(store, self.projects).run(reference, failure=True), self.db)

    def runs(self, *, test: str = "", status: str = "", text: str = "", limit: int = 1000) -> list[Run]:
        """Runs, the newest first: of a test, with a status, with words in prompt, answer or tool calls."""
        run_filter = RunFilter(test_part=test, outcomes=(status,) if status else (), text=text, projects=self.projects)
        with Store.open_to_look(self.db) as store:
            return [Run(row, self.db) for row in store.run_rows(list(store.run_ids(run_filter)[:limit]))]

    def __iter__(self) -> Iterator[Execution]:
        return iter(self.executions())

    def __repr__(self) -> str:
        return f"<History {self.db}>"

    def view(self) -> View:
        """The newest executions."""
        with Store.open_to_look(self.db) as store:
            execution_ids = store.execution_ids(RunFilter(projects=self.projects))
            rows = [
                (row.id[:10], moment(row.started_ms), row.title, plain(ends_text(row)))
                for row in store.execution_rows(list(execution_ids[:_LISTED]))
            ]
        more = f"{len(execution_ids) - _LISTED:,} more" if len(execution_ids) > _LISTED else ""
        return (table(("execution", "started", "title", "runs"), rows, more=more),)


def why(reference: str | Run | Execution = "", *, db: File | None = None) -> str:
    """Why a run ended as it did, in words, as `agenteval why` prints it.

    `reference`: a run, an execution (its newest failure), or what `agenteval why` takes: RUN, RUN/CRITERION, a test's
    id, `last`; "": the newest failure. Raises `AgentevalError` when nothing has that name.
    """
    if isinstance(reference, Run):
        return reference.why()
    path = reference.db if isinstance(reference, Execution) else directories.history_file(db)
    name = reference.id if isinstance(reference, Execution) else reference
    with Store.open_to_look(path) as store:
        row, criterion = References(store, projects_open()).address(name, failure=True)
    return Run(row, path).why(criterion)


def import_runs(file: str | PathLike[str], *, format: str | None = None, db: File | None = None) -> Execution:
    """Import another tool's recording, as `agenteval import` does; a file that was imported before adds nothing.

    `format`: its name (None: told by the file). What could not be read is in the execution's `row.notes`. Raises
    `AgentevalError` when nothing in it can be imported.
    """
    path = directories.history_file(db)
    with Store.open(path) as store:
        report = import_file(Path(file), store, ImportOptions(format=format))
        return execution_of(store, store.execution(report.execution_id), path)
