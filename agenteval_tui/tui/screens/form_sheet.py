"""A sheet that is a form: its fields, what is wrong with them, and the work that closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.terminal.sheet import Sheet, T
from agenteval_tui.tui.widgets.form import Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.workers import is_busy, start_worker

_FINISHING = "finish"


class FormSheet(Sheet[T]):
    """Its first field has the focus at first. What is wrong is said until a field changes.

    Textual calls the handlers here after those of the same name in a sheet.
    """

    @property
    def form(self) -> Form:
        """The fields."""
        return self.query_one(Form)

    @property
    def values(self) -> dict[str, str]:
        """What is in the fields; nothing before they are there."""
        return self.form.values() if self.is_mounted else {}

    def complain(self, error: AgentevalError | None) -> None:
        """Say below the fields what is wrong."""
        self.query_one(Note).complain(error)

    def finish(self, work: Callable[[], T]) -> None:
        """Do `work` in a thread, and close with what it returns; the sheet stays open when it raises `AgentevalError`.
        One at a time: nothing while work is still going on."""
        if not is_busy(self, _FINISHING):
            start_worker(self, partial(self._finish, work), group=_FINISHING, awaited=True)

    async def _finish(self, work: Callable[[], T]) -> None:
        try:
            result = await asyncio.to_thread(work)
        except AgentevalError as error:
            self.complain(error)
            return
        self.dismiss(result)

    def on_mount(self) -> None:
        self.form.focus_first()

    def on_form_changed(self, event: Form.Changed) -> None:
        """What was wrong may be right now."""
        for note in self.query(Note):
            note.complain(None)
        event.form.complain({})
