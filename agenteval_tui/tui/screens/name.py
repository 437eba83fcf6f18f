"""What an execution is called: its name, a note, and metadata."""

from __future__ import annotations

import shlex
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.execution_names import DescribeExecution, meta_of
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock, Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.views.execution import commit_text

_USE = "A name can be used wherever an id can. Search for it with name:, note: and meta.KEY: in History."


class NameScreen(FormSheet["str | None"]):
    """Dismissed with the name when it is in the history; or None."""

    AUTO_FOCUS = ""

    def __init__(self, execution: ExecutionRow) -> None:
        super().__init__()
        self._execution = execution

    def compose(self) -> ComposeResult:
        row = self._execution
        meta = shlex.join(f"{key}={value}" for key, value in row.meta.items())
        fields = [
            Field("name", "name", row.name, placeholder="v2.1, or what you changed"),
            Field("note", "note", row.note, placeholder="in a few words"),
            Field("meta", "metadata", meta, placeholder="model=mini temperature=0.2"),
        ]
        with SheetFrame("Name", self._keys, subject=one_line(row.title, 60)):
            yield Form(fields, id="fields")
            yield LineBlock(self._commits, id="commits")
            yield Note(lambda width: paragraph(_USE, width, "dim"), id="note")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter keeps it."""
        try:
            change = self._change()
        except AgentevalError as error:
            self.complain(error)
        else:
            self.finish(partial(self._write, change))

    def _change(self) -> DescribeExecution:
        """What the fields say. Raises `AgentevalError`."""
        values = self.values
        try:
            words = shlex.split(values["meta"])
        except ValueError as wrong:
            raise AgentevalError(
                f"the metadata can't be read: {wrong}", fix='write key=value "key=two words"'
            ) from None
        meta = meta_of(words, option="metadata")
        gone = dict.fromkeys(self._execution.meta.keys() - meta.keys(), "")
        return DescribeExecution(self._execution.id, values["name"], values["note"], {**meta, **gone})

    def _write(self, change: DescribeExecution) -> str | None:
        self.agenteval.session.store.write(change).result()
        return change.name

    def _commits(self, width: int) -> list[Line]:
        commits = ", ".join(map(commit_text, self._execution.commits))
        return paragraph(f"started with {commits}", width, "dim") if commits else []

    def _keys(self) -> Keys:
        return self.edge(("enter", "save"), ("↑ ↓", "field"))
