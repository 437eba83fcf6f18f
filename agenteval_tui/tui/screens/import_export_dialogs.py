"""Files in and out of the history: a recording of another tool, and one run or many in another tool's format."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, file_size
from agenteval_tui.core.typed_path import current_folder, typed_path
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.exporters.export import (
    Losses,
    export_run,
    exporter_named,
    exporters,
    file_name,
    forms,
    stored_runs,
)
from agenteval_tui.formats.folder import folder_of
from agenteval_tui.formats.import_file import ImportReport, import_file, open_source
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, error_lines, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock, Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.workers import start_worker

LISTED = 6  # files of the folder that are named
LOOKED_AT = 5_000  # entries of a folder
ENDINGS = (".json", ".jsonl", ".ndjson", ".eval", ".html")


class ImportOutcome(NamedTuple):
    """What came in: the execution that it is, and whether somebody wants to see it at once."""

    execution: str
    opens: bool = False


class Written(NamedTuple):
    """A file that was written, and what is said of it."""

    path: str
    message: str


class _Stopped(AgentevalError):  # noqa: N818  (nothing went wrong)
    """Somebody did not want to wait for the rest."""


class FileSheet(Sheet["ImportOutcome | str | None"]):
    """A sheet with a form, what is said about it below, and work in a thread."""

    TITLE_LINE = ""
    ENTER = ""

    def __init__(self) -> None:
        super().__init__()
        self._error: AgentevalError | None = None
        self._lines: list[tuple[str, str]] = []
        self._busy = False
        self._over = ""  # the file that is there, and may be written over

    def fields(self) -> list[Field]:
        """What is asked."""
        raise NotImplementedError

    def subject(self) -> str:
        """What it is about."""
        return ""

    def keys(self) -> Keys:
        """The keys that work now, and what they do."""
        return self.edge(("enter", self.ENTER), ("↑ ↓", "field"))

    def compose(self) -> ComposeResult:
        with SheetFrame(self.TITLE_LINE, self.keys, subject=self.subject(), width="medium"):
            yield Form(self.fields(), below=True, id="fields")
            yield LineBlock(self._note, id="note")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()

    def tell(self, *lines: tuple[str, str], error: AgentevalError | None = None) -> None:
        """Show these paragraphs (text, style) below the form, or what is wrong."""
        self._lines, self._error = list(lines), error
        if self.is_attached:
            self.query_one(SheetFrame).retell()

    def writable(self, named: str) -> Path | None:
        """The file of this name, to be written now. None where another is being written, or nothing is named; and, with
        the reason shown, where it can't be a name, or is there and enter was pressed only once."""
        if self._busy or not named.strip():
            return None
        try:
            path = typed_path(named)
        except AgentevalError as error:
            self.tell(error=error)
            return None
        if os.path.exists(path) and self._over != str(path):  # noqa: PTH110 - see typed_path
            self._over = str(path)
            self.tell((f"{one_line(str(path), 200)} exists. Press enter again to overwrite it.", "failed"))
            return None
        return path

    def write(self, work: Callable[[], Written]) -> None:
        """Write a file in a thread, say so, and close."""
        self._busy = True
        start_worker(self, partial(self._write, work), group="write", awaited=True, exclusive=False)

    async def _write(self, work: Callable[[], Written]) -> None:
        self.tell(("Writing …", "running"))
        try:
            written = await asyncio.to_thread(work)
        except AgentevalError as error:
            self.tell(error=error)
            return
        finally:
            self._busy = False
        self.agenteval.say(written.message, place=NotificationSource("file", written.path))
        self.dismiss(written.path)

    def _note(self, width: int) -> list[Line]:
        if self._error is not None:
            return [(), *error_lines(self._error, width)]
        return [(), *(line for text, style in self._lines for line in paragraph(text, width, style))]


class ImportScreen(FileSheet):
    """Dismissed with the execution that a file became; it stays open and says what was read and what was not."""

    TITLE_LINE = "Import recordings from another tool"
    SCOPE = "import"
    BINDINGS: ClassVar[list[BindingType]] = bindings("import")

    def __init__(self) -> None:
        super().__init__()
        self._done = ""
        self._done_path = ""
        self._many = False  # it was a folder
        self._stop = False

    def action_close(self) -> None:
        """Close, with the imported runs; an import that is still reading is cancelled first."""
        if self._busy:
            self._stop = True
            self.tell(("Stopping …", "running"))
            return
        self.dismiss(ImportOutcome(self._done) if self._done else None)

    def on_unmount(self) -> None:
        """Nobody waits for it any more."""
        self._stop = True

    def fields(self) -> list[Field]:
        return [Field("path", "file", placeholder="Inspect, promptfoo, tau-bench, OpenTelemetry, messages, …")]

    def on_mount(self) -> None:
        super().on_mount()
        self._look("")

    def keys(self) -> Keys:
        if self._busy:
            return self.edge(close="stop")
        opens = "go to the list" if self._many else "open the runs"
        return self.edge(("enter", opens if self._opens() else "import"), "complete")

    def _opens(self) -> bool:
        """Whether the file in the field is already imported."""
        if not self._done or not self.is_attached:
            return False
        return self.query_one(Form).values()["path"] == self._done_path

    def on_form_changed(self, event: Form.Changed) -> None:
        """Say what lies there, or what the file is."""
        event.stop()
        if not self._busy:
            self._look(event.form.values()["path"])

    def _look(self, text: str) -> None:
        start_worker(self, partial(self._see, text), group="look")

    async def _see(self, text: str) -> None:
        await asyncio.sleep(0.05)  # while somebody types
        try:
            content = await asyncio.to_thread(_what_lies_there, text)
        except AgentevalError as error:
            self.tell(error=error)
            return
        self.tell(*content)

    async def action_complete(self) -> None:
        """Write on as far as only one name goes, as shells do."""
        box = self.query_one("#field-path", Input)
        if self._busy:
            return
        try:
            _, names = await asyncio.to_thread(_entries, box.value)
        except AgentevalError as error:
            self.tell(error=error)
            return
        if names:
            start = box.value.lstrip()
            folder_part = start[: start.rfind("/") + 1] if "/" in start else ""
            box.value = folder_part + _common(names)
            box.cursor_position = len(box.value)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Bring it in; when it is, look at it."""
        event.stop()
        path = event.form.values()["path"]
        if self._busy:
            return
        if not path.strip():
            self.tell(error=AgentevalError("type a file name", fix="press tab to complete it"))
            return
        if self._opens():
            self.dismiss(ImportOutcome(self._done, opens=not self._many))
            return
        self._busy, self._stop = True, False
        # Else it would be written over by what the file is.
        self.workers.cancel_group(self, "look")
        start_worker(self, partial(self._bring, path), group="bring", awaited=True, exclusive=False)

    async def _bring(self, named: str) -> None:
        self.tell(("Reading …", "running"))
        try:
            imported, execution = await asyncio.to_thread(self._bring_in, named)
        except AgentevalError as error:
            self._busy = False  # before `tell`, which names the keys of a sheet that is not busy
            self.tell(error=error)
            return
        finally:
            self._busy = False
        if execution:
            self._done, self._done_path = execution, named
        self.tell(*imported)

    def _bring_in(self, named: str) -> tuple[list[tuple[str, str]], str]:
        """A file or a folder; what is to be said of it, and the execution that it is. In a thread."""
        path = typed_path(named)
        self._many = os.path.isdir(path)  # noqa: PTH112 - see typed_path
        if self._many:
            return self._bring_all(path)
        report = self._import(path, "Reading")
        return _report_words(report), report.execution_id

    def _bring_all(self, folder: Path) -> tuple[list[tuple[str, str]], str]:
        """All files of a folder that are in a known format."""
        runs = files = before = 0
        execution = ""
        refused: list[str] = []
        listing = folder_of(folder)
        for path in listing.files:
            try:
                report = self._import(path, one_line(path.name, 60))
            # What was imported before stays.
            except _Stopped:
                refused.append("the other files: stopped")
                break
            except AgentevalError as error:
                refused.append(f"{one_line(path.name, 60)}: {one_line(error.what, 120)}")
                continue
            runs, files, before = runs + report.added, files + (not report.already), before + report.already
            # Each file is an execution of its own: the last one stands for all.
            execution = report.execution_id
        lines = [(f"{count(files, 'file')} with {count(runs, 'run')} imported.", "passed" if files else "")]
        if before:
            lines.append((f"{count(before, 'file')} had been imported before, so nothing was added.", ""))
        lines += [(f"skipped {one_line(one, 200)}", "dim") for one in listing.skipped_lines()]
        lines += [(f"not {one}", "failed") for one in refused[:LISTED]]
        if len(refused) > LISTED:
            lines.append((f"and {len(refused) - LISTED:,} more that failed", "failed"))
        return lines, execution

    def _import(self, path: Path, words: str) -> ImportReport:
        def progress(done: int, size: int) -> None:
            if self._stop:
                raise _Stopped("stopped: nothing from this file was added", where=str(path))
            self.app.call_from_thread(self.tell, (f"{words}: {min(100, 100 * done // max(size, 1))} %", "running"))

        if self._stop:
            # Between two files, where nothing tells how far it is.
            raise _Stopped("stopped", where=str(path))
        return import_file(path, self.agenteval.session.store, on_progress=progress)


def _report_words(report: ImportReport) -> list[tuple[str, str]]:
    if report.already:
        return [(f"This file was imported before ({count(report.read, 'run')}), so nothing was added.", "")]
    lines = [(f"{report.format}: {count(report.read, 'run')} read, {report.added:,} added.", "passed")]
    lines += [(f"left out {one_line(excluded, 300)}", "failed") for excluded in report.left_out()]
    lines += [(f"note: {one_line(note, 300)}", "dim") for note in report.notes]
    if report.cut_off:
        lines.append(("The file is cut off. Everything before the cut was read.", "failed"))
    return lines


def _what_lies_there(text: str) -> list[tuple[str, str]]:
    """Of a file what it is; of a folder, or the beginning of a name, the files that may be meant."""
    path = typed_path(text)
    if text.strip() and os.path.isfile(path):  # noqa: PTH113 - see typed_path
        with open_source(path) as source:
            detected = detect(source)
        words = f"{detected.name}: {detected.described}"
        docs = detected.page_for(Path(path))
        page = [(f"To see their words beside ours, run: agenteval docs {docs}", "dim")] if docs else []
        if detected.recordings is None:
            return [
                (words, ""),
                (f"It has tests but no runs. Run: agenteval import {path.name} --to FILE", "failed"),
                *page,
            ]
        return [(words, ""), (file_size(path.stat().st_size), "dim"), *page]
    folder, names = _entries(text)
    if not names:
        where = "This folder" if folder == Path() else one_line(str(folder), 200)
        return [(f"{where} has no such file." if text.strip() else f"{where} has no recordings.", "dim")]
    lines = [(f"  {one_line(name, 60)}", "dim") for name in names[:LISTED]]
    if len(names) > LISTED:
        lines.append((f"  and {len(names) - LISTED:,} more", "dim"))
    if text.strip() and os.path.isdir(path):  # noqa: PTH112 - see typed_path
        lines.append(("This is a folder. Press enter to import every file in it that has a known format.", ""))
    return lines


def _common(names: list[str]) -> str:
    """What all names begin with."""
    # What the first and the last by the alphabet share, all between them share.
    first, last = min(names), max(names)
    return first[: common_start(first, last)]


def _entries(text: str) -> tuple[Path, list[str]]:
    """The folder that is meant, and the names in it that begin so: folders (with a slash), and what may be a recording.

    Raises `AgentevalError` when the folder can't be read.
    """
    path = typed_path(text)
    folder, start = (path, "") if not text.strip() or text.endswith("/") else (path.parent, path.name)
    names: list[str] = []
    try:
        for number, entry in enumerate(folder.iterdir()):
            if number >= LOOKED_AT:
                break
            if entry.name.startswith(start) if start else not entry.name.startswith("."):
                if os.path.isdir(entry):  # noqa: PTH112 - see typed_path
                    names.append(f"{entry.name}/")
                elif entry.suffix.lower() in ENDINGS:
                    names.append(entry.name)
    except OSError as error:
        raise AgentevalError("this folder can't be read", where=str(folder), fix=error.strerror or "") from None
    return folder, sorted(names)


class ExportScreen(FileSheet):
    """Dismissed with the path of the file that was written, or None."""

    TITLE_LINE = "Export runs"
    ENTER = "export"

    def __init__(self, runs: Sequence[RunRow]) -> None:
        super().__init__()
        self._runs = tuple(runs)
        self._format = "openai"

    def fields(self) -> list[Field]:
        formats = tuple((name, f"{name}: {exporter.about}") for name, exporter in exporters().items())
        return [
            Field("format", "format", "openai", choices=formats),
            Field("path", "file", self._own_name("openai"), placeholder="where to"),
        ]

    def subject(self) -> str:
        return f"{count(len(self._runs), 'run')} with {'its transcript' if len(self._runs) == 1 else 'transcripts'}"

    def _own_name(self, form: str) -> str:
        return f"runs-{short_id(self._runs[0].execution_id).lower()}{exporter_named(form).suffix}"

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another name: nothing was agreed to. Another format ends otherwise, while the name is still ours."""
        event.stop()
        self._over = ""
        values = event.form.values()
        if values["path"] == self._own_name(self._format):
            event.form.fill({"path": self._own_name(values["format"])})
        self._format = values["format"]

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it; over an existing file only after a second enter."""
        event.stop()
        values = event.form.values()
        if (path := self.writable(values["path"])) is not None:
            self.write(partial(self._export, self.agenteval.session.store, path, values["format"]))

    def _export(self, store: Store, path: Path, name: str) -> Written:
        exporter = exporter_named(name)
        losses = Losses(exporter)
        pieces = exporter.pieces(losses.over(stored_runs(store, self._runs)))
        write_pieces(path, pieces, force=bool(self._over))
        lost = "".join(f"; {line}" for line in losses.lines())
        written = str(path.resolve())
        return Written(written, f"{count(len(self._runs), 'run')} written: {written}{lost}")


class ExportRunScreen(FormSheet[Path | None]):
    """Exports the open run: asks for its format and the file's name; an existing file is overwritten after a second
    enter. Dismissed with the file when it is written, or None."""

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
            yield Note(self._note, id="note")

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

    def _note(self, width: int) -> list[Line]:
        about = forms()[self.values["form"]][1] if self.is_mounted else ""
        if not about:
            return paragraph("", width, "dim")
        try:
            where = f"In {current_folder()}, if no folder is named"
        except AgentevalError as error:
            where = f"Name a folder: {error.what}"
        return paragraph(f"{about[0].upper()}{about[1:]}. {where}.", width, "dim")
