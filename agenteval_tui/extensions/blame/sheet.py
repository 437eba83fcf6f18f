"""The step where a run was lost: four answers, a bar for each step with its evidence, and sampling, which costs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.core.display import one_line
from agenteval_tui.extensions.blame.controller import BlameController
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.view_lines import cell, line, view_lines, wrapped
from agenteval_tui.tui.screens.asking_sheet import AskingSheet
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.styled_text import Line, error_lines, fit, left, paragraph, spread
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.views.blame import answers_of, bars, rate_text, sampling_text, sign_of, step_text, step_view
from agenteval_tui.views.fork import price_text
from agenteval_tui.views.model import LEVELS, text

_LABEL = 20  # cells of a question before its answer
_WHAT = "Sampling continues the run from some of its steps and grades the results. The decisive step is the one after"
_WHAT += " which it no longer passes."


def blame_run(screen: InspectScreen) -> None:
    """Open the sheet for the run that is inspected; the step that is chosen there is shown."""
    bench = screen.controller.bench
    if bench is None:
        return

    def chosen(step: int | None) -> None:
        # Another run may have been opened meanwhile.
        if screen.controller.bench is bench:
            screen.read_blame()  # it may have been sampled
            if step is not None:
                screen.go_to_step(step)

    screen.app.push_screen(BlameScreen(screen.agenteval.session.store, bench.run.id, bench.run.test_id), chosen)


class _Rows:
    """A row for each step: its sign, its bar, what it is, and how often continuing from it passed."""

    def __init__(self, blame: Blame, transcript: Transcript) -> None:
        self._bars = bars(blame)
        self._blame = blame
        self._transcript = transcript
        self._rates = {rate.step: rate for rate in (blame.sampled.rates if blame.sampled is not None else ())}

    def count(self) -> int:
        return len(self._bars)

    def key(self, index: int) -> str:
        return str(index)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        bar, rate = self._bars[index], self._rates.get(index)
        sign, token = sign_of(self._blame, index)
        start = (cell(f"{sign or ' '} ", token), cell(LEVELS[bar.level], bar.token))
        name = cell(f" {one_line(step_text(self._transcript, index, room=width))}", "bold" if bar.level == 7 else "")
        passed = f"{rate.passed:,} of {rate.n:,} passed " if rate is not None else ""
        return spread((*start, name), (cell(passed, "good" if rate is not None and rate.passed else "dim"),), width)


class BlameScreen(AskingSheet[int | None]):
    """Dismissed with the step to go to, or None."""

    controller: BlameController
    SCOPE = "blame"
    BINDINGS: ClassVar[list[BindingType]] = bindings("blame")

    def __init__(self, store: Store, run_id: str, test_id: str) -> None:
        super().__init__(BlameController(store, run_id))
        self._test = test_id

    def compose(self) -> ComposeResult:
        with SheetFrame("Where it went wrong", self._keys, subject=one_line(self._test, 60), width="large"):
            yield LineBlock(self._answers, id="answers")
            yield Section("steps", id="steps-rule")
            yield VirtualList(id="steps")
            yield Section(self._step_title, id="step-rule")
            yield LinesView(id="evidence")
            yield Section("sampling", id="sampling-rule")
            yield LineBlock(self._sampling, id="sampling")

    def on_mount(self) -> None:
        self._show_steps(False)
        self.query_one("#steps").focus()

    # What a person does

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another step."""
        self._show_evidence(keep_place=False)

    def action_go(self) -> None:
        """Go to the step whose evidence is shown."""
        if self.controller.blame is not None:
            self.dismiss(self.query_one("#steps", VirtualList).cursor)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Go to this step."""
        self.dismiss(event.index)

    # What it looks like

    def _show_steps(self, there: bool) -> None:
        for name in ("#steps-rule", "#steps", "#step-rule", "#evidence", "#sampling-rule", "#sampling"):
            self.query_one(name).display = there

    def _paint(self) -> None:
        if (blame := self.controller.blame) is not None:
            steps = self.query_one("#steps", VirtualList)
            at = steps.cursor_key
            # The first time there is something to show; after that the cursor stays where it is.
            if at is None:
                self._show_steps(True)
                first = blame.decisive or next(iter(blame.others), None)
                at = str(first.step if first is not None else blame.steps - 1)
            steps.set_source(_Rows(blame, self.controller.transcript), keep_key=at)
        self.query_one("#answers", LineBlock).retell()
        self.query_one("#sampling", LineBlock).retell()
        self._show_evidence(keep_place=True)
        self.query_one(SheetFrame).retell()

    def _show_evidence(self, *, keep_place: bool) -> None:
        blame, step = self.controller.blame, self.query_one("#steps", VirtualList).cursor
        if blame is not None and step >= 0:
            self.query_one("#step-rule", Section).retell()
            view = step_view(blame, step)
            self.query_one("#evidence", LinesView).show(lambda width: view_lines(view, width), keep_place=keep_place)

    def _step_title(self) -> str:
        return f"step {max(self.query_one('#steps', VirtualList).cursor, 0) + 1}"

    def _keys(self) -> Keys:
        controller = self.controller
        if controller.blame is None:
            return self.edge()
        if controller.running:
            return self.edge("go", ("tab", "evidence"), "stop", close="stop and close")
        sample = ("sample", "sample" if controller.sampled is None else "sample more")
        return self.edge("go", ("tab", "evidence"), *((sample,) if controller.can_ask else ()))

    def _answers(self, width: int) -> list[Line]:
        controller = self.controller
        if controller.stage == "reading":
            return [(("Looking …", "dim"),)]
        if controller.blame is None:
            return error_lines(controller.error, width) if controller.error is not None else []
        lines: list[Line] = []
        for fact in answers_of(controller.blame, controller.transcript):
            if width < 2 * _LABEL:
                lines += [fit(line(text((fact.label, "dim"))), width), *wrapped(fact.value, width)]
                continue
            for number, each in enumerate(wrapped(fact.value, width - _LABEL)):
                lines.append(((left("" if number else fact.label, _LABEL), "dim"), *each))
        return lines

    def _sampling(self, width: int) -> list[Line]:
        controller = self.controller
        if controller.blame is None:
            return []
        sampled = controller.sampled
        if controller.stage == "stopping":
            return [(("Stopping …", "running"),)]
        if controller.running:
            rates = sampled.rates if sampled is not None else ()
            newest = next((rate_text(rate) for rate in rates if rate.step == controller.newest), "")
            progress = f"Asking … {sampled.asked:,} answered" if sampled is not None else "Asking …"
            return [fit(((progress, "running"), (f"   {newest}", "dim")), width)]
        lines = [] if controller.error is None else error_lines(controller.error, width)
        if sampled is not None:
            lines += [each for text_line in sampling_text(sampled) for each in wrapped(text_line, width)]
        if controller.can_ask and controller.price is not None:
            lines += paragraph(_WHAT, width) if sampled is None else []
            lines += paragraph(self._price(), width, "" if sampled is None else "dim")
            lines += paragraph(f"note: {controller.gone}", width, "review") if controller.gone else []
        return lines

    def _price(self) -> str:
        controller = self.controller
        assert controller.price is not None
        takes, requests = controller.price
        if not takes.runs:
            return "Nothing to ask: these continuations are already stored."
        limit = " It stops at that cost." if takes.whole_cost else ""
        each = f"Up to {controller.samples} continuations start from each step."
        return f"At most {price_text(takes, requests)}.{limit} {each} They never count in rates, trends or gates."
