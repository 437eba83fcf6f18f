"""Removing old runs: by age, by count per test, with what would go beside it as it is typed."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count, file_size, typed_whole
from agenteval_tui.history.pruning import Prunable, Pruning, moment_before, prunable, prune
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import Line, error_lines
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.pruning import pruning_view


class PruneScreen(Sheet["bool | None"]):
    """Dismissed with True when runs were removed."""

    def __init__(self) -> None:
        super().__init__()
        self._found: Prunable | None = None
        self._error: AgentevalError | None = None
        self._sure = False  # enter was pressed once, on what is shown: the next one removes it
        self._going = ""  # how far removing is; "": nothing is being removed
        self._stop = False
        self._changed = False

    def compose(self) -> ComposeResult:
        fields = [
            Field("age", "older than", "90d", placeholder="90d, 2w, 1y, or a day; empty: whatever the age"),
            Field("keep", "keep", "20", placeholder="newest runs of each test; empty: none"),
        ]
        with SheetFrame("Remove old runs", self._keys):
            yield Form(fields, below=True, id="fields")
            yield LineBlock(self._note, id="note")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()
        self._look()

    def on_form_changed(self, event: Form.Changed) -> None:
        """Look again what would go."""
        event.stop()
        # While runs are removed, it is decided which.
        if not self._going:
            self._sure = False
            self._look()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter says what will be done; a second one does it."""
        event.stop()
        if self._going or self._found is None or not (self._found.runs or self._found.executions):
            return
        if not self._sure:
            self._sure = True
            self._retell()
            return
        start_worker(self, partial(self._remove, self._found), group="prune")

    def action_close(self) -> None:
        """Stop the current work, or close."""
        if self._going:
            self._stop = True
        else:
            self.dismiss(self._changed)

    def _wanted(self) -> Pruning:
        """What is typed. Raises AgentevalError."""
        values = self.query_one(Form).values()
        before = moment_before(values["age"], now_ms()) if values["age"] else None
        keep = typed_whole(values["keep"])
        if values["keep"] and keep is None:
            raise AgentevalError("the number of runs to keep per test is a whole number")
        return Pruning(before, keep)

    def _look(self) -> None:
        self._error = self._found = None
        try:
            pruning = self._wanted()
        except AgentevalError as error:
            self._error = error
            self._retell()
            return
        self._retell()
        start_worker(self, partial(self._read, pruning), group="look")

    async def _read(self, pruning: Pruning) -> None:
        try:
            self._found = await asyncio.to_thread(prunable, self.agenteval.session.store, pruning)
        except AgentevalError as error:
            self._error = error
        self._retell()

    async def _remove(self, prunable: Prunable) -> None:
        def tell(at: int, of: int) -> bool:
            self._going = f"Removing: {at:,} of {of:,} runs"
            self.app.call_from_thread(self._retell)
            return self._stop

        self._going, self._stop = "Removing …", False
        self._changed = True  # some may be gone, however it ends
        self._retell()
        try:
            done = await asyncio.to_thread(prune, self.agenteval.session.store, prunable, tell)
        except AgentevalError as error:
            self._error, self._going = error, ""
            self._retell()
            return
        self._going = ""
        self.agenteval.say(
            f"Removed {count(done.runs, 'run')}. agenteval db vacuum{self.agenteval.session.db_option} frees "
            f"{file_size(done.free_bytes)}.",
            place=NotificationSource("screen", "history"),
        )
        self.dismiss(True)

    def _retell(self) -> None:
        if self.is_attached:
            self.query_one(SheetFrame).retell()

    def _note(self, width: int) -> list[Line]:
        if self._error is not None:
            return [(), *error_lines(self._error, width)]
        if self._going:
            return [(), ((self._going, "running"),)]
        prunable = self._found
        if prunable is None:
            return [(), (("Looking for runs to remove …", "dim"),)]
        return [(), *view_lines(pruning_view(prunable, len(prunable.runs)), width)]

    def _keys(self) -> Keys:
        sure = bool(self._found and (self._found.runs or self._found.executions))
        if self._going:
            return self.edge(close="stop")
        removes = [("enter", "remove them for good" if self._sure else "remove…")] if sure else []
        return self.edge(*removes, ("↑ ↓", "field"))
