"""The Inspect screen: why a run failed, beside the criterion that said so, which can be edited here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Resize
from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.analysis.neighbours import Around, first_criterion, known_runs, runs_around
from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import BY_ID, bindings, key_word
from agenteval_tui.tui.lines import Cell, Line, spread
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.inspect_heading import facts, pane_title, run_cells, run_heading
from agenteval_tui.tui.presenters.outcomes import UNICODE
from agenteval_tui.tui.presenters.paragraphs import indented
from agenteval_tui.tui.screens.assist import Assist
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.screens.inspect_edits import Draft, DraftKey, KeptConfigs, Saving, index_in
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

if TYPE_CHECKING:
    from pathlib import Path

    from agenteval_tui.analysis.workbench import Impact, Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.grading.starters import Starter
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
    from agenteval_tui.uxon.diagnostics import Diagnostic

PANES = ("transcript", "looked", "config")
DRAW_SECONDS = 0.05
PRELOAD_SECONDS = 0.02
SEARCH_SECONDS = 0.2
SEARCHED_AT_ONCE = 200_000
FLIPS_LISTED = 500
KEEP_SECONDS = 0.5

T = TypeVar("T")


class InspectScreen(FrameScreen):
    """Transcript, what the criterion looked at, and its config: side by side, or one at a time where it is narrow."""

    SCOPE = "inspect"
    CSS_PATH = "inspect.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("inspect"))

    def __init__(self) -> None:
        super().__init__()
        self._bench: Workbench | None = None
        self._around = Around([], {})
        self._criterion = 0
        self._result: CriterionResult | None = None
        self._saved_results: tuple[CriterionResult, ...] = ()
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._impact: Impact | None = None
        self._drafts: dict[DraftKey, Draft] = {}
        self._kept = KeptConfigs()
        self._keep_timer: Timer | None = None
        self._editing: DraftKey | None = None
        self._saved_text = ""
        self._busy: asyncio.Future[Any] | None = None
        self._search_timer: Timer | None = None
        self._show_tools = False
        self._raw = False
        self._pane = "transcript"
        self._composed = False
        self._pending: Callable[[], None] | None = None
        self._assist = Assist()

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(id="run")
        yield LineBlock(self._tab_lines, id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="transcript-pane", classes="pane"):
                yield LineBlock(self._transcript_title, id="transcript-title", classes="pane-title")
                yield Input(placeholder="search in the transcript", id="find", classes="filter")
                yield TranscriptView(id="transcript")
            with Vertical(id="looked-pane", classes="pane"):
                yield LineBlock(self._looked_title, id="looked-title", classes="pane-title")
                yield LinesView(id="looked")
            with Vertical(id="config-pane", classes="pane"):
                yield LineBlock(self._config_title, id="config-title", classes="pane-title")
                yield ConfigEditor(id="config")
                yield LineBlock(id="problems")
                yield LineBlock(id="impact")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#find", Input).display = False
        self._focus_pane("transcript")
        self._composed = True
        if self._pending is None:
            self._show_nothing()
        else:
            self._pending()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        self._draw_heading()
        if self._bench is not None:
            self._draw_impact()

    def _show_nothing(self) -> None:
        lines: list[Line] = [
            (),
            (("  No run is open.", ""),),
            (("  1 suites, enter on a test: its latest failure.", "dim"),),
            (("  5 history, enter on an execution, enter on a run.", "dim"),),
        ]
        self.query_one("#looked", LinesView).show(lambda width: lines)
        if self.size.width < self.NARROW:
            self._focus_pane("looked")

    # Opening a run

    def open_run(
        self,
        run_id: str,
        *,
        criterion: str = "",
        runs: Sequence[str] = (),
        edit: bool = False,
        at: BlockKey | None = None,
    ) -> None:
        """Show a run; `criterion` names the one to begin with, else the first that failed; `at` a place in its
        transcript."""
        if not self._composed:
            # The screen is being made: an answer that came before its widgets are there would find nothing.
            self._pending = partial(self.open_run, run_id, criterion=criterion, runs=runs, edit=edit, at=at)
            return
        session = self.agenteval.session
        known = self._around if run_id in self._around.runs and not runs else None

        def work() -> tuple[Workbench, tuple[CriterionResult, ...], Around]:
            bench = session.workbench(run_id)
            around = known or runs_around(bench, list(runs))
            return bench, bench.judge_all(), around

        def then(answer: tuple[Workbench, tuple[CriterionResult, ...], Around]) -> None:
            self._opened(*answer, criterion=criterion, edit=edit)
            if at is not None:
                self._focus_pane("transcript")
                self.query_one("#transcript", TranscriptView).go_to_key(at)

        self.ask(work, then, group="open")

    def _opened(
        self,
        bench: Workbench,
        results: tuple[CriterionResult, ...],
        around: Around,
        *,
        criterion: str,
        edit: bool,
    ) -> None:
        self._keep_draft()
        self._assist.forget()
        self._bench = bench
        self._around = around
        self._saved_results = results
        if bench.note:
            self.agenteval.say(bench.note)
        view = self.query_one("#transcript", TranscriptView)
        view.show_transcript(bench.transcript)
        self._choose(first_criterion(bench, results, criterion))
        self.retitle()
        if edit:
            self.action_edit()

    def _choose(self, number: int) -> None:
        """Show criterion `number`: its config (or its draft), what it looked at, its evidence."""
        bench = self._bench
        assert bench is not None
        self._criterion = number
        self._impact = None
        self._diagnostics = ()
        key, saved = self._draft_key(), bench.criteria[number].text
        self._put_back(key, saved)
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
        self._regrade(self.query_one("#config", ConfigEditor).text, first=not known)

    def _load(self, key: DraftKey, saved: str, text: str) -> None:
        """Put the text into the editor. The same text of the same criterion is left alone, with cursor and undo."""
        editor = self.query_one("#config", ConfigEditor)
        if key == self._editing and editor.text == text:
            self._saved_text = saved
            return
        self._editing = key
        editor.load(saved)
        # The editor knows one kind of line end: what it makes of the saved text is what is not edited.
        self._saved_text = editor.text
        if text != saved:
            editor.load(text)

    def _draft_key(self) -> DraftKey:
        bench = self._bench
        assert bench is not None
        names = [criterion.name for criterion in bench.criteria[: self._criterion + 1]]
        return bench.run.suite_key, bench.run.test_id, names[-1], names.count(names[-1])

    def _put_back(self, key: DraftKey, saved: str) -> None:
        """An edit that an earlier start could not save is here again."""
        kept = self._kept.found(key) if key not in self._drafts else None
        if kept is None or kept[0].text == saved:
            return
        self._drafts[key] = kept[0]
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept[1] / 1000))
        self.agenteval.say(f"Your edit of {when} was not saved: it is here again. F6 shows the file's.")

    def _keep_soon(self) -> None:
        """Write the edit down, in case that this ends badly."""
        if self._keep_timer is not None:
            self._keep_timer.stop()
        if self._editing is not None:
            work = partial(self._kept.keep, self._editing, self._drafts.get(self._editing))
            write = partial(self.run_worker, work, thread=True, group="draft", exit_on_error=False)
            self._keep_timer = self.set_timer(KEEP_SECONDS, write)

    def on_unmount(self) -> None:
        for key, draft in self._drafts.items():
            self._kept.keep(key, draft)

    def _keep_draft(self) -> None:
        """Remember what stands in the editor, as an edit, if it is one."""
        if self._bench is None or self._editing != self._draft_key():
            return
        text = self.query_one("#config", ConfigEditor).text
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
        if self._bench is None or event.text != self.query_one("#config", ConfigEditor).text:
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
        answer = self._assist.answer(event, kind, bench.store, run.suite_key, run.test_id)
        self.run_worker(answer, group="assist", exclusive=True, exit_on_error=False, name="completing")

    async def action_explain(self) -> None:
        bench = self._bench
        if bench is None:
            return
        editor = self.query_one("#config", ConfigEditor)
        if not await self._assist.explain(editor, bench.criteria[self._criterion].spec.prototype_class):
            self.agenteval.say("Nothing is known of what stands at the cursor.")

    @property
    def _edited(self) -> bool:
        return self._bench is not None and self._draft_key() in self._drafts

    def _regrade(self, text: str, *, first: bool = False) -> None:
        self.run_worker(self._judge(text, first), group="judge", exclusive=True, exit_on_error=False, name="judging")

    async def _judge(self, text: str, first: bool) -> None:
        bench = self._bench
        if bench is None:
            return
        try:
            await self._judge_run(bench, self._criterion, text, first)
            await self._count_impact(bench, self._criterion, text)
        except AgentevalError as error:
            self.agenteval.say_error(error)

    async def _judge_run(self, bench: Workbench, number: int, text: str, first: bool) -> None:
        from agenteval_tui.grading.diagnose import diagnose

        def work() -> tuple[CriterionResult, tuple[Diagnostic, ...]]:
            return bench.judge(number, text), tuple(diagnose(text, bench.criteria[number].spec.prototype_class))

        # The open run's verdict first: it is what the eye rests on.
        self._result, self._diagnostics = await self._alone(work)
        self.query_one("#config", ConfigEditor).set_diagnostics(self._diagnostics)
        self._draw(keep_place=not first)

    async def _count_impact(self, bench: Workbench, number: int, text: str) -> None:
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

    async def _alone(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread, never beside another one: who is cancelled here leaves a thread that goes on."""
        while self._busy is not None and not self._busy.done():
            await asyncio.wait([self._busy])
        future = self._busy = asyncio.ensure_future(asyncio.to_thread(work))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(future)

    # Drawing

    def _draw(self, *, keep_place: bool = True) -> None:
        bench, result = self._bench, self._result
        if bench is None:
            return
        from agenteval_tui.tui.presenters.marks import marks_of

        self.query_one("#transcript", TranscriptView).set_marks(marks_of([result] if result is not None else []))
        self._draw_heading()
        self._draw_looked(keep_place=keep_place)
        self._draw_config()
        self._draw_impact()
        for name in ("transcript-title", "looked-title"):
            self._retitle_pane(name)

    def _draw_heading(self) -> None:
        bench = self._bench
        if bench is None:
            return
        self.query_one("#run", LineBlock).show(lambda width: [run_heading(bench, self._results_now(), width)])
        self.query_one("#tabs", LineBlock).show(self._tab_lines)

    def _draw_looked(self, *, keep_place: bool = True) -> None:
        bench, result = self._bench, self._result
        if bench is None or result is None:
            return
        from agenteval_tui.tui.presenters.looked_at import looked_at, tool_text_lines

        results = self._results_now()
        number = self._criterion
        view = self.query_one("#looked", LinesView)
        if self._show_tools:
            view.show(lambda width: indented(tool_text_lines(bench, result, width - 1)), keep_place=keep_place)
        else:
            view.show(
                lambda width: indented(looked_at(bench, number, result, results, width - 1)), keep_place=keep_place
            )

    def _results_now(self) -> tuple[CriterionResult, ...]:
        """The verdicts as they are saved, with the edited criterion's live one in its place."""
        results = list(self._saved_results)
        if self._result is not None and self._criterion < len(results):
            results[self._criterion] = self._result
        return tuple(results)

    def _draw_config(self) -> None:
        from agenteval_tui.tui.presenters.impact import problem_lines

        diagnostics, result = self._diagnostics, self._result
        text = self.query_one("#config", ConfigEditor).text
        most = 3 if self.size.height < 30 else 5
        self.query_one("#problems", LineBlock).show(lambda width: problem_lines(result, diagnostics, text, width, most))
        self._retitle_pane("config-title")

    def _draw_impact(self) -> None:
        from agenteval_tui.tui.presenters.impact import impact_in_one_line, impact_lines

        impact, edited = self._impact, self._edited
        make = impact_in_one_line if self.has_class("narrow") else impact_lines
        self.query_one("#impact", LineBlock).show(lambda width: make(impact, edited, width))

    def _retitle_pane(self, name: str) -> None:
        makers = {
            "transcript-title": self._transcript_title,
            "looked-title": self._looked_title,
            "config-title": self._config_title,
        }
        self.query_one(f"#{name}", LineBlock).show(makers[name])

    def _transcript_title(self, width: int) -> list[Line]:
        bench = self._bench
        what = "raw JSON" if self._raw else "transcript"
        much = count(len(bench.transcript.messages), "message") if bench else ""
        return pane_title(what, much, width, self._pane == "transcript")

    def _looked_title(self, width: int) -> list[Line]:
        which = f"criterion {self._criterion + 1} of {len(self._bench.criteria)}" if self._bench else ""
        what = "tool text" if self._show_tools else "looked at"
        return pane_title(what, which, width, self._pane == "looked")

    def _config_title(self, width: int) -> list[Line]:
        bench = self._bench
        if bench is None:
            return pane_title("config_uxon", "", width, self._pane == "config")
        if bench.criteria[self._criterion].index is None:
            state = "not in a file"
        else:
            state = ("edited ○" if UNICODE else "edited *") if self._edited else ("saved ●" if UNICODE else "saved")
        return pane_title("config_uxon", state, width, self._pane == "config")

    def _tab_lines(self, width: int) -> list[Line]:
        """Narrow screens show one pane at a time; this line says which."""
        names = {"transcript": "transcript", "looked": "looked at", "config": "config_uxon"}
        cells: list[Cell] = [(" ", "")]
        for pane in PANES:
            active = pane == self._pane
            cells.append((f"[{names[pane]}]" if active else f" {names[pane]} ", "bold accent" if active else "dim"))
            cells.append(("  ", ""))
        return [spread(cells, (*facts(self._bench), (" ", "")) if self._bench else (), width)]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        bench = self._bench
        if bench is None:
            return (), ()
        failures = self._around.failures()
        right: tuple[Cell, ...] = ()
        if bench.run.id in failures:
            right = ((f"failure {failures.index(bench.run.id) + 1} of {len(failures)}", "dim"),)
        elif failures:
            right = ((count(len(failures), "failure"), "dim"),)
        if width < self.NARROW:
            return run_cells(bench), right
        return ((one_line(bench.run.suite_name, 50), "dim"),), right

    # Panes

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say in the pane's title that it has the keys now."""
        # The focus may have moved on since this event was sent: what counts is where it is now.
        panes = {"transcript": "transcript", "find": "transcript", "looked": "looked", "config": "config"}
        pane = panes.get((self.focused.id or "") if self.focused else "", self._pane)
        # Where one pane is shown at a time, hiding a pane moves the focus: there the pane leads, not the focus.
        if pane != self._pane and not self.has_class("narrow"):
            self._set_pane(pane)

    def _set_pane(self, pane: str) -> None:
        self._pane = pane
        for one in PANES:
            self.query_one(f"#{one}-pane").set_class(one == pane, "active")
        for title in ("transcript-title", "looked-title", "config-title"):
            self._retitle_pane(title)
        self.query_one("#tabs", LineBlock).show(self._tab_lines)
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def _focus_pane(self, pane: str) -> None:
        self._set_pane(pane)
        # A pane that was hidden can take the focus only when it is shown.
        self.call_after_refresh(self.query_one(f"#{pane}").focus)

    def action_next_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def action_previous_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) - 1) % len(PANES)])

    def action_edit(self) -> None:
        self._focus_pane("config")

    def step_back(self) -> bool:
        find = self.query_one("#find", Input)
        if find.display:
            find.display = False
            self.query_one("#transcript", TranscriptView).search("")
            self._focus_pane("transcript")
            return True
        if self._pane == "config":
            self._focus_pane("transcript")
            return True
        return False

    def keys(self) -> list[tuple[str, str, str]]:
        if self._pane != "config":
            return super().keys()
        editing = (("save", "save"), ("fix", "fix"), ("relax", "smallest edits"), ("revert", "revert"))
        shown = [
            (key_word(self.agenteval.keymap.get(f"inspect.{name}", BY_ID[f"inspect.{name}"].keys)), label, "")
            for name, label in editing
        ]
        return [*shown[:2], ("esc", "leave", ""), *shown[2:], ("^z", "undo", ""), ("F1", "help", "app.help")]

    # Runs and criteria

    def _step_run(self, step: int, *, failures: bool) -> None:
        bench = self._bench
        if bench is None:
            return
        among = self._around.failures() if failures else self._around.runs
        order = {run: place for place, run in enumerate(self._around.runs)}
        here = order.get(bench.run.id, -1)
        ahead = [run for run in among if (order[run] - here) * step > 0]
        if not ahead:
            what = "failure" if failures else "run"
            self.agenteval.say(f"There is no {what} {'after' if step > 0 else 'before'} this one.")
            return
        self.open_run(ahead[0] if step > 0 else ahead[-1], criterion="" if failures else self._criterion_name())

    def _criterion_name(self) -> str:
        return self._bench.criteria[self._criterion].name if self._bench else ""

    def action_next_failure(self) -> None:
        self._step_run(1, failures=True)

    def action_previous_failure(self) -> None:
        self._step_run(-1, failures=True)

    def action_next_run(self) -> None:
        self._step_run(1, failures=False)

    def action_previous_run(self) -> None:
        self._step_run(-1, failures=False)

    def _step_criterion(self, step: int) -> None:
        if self._bench is not None and len(self._bench.criteria) > 1:
            self._keep_draft()
            self._choose((self._criterion + step) % len(self._bench.criteria))

    def action_next_criterion(self) -> None:
        self._step_criterion(1)

    def action_previous_criterion(self) -> None:
        self._step_criterion(-1)

    # Other runs of the test

    def action_difference(self) -> None:
        """Beside the run of the test that says most."""
        from agenteval_tui.tui.screens.difference import NO_OTHER, run_beside

        bench, session = self._bench, self.agenteval.session
        if bench is None:
            return

        def show(other: str) -> None:
            if not other:
                self.agenteval.say(NO_OTHER)
            elif self.is_current:
                self.agenteval.show_difference(bench.run.id, other)

        self.ask(lambda: run_beside(session, bench.run.id), show, group="choose")

    def action_choose_difference(self) -> None:
        """Beside a run that is chosen from a list."""
        from agenteval_tui.tui.screens.choose_run import choose_other_run

        if self._bench is not None:
            run = self._bench.run.id
            choose_other_run(self, run, lambda other: self.agenteval.show_difference(run, other))

    def action_branches(self) -> None:
        """The repetitions of the test as a tree."""
        if self._bench is not None:
            self.agenteval.show_divergence(self._bench.run.id)

    # The transcript

    def action_next_evidence(self) -> None:
        self._evidence(forward=True)

    def action_previous_evidence(self) -> None:
        self._evidence(forward=False)

    def _evidence(self, *, forward: bool) -> None:
        view = self.query_one("#transcript", TranscriptView)
        found = view.next_mark() if forward else view.previous_mark()
        if not found:
            self.agenteval.say("The evidence points at nothing in the transcript.")
        elif self.has_class("narrow"):
            self._focus_pane("transcript")

    def action_fold(self) -> None:
        self.query_one("#transcript", TranscriptView).toggle_fold()

    def action_fold_all(self) -> None:
        self.query_one("#transcript", TranscriptView).action_fold_all()

    def action_raw(self) -> None:
        self._raw = not self._raw
        self.query_one("#transcript", TranscriptView).show_raw(self._raw)
        self._retitle_pane("transcript-title")

    def action_tool_text(self) -> None:
        self._show_tools = not self._show_tools
        self._draw_looked(keep_place=False)
        self._retitle_pane("looked-title")
        if self.has_class("narrow"):
            self._focus_pane("looked")

    def action_search(self) -> None:
        find = self.query_one("#find", Input)
        find.display = True
        self._set_pane("transcript")
        find.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        if self._search_timer is not None:
            self._search_timer.stop()
        # Of a long transcript only what is typed in the end is looked for.
        long = self._bench is not None and self._bench.characters > SEARCHED_AT_ONCE
        if long and event.value:
            self._search_timer = self.set_timer(SEARCH_SECONDS, partial(self._search, event.value))
        else:
            self._search(event.value)

    def _search(self, words: str) -> None:
        self.query_one("#transcript", TranscriptView).search(words)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: the next hit."""
        if not self.query_one("#transcript", TranscriptView).next_match():
            self.agenteval.say("Not found in this transcript.")

    def action_copy_address(self) -> None:
        bench = self._bench
        if bench is None:
            return
        address = f"{bench.run.id}/{self._criterion_name()}"
        self.app.copy_to_clipboard(one_line(address))
        self.agenteval.say(f"Copied {one_line(address)}; agenteval open takes it back here.")

    # New criteria

    def action_make_criterion(self) -> None:
        from agenteval_tui.tui.screens.inspect_criteria import starter_at

        found = self.query_one("#find", Input)
        self._new_criterion(
            starter_at(self.query_one("#transcript", TranscriptView), found.value if found.display else ""),
            "Select a text with the mouse, search for one with /, or go to a tool call: that becomes a criterion.",
        )

    def action_calls_criterion(self) -> None:
        from agenteval_tui.tui.screens.inspect_criteria import starter_of_calls

        starter = starter_of_calls(self._bench.transcript) if self._bench is not None else None
        self._new_criterion(starter, "There are no tool calls here that went well.")

    def _new_criterion(self, starter: Starter | None, otherwise: str) -> None:
        bench = self._bench
        if bench is None or starter is None:
            self.agenteval.say(otherwise)
        elif bench.loaded is None:
            self.agenteval.say("This test stands in no suite file, so it can't get a criterion.", severity="warning")
        else:
            self.agenteval.edit_test(bench.run.suite_key, bench.run.test_id, starter=starter)

    # Saving

    def action_apply_fix(self) -> None:
        editor = self.query_one("#config", ConfigEditor)
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
        from agenteval_tui.tui.screens.relax import RelaxScreen

        editor = self.query_one("#config", ConfigEditor)

        def chosen(text: str | None) -> None:
            if text:
                editor.replace_all(text)

        self.app.push_screen(RelaxScreen(bench, self._criterion, editor.text, self._alone), chosen)

    def action_revert(self) -> None:
        bench = self._bench
        if bench is None or not self._edited:
            return
        self.query_one("#config", ConfigEditor).replace_all(self._saved_text)

    def action_save(self) -> None:
        bench = self._bench
        if bench is None:
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
        text = self.query_one("#config", ConfigEditor).text
        self._save(bench.loaded, Saving(bench, self._draft_key(), self._criterion_name(), index, text))

    def _save(self, loaded: LoadedSuite, saving: Saving) -> None:
        test = saving.bench.run.test_id
        session = self.agenteval.session

        def failed(error: AgentevalError) -> None:
            from agenteval_tui.suites.save import FileChanged

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
        self.agenteval.say(f"Saved {loaded.path.name}:{line}. 1 then r runs the test again.")
        if self._bench is bench:
            self._saved_text = saving.text
            self.open_run(bench.run.id, criterion=self._criterion_name(), edit=self._pane == "config")

    def _offer_merge(self, path: Path, diff: str, saving: Saving) -> None:
        from agenteval_tui.tui.screens.changed_file import ChangedFileScreen

        def load() -> tuple[LoadedSuite, Saving]:
            from agenteval_tui.suites.load import load_suite

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
        from agenteval_tui.tui.screens.flips import FlipsScreen

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
