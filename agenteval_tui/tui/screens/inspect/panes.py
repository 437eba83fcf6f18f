"""The panes of Inspect: the transcript, what the chosen criterion looked at, its config; and the line that names them.

Each shows what the controller or the screen gives it, does what concerns only itself (search, completion, judging an
edit), and tells the screen the rest in messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.criterion_templates import Starter, text_starter, tools_starter
from agenteval_tui.transcripts.model import Attachment, ToolCall, Transcript
from agenteval_tui.tui import draft_store
from agenteval_tui.tui.actions import bindings, key_of, with_keys
from agenteval_tui.tui.presenters.blame_strip import blame_strip, decisive_cells
from agenteval_tui.tui.presenters.evidence_pane import FIRST_CONDITIONS, KEYS, Target, looked_rows, tool_text_lines
from agenteval_tui.tui.presenters.impact import impact_in_one_line, impact_lines, problem_lines
from agenteval_tui.tui.presenters.status_style import DOT
from agenteval_tui.tui.presenters.transcript import MOST_MATCHES, TranscriptDocument
from agenteval_tui.tui.presenters.view_lines import line
from agenteval_tui.tui.screens.config_assistant import ConfigAssistant
from agenteval_tui.tui.screens.inspect.controller import ConfigToEdit, InspectController
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Cell, Line, fit, indented, longest_that_fits, paragraph
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.workers import call_after, start_worker
from agenteval_tui.views.label import agreement_text

DRAW_SECONDS = 0.05
PAINT_SECONDS = 0.5  # the longest wait for the picture of a keystroke, should it never be painted
LONGEST = 400
"""Characters of a text that a criterion may want: a whole answer is not a criterion."""


class TranscriptPane(TitledPane[None]):
    """The transcript and the search in it. `term` is searched for ("": nothing); `hits` says how often they were
    found, and which hit is shown."""

    NAME = "transcript"

    class HitsChanged(Message):
        """`hits` says something else now."""

    def __init__(self) -> None:
        super().__init__(None)
        self.term = ""
        self.hits = ""
        self.decisive: tuple[Cell, ...] = ()
        """Which step is named first, and the key that goes there; () while none is known."""
        self._opened = False

    def parts(self) -> ComposeResult:
        field = Input(placeholder="search in the transcript", id="find", classes="filter")
        field.display = False
        yield field
        yield TranscriptView(id="transcript")

    @property
    def view(self) -> TranscriptView:
        """The transcript itself."""
        return self.query_one("#transcript", TranscriptView)

    def heading(self) -> Heading:
        view = self.view
        name = "raw JSON" if view.is_raw else "transcript"
        if self.hits or not self._opened:
            return name, self.hits
        much: Cell = (count(len(view.transcript.messages), "message"), "dim")
        if not self.decisive:
            return name, (much,)
        # Where it leads to is there in any case, as its key is.
        both: Line = (*self.decisive, ("   ", ""), much)
        return name, lambda room: longest_that_fits((both, self.decisive), room)

    def open(self, transcript: Transcript, document: TranscriptDocument, *, has_strip: bool = False) -> None:
        """Show the transcript of another run; what is searched for stays. `document`: as `TranscriptView.lay_out` made
        it. `has_strip`: room for `show_blame` is kept."""
        self._opened = True
        self.decisive = ()
        self.view.show_transcript(transcript, document=document, has_strip=has_strip)
        self._search_again()

    def show_blame(self, blame: Blame | None, key: str) -> None:
        """Show which steps the run was lost at; `key` goes there."""
        self.view.show_strip(None if blame is None else blame_strip(blame))
        self.decisive = () if blame is None else decisive_cells(blame, key)
        self.retitle()

    def toggle_raw(self) -> None:
        """Show the stored form as JSON, or the readable one."""
        self.view.show_raw(not self.view.is_raw)
        self.retitle()
        self._search_again()

    # Searching

    @property
    def _field(self) -> Input:
        return self.query_one("#find", Input)

    def open_search(self) -> None:
        """Ask what to search for."""
        self._field.display = True
        self._field.focus()

    def search_for(self, term: str) -> None:
        """Search for this, as if a person had typed it."""
        field = self._field
        field.display = True
        # Else it would be searched for twice.
        with field.prevent(Input.Changed):
            field.value = term
        self.search(term)

    def close_search(self) -> bool:
        """Forget the search and hide its field; False when there was none."""
        field = self._field
        if not field.display:
            return False
        field.display = False
        with field.prevent(Input.Changed):
            field.value = ""
        self.search("")
        return True

    def search(self, words: str) -> None:
        """Search for `words`; a newer search ends the one before."""
        self.term = words
        start_worker(self.screen, partial(self._look_for, words), group="search", name="searching", awaited=True)

    def step_hit(self, step: int) -> bool:
        """Go to the next hit (1) or the one before (-1); False when there is none."""
        position = self.view.next_match() if step > 0 else self.view.previous_match()
        self._count_hits(whole=True)
        return position is not None

    async def _look_for(self, words: str) -> None:
        view = self.view
        document = view.document
        for _ in view.searching(words):
            self._count_hits(whole=False)
            # Between two slices keys are read, and what was found is painted.
            await asyncio.sleep(0)
            if view.document is not document:
                # Raw or not, or another run: what is shown now is searched by who showed it.
                return
        self._count_hits(whole=True)

    def _search_again(self) -> None:
        if self.term:
            self.search(self.term)

    def _count_hits(self, *, whole: bool) -> None:
        """`3 of 17` in the title; `of 17 …` while there may be more."""
        number, total = self.view.match_number
        if not self.term:
            hits = ""
        elif not total:
            hits = "not found" if whole else "searching …"
        else:
            more = "" if whole else " …"
            most = "more than " if total >= MOST_MATCHES else ""
            hits = f"{number:,} of {most}{total:,}{more}"
        if hits != self.hits:
            self.hits = hits
            self.retitle()
            self.post_message(self.HitsChanged())

    def attachment(self) -> Attachment | None:
        """The image or file under the cursor, else the next one below, else the first; None: there is none."""
        view = self.view
        attachments = [
            (place, block.source) for place, block in enumerate(view.document.blocks) if block.key[0] == "attachment"
        ]
        below = [source for place, source in attachments if place >= view.cursor]
        chosen = below[0] if below else attachments[0][1] if attachments else None
        return chosen if isinstance(chosen, Attachment) else None

    # New criteria

    def starter(self) -> Starter | None:
        """A criterion of what is selected with the mouse, else of the call under the cursor, else of what is searched
        for, else of the message under the cursor; None when that is nothing, or too long."""
        view, key = self.view, self.view.cursor_key
        selection = view.text_selection
        if selection is not None and (text := (view.get_selection(selection) or ("", ""))[0].strip()):
            return text_starter(text) if len(text) <= LONGEST else None
        if key is not None and key[0] in ("call", "result"):
            calls = view.transcript.tool_calls
            return tools_starter(_expected([calls[key[1]]])) if key[1] < len(calls) else None
        text = self._field.value.strip() if self._field.display else ""
        if not text and key is not None and key[0] == "message":
            message = view.transcript.messages[key[1]]
            text = message.content.strip() if message.role == "assistant" else ""
        return text_starter(text) if text and len(text) <= LONGEST else None


LayOut = Callable[[int, int | None], tuple[list[Line], dict[int, Target]]]
"""The lines of evidence in this many cells, with at most this many conditions a metric, and what its rows mean."""


class EvidencePane(TitledPane[InspectController]):
    """`targets` says what a click on a row means."""

    NAME = "looked"

    @dataclass
    class Chosen(Message):
        """A criterion (its number) or a piece of evidence was clicked."""

        target: Target

    def __init__(self, controller: InspectController) -> None:
        super().__init__(controller)
        self.shows_tool_text = False
        self._drawn: tuple[object, ...] | None = None
        self.targets: dict[int, Target] = {}

    def parts(self) -> ComposeResult:
        yield LinesView(id="looked")

    @property
    def view(self) -> LinesView:
        """The lines."""
        return self.query_one("#looked", LinesView)

    @property
    def what(self) -> str:
        """What it shows, in a word or two."""
        return "tool calls" if self.shows_tool_text else "evidence"

    def heading(self) -> Heading:
        state = self._controller
        if state.bench is None:
            return self.what, ""
        if state.looked_at is not state.result:
            columns: list[Line] = [(("before the error", "dim"),), (("out of date", "dim"),)]
            return self.what, lambda room: longest_that_fits(columns, room)
        which = f"{state.criterion + 1} of {len(state.bench.criteria)}"
        whole = f"{state.criterion + 1} of {count(len(state.bench.criteria), 'criterion')}"
        return self.what, lambda room: longest_that_fits((((whole, "dim"),), ((which, "dim"),)), room)

    def say(self, *sentences: tuple[str, str]) -> None:
        """Show these sentences (text, style) while no run is open, or its verdict is not known."""
        self._drawn = None
        rows = partial(_sentences, sentences)
        self.view.show(rows)

    def say_nothing_is_open(self) -> None:
        """Say that no run is open, and how one is opened."""
        keymap = services(self).keymap
        ways = (
            "Press {go.suites} to go to the suites, {suites.run} to run a test, or {suites.inspect} to open a failure.",
            "Or press {go.history} to go to the history and open a run there.",
        )
        self.say(("No run is open.", ""), *((with_keys(way, keymap), "dim") for way in ways))

    def draw(self, *, keep_place: bool = True) -> None:
        """Show what is known of the chosen criterion now."""
        state = self._controller
        bench, number, result, results = state.bench, state.criterion, state.looked_at, state.results
        facts, has_edit = state.facts, state.has_edit
        if bench is None or result is None:
            return

        keys = {name: key_of(f"inspect.{name}", services(self).keymap) for name in KEYS}
        painted_for = (bench, number, result, results, facts, has_edit, keys, self.shows_tool_text)
        if painted_for == self._drawn:
            return  # of a config with thousands of metrics that takes a third of a second
        has_some, self._drawn = self._drawn is not None, painted_for

        def lay_out(width: int, most: int | None) -> tuple[list[Line], dict[int, Target]]:
            rows = looked_rows(
                bench,
                number,
                result=result,
                others=results,
                width=width - 1,
                facts=facts,
                keys=keys,
                most=most,
                has_edit=has_edit,
            )
            return indented(rows.lines), rows.targets

        def evidence(width: int) -> list[Line]:
            lines, self.targets = lay_out(width, None)
            return lines

        def tool_text(width: int) -> list[Line]:
            return indented(tool_text_lines(bench, result, width - 1))

        self.workers.cancel_group(self.screen, "evidence")
        if self.shows_tool_text:
            self.view.show(tool_text, keep_place=keep_place)
        elif max((len(metric.evidence) for metric in result.metrics), default=0) <= FIRST_CONDITIONS:
            self.view.show(evidence, keep_place=keep_place)
        else:
            self._show_in_parts(lay_out, keep_place=keep_place and has_some)

    def _show_in_parts(self, lay_out: LayOut, *, keep_place: bool) -> None:
        """Show the first conditions of each metric, and all when they are laid out. With `keep_place`, the conditions
        that were shown before stay until then."""
        whole: dict[int, tuple[list[Line], dict[int, Target]]] = {}

        async def complete(width: int) -> None:
            await asyncio.sleep(RESTING_SECONDS)
            whole[width] = await asyncio.to_thread(lay_out, width, None)
            self.view.show(evidence)

        def evidence(width: int) -> list[Line]:
            if width not in whole:
                # Not here: it may be asked for while the screen is being painted.
                self.call_later(start_worker, self.screen, partial(complete, width), group="evidence")
            lines, self.targets = whole[width] if width in whole else lay_out(width, FIRST_CONDITIONS)
            return lines

        if keep_place and self.view.content_width > 0:
            start_worker(self.screen, partial(complete, self.view.content_width), group="evidence")
        else:
            self.view.show(evidence, keep_place=keep_place)

    def toggle_tool_text(self) -> None:
        """Show the formatted tool calls, or the evidence."""
        self.shows_tool_text = not self.shows_tool_text
        self.draw(keep_place=False)
        self.retitle()

    def on_lines_view_row_clicked(self, event: LinesView.RowClicked) -> None:
        """Report the content of the row."""
        event.stop()
        if not self.shows_tool_text and (target := self.targets.get(event.row)) is not None:
            self.post_message(self.Chosen(target))


RESTING_SECONDS = 0.2
"""That nothing changes before thousands of conditions are laid out."""
ROOMY = 36
"""A screen with at least this many rows has room for blocks of a fixed height below the config."""
WIDE_ENOUGH = 140
"""A screen with at least this many columns has room for two runs side by side and the evidence."""
TALL = 44
"""A screen with at least this many rows shows more problems."""
PROBLEM_ROWS, TALL_PROBLEM_ROWS = 7, 11
"""The fixed height of the block of problems while one types, so that nothing moves when a key breaks the config."""
MOST_ROWS, TALL_MOST_ROWS = 11, 20
"""Its height else."""


class ConfigPane(TitledPane[InspectController], can_focus=True):
    """Grades after every keystroke: first the open run, then all stored runs. A newer keystroke cancels the work.

    Who goes through the panes looks at the config first: the pane itself has the keys, and letters are still commands.
    The editor gets what is typed when it has the focus.
    """

    NAME = "config"
    BINDINGS: ClassVar[list[BindingType]] = bindings("look")

    @dataclass
    class Judged(Message):
        """The controller has the verdict on the open run. `first`: of a config that was just loaded, not edited."""

        first: bool

    class EditsKnown(Message):
        """The controller knows whether a small edit makes the open run pass."""

    @dataclass
    class Failed(Message):
        """The config could not be judged."""

        error: AgentevalError

    def __init__(self, controller: InspectController) -> None:
        super().__init__(controller)
        self.assistant = ConfigAssistant()
        self._painted = asyncio.Event()
        self._painted.set()

    def parts(self) -> ComposeResult:
        yield ConfigEditor(id="config")
        yield LineBlock(id="problems")
        yield LineBlock(id="impact")

    @property
    def editor(self) -> ConfigEditor:
        """The editor."""
        return self.query_one("#config", ConfigEditor)

    def action_look(self, lines: int) -> None:
        self.editor.scroll_relative(y=lines, animate=False)

    def action_look_pages(self, pages: float) -> None:
        self.editor.scroll_relative(y=round(pages * self.editor.size.height), animate=False)

    def action_type(self) -> None:
        self.editor.focus()

    def heading(self) -> Heading:
        state = self._controller
        if state.bench is None:
            return "config_uxon", ""
        if state.is_new:
            return "config_uxon", ((f"{DOT} new", "accent"),)
        if state.bench.criteria[state.criterion].index is None:
            return "config_uxon", "not in a file"
        if state.is_edited:
            return "config_uxon", ((f"{DOT} edited", "accent"),)
        return "config_uxon", "saved"

    def load(self, config: ConfigToEdit) -> None:
        """Put it into the editor; the same text of the same criterion is left alone, with cursor and undo."""
        state, editor = self._controller, self.editor
        state.saved_text = config.saved
        if config.other or editor.text != config.text:
            editor.load_text(config.saved)
            if config.text != config.saved:
                editor.load_text(config.text)
        editor.compare_with(None if state.is_new else state.saved_text)

    def draw(self) -> None:
        """Show the verdict and the problems of the config in the editor."""
        state, text = self._controller, self.editor.text
        result, diagnostics = state.result, state.diagnostics
        tall = self.screen.has_class("tall")
        rows = TALL_MOST_ROWS if tall else MOST_ROWS
        if self.screen.has_class("roomy") and self.has_class("active"):
            rows = TALL_PROBLEM_ROWS if tall else PROBLEM_ROWS
        most = 3 if self.screen.size.height < 30 else 5
        fix_key = key_of("inspect.fix", services(self).keymap)
        self.query_one("#problems", LineBlock).show(
            lambda width: problem_lines(result, diagnostics, text, width, most, rows, fix_key=fix_key)
        )
        self.retitle()

    def draw_impact(self) -> None:
        """Show what saving it would change, as far as that is counted."""
        state = self._controller
        # Of a new criterion there is no now: what is counted is what saving it would say.
        impact, labels, unsaved = state.impact, state.agreement, state.is_unsaved
        narrow = self.screen.has_class("narrow")
        make = impact_in_one_line if narrow else impact_lines

        def lines(width: int) -> list[Line]:
            lines = make(impact, unsaved, width, key_of("inspect.flips", services(self).keymap))
            # One line is all that a narrow screen has room for: labels come in where an edit goes against them.
            if narrow and not (labels and labels.against):
                return lines
            agreement = agreement_text(labels, edited=unsaved) if labels is not None else ()
            return [*lines, fit(((" ", ""), *line(agreement)), width)] if agreement else lines

        self.query_one("#impact", LineBlock).show(lines)

    # Every keystroke is judged

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        """The config was edited."""
        event.stop()
        # A message that was still on its way when another config was loaded, or more was typed, says nothing now.
        if self._controller.bench is not None and event.text == self.editor.text:
            self._controller.edit(event.text)
            self._keep_soon()
            self._regrade(event.text, first=False)

    def judge(self, *, first: bool) -> None:
        """Judge what was loaded, once it is painted; `first`: its verdict is not known yet, and does not wait."""
        self._painted = asyncio.Event()
        self.call_after_refresh(self._painted.set)
        self._regrade(self.editor.text, first=first)

    def _regrade(self, text: str, *, first: bool) -> None:
        start_worker(self.screen, partial(self._judge, text, first), group="judge", name="judging")

    async def _judge(self, text: str, first: bool) -> None:
        state = self._controller
        try:
            if not first:
                await self._shown()
            # The open run's verdict first: it is what the eye rests on.
            await state.judge(text)
            if self.editor.text == text:
                self.editor.set_diagnostics(state.diagnostics)
            self.post_message(self.Judged(first))
            await self._shown()
            drawn = 0.0
            async for _ in state.count_impact(text):
                now = time.monotonic()
                if now - drawn > DRAW_SECONDS:
                    drawn = now
                    self.draw_impact()
            self.draw_impact()
            # Last: it takes longer than all before, and a key that is typed meanwhile waits for it.
            await state.look_for_edit(text)
            self.post_message(self.EditsKnown())
        except AgentevalError as error:
            self.post_message(self.Failed(error))

    async def _shown(self) -> None:
        """Wait until what was opened is painted: work in threads would keep it from the screen."""
        try:
            await asyncio.wait_for(self._painted.wait(), PAINT_SECONDS)
        except TimeoutError:
            # Another screen lies over this one: nothing is painted here.
            self._painted.set()

    def _keep_soon(self) -> None:
        """Write the draft down in a moment, in case that this ends badly."""
        if self._controller.put_draft():
            write = self._controller.drafts.write
            begin = partial(self.screen.run_worker, write, thread=True, group="draft", exit_on_error=False)
            call_after(self, draft_store.WRITE_AFTER_S, begin)

    # What is done to the config

    def revert(self) -> None:
        """Put back what is saved, as an edit that can be undone; all of it is seen from its start."""
        self.editor.replace_all(self._controller.saved_text)
        self.editor.move_cursor((self.editor.cursor_location[0], 0))

    # What can be written, and what it means

    async def explain(self) -> bool:
        """Show what the word at the cursor means; False when there is nothing to say."""
        return await self.assistant.explain(self.editor, self._prototype_class)

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """What can be written at the cursor?"""
        event.stop()
        bench = self._controller.bench
        if bench is not None:
            session, run = services(self).session, bench.run
            answer = partial(self.assistant.answer, event, self._prototype_class, session, run.suite_key, run.test_id)
            start_worker(self.screen, answer, group="assist", name="completing", awaited=True)

    @property
    def _prototype_class(self) -> str:
        state = self._controller
        assert state.bench is not None
        return state.bench.criteria[state.criterion].spec.prototype_class


def _sentences(sentences: Sequence[tuple[str, str]], width: int) -> list[Line]:
    return [(), *(line for sentence, style in sentences for line in paragraph(sentence, max(width - 1, 1), style, 2))]


def starter_of_calls(transcript: Transcript) -> Starter | None:
    """A criterion that wants all calls that went well, each once; None when there are none."""
    expected = _expected([call for call in transcript.tool_calls if call.status == "ok" and not call.malformed])
    once = [expected_call for place, expected_call in enumerate(expected) if expected_call not in expected[:place]]
    return tools_starter(once) if once else None


def _expected(calls: Sequence[ToolCall]) -> list[tuple[str, Mapping[str, object]]]:
    return [(call.name, call.arguments if isinstance(call.arguments, Mapping) else {}) for call in calls]
