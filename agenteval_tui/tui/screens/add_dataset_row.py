"""The open run becomes a row of a dataset: its file, what should be answered, and the row as it will be written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.core.typed_path import typed_path
from agenteval_tui.suites.dataset_edit import Preview, RowAdded, add_row, preview_row
from agenteval_tui.suites.datasets import EXPECTED_COLUMNS, PROMPT_COLUMNS
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.styled_text import Line, error_lines, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.workers import start_worker

QUIET_SECONDS = 0.15  # typing pauses so long before the file is read for the preview
MOST_ROWS = 12  # of the preview


class AddRowScreen(Sheet["RowAdded | None"]):
    """Dismissed with what was added when it is written, or None."""

    SCOPE = "add_row"
    BINDINGS: ClassVar[list[BindingType]] = bindings("add_row")

    def __init__(
        self, path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any], encoding: str | None = None
    ) -> None:
        """`row` has the run's columns, `expected` (or the name that its test has for it) among them. `encoding`: what
        the suite says of the file at `path`.
        """
        super().__init__()
        self._path = path
        self._encoding = encoding
        self._row = dict(row)
        self._provenance = dict(provenance)
        self._asked = next((name for name in PROMPT_COLUMNS if isinstance(row.get(name), str)), "")
        self._expected = next((name for name in EXPECTED_COLUMNS if name in row), "expected")
        self._preview: Preview | None = None
        self._error: AgentevalError | None = None
        self._writing = False

    def compose(self) -> ComposeResult:
        expected = self._row.get(self._expected, "")
        words = expected if isinstance(expected, str) else json.dumps(expected, ensure_ascii=False)
        fields = [Field("file", "file", str(self._path))]
        if self._asked:
            fields.append(Field("input", self._asked, self._row[self._asked], rows=2))
        hint = "the right answer"
        fields.append(Field("expected", self._expected, words, placeholder=hint, rows=3))
        keys = self.edge("write", ("tab", "field"))
        with SheetFrame("Add this run to a dataset", keys, width="medium"):
            yield Form(fields, below=True, id="fields")
            yield Section(self._where, id="where")
            yield LineBlock(self._preview_lines, id="preview")

    def on_mount(self) -> None:
        self.query_one(Form).query_one("#field-expected").focus()
        self._look()

    def on_form_changed(self, event: Form.Changed) -> None:
        """Show the row again."""
        self._look()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter in the field of the file."""
        self.action_write()

    def action_write(self) -> None:
        """Write it."""
        if not self._writing:
            self._writing = True
            start_worker(self, self._write, group="write", awaited=True)

    def _made(self) -> tuple[Path, dict[str, Any]]:
        values = self.query_one(Form).values()
        row = dict(self._row)
        if self._asked:
            row[self._asked] = values["input"]
        before = row.get(self._expected)
        # A value that was not text keeps its type, unless it was edited.
        if isinstance(before, str) or values["expected"] != json.dumps(before, ensure_ascii=False):
            row[self._expected] = values["expected"]
        return typed_path(values["file"]), row

    def _encoding_of(self, path: Path) -> str | None:
        return self._encoding if path == self._path else None

    def _look(self) -> None:
        # Not the coroutine: one that a newer key ends before it started would never be awaited.
        start_worker(self, self._show, group="preview")

    async def _show(self) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        try:
            path, row = self._made()
            self._preview = await asyncio.to_thread(preview_row, path, row, self._provenance, self._encoding_of(path))
            self._error = None
        except AgentevalError as error:
            self._preview, self._error = None, error
        self._retell()

    async def _write(self) -> None:
        try:
            path, row = self._made()
            added: RowAdded = await asyncio.to_thread(add_row, path, row, self._provenance, self._encoding_of(path))
        except AgentevalError as error:
            self._error = error
            self._retell()
            return
        finally:
            self._writing = False
        self.dismiss(added)

    def _retell(self) -> None:
        self.query_one(SheetFrame).retell()

    def _preview_lines(self, width: int) -> list[Line]:
        if self._error is not None:
            return error_lines(self._error, width)
        preview = self._preview
        if preview is None:
            return [(("…", "dim"),)]
        lines = paragraph(preview.text, width)
        more = len(lines) - MOST_ROWS
        return lines if more <= 0 else [*lines[:MOST_ROWS], ((f"… {count(more, 'more line')}", "dim"),)]

    def _where(self) -> str:
        preview = self._preview
        if self._error is not None or preview is None:
            return "preview"
        where = "a new file" if preview.new_file else "the file"
        return f"row {preview.number} of {where}" + ("; every row gets the new columns" if preview.widened else "")
