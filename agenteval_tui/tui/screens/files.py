"""Files in and out of the history: a recording of another tool, and runs in another tool's format."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.lines import Line, fit
from agenteval_tui.tui.notices import Place
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.paragraphs import error_lines, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock

if TYPE_CHECKING:
    from agenteval_tui.exchange.importing import ImportReport
    from agenteval_tui.history.rows import RunRow
    from agenteval_tui.tui.app import AgentevalApp

LISTED = 6  # files of the folder that are named
LOOKED_AT = 5_000  # entries of a folder
ENDINGS = (".json", ".jsonl", ".ndjson", ".eval")


class _FileScreen(ModalScreen["str | None"]):
    """A sheet with a form, what is said about it below, and work in a thread."""

    CSS_PATH = "files.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "close", show=False)]
    TITLE_LINE = ""
    ENTER = ""

    def __init__(self) -> None:
        super().__init__()
        self._error: AgentevalError | None = None
        self._lines: list[tuple[str, str]] = []
        self._busy = False

    @property
    def agenteval(self) -> AgentevalApp:
        """The app, typed."""
        return cast("AgentevalApp", self.app)

    def fields(self) -> list[Field]:
        """What is asked."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineBlock(lambda width: [fit(((self.TITLE_LINE, "bold"),), width), ()], id="head")
            yield Form(self.fields(), below=True, id="fields")
            yield LineBlock(self._said, id="said")
            yield LineBlock(self._foot, id="foot")

    def on_mount(self) -> None:
        self.query_one(Form).focus_first()

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def tell(self, *lines: tuple[str, str], error: AgentevalError | None = None) -> None:
        """Show these paragraphs (text, style) below the form, or what is wrong."""
        self._lines, self._error = list(lines), error
        if self.is_attached:
            self.query_one("#said", LineBlock).show(self._said)

    def _said(self, width: int) -> list[Line]:
        if self._error is not None:
            return [(), *error_lines(self._error, width)]
        return [(), *(line for text, style in self._lines for line in paragraph(text, width, style))]

    def _foot(self, width: int) -> list[Line]:
        cells: list[tuple[str, str]] = []
        for key, what in (("enter", self.ENTER), ("↑ ↓", "field"), ("esc", "close")):
            cells += [(key, "bold accent"), (f" {what}   ", "")]
        return [(), fit(cells, width)]


class ImportScreen(_FileScreen):
    """Dismissed with the execution that a file became; it stays open and says what was read and what was not."""

    TITLE_LINE = "Bring in a recording of another tool"
    ENTER = "bring it in"

    def __init__(self) -> None:
        super().__init__()
        self._done = self._came_in = ""

    def action_leave(self) -> None:
        """Close, with what came in."""
        if self._done:
            self.agenteval.say(self._came_in, place=Place("execution", self._done))
        self.dismiss(self._done or None)

    def fields(self) -> list[Field]:
        return [Field("path", "file", placeholder="Inspect, promptfoo, tau-bench, OpenTelemetry, messages, …")]

    def on_mount(self) -> None:
        super().on_mount()
        self._look("")

    def on_form_changed(self, event: Form.Changed) -> None:
        """Say what lies there, or what the file is."""
        event.stop()
        if not self._busy:
            self._look(event.form.values()["path"])

    def _look(self, text: str) -> None:
        self.run_worker(cast(Any, partial(self._see, text)), group="look", exclusive=True, exit_on_error=False)

    async def _see(self, text: str) -> None:
        await asyncio.sleep(0.05)  # while somebody types
        try:
            found = await asyncio.to_thread(_what_lies_there, text)
        except AgentevalError as error:
            self.tell(error=error)
            return
        self.tell(*found)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Bring it in; what was brought in before is closed."""
        event.stop()
        path = event.form.values()["path"]
        if self._busy or not path.strip():
            return
        self._busy = True
        self.workers.cancel_group(self, "look")
        work = partial(self._bring, Path(path.strip()).expanduser())
        self.run_worker(cast(Any, work), group="bring", exit_on_error=False)

    async def _bring(self, path: Path) -> None:
        from agenteval_tui.exchange.importing import import_file

        def progress(done: int, size: int) -> None:
            self.app.call_from_thread(self.tell, (f"Reading: {min(100, 100 * done // max(size, 1))} %", "running"))

        self.tell(("Reading …", "running"))
        try:
            report = await asyncio.to_thread(import_file, path, self.agenteval.session.store, on_progress=progress)
        except AgentevalError as error:
            self.tell(error=error)
            return
        finally:
            self._busy = False
        self._done = report.execution_id
        there = "was there already" if report.already else f"{report.added:,} new"
        self._came_in = f"{one_line(path.name, 80)}: {count(report.read, 'run')}, {there}."
        self.tell(*_report_words(report))


def _report_words(report: ImportReport) -> list[tuple[str, str]]:
    if report.already:
        return [(f"It was brought in before ({count(report.read, 'run')}): nothing was added.", "")]
    lines = [(f"{report.format}: {count(report.read, 'run')} read, {report.added:,} added.", "passed")]
    lines += [(f"left out {number:,}: {reason}", "failed") for reason, number in report.skipped]
    lines += [(f"note: {one_line(note, 300)}", "dim") for note in report.notes]
    if report.cut_off:
        lines.append(("The file is cut off: what stands before the cut was read.", "failed"))
    return [*lines, ("esc closes; the runs are in the list, newest first.", "dim")]


def _what_lies_there(text: str) -> list[tuple[str, str]]:
    """Of a file what it is; of a folder, or the beginning of a name, the files that may be meant."""
    path = Path(text.strip()).expanduser()
    if text.strip() and path.is_file():
        from agenteval_tui.exchange.detect import detect
        from agenteval_tui.exchange.importing import opened

        with opened(path) as source:
            known = detect(source)
        words = f"{known.name}: {known.looks_like}"
        if known.recordings is None:
            return [
                (words, ""),
                (f"There are tests in it, and no runs: agenteval import {path.name} --to FILE", "failed"),
            ]
        return [(words, ""), (f"{path.stat().st_size / 1e6:,.1f} MB", "dim")]
    folder, start = (path, "") if not text.strip() or text.endswith("/") else (path.parent, path.name)
    names: list[str] = []
    try:
        for number, entry in enumerate(folder.iterdir()):
            if number >= LOOKED_AT:
                break
            if entry.name.startswith(start) if start else not entry.name.startswith("."):
                if entry.is_dir():
                    names.append(f"{entry.name}/")
                elif entry.suffix.lower() in ENDINGS:
                    names.append(entry.name)
    except OSError as error:
        raise AgentevalError("this folder can't be read", where=str(folder), mend=error.strerror or "") from None
    if not names:
        return [("There is no such file, and none here that looks like a recording.", "dim")]
    names.sort()
    shown = [(f"  {one_line(name, 60)}", "dim") for name in names[:LISTED]]
    return [*shown, *([(f"  and {len(names) - LISTED} more", "dim")] if len(names) > LISTED else [])]


class ExportScreen(_FileScreen):
    """Dismissed with the path of the file that was written, or None."""

    TITLE_LINE = "Write runs to a file"
    ENTER = "write it"

    def __init__(self, runs: Sequence[RunRow]) -> None:
        super().__init__()
        self._runs = tuple(runs)
        self._over = ""

    def fields(self) -> list[Field]:
        from agenteval_tui.exchange.exporting import EXPORTERS

        formats = tuple((name, f"{name}: {one.about}") for name, one in EXPORTERS.items())
        name = self._runs[0].execution_id[:10].lower()
        return [
            Field("format", "format", "openai", choices=formats),
            Field("path", "file", f"runs-{name}.jsonl", placeholder="where to"),
        ]

    def on_mount(self) -> None:
        super().on_mount()
        self.tell((f"{count(len(self._runs), 'run')} with their transcripts.", "dim"))

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another name: nothing was agreed to."""
        event.stop()
        self._over = ""

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it; over a file that is there only after a second enter."""
        event.stop()
        values = event.form.values()
        path = Path(values["path"].strip()).expanduser()
        if self._busy or not values["path"].strip():
            return
        if path.exists() and self._over != str(path):
            self._over = str(path)
            self.tell((f"{one_line(str(path), 200)} is there already: enter again writes over it.", "failed"))
            return
        self._busy = True
        self.run_worker(cast(Any, partial(self._write, path, values["format"])), group="write", exit_on_error=False)

    async def _write(self, path: Path, name: str) -> None:
        from agenteval_tui.exchange.exporting import exporter_named, stored_runs
        from agenteval_tui.exchange.writing import write_pieces

        store, runs = self.agenteval.session.store, self._runs

        def work() -> Path:
            pieces = exporter_named(name).pieces(stored_runs(store, runs))
            write_pieces(path, pieces, force=bool(self._over))
            return path.resolve()

        self.tell(("Writing …", "running"))
        try:
            written = await asyncio.to_thread(work)
        except AgentevalError as error:
            self.tell(error=error)
            return
        finally:
            self._busy = False
        self.agenteval.say(f"{count(len(runs), 'run')} written: {written}", place=Place("file", str(written)))
        self.dismiss(str(written))
