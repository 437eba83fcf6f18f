"""What a person makes of the open run: a label, a row of a dataset, a file; and what was asked about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.analysis.dataset_row_from_run import dataset_for, provenance_of, row_of_run
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.suites.dataset_edit import undo_add_row
from agenteval_tui.tui.notification_log import NotificationSource
from agenteval_tui.tui.presenters.judge_log import asked_summary, entries_of
from agenteval_tui.tui.screens.add_dataset_row import AddRowScreen
from agenteval_tui.tui.screens.export import ExportScreen
from agenteval_tui.tui.screens.inspect.loader import InspectOpening
from agenteval_tui.tui.screens.judge_log import AskedScreen
from agenteval_tui.tui.screens.label import ask_label
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.analysis.labels import LabelSaved
    from agenteval_tui.suites.dataset_edit import RowAdded


class InspectKeeping(InspectOpening):
    """Takes things out of the screen."""

    def __init__(self) -> None:
        super().__init__()
        self._added: RowAdded | None = None

    def action_label(self) -> None:
        """What a person thinks of the run, or of the criterion that is shown."""
        bench = self._bench
        if bench is None:
            return
        # Only what the run was graded with is known to the history.
        name = self._criterion_name()
        known = name if name in {result.criterion for result in bench.stored} else ""

        def kept(given: LabelSaved) -> None:
            if self._bench is bench:
                self.open_run(bench.run.id, criterion=name)

        ask_label(self, bench.run.id, known, kept)

    def action_replies(self) -> None:
        """What judges and others were asked about this run, and what they said; its failed attempts."""

        bench, facts = self._bench, self._facts
        if bench is None:
            return
        if not facts.replies and not facts.attempts:
            self.agenteval.say("No judge was asked about this run, and no attempt of it failed.")
            return
        names = {result.criterion_hash: result.criterion for result in bench.stored}
        names |= {criterion.spec.hash: criterion.name for criterion in bench.criteria}
        first = next((digest for digest, name in names.items() if name == self._criterion_name()), "")
        entries = entries_of(facts.replies, facts.attempts, names, first)
        self.app.push_screen(AskedScreen(entries, asked_summary(facts.replies, facts.attempts)))

    def action_export(self) -> None:
        """Write the run to a file."""
        if self._bench is None:
            return

        def written(path: Path | None) -> None:
            if path is not None:
                place = NotificationSource("file", str(path.resolve()))
                self.agenteval.say(f"Wrote {one_line(str(path), 200)}", place=place)

        self.app.push_screen(ExportScreen(self._bench.run), written)

    def action_add_row(self) -> None:
        """The run becomes a row of a dataset."""

        bench = self._bench
        if bench is None:
            return
        row = row_of_run(bench.run, bench.transcript)
        provenance = provenance_of(bench.run, self._facts.labels)

        def done(added: RowAdded | None) -> None:
            if added is not None:
                self._added = added
                self.agenteval.say(f"Row {added.number} added to {one_line(added.path.name, 80)}. u takes it back.")

        self.app.push_screen(AddRowScreen(dataset_for(bench.run, bench.loaded), row, provenance), done)

    def action_take_back_row(self) -> None:
        """The row that was added last goes again."""
        added = self._added
        if added is None:
            self.agenteval.say("No row was added since this start.")
            return

        def gone(_: None) -> None:
            self._added = None
            self.agenteval.say(f"Row {added.number} is out of {one_line(added.path.name, 80)} again.")

        self.ask(lambda: undo_add_row(added), gone, group="row")

    def action_copy_text(self) -> None:
        """The selected text, else the block under the cursor."""
        selected = self.get_selected_text()
        text = selected or self.transcript.view.selected_text
        if not text:
            self.agenteval.say("Nothing is selected, and the cursor is on nothing.")
            return
        self.app.copy_to_clipboard(displayable(text))
        what = "what is selected" if selected else "this block"
        self.agenteval.say(f"Copied {what}: {len(text):,} characters.")

    def action_relax_now(self) -> None:
        """The smallest edit under which this run passes goes into the editor."""
        bench, result = self._bench, self._result
        if bench is None or result is None:
            return
        if result.outcome != "failed":
            self.agenteval.say(f"{one_line(self._criterion_name(), 60)} does not fail on this run.")
            return
        start_worker(self, self._relax_now, group="relax")

    async def _relax_now(self) -> None:
        bench, number, editor = self._bench, self._criterion, self._editor
        assert bench is not None
        before = editor.text
        counting = bench.relaxations(number, before)
        suggestions = await self._alone(lambda: next(counting, ()))
        if self._bench is not bench or self._criterion != number or editor.text != before:
            return
        if not suggestions:
            self.agenteval.say("No small edit makes it pass.")
            return
        first = suggestions[0].relaxation
        editor.replace_all(first.new_text)
        self._show_edit()
        self.agenteval.say(f"In the editor: {one_line(first.title, 120)}. F7 lists others, F6 reverts, ^s saves.")
