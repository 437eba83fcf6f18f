"""Exports the open run to a file: asks for its format and name. An existing file is overwritten after a second
enter."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from textual.app import ComposeResult

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.typed_path import current_folder, typed_path
from agenteval_tui.formats.exporters.export import export_run, file_name, forms
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


class ExportScreen(FormSheet[Path | None]):
    """Dismissed with the file when it is written, or None."""

    def __init__(self, run: RunRow) -> None:
        super().__init__()
        self._run = run
        self._over = ""  # the file that is there, and that a second enter overwrites
        self._named = self._own_name("markdown")

    def _own_name(self, form: str) -> str:
        return file_name(self._run.test_id, self._run.repetition, form)

    def compose(self) -> ComposeResult:
        choices = tuple((name, title) for name, (title, _) in forms().items())
        fields = [Field("form", "as", choices=choices), Field("file", "file", self._named)]
        subject = f"run {self._run.repetition} of {one_line(self._run.test_id, 60)}"
        keys = self.edge(("enter", "export"), ("← →", "choose"), ("↑ ↓", "field"))
        with SheetFrame("Export", keys, subject=subject):
            yield Form(fields, below=True, id="fields")
            yield Note(self._said, id="said")

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another form ends otherwise, while the name is still ours."""
        values = self.values
        if event.name == "form" and values["file"] == self._named:
            self._named = self._own_name(values["form"])
            self.form.fill({"file": self._named})
        self._over = ""

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it, unless there is such a file and this is the first time."""
        values = self.values
        if not values["file"]:
            self.complain(AgentevalError("type a file name"))
        else:
            self.finish(partial(self._write, values["form"], values["file"]))

    def _write(self, form: str, named: str) -> Path:
        path = typed_path(named)
        if self._over != str(path) and os.path.exists(path):  # noqa: PTH110 - see typed_path
            self._over = str(path)
            raise AgentevalError("this file exists", fix="press enter again to overwrite it")
        export_run(self.agenteval.session.store, self._run.id, form, path, force=self._over == str(path))
        return path

    def _said(self, width: int) -> list[Line]:
        about = forms()[self.values["form"]][1] if self.is_mounted else ""
        if not about:
            return paragraph("", width, "dim")
        try:
            where = f"In {current_folder()}, if no folder is named"
        except AgentevalError as error:
            where = f"Name a folder: {error.what}"
        return paragraph(f"{about[0].upper()}{about[1:]}. {where}.", width, "dim")
