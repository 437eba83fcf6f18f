"""What is done with an edit of a config: mended, relaxed, reverted, saved; and the runs that it would flip."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agenteval_tui.analysis.run_navigation import known_runs
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.tui.screens.file_conflict_dialog import ChangedFileScreen
from agenteval_tui.tui.screens.inspect.drafts import Saving, index_in
from agenteval_tui.tui.screens.inspect.loader import InspectOpening
from agenteval_tui.tui.screens.relax import RelaxScreen
from agenteval_tui.tui.screens.rerun import again_key, run_again
from agenteval_tui.tui.screens.verdict_changes import FlipsScreen

if TYPE_CHECKING:
    from pathlib import Path

    from agenteval_tui.suites.load import LoadedSuite

FLIPS_LISTED = 500


class InspectSaving(InspectOpening):
    """Takes edits to the file."""

    def action_apply_fix(self) -> None:
        editor = self._editor
        here = editor.diagnostic_at_cursor()
        chosen = here if here is not None and here.fix is not None else None
        chosen = chosen or next((one for one in self._diagnostics if one.fix is not None), None)
        if chosen is None or chosen.fix is None:
            self.agenteval.say("There is no problem here that can be mended by itself.")
            return
        editor.apply_fix(chosen.fix)

    def action_relax(self) -> None:
        bench, result = self._bench, self._result
        if bench is None or result is None:
            return
        if result.outcome != "failed":
            self.agenteval.say(f"{self._criterion_name()} does not fail on this run.")
            return

        editor = self._editor

        def chosen(text: str | None) -> None:
            if text:
                editor.replace_all(text)
                self._show_edit()

        self.app.push_screen(RelaxScreen(bench, self._criterion, editor.text, self._alone), chosen)

    def action_revert(self) -> None:
        bench = self._bench
        if bench is None or not self._edited:
            return
        self._editor.replace_all(self._saved_text)
        self._editor.move_cursor((self._editor.cursor_location[0], 0))  # all of it is seen from its start

    def action_run_again(self) -> None:
        """The test of the open run, with what was saved: what an edit affects."""
        bench = self._bench
        if bench is not None:
            of = (bench.run.suite_key, bench.run.test_id)
            run_again(self, bench.loaded, bench.run.test_id, edited=any(key[:2] == of for key in self._drafts))

    def action_save(self) -> None:
        bench = self._bench
        if bench is None:
            return
        if self._is_new:
            # The Editor takes the config as it is here, and knows the rest of the criterion.
            self.agenteval.go("editor")
            self.agenteval.say(f"{one_line(self._criterion_name(), 60)} is in the form as you left it: ^s saves it.")
            return
        index = bench.criteria[self._criterion].index
        if index is None or bench.loaded is None:
            self.agenteval.say_error(
                AgentevalError(
                    "this criterion stands in no suite file, so it can't be saved",
                    mend="write a suite over these runs: agenteval grade --criteria FILE --execution ID",
                )
            )
            return
        if not self._edited:
            self.agenteval.say("Nothing is changed.")
            return
        text = self._editor.text
        self._save(bench.loaded, Saving(bench, self._draft_key(), self._criterion_name(), index, text))

    def _save(self, loaded: LoadedSuite, saving: Saving) -> None:
        if self.still_writes("save"):
            return
        test = saving.bench.run.test_id
        session = self.agenteval.session

        def failed(error: AgentevalError) -> None:
            if isinstance(error, FileChanged):
                self._offer_merge(loaded.path, error.diff, saving)
            else:
                self.agenteval.say_error(error)

        self.ask(
            lambda: session.save_config(loaded, test, saving.index, saving.text),
            partial(self._saved, saving),
            group="save",
            failed=failed,
        )

    def _saved(self, saving: Saving, loaded: LoadedSuite) -> None:
        bench = saving.bench
        draft = self._drafts.get(saving.key)
        if draft is not None:
            # Who went on typing meanwhile has an edit of what is saved now.
            draft.base = saving.text
            if draft.text == saving.text:
                del self._drafts[saving.key]
                self._kept.keep(saving.key, None)
        line = loaded.line_of(bench.run.test_id, saving.index)
        self.agenteval.say(f"Saved {loaded.path.name}:{line}. {again_key(self)} runs the test again.")
        if self._bench is bench:
            self._saved_text = saving.text
            self.open_run(bench.run.id, criterion=self._criterion_name(), edit=self._pane == "config")

    def _offer_merge(self, path: Path, diff: str, saving: Saving) -> None:
        def load() -> tuple[LoadedSuite, Saving]:
            fresh = load_suite(path)
            return fresh, replace(saving, index=index_in(fresh, saving))

        def answered(put_in: bool | None) -> None:
            if put_in:
                self.ask(load, lambda found: self._save(*found), group="reload")

        self.app.push_screen(ChangedFileScreen(path.name, diff), answered)

    def action_flips(self) -> None:
        impact, bench = self._impact, self._bench
        if impact is None or bench is None or not impact.flips:
            self.agenteval.say("No run flips with this edit.")
            return

        flips = list(impact.flips)
        store = bench.store

        def show(lines: list[tuple[str, str, int, str, str, str]]) -> None:
            if self.is_current:
                self.app.push_screen(FlipsScreen(lines, len(flips)), lambda run: self.open_run(run) if run else None)

        def work() -> list[tuple[str, str, int, str, str, str]]:
            then_of = {run: (now, then) for run, now, then in flips[:FLIPS_LISTED]}
            return [
                (row.id, row.test_id, row.repetition, row.why, *then_of[row.id]) for row in known_runs(store, then_of)
            ]

        self.ask(work, show, group="flips")
