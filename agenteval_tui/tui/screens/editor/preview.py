"""Beside the config: what the criterion, as it is edited, says of a recorded run, and which stored runs would flip."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agenteval_tui.analysis.criterion_preview import open_trial, spec_from
from agenteval_tui.analysis.run_navigation import known_runs
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.tui.actions import BY_ID, key_word
from agenteval_tui.tui.presenters.preview_lines import impact_below, nothing_yet, trial_lines, trial_title, verdict_line
from agenteval_tui.tui.presenters.run_header import pane_title
from agenteval_tui.tui.presenters.text_layout import indented
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.form_view import EditorFilling
from agenteval_tui.tui.screens.relax import RelaxScreen
from agenteval_tui.tui.screens.verdict_changes import FlipsScreen
from agenteval_tui.tui.serial_worker import OneAtATime
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.analysis.criterion_preview import Trial
    from agenteval_tui.analysis.workbench import Impact, Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.grading.spec import CriterionSpec

DRAW_SECONDS = 0.05
PRELOAD_SECONDS = 0.02
FLIPS_LISTED = 500


@dataclass(slots=True)
class Preview:
    """What is known of the criterion as it is edited: on the chosen run, and over all stored ones."""

    trial: Trial | None = None
    source: int | None = None
    place: int = -1  # among the form's criteria
    spec: CriterionSpec | None = None
    result: CriterionResult | None = None
    impact: Impact | None = None
    edited: bool = False


class EditorLive(EditorFilling):
    """Judges on every keystroke, in a thread, never two at a time; a newer keystroke ends the older counting."""

    def __init__(self) -> None:
        super().__init__()
        self._live = Preview()
        self._live_of: SuiteDocument | None = None  # the test whose runs were read
        self._run_wanted = ""
        self._alone = OneAtATime()

    def _try(self) -> None:
        """The criterion that is chosen, or what it says, is another one now."""
        # Not the coroutine: one that a newer keystroke ends before it began would never be awaited.
        start_worker(self, self._try_it, group="live", name="judging")

    def _read_runs_again(self) -> None:
        """New runs may have come; the one that is looked at stays."""
        trial = self._live.trial
        if trial is not None and trial.at and not self._run_wanted:
            self._run_wanted = trial.bench.run.id
        self._live_of = None

    async def _try_it(self) -> None:
        doc = self._doc
        chosen = doc.chosen if doc is not None else None
        if doc is None or chosen is None:
            self._live = Preview(self._live.trial)
            self._draw_live(keep_place=False)
            return
        try:
            await self._judge(doc, chosen.source, dict(chosen.values))
        except AgentevalError as error:
            self.agenteval.say_error(error)

    async def _judge(self, doc: SuiteDocument, source: int | None, values: dict[str, str]) -> None:
        wanted = self._run_wanted
        if self._live_of is not doc:
            saved = [spec_from(one.values) for one in doc.base.criteria]
            store = self.agenteval.session.store
            trial = await self._alone(partial(open_trial, store, doc.loaded, doc.test_id, saved, wanted))
            self._live, self._live_of = Preview(trial), doc
        elif wanted and self._live.trial is not None:
            self._live.trial = await self._alone(partial(self._live.trial.on, wanted))
        self._run_wanted = ""
        live = self._live
        if live.trial is None:
            self._draw_live(keep_place=False)
            return
        trial, spec = live.trial, spec_from(values)
        number = trial.number(source)
        same = (live.source, live.place) == (source, doc.criterion) and live.spec is not None
        # The run's verdict first: it is what the eye rests on.
        live.result = await self._alone(partial(trial.bench.judge, number, spec))
        live.source, live.place, live.spec = source, doc.criterion, spec
        live.edited = await self._alone(partial(trial.edited, source, spec))
        if not same:
            live.impact = None
        self._draw_live(keep_place=same)
        await self._count(live, trial, number, spec)

    async def _count(self, live: Preview, trial: Trial, number: int, spec: CriterionSpec) -> None:
        while not await self._alone(partial(trial.bench.preload, number, PRELOAD_SECONDS)):
            pass
        drawn = 0.0
        slices = trial.bench.impact(number, spec)
        while (impact := await self._alone(lambda: next(slices, None))) is not None:
            live.impact = impact
            now = time.monotonic()
            if now - drawn > DRAW_SECONDS:
                drawn = now
                self._draw_impact()
        self._draw_impact()

    # Drawing

    def _draw_live(self, *, keep_place: bool = True) -> None:
        live, doc = self._live, self._doc
        view = self.query_one("#live", LinesView)
        trial, result = live.trial, live.result
        if doc is None or doc.chosen is None:
            view.show(lambda width: [], keep_place=False)
        elif trial is None:
            test = doc.test_id
            view.show(lambda width: indented(nothing_yet(test, width - 1)), keep_place=False)
        elif result is not None:
            number, at = trial.number(live.source), now_ms()
            view.show(lambda width: indented(trial_lines(trial, number, result, at, width - 1)), keep_place=keep_place)
        self.query_one("#live-title", LineBlock).show(self._live_title)
        self._draw_impact()

    def _draw_impact(self) -> None:
        live, key = self._live, self._flips_key()
        chosen = self._doc is not None and self._doc.chosen is not None
        trial, result = live.trial, live.result if chosen else None
        impact, edited = live.impact if result is not None else None, live.edited
        self.query_one("#impact", LineBlock).show(lambda width: impact_below(impact, edited, key, width))
        self.query_one("#verdict", LineBlock).show(
            lambda width: verdict_line(trial, result, impact, edited, key, width)
        )

    def _flips_key(self) -> str:
        return key_word(self.agenteval.keymap.get("edit.flips", BY_ID["edit.flips"].keys))

    def _live_title(self, width: int) -> list[Line]:
        return pane_title("on a run", trial_title(self._live.trial), width, self._pane == "live")

    # Other runs

    def action_step_run(self, by: int) -> None:
        trial = self._live.trial
        if trial is None:
            self.agenteval.say("This test has no recorded run yet.")
            return

        at = trial.at + by
        if not 0 <= at < len(trial.runs):
            self.agenteval.say("This is the oldest run that is kept." if by > 0 else "This is the newest run.")
            return
        self._show_run(trial.runs[at].id)

    def _show_run(self, run: str) -> None:
        if run:
            self._run_wanted = run
            self._try()

    def action_flips(self) -> None:
        impact = self._live.impact
        if impact is None or not impact.flips:
            self.agenteval.say("No run flips with this edit.")
            return

        flips, store = list(impact.flips), self.agenteval.session.store

        def work() -> list[tuple[str, str, int, str, str, str]]:
            then_of = {run: (now, then) for run, now, then in flips[:FLIPS_LISTED]}
            return [
                (row.id, row.test_id, row.repetition, row.why, *then_of[row.id]) for row in known_runs(store, then_of)
            ]

        def show(lines: list[tuple[str, str, int, str, str, str]]) -> None:
            if self.is_current:
                self.app.push_screen(FlipsScreen(lines, len(flips)), lambda run: self._show_run(run or ""))

        self.ask(work, show, group="flips")

    # The smallest edits

    def _failing(self) -> tuple[Workbench, int] | None:
        """The workbench and the criterion's number in it, where the criterion fails on this run; else say why not."""
        live = self._live
        if live.trial is None or live.result is None or live.spec is None:
            self.agenteval.say("There is no recorded run on which this criterion could be relaxed.")
            return None
        if live.result.outcome != "failed":
            self.agenteval.say(f"{live.spec.name} does not fail on this run.")
            return None
        number, spec = live.trial.number(live.source), live.spec
        saved = live.trial.bench.spec(number)
        alike = (saved.prototype, saved.expected_value, saved.negate, saved.pass_threshold) == (
            spec.prototype, spec.expected_value, spec.negate, spec.pass_threshold,
        )  # fmt: skip
        # With another field edited too, what flips is counted against the criterion as it is edited.
        return (live.trial.bench if alike else live.trial.as_edited(live.source, spec)), number

    def action_relax(self) -> None:
        found = self._failing()
        if found is None:
            return

        editor = self.query_one("#config", ConfigEditor)

        def chosen(text: str | None) -> None:
            if text:
                editor.replace_all(text)

        self.app.push_screen(RelaxScreen(*found, editor.text, self._alone), chosen)

    def action_relax_now(self) -> None:
        """The first of them, at once."""
        found = self._failing()
        if found is None:
            return
        (bench, number), editor = found, self.query_one("#config", ConfigEditor)
        text = editor.text

        async def relax() -> None:
            suggestions = await self._alone(lambda: next(bench.relaxations(number, text), ()))
            if not suggestions:
                self.agenteval.say("No small edit makes it pass: the answer is far from what is asked.")
            elif editor.text == text:
                editor.replace_all(suggestions[0].relaxation.new_text)
                self.agenteval.say(f"{suggestions[0].relaxation.title}. ^z takes it back.")

        start_worker(self, relax, group="relax", name="relaxing")
