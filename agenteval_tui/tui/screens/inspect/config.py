"""The config pane of Inspect: edits are kept, and every keystroke is judged on this run and on all stored ones."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from textual.timer import Timer

from agenteval_tui.analysis.workbench import agreement, opinions
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.tui.screens.completion_controller import Assist
from agenteval_tui.tui.screens.inspect.drafts import Draft, DraftKey, KeptConfigs
from agenteval_tui.tui.screens.inspect.layout import InspectPanes
from agenteval_tui.tui.serial_worker import OneAtATime
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.uxon.diagnostics import Diagnostic

DRAW_SECONDS = 0.05
PRELOAD_SECONDS = 0.02
PAINT_SECONDS = 0.5
KEEP_SECONDS = 0.5


class InspectConfig(InspectPanes):
    """Edits the config of the chosen criterion."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = KeptConfigs()
        self._keep_timer: Timer | None = None
        self._editing: DraftKey | None = None
        self._saved_text = ""
        self._alone = OneAtATime()
        self._assist = Assist()
        self._painted = asyncio.Event()
        self._painted.set()

    def _choose(self, number: int, config: str | None = None) -> None:
        """Show criterion `number`: its config (or its draft), what it looked at, its evidence. `config` becomes its
        draft."""
        bench = self._bench
        assert bench is not None
        self._criterion = number
        self._impact = self._agreement = None
        self._diagnostics = ()
        key, saved = self._draft_key(), bench.criteria[number].text
        self._put_back(key, saved)
        if config is not None:
            self._drafts[key] = Draft(config, saved)
        draft = self._drafts.get(key)
        if draft is not None and draft.text == saved:
            draft = self._drafts.pop(key) and None
        elif draft is not None and draft.base != saved:
            draft.base = saved
            self.agenteval.say(
                "The file's config changed since you began to edit it. Your edit is kept here; F6 shows the file's.",
                severity="warning",
            )
        self._load(key, saved, draft.text if draft is not None else saved)
        # How it is saved was judged when the run was opened; an edit is judged now.
        known = draft is None and number < len(self._saved_results)
        self._result = self._saved_results[number] if known else None
        self._draw(keep_place=False)
        self._painted = asyncio.Event()
        self.call_after_refresh(self._painted.set)
        self._regrade(self._editor.text, first=not known)

    def _load(self, key: DraftKey, saved: str, text: str) -> None:
        """Put the text into the editor. The same text of the same criterion is left alone, with cursor and undo."""
        editor = self._editor
        if key == self._editing and editor.text == text:
            self._saved_text = saved
            return
        self._editing = key
        editor.load(saved)
        # The editor knows one kind of line end: what it makes of the saved text is what is not edited.
        self._saved_text = editor.text
        if text != saved:
            editor.load(text)

    def _put_back(self, key: DraftKey, saved: str) -> None:
        """An edit that an earlier start could not save is here again."""
        # A new criterion's edit is kept by the Editor.
        kept = self._kept.found(key) if key not in self._drafts and not self._is_new else None
        if kept is None or kept[0].text == saved:
            return
        self._drafts[key] = kept[0]
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept[1] / 1000))
        self.agenteval.say(f"Your edit of {when} was not saved: it is here again. F6 shows the file's.")

    def _keep_soon(self) -> None:
        """Write the edit down, in case that this ends badly."""
        if self._keep_timer is not None:
            self._keep_timer.stop()
        if self._editing is not None and not self._is_new:
            work = partial(self._kept.keep, self._editing, self._drafts.get(self._editing))
            write = partial(self.run_worker, work, thread=True, group="draft", exit_on_error=False)
            self._keep_timer = self.set_timer(KEEP_SECONDS, write)

    def on_unmount(self) -> None:
        new = self._draft_key(-1) if self._bench is not None and self._bench.criteria[-1].new else None
        for key, draft in self._drafts.items():
            if key != new:
                self._kept.keep(key, draft)

    def _keep_draft(self) -> None:
        """Remember what stands in the editor, as an edit, if it is one."""
        if self._bench is None or self._editing != self._draft_key():
            return
        text = self._editor.text
        if text == self._saved_text:
            self._drafts.pop(self._editing, None)
        elif self._editing in self._drafts:
            self._drafts[self._editing].text = text
        else:
            self._drafts[self._editing] = Draft(text, self._bench.criteria[self._criterion].text)

    # Editing: every keystroke is judged; a newer one wins

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        """The config was edited."""
        # A message that was still on its way when another config was loaded, or more was typed, says nothing now.
        if self._bench is None or event.text != self._editor.text:
            return
        self._keep_draft()
        self._keep_soon()
        self._regrade(event.text)

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """What can be written at the cursor?"""
        bench = self._bench
        if bench is None:
            return
        run, kind = bench.run, bench.criteria[self._criterion].spec.prototype_class
        answer = partial(self._assist.answer, event, kind, bench.store, run.suite_key, run.test_id)
        start_worker(self, answer, group="assist", name="completing")

    async def action_explain(self) -> None:
        bench = self._bench
        if bench is None:
            return
        editor = self._editor
        if not await self._assist.explain(editor, bench.criteria[self._criterion].spec.prototype_class):
            self.agenteval.say("Nothing is known of what stands at the cursor.")

    def _regrade(self, text: str, *, first: bool = False) -> None:
        start_worker(self, partial(self._judge, text, first), group="judge", name="judging")

    async def _judge(self, text: str, first: bool) -> None:
        bench = self._bench
        if bench is None:
            return
        try:
            if not first:
                await self._shown()
            await self._judge_run(bench, self._criterion, text, first)
            await self._shown()
            await self._count_impact(bench, self._criterion, text)
        except AgentevalError as error:
            self.agenteval.say_error(error)

    async def _shown(self) -> None:
        """Wait until what was opened is painted: work in threads would keep it from the screen."""
        try:
            await asyncio.wait_for(self._painted.wait(), PAINT_SECONDS)
        except TimeoutError:
            # Another screen lies over this one: nothing is painted here.
            self._painted.set()

    async def _judge_run(self, bench: Workbench, number: int, text: str, first: bool) -> None:
        def work() -> tuple[CriterionResult, tuple[Diagnostic, ...]]:
            return bench.judge(number, text), tuple(diagnose(text, bench.criteria[number].spec.prototype_class))

        # The open run's verdict first: it is what the eye rests on.
        self._result, self._diagnostics = await self._alone(work)
        self._editor.set_diagnostics(self._diagnostics)
        self._draw(keep_place=not first)

    async def _count_impact(self, bench: Workbench, number: int, text: str) -> None:
        self._agreement = None
        while not await self._alone(partial(bench.preload, number, PRELOAD_SECONDS)):
            pass
        drawn = 0.0
        slices = bench.impact(number, text)
        while (impact := await self._alone(lambda: next(slices, None))) is not None:
            self._impact = impact
            now = time.monotonic()
            if now - drawn > DRAW_SECONDS:
                drawn = now
                self._draw_impact()
        self._draw_impact()
        impact = self._impact
        if impact is not None and impact.total:
            labels = await self._alone(lambda: opinions(bench, number))
            self._agreement = agreement(bench, number, impact, labels)
            self._draw_impact()
