"""Reading for the History screen: in threads, a page at a time. What is painted is there already, or a stand-in is."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from dataclasses import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.annotations import notes_of_executions, notes_of_runs
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.scope import several_projects
from agenteval_tui.tui.presenters.history_rows import PAGE, ExecutionRows, RunRows
from agenteval_tui.tui.screens.history.changes import HistoryChanges
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker


class HistoryPages(HistoryChanges):
    """The pages of a list, read as they are looked at, and one ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: ExecutionRows | RunRows | None = None
        self._wanted: list[int] = []
        self._reading = False
        self._elsewhere = 0  # executions of other projects, where this one has none

    def _read(self, wanted: RunFilter, runs: bool, near: int) -> ExecutionRows | RunRows:
        """The ids of all rows, and the rows of the first page and of that which the cursor is on."""
        session = self.agenteval.session
        store = session.store
        if not wanted.execution_id:
            wanted = replace(wanted, projects=session.projects)
        if runs:
            ids = store.run_ids(wanted)
            if wanted.execution_id and not wanted.text:
                ids = array("q", reversed(ids))  # an execution reads in the order of its plan
            rows: ExecutionRows | RunRows = RunRows(ids, self._want, self.execution if wanted.execution_id else None)
        else:
            rows = ExecutionRows(store.execution_ids(wanted), self._want)
            rows.places = not wanted.projects and store.read(several_projects)
        self._elsewhere = 0 if rows.count() or wanted != RunFilter(projects=wanted.projects) else session.elsewhere()
        for page in {0, near}:
            self._fetch(rows, page)()
        return rows

    def _fetch(self, rows: ExecutionRows | RunRows, page: int) -> Callable[[], None]:
        """Reads a page (in this thread); what it gives puts the page in."""
        store, ids = self.agenteval.session.store, rows.ids_of(page)
        if not ids:
            return lambda: None
        numbers = ids.tolist()
        if isinstance(rows, RunRows):
            runs, of_runs = store.run_rows(ids), store.read(lambda c: notes_of_runs(c, numbers))
            return lambda: rows.put(page, runs, of_runs)
        found, noted = store.execution_rows(ids), store.read(lambda c: notes_of_executions(c, numbers))
        return lambda: rows.put(page, found, noted)

    def _want(self, page: int) -> None:
        """A row of this page is being painted, and the page is not here."""
        if page not in self._wanted:
            self._wanted.append(page)
            self.call_later(self._read_wanted)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Who goes through the list finds the next page read already."""
        self._look_ahead()

    def _around(self) -> range:
        """The pages that are seen, and one before and behind them."""
        view = self.query_one("#list", VirtualList)
        top = view.scroll_offset.y
        last = (self._rows.count() - 1) // PAGE if self._rows is not None else -1
        return range(max(top // PAGE - 1, 0), min((top + view.size.height) // PAGE + 1, last) + 1)

    def _look_ahead(self) -> None:
        rows = self._rows
        if rows is not None and not self._wanted:
            missing = [page for page in self._around() if not rows.has(page)]
            if missing:
                self._wanted += missing
                self._read_wanted()

    def _read_wanted(self) -> None:
        if not self._reading and self._wanted and self._rows is not None:
            self._reading = True
            start_worker(self, self._read_pages, group="pages", exclusive=False)

    async def _read_pages(self) -> None:
        """Read pages one after another, those that were asked for last first: who scrolls on has left the others."""
        view = self.query_one("#list", VirtualList)
        try:
            while self._wanted and self._rows is not None:
                rows, page = self._rows, self._wanted.pop()
                if page not in self._around() or rows.has(page):
                    continue
                try:
                    put = await asyncio.to_thread(self._fetch, rows, page)
                except AgentevalError as error:
                    self._wanted.clear()
                    rows.put(page, (), {})
                    self.agenteval.say_error(error)
                else:
                    put()
                top = view.scroll_offset.y
                if rows is self._rows and top // PAGE <= page <= (top + view.size.height) // PAGE:
                    view.refresh_rows()
        finally:
            self._reading = False
        self._elsewhere = 0  # executions of other projects, where this one has none
        self._look_ahead()
