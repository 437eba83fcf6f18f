"""The sheet that writes an execution or a run as one HTML file, and how it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, file_size
from agenteval_tui.extensions.share.page import share, share_name
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.history.screen import HistoryScreen
from agenteval_tui.tui.screens.import_export_dialogs import FileSheet, Written
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.widgets.form import Field, Form


def share_run(screen: InspectScreen) -> None:
    """Write the run that is inspected into an HTML file to give away."""
    if screen.controller.bench is not None:
        screen.app.push_screen(ShareScreen(screen.controller.bench.run))


def share_chosen(screen: HistoryScreen) -> None:
    """Write the chosen run or execution, or the one whose runs are shown, into an HTML file to give away."""

    def then(rows: Sequence[ExecutionRow | RunRow]) -> None:
        if len(rows) == 1:
            screen.app.push_screen(ShareScreen(rows[0]))
        else:
            screen.agenteval.say("Choose one execution or one run to share.")

    screen.with_chosen(then)


class ShareScreen(FileSheet):
    """Writes an execution or a run as one HTML file. Dismissed with its path, or None."""

    TITLE_LINE = "Share as an HTML file"
    ENTER = "write the file"

    def __init__(self, target: ExecutionRow | RunRow) -> None:
        super().__init__()
        self._target = target

    def fields(self) -> list[Field]:
        return [Field("path", "file", share_name(self._target), placeholder="where to")]

    def subject(self) -> str:
        target = self._target
        return one_line(target.test_name if isinstance(target, RunRow) else target.title, 60)

    def on_mount(self) -> None:
        super().on_mount()
        self.tell(
            (
                "Transcripts, criteria with evidence, and costs, to read in any browser. The file loads nothing from "
                "the network; secrets are ***. `agenteval open FILE` opens its runs in the app.",
                "dim",
            ),
        )

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another name: nothing was agreed to."""
        event.stop()
        self._over = ""

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Write it; over an existing file only after a second enter."""
        event.stop()
        if (path := self.writable(event.form.values()["path"])) is not None:
            self.write(partial(self._share, self.agenteval.session.store, path))

    def _share(self, store: Store, path: Path) -> Written:
        shared = share(store, self._target)
        write_pieces(path, shared.pieces, force=bool(self._over))
        missing = f"; not in it: {shared.missing}" if shared.missing else ""
        written = str(path.resolve())
        size = file_size(shared.size)
        return Written(written, f"{count(shared.runs, 'run')}, {size}, written to {written}{missing}")
