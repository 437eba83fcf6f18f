"""The Inspect screen: why a run failed, beside the criterion that failed it, which can be edited here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

from msgspec import to_builtins
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Resize
from textual.geometry import Size
from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.analysis.dataset_row_from_run import dataset_for, provenance_of, row_of_run
from agenteval_tui.analysis.drafted_test import GoodRuns
from agenteval_tui.analysis.labels import LabelSaved
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.formats.documents.difference import difference_document
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.suites.dataset_edit import RowAdded, undo_add_row
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import BY_ID, bindings, footer, key_of, named_keys, typing_key
from agenteval_tui.tui.code_watch import watched_tests
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.edit_preview import values_of_both
from agenteval_tui.tui.presenters.evidence_pane import NO_EDIT, asked_summary
from agenteval_tui.tui.presenters.fork_columns import ForkTree
from agenteval_tui.tui.presenters.highlights import marks_of
from agenteval_tui.tui.presenters.run_header import agreement, facts, reason_line, run_header
from agenteval_tui.tui.presenters.status_style import DOT, UNICODE
from agenteval_tui.tui.presenters.tabs import INSPECT_TABS, SOME_RUNS
from agenteval_tui.tui.presenters.transcript import TranscriptDocument
from agenteval_tui.tui.screen_registry import ask, sheet
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.confirm_dialog import ask_and_save
from agenteval_tui.tui.screens.criterion_versions import show_versions
from agenteval_tui.tui.screens.file_conflict_dialog import FileConflictScreen
from agenteval_tui.tui.screens.inspect.branches import (
    BranchesController,
    ForksController,
    ended_of,
    forks_of,
    keys_of,
    step_at,
    stop_execution,
)
from agenteval_tui.tui.screens.inspect.controller import (
    ConfigToEdit,
    EditToSave,
    InspectController,
    LoadedRun,
    Place,
    Places,
    check_project,
    may_be_blamed,
    on_fresh_file,
    write,
)
from agenteval_tui.tui.screens.inspect.panes import (
    ROOMY,
    TALL,
    WIDE_ENOUGH,
    ConfigPane,
    EvidencePane,
    TranscriptPane,
    starter_of_calls,
)
from agenteval_tui.tui.screens.inspect.run_pair import RunPair, pair_reader
from agenteval_tui.tui.screens.inspect.run_views import (
    BranchesPane,
    ContextPane,
    DifferencePane,
    ErrorPane,
    OutputPane,
    RunWanted,
    StatePane,
    message_of,
)
from agenteval_tui.tui.screens.json_viewer import JsonViewerScreen, parts_of
from agenteval_tui.tui.screens.judge_log import JudgeLogScreen, entries_of
from agenteval_tui.tui.screens.relax import RelaxScreen
from agenteval_tui.tui.screens.rerun import again_key, run_again
from agenteval_tui.tui.screens.run_picker import choose_other_run
from agenteval_tui.tui.screens.verdict_changes import show_flips
from agenteval_tui.tui.state import text
from agenteval_tui.tui.styled_text import Cell, Line, spread, width_of
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.titled_pane import PaneTabs
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import call_after, is_busy, start_worker
from agenteval_tui.views.blame import suspect_line

MOST_KEYS = 8  # in the last line
PICTURE_SECONDS = 0.02  # a little more than from one picture to the next
FORK_SECONDS = 0.3  # between two looks what has become of continuations
MANY_MESSAGES = 400  # a transcript for which the step that it was lost at takes longer to find than a key may wait
LOOKING_SECONDS = 2.0  # that a key which goes there waits for it
RESTING_SECONDS = 0.4  # that a person stays at such a run before it is looked for
PREVIOUS, NEXT = ("◂", "▸") if UNICODE else ("<", ">")


class InspectScreen(FrameScreen):
    """Transcript, what the criterion looked at, and its config: side by side, or one at a time where it is narrow.

    What is known of the run and its criteria is the controller's; the screen shows it and passes on what is done.
    """

    SCOPE = "inspect"
    BINDINGS: ClassVar[list[BindingType]] = bindings("inspect")

    def __init__(self) -> None:
        super().__init__()
        self.controller = InspectController(self._say)
        self.transcript = TranscriptPane()
        self.evidence = EvidencePane(self.controller)
        self.config = ConfigPane(self.controller)
        self.difference = DifferencePane()
        self._branches = BranchesController()
        self._forks = ForksController()
        self.branches = BranchesPane(self._branches, self._forks)
        self.error = ErrorPane()
        self.output = OutputPane()
        self.state = StatePane()
        self.context = ContextPane()
        self._fork_timer: Timer | None = None
        self.panes = {
            pane.NAME: pane
            for pane in (
                self.transcript,
                self.difference,
                self.branches,
                self.error,
                self.output,
                self.state,
                self.context,
                self.evidence,
                self.config,
            )
        }
        self.pane = self.view = self.transcript.NAME
        """The name of the pane that has the keys, and is shown where one is; `view`: of that in the transcript's
        place (one of `INSPECT_TABS`)."""
        self._typing = False  # whether letters go into the config
        self._places = Places()
        self.tabs = PaneTabs("tabs")
        self.views = PaneTabs("views")
        self._composed = False
        self._pending: Callable[[], None] | None = None
        self._restoring = False
        self._leaves_config = False  # whether the next run is for who comes from elsewhere
        self._added_row: RowAdded | None = None
        self._blame_known = asyncio.Event()  # of the run that is open

    def compose(self) -> ComposeResult:
        self._see_size(self.app.size, update=False)  # before the parts get their styles
        yield self.title_bar()
        yield self.tabs
        yield LineBlock(id="reason")
        with Horizontal(id="body"):
            with Vertical(id="run"):
                yield from (self.panes[view] for view in INSPECT_TABS)
                yield self.views
            yield self.evidence
            yield self.config
        yield self.key_bar()

    def on_mount(self) -> None:
        self._focus_pane("transcript")
        self._composed = True
        self._begin()

    def new_runs(self) -> None:
        """A run that was opened while the agent was at work is read again once it has ended."""
        bench, store = self.controller.bench, self.agenteval.session.store
        if bench is not None and bench.run.status not in ENDED:
            self.ask(partial(store.run, bench.run.id), self._see_end, group="end")

    def _see_end(self, run: RunRow) -> None:
        if run.status in ENDED and run.id == self.shown_run and not self.controller.is_unsaved:
            self._read_run(run.id, criterion=self.controller.criterion_name)

    def _begin(self) -> None:
        """Read the run that is wanted, or the newest."""
        if self._pending is None:
            self._open_newest()
        else:
            self._pending()

    def on_resize(self, event: Resize) -> None:
        self._see_size(event.size)
        self._draw_heading()
        if self.controller.bench is not None:
            self.config.draw()
            self.config.draw_impact()

    def _see_size(self, size: Size, *, update: bool = True) -> None:
        narrow = size.width < self.NARROW
        self.update_classes(
            {
                "narrow": narrow,
                "slim": size.width < WIDE_ENOUGH,
                "roomy": not narrow and size.height >= ROOMY,
                "tall": not narrow and size.height >= TALL,
            },
            update=update,
        )

    def on_unmount(self) -> None:
        self.controller.keep_drafts()

    def _say(self, message: str, *, severity: str = "information") -> None:
        self.agenteval.say(message, severity=severity)

    # Opening a run

    @property
    def shown_run(self) -> str:
        """The id of the run that is open; "" while there is none."""
        return self.controller.run_id

    @property
    def tried(self) -> CriterionSpec | None:
        """The criterion that is not in a file yet, with its config as it is edited here; None: there is none."""
        return self.controller.new_criterion

    def kept(self) -> dict[str, Any] | None:
        if self.controller.bench is None:
            return None
        return {"run": self.shown_run, "criterion": self.controller.criterion_name, "pane": self.pane}

    def restore(self, stored: Mapping[str, Any]) -> None:
        run, criterion, pane = text(stored, "run"), text(stored, "criterion"), text(stored, "pane")
        if not run:
            return

        def there(_: None) -> None:
            # Meanwhile another run may have been asked for.
            if self.controller.bench is None and self._restoring:
                self.open_run(run, criterion=criterion, view=pane if pane in INSPECT_TABS else "transcript")
                # Who starts the app means its keys, also where the last start ended in a text.
                if pane in self.panes and pane != "config":
                    self._focus_pane(pane)

        def again() -> None:
            # A run that is gone is nothing to speak of: the screen says that none is open.
            self._restoring = True
            self._show_nothing()
            check = partial(check_project, self.agenteval.session, run)
            self.ask(check, there, group="restore", failed=lambda _: self._open_newest())

        self._pending = again

    def open_run(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Show a run, to who comes from elsewhere: its transcript, or the `view` that is wanted."""
        # Who was at the config before means another run now: that opens as one does for the first time.
        self._leaves_config = self.pane == "config" and not how.get("edit")
        self._places.forget()
        how.setdefault("view", "transcript")
        self._read_run(run_id, **how)

    def read_again(self, criterion: str) -> None:
        """Show the run with what the history has of it now."""
        if self.controller.bench is not None:
            self._read_run(self.controller.bench.run.id, criterion=criterion)

    def _read_run(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Show a run, without a `view` in the view that is shown now."""
        if not self._composed:
            # The screen is being made: an answer that came before its widgets are there would find nothing.
            self._pending = partial(self._read_run, run_id, **how)
            return
        self._restoring = False
        if self.controller.bench is None:
            self.evidence.say(("Reading the run …", "dim"))
        read = self.controller.reader(self.agenteval.session, run_id, how)
        # Laid out in the thread that reads: the app's own thread would stand still for a long transcript.
        lay_out = self.transcript.view.lay_out

        def work() -> tuple[LoadedRun, TranscriptDocument]:
            loaded = read()
            return loaded, lay_out(loaded.bench.transcript, may_be_blamed(loaded.bench))

        def failed(error: AgentevalError) -> None:
            self.agenteval.say_error(error)
            if self.controller.bench is None:
                self._show_nothing()

        self.ask(work, lambda opened: self._open(*opened, how), group="open", failed=failed)

    def _open(self, loaded: LoadedRun, document: TranscriptDocument, how: InspectTarget) -> None:
        state = self.controller
        # The run before may be edited, and its word still be on the way.
        state.edit(self.config.editor.text)
        self.config.assistant.forget()
        if state.bench is None and self.has_class("narrow"):
            # The line that said that nothing is open is in another pane.
            self._focus_pane("transcript")
        # Before the controller takes the run.
        other = state.run_id != loaded.bench.run.id
        leaves, self._leaves_config = self._leaves_config, False
        if leaves and other:
            self._focus_pane("transcript")
        self.error.open(loaded.bench.transcript.error, loaded.raised)
        self.output.open(loaded.bench.transcript, loaded.record)
        self.state.open(loaded.bench.transcript)
        self.context.open(loaded.bench.transcript)
        self.transcript.open(loaded.bench.transcript, document, has_strip=may_be_blamed(loaded.bench))
        self._show_config(state.open(loaded, how))
        self.retitle()
        self.read_blame()
        view = how.get("view", self.view)
        if other and self.has_class("narrow") and self.pane != "config" and view == "transcript":
            # A failure opens on its evidence; what passed on what was said.
            self._focus_pane("looked" if state.has_failed else "transcript")
        else:
            self._show_view(view, how.get("beside", ""), focus="view" in how and view != self.view)
        if how.get("edit"):
            self.action_edit()
        if loaded.term:
            self._focus_pane("transcript")
            self.transcript.search_for(loaded.term)
        if (at := how.get("at")) is not None:
            self._focus_pane("transcript")
            self.transcript.view.go_to_key(at)

    def read_blame(self) -> None:
        """Find the step that the run was lost at, when the run is to be seen, and show it beside the transcript."""
        state, bench = self.controller, self.controller.bench
        if not state.may_be_blamed:
            return

        # A new one for each run: a key that waits for the run before must not be woken by this one.
        blame_known = self._blame_known = asyncio.Event()

        def there(blame: Blame) -> None:
            blame_known.set()
            if state.bench is bench:
                state.blame = blame
                self.transcript.show_blame(blame, key_of("inspect.decisive", self.agenteval.keymap))
                self._draw_heading()

        def failed(error: AgentevalError) -> None:
            blame_known.set()
            if state.bench is bench:
                state.blame_error = error  # said to who asks for the step

        def begin() -> None:
            if state.bench is bench:
                self.ask(state.blame_reader(), there, group="blame", failed=failed, painted=True)

        if bench is not None and len(bench.transcript.messages) > MANY_MESSAGES:
            # Who goes through runs by keys should not wait for each of them to be looked into.
            call_after(self, RESTING_SECONDS, begin)
        else:
            begin()

    def _open_newest(self) -> None:
        """Open the first failure of the newest execution, else its first run, while no other run is asked for."""
        self._restoring = True
        self._show_nothing()
        session = self.agenteval.session

        def newest() -> tuple[str, list[str]]:
            newest_rows = session.store.run_rows(
                session.store.run_ids(RunFilter(projects=session.projects, counted=True))[:1]
            )
            rows = session.store.runs_of_execution(newest_rows[0].execution_id) if newest_rows else []
            failed = [row.id for row in rows if row.status in ("failed", "error")]
            return (failed or [row.id for row in rows] or [""])[0], failed

        def there(first: tuple[str, list[str]]) -> None:
            run, failed = first
            if run and self.controller.bench is None and self._restoring:
                how: InspectTarget = {"runs": failed} if failed else {}
                self.open_run(run, **how)

        self.ask(newest, there, group="restore", failed=lambda _: None)

    def _show_nothing(self) -> None:
        self.evidence.say_nothing_is_open()
        if self.size.width < self.NARROW:
            self._focus_pane("looked")

    # Drawing

    def _draw(self, *, keep_place: bool = True) -> None:
        self._draw_marks()
        self._draw_evidence(keep_place=keep_place)
        self._draw_verdict()

    async def _draw_beside(self) -> None:
        """Show another verdict in the panes beside the config while somebody types there: each in a picture of its own,
        and a key is taken in between."""
        for draw in (self._draw_evidence, self._draw_marks):
            await asyncio.sleep(PICTURE_SECONDS)
            draw()

    def _draw_verdict(self) -> None:
        self._draw_heading()
        self.config.draw()
        self._draw_bars()
        self.config.draw_impact()

    def _draw_evidence(self, *, keep_place: bool = True) -> None:
        self.evidence.draw(keep_place=keep_place)
        self.evidence.retitle()

    def _draw_marks(self) -> None:
        state = self.controller
        self.transcript.view.set_marks(marks_of([state.looked_at] if state.looked_at is not None else []))
        self.transcript.retitle()

    def _draw_heading(self) -> None:
        self.retitle()
        if self.controller.bench is not None:
            self.query_one("#reason", LineBlock).show(self._reason_lines)
            self._draw_tabs()

    def _reason_lines(self, width: int) -> list[Line]:
        """Where one pane is shown at a time: why the run failed, whichever pane that is."""
        state = self.controller
        if state.bench is None or not self.has_class("narrow"):
            return []
        # Titles of panes, which name the decisive step, are not shown here.
        decisive = self.transcript.decisive
        room = width - 2 - (width_of(decisive) + 2 if decisive else 0)
        threshold = state.facts.pass_threshold if state.facts is not None else None
        line = reason_line(state.bench, state.result, state.results, room, threshold, edited=state.is_unsaved)
        return [spread(((" ", ""), *line), (*decisive, (" ", "")) if decisive else (), width)] if line else []

    def _draw_tabs(self) -> None:
        state, hits = self.controller, self.transcript.hits
        right: tuple[Cell, ...] = ()
        if hits:
            # The titles of panes are not shown here.
            right = ((hits, "bold"), (" ", ""))
        elif state.bench is not None:
            right = ((" · ".join(facts(state.bench)), "dim"), (" ", ""))
        config = f"{DOT} config_uxon" if state.is_unsaved else "config_uxon"
        if self._typing:
            config += ": typing"  # keys that go elsewhere in other panes are letters here
        elif self.pane == "difference":
            right = ((self.difference.number, "bold"), (" ", ""))
        names = {"transcript": "transcript", "looked": self.evidence.what, "config": config}
        tabs = self._tabs_of_run()
        others = {view: name for view, name in tabs.items() if view not in names}
        self.tabs.draw(names | others, self.pane, right)
        self.views.draw(tabs, self.view, ())

    def _tabs_of_run(self) -> dict[str, str]:
        """The tabs that the open run has something for, and the one that is shown."""
        bench = self.controller.bench
        transcript = bench.transcript if bench is not None else Transcript(())
        has = {
            "error": self.error.has_something,
            "output": bool(transcript.output or transcript.log),
            "state": bool(transcript.state),
            "context": transcript.requests is not None,
            self.view: True,
        }
        return {view: name for view, name in INSPECT_TABS.items() if view not in SOME_RUNS or has[view]}

    def _draw_bars(self) -> None:
        self._draw_tabs()
        self.rekey()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        state = self.controller
        if state.bench is None:
            return (), ()
        keymap = self.agenteval.keymap
        back, on = key_of("inspect.previous_failure", keymap), key_of("inspect.next_failure", keymap)
        # In the other views these keys go through what is there.
        keys = f"{PREVIOUS} {back}  {on} {NEXT}" if state.around.failures() and not self.pane_scope() else ""
        # If one pane is shown at a time, the run's usage is beside the names of the panes.
        return run_header(
            state.bench,
            state.results,
            state.facts,
            width - 3,
            edited=state.is_edited and state.result is not None,
            passed_before=state.blame is not None and state.blame.earlier_program is not None,
            place=state.place(),
            keys=keys,
            took=not self.has_class("narrow"),
        )

    def keys(self) -> list[tuple[str, str, str]]:
        state, keymap = self.controller, self.agenteval.keymap
        if state.bench is None:
            return [*named_keys("go", ("suites", "history"), keymap), *super().keys()[-1:]]
        if self.pane == "transcript" and self.transcript.term:
            of_hits = {"next_failure": "next hit", "previous_failure": "hit before", "search": "other words"}
            hits = named_keys("inspect", of_hits, keymap)
            named = [(key, of_hits[method], method) for key, _, method in hits]
            return [
                *named,
                (key_of("back", keymap), "end", "app.back"),
                (typing_key("help", keymap), "help", "app.help"),
            ]
        if scope := self.pane_scope():
            *keys, last = footer(scope, keymap)
            if scope == "branches" and self.branches.shows_forks:
                # The others are about repetitions.
                names = ["inspect", "compare", *(["stop"] if self._forks.live else []), "forks"]
                keys = named_keys(scope, names, keymap)
                keys = [(key, "repetitions" if do == "forks" else label, do) for key, label, do in keys]
            other = ("choose_difference", "branches") if scope == "difference" else ("difference",)
            known = {key for key, _, _ in keys}
            others = [key_entry for key_entry in named_keys("inspect", other, keymap) if key_entry[0] not in known]
            return [*keys, *others, last][-MOST_KEYS:]
        if not self._typing:
            named, tools = super().keys(), "evidence" if self.evidence.shows_tool_text else "tool calls"
            *named, last = [(key, tools if do == "tool_text" else word, do) for key, word, do in named]
            return [*[*self._next_step(), *named][: MOST_KEYS - 1], last]
        words = [("relax", "smallest edits"), ("explain", "explain")]
        if state.is_unsaved:
            # What comes and goes while one types stands last, so that the others stay where they are.
            fix = [("fix", "fix")] if state.diagnostics else []
            words = [("save", "save"), ("relax", "smallest edits"), ("revert", "revert"), *fix]
        keys = [(key_of(f"inspect.{name}", keymap), label, BY_ID[f"inspect.{name}"].method) for name, label in words]
        complete = (key_of("config.complete", keymap), "complete", "focused.complete")
        last = ("^z", "undo", "focused.undo") if state.is_edited else complete
        if state.is_new:
            keys = [(key, "to the Editor" if do == "save" else word, do) for key, word, do in keys]
        again = [] if state.is_unsaved else [(again_key(self), "run again", "run_again")]
        stop, help_key = (key_of("back", keymap), "stop typing", "app.back"), typing_key("help", keymap)
        return [*again, *keys[:2], stop, *keys[2:], last, (help_key, "help", "app.help")]

    def _next_step(self) -> list[tuple[str, str, str]]:
        """What an edit asks for next, in whichever pane: to be saved; then, where it changed the verdict, a run."""
        state = self.controller
        assert state.bench is not None
        if state.is_edited:
            return named_keys("inspect", ("save",), self.agenteval.keymap)
        threshold = state.facts.pass_threshold if state.facts is not None else None
        if agreement(state.bench.run.status, state.results, threshold) and state.bench.loaded is not None:
            return named_keys("inspect", ("run",), self.agenteval.keymap)
        return []

    # Panes

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on the name of a pane goes there."""
        block = event.block
        pane = block.pane_at(event.x) if isinstance(block, PaneTabs) else (block.id or "").removesuffix("-title")
        if pane in INSPECT_TABS:
            self._turn_to(pane)
        elif pane in self.panes:
            self._focus_pane(pane, typing=False)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say in the pane's title that it has the keys now."""
        # The focus may have moved on since this event was sent: what counts is where it is now.
        inside = {"find": "transcript", "branch": "branches", self.config.id: "config"}
        name = (self.focused.id or "") if self.focused else ""
        if self._typing != (name == "config"):
            self._typing = not self._typing
            self._draw_bars()
        pane = inside.get(name, name if name in self.panes else self.pane)
        # Where one pane is shown at a time, hiding a pane moves the focus: there the pane leads, not the focus.
        if pane != self.pane and not self.has_class("narrow"):
            self._set_pane(pane)

    def _set_pane(self, name: str) -> None:
        self.pane = name
        if name in INSPECT_TABS:
            self.view = name
        for pane in self.panes.values():
            pane.update_classes({"active": name == pane.NAME, "shown": self.view == pane.NAME})
        self.query_one("#run").update_classes({"active": name in INSPECT_TABS, "compares": self.view != "transcript"})
        # Two runs stand side by side where they have the room: the config gives way, and on less the evidence too.
        self.query_one("#body").set_class(name == "difference", "side-by-side")
        self.retitle()
        self._draw_bars()
        if self.controller.bench is not None:
            self.config.draw()

    def _focus_pane(self, name: str, *, typing: bool = True) -> None:
        """Give a pane the keys. The config gets what is typed, or (not `typing`) is only looked at."""
        self._typing = typing and name == "config"
        self._set_pane(name)
        if name == "config" and not typing:
            self.config.focus()
        else:
            self.query_one(f"#{name}").focus()

    def _reveal(self, name: str) -> None:
        """What just came into this pane is to be seen: where one pane is shown at a time, go to it."""
        if self.has_class("narrow"):
            self._focus_pane(name)
        elif name in INSPECT_TABS and name != self.view:
            self._turn_to(name)

    # What stands in the transcript's place

    def _here(self) -> Place:
        pair, pane = self.difference.pair, self.pane
        beside = pair.right.id if pair is not None else ""
        return Place(self.shown_run, self.view, beside, "" if pane in INSPECT_TABS else pane)

    def _turn_to(self, view: str, beside: str = "") -> None:
        """Another view of the open run; esc leads back."""
        if self.shown_run:
            self._places.turn(self._here(), view)
            self._show_view(view, beside)
        else:
            self._focus_pane(view)

    def _show_view(self, view: str, beside: str = "", *, focus: bool = True) -> None:
        """Show the open run in a view. What is not known yet for it is read."""
        if focus:
            self._focus_pane(view)
        session, run = self.agenteval.session, self.shown_run
        if view == "difference" and not self.difference.shows(run, beside):
            self.ask(pair_reader(session, run, beside), self._show_pair, group="view")
        elif view == "branches" and self.branches.shows_forks:
            self._read_forks()
        elif view == "branches" and (self._branches.divergence is None or self._branches.divergence.run != run):
            self._read_branches()

    def _show_pair(self, pair: RunPair | None) -> None:
        # Another run may have been opened meanwhile.
        if pair is None or pair.left.id == self.shown_run:
            self.difference.show(pair)

    def on_run_wanted(self, event: RunWanted) -> None:
        """A run in the difference or on a branch: esc leads back there."""
        self._places.visit(self._here())
        if event.run == self.shown_run and not event.how.get("runs"):
            self._show_view(event.how["view"], event.how.get("beside", ""))
            if (at := event.how.get("at")) is not None:
                self.transcript.view.go_to_key(at)
        else:
            self._read_run(event.run, **event.how)

    def on_difference_pane_changed(self, event: DifferencePane.Changed) -> None:
        """On a narrow screen the line of tabs says which difference it is."""
        self._draw_tabs()

    def on_branches_pane_asked(self, event: BranchesPane.Asked) -> None:
        """Another tree of the same test."""
        self._read_branches(other_scope=event.other_scope, other_arguments=event.other_arguments)

    def on_branches_pane_forks_wanted(self, event: BranchesPane.ForksWanted) -> None:
        """The forks of the run, or its repetitions."""
        if event.forks:
            self._read_forks()
        else:
            self._read_branches()

    def _read_branches(self, *, other_scope: bool = False, other_arguments: bool = False) -> None:
        def show(divergence: Divergence) -> None:
            self.branches.show(divergence)
            self._draw_bars()

        read = self._branches.reader(
            self.agenteval.session, self.shown_run, other_scope=other_scope, other_arguments=other_arguments
        )
        self.ask(read, show, group="view")

    def _read_forks(self) -> None:
        self.ask(self._forks.reader(self.agenteval.session, self.shown_run), self._show_forks, group="view")

    def _show_forks(self, tree: ForkTree) -> None:
        self.branches.show_forks(tree)
        self._draw_bars()

    def action_fork(self) -> None:
        """Ask what is to be changed at the step under the cursor, and continue the run from there."""
        bench = self.controller.bench
        if bench is None:
            return
        if not bench.transcript.messages:
            self._say("This run has no steps to continue from.")
            return
        step = step_at(bench.transcript, self.transcript.view.cursor_key)

        def begun(live: Live) -> None:
            self._forks.begun(live)
            # Starting takes a moment: another run may be open by now.
            if self.shown_run == bench.run.id:
                self._turn_to("branches")
                self._read_forks()
            # One timer follows all that was begun here.
            if self._fork_timer is None:
                self._fork_timer = self.set_interval(FORK_SECONDS, self._follow_forks)

        def answered(answer: tuple[ForkRequest, bool]) -> None:
            request, asks = answer
            if asks:
                self.agenteval.start_fork(request, begun)
            else:
                self._turn_to("branches")
                self._read_forks()

        self.app.push_screen(
            sheet("fork", bench.run.id, bench.transcript, step, bench.run.agent), if_answered(answered)
        )

    def action_replay(self) -> None:
        """Run the recorded program again, with code that was changed, on what it was answered."""
        if self.controller.bench is not None:
            self.agenteval.replay(self.controller.bench.run.id)

    def action_watch_code(self) -> None:
        """Run the recorded runs of this test again after each save of its agent's code."""
        bench = self.controller.bench
        if bench is None:
            return
        request = watched_tests([bench.run])
        if request is None:
            self._say("The suite of this run is not a file: its agent's code can't be watched.")
        else:
            self.agenteval.watch_code(request)

    def action_debug_run(self) -> None:
        """Run the agent once more in the terminal, with the recorded answers of its models if there are any."""
        if self.controller.bench is not None:
            self.agenteval.debug_run(self.controller.bench.run.id)

    def action_make_test(self) -> None:
        """Make a test of the run, with suggested criteria."""
        bench = self.controller.bench
        if bench is None:
            return

        def added(written: tuple[str, str]) -> None:
            self._say(f"Added test {written[1]} to {Path(written[0]).name}. Press {{go.suites}} to see it.")

        def asked(runs: GoodRuns) -> None:
            self.app.push_screen(sheet("make_test", runs, "run"), if_answered(added))

        self.ask(partial(self.agenteval.session.workspace.good_run, bench.run.id), asked, group="make_test")

    def follows(self, execution: str) -> bool:
        """Does the tab of branches show what this execution continues?"""
        return self._forks.has_begun(execution) and self.view == "branches" and self.branches.shows_forks

    def _follow_forks(self) -> None:
        """Show what has ended, until all that was begun here is over."""
        live = tuple(self._forks.live)
        if not live:
            if self._fork_timer is not None:
                self._fork_timer.stop()
                self._fork_timer = None
            return
        if is_busy(self, "forks"):
            return  # a look may take longer than the time between two
        store, run = self.agenteval.session.store, self.shown_run

        def there(look: tuple[list[str], ForkTree]) -> None:
            ended, tree = look
            self._forks.over(ended)
            if self.shown_run == run and self.branches.shows_forks:
                self._show_forks(tree)

        def failed(error: AgentevalError) -> None:
            self._forks.over(live)  # such as deleted: it is not looked for again
            self.agenteval.say_error(error)

        def work() -> tuple[list[str], ForkTree]:
            return ended_of(store, live), forks_of(store, run)

        self.ask(work, there, group="forks", failed=failed, beside=True)

    def on_branches_pane_keep_wanted(self, event: BranchesPane.KeepWanted) -> None:
        """Write the fork, or its system prompt, into its file."""
        if self.still_writes("save"):
            return
        work = self.agenteval.session.workspace

        def saved(fork_test: tuple[Path, str]) -> None:
            path, test = fork_test
            self._say(f"Saved as test {one_line(test, 60)} of {one_line(path.name, 80)}.")

        def kept(path: Path) -> None:
            self._say(f"The system prompt is saved in {one_line(path.name, 80)}.")

        if event.prompt:
            self.ask(lambda: work.save_system_prompt(event.run, event.branch), kept, group="save")
        else:
            self.ask(lambda: work.save_fork(event.run, event.branch), saved, group="save")

    def on_branches_pane_stop_wanted(self, event: BranchesPane.StopWanted) -> None:
        """Stop the continuations that were begun here."""
        if not self._forks.live:
            self._say("None of the continuations you started here is running.")
            return
        self._say("Stopping …")
        for live in tuple(self._forks.live.values()):
            # Not exclusive: that would stop only the last of them.
            start_worker(self, partial(stop_execution, live), group="send", exclusive=False)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The step under the cursor, in full."""
        self.show_soon(self.branches.show_step)

    def pane_scope(self) -> str:
        return self.pane if self.pane in ("difference", "branches", "error", "context") else ""

    def _step_pane(self, step: int) -> None:
        if self.controller.bench is None:
            return  # in the empty editor the next key would be typed
        names = [self.view, self.evidence.NAME, self.config.NAME]
        self._focus_pane(names[(names.index(self.pane) + step) % len(names)], typing=False)

    def action_next_pane(self) -> None:
        self._step_pane(1)

    def action_previous_pane(self) -> None:
        self._step_pane(-1)

    def action_edit(self) -> None:
        if self.controller.bench is None:
            self._say("No run is open, so there is no config to edit.")
        else:
            self._focus_pane("config")
            editor = self.config.editor
            # Who has been here before returns to where they were.
            if editor.cursor_offset == 0 and (place := self.controller.culprit(editor.text)) is not None:
                editor.go_to(place)

    def leave_text(self) -> None:
        self._focus_pane(self.view)

    def step_back(self) -> bool:
        if self.transcript.close_search():
            self._focus_pane("transcript")
            return True
        if self.pane == "config":
            self.leave_text()
            return True
        if (place := self._places.back()) is not None:
            if place.run == self.shown_run:
                self._show_view(place.view, place.beside)
                if place.pane:
                    self._focus_pane(place.pane, typing=False)
            else:
                self._read_run(place.run, view=place.view, beside=place.beside)
            return True
        if self.controller.is_edited and not self.controller.is_new:
            self._say("The edit is kept but not saved. Press {go.inspect} to return to it.")
        return False

    # The transcript

    def on_transcript_pane_hits_changed(self, event: TranscriptPane.HitsChanged) -> None:
        """On a narrow screen the line of tabs names the hit."""
        self._draw_heading()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        self.transcript.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: back to the transcript, where `n` and `N` go on."""
        if not self.transcript.term:
            return
        if not self.transcript.view.document.matches:
            self._say_not_found()
        else:
            self._focus_pane("transcript")

    def action_search(self) -> None:
        self._set_pane("transcript")
        self.transcript.open_search()

    def _step_hit(self, step: int) -> bool:
        """The next hit (1) or the one before (-1), while something is searched for."""
        pane = self.transcript
        if pane.term and not pane.step_hit(step):
            self._say_not_found()
        return bool(pane.term)

    def _say_not_found(self) -> None:
        self._say(f"{one_line(self.transcript.term, 60)} is not in this transcript.")

    def action_next_evidence(self) -> None:
        self._show_next_evidence(self.transcript.view.next_mark() is not None)

    def action_previous_evidence(self) -> None:
        self._show_next_evidence(self.transcript.view.previous_mark() is not None)

    def _show_next_evidence(self, is_in_transcript: bool) -> None:
        result = self.controller.looked_at
        if is_in_transcript:
            self._reveal("transcript")
        else:
            self._show_outside({mark.span for mark in marks_of([result] if result is not None else [])})

    def action_fold(self) -> None:
        if self.view == "transcript":
            self.transcript.view.toggle_fold()
        elif self.view == "difference":
            self.difference.action_fold()

    def action_fold_all(self) -> None:
        if self.view == "transcript":
            self.transcript.view.action_fold_all()
        elif self.view == "difference":
            self.difference.action_fold_all()

    def action_raw(self) -> None:
        pair = self.difference.pair
        if self.view != "difference" or pair is None:
            self._reveal("transcript")
            self.transcript.toggle_raw()
            return
        title, command = "The difference as JSON", f"{pair.command(self.agenteval.session.db_option)} --json"

        def show(parts: list[tuple[str, object]]) -> None:
            # Another screen or sheet may be shown by now.
            if self.is_current:
                self.app.push_screen(JsonViewerScreen(title, parts, command))

        document = partial(difference_document, pair.left, pair.right, pair.alignment)
        self.ask(lambda: parts_of(to_builtins(document()), "steps"), show, group="raw")

    # What the criterion looked at

    def on_evidence_pane_chosen(self, event: EvidencePane.Chosen) -> None:
        """A criterion is chosen, a piece of evidence is shown where it points."""
        state, target = self.controller, event.target
        if not isinstance(target, int):
            self._show_evidence(target)
        elif state.bench is not None and target != state.criterion and target < len(state.bench.criteria):
            self._choose(target)

    def _show_evidence(self, evidence: Evidence) -> None:
        spans, result = {*evidence.near, *evidence.spans}, self.controller.looked_at
        own = [mark for mark in marks_of([result] if result is not None else []) if mark.span in spans]
        # A broken piece before a near one, that before one that held.
        if any(self.transcript.view.show_mark(mark) for mark in sorted(own, key=lambda mark: -mark.weight)):
            self._reveal("transcript")
        else:
            self._show_outside(spans)

    def _show_outside(self, spans: Collection[Span]) -> None:
        """Evidence that is not in the conversation: in what the run left behind, or in a request to the model."""
        result = self.controller.looked_at
        requests = [span.index for span in spans if span.kind == "request"]
        if any(span.kind == "state" for span in spans) or (result is not None and result.prototype_class == "State"):
            self._turn_to("state")
        elif requests:
            self._turn_to("context")
            self.context.go_to(min(requests))
        else:
            self._say("This evidence does not point to the transcript.")

    def action_tool_text(self) -> None:
        self.evidence.toggle_tool_text()
        self._draw_bars()
        self._reveal("looked")

    # From the run to others, and between criteria

    def _step_run(self, step: int, *, failures: bool) -> None:
        if self.controller.bench is not None and (run := self.controller.run_beside(step, failures=failures)):
            self._places.step_run(run)
            # A failure opens on the criterion that failed; on the runs beside this one the same criterion is looked at.
            self._read_run(run, criterion="" if failures else self.controller.criterion_name)

    def action_next_failure(self) -> None:
        if not self._step_hit(1):
            self._step_run(1, failures=True)

    def action_previous_failure(self) -> None:
        if not self._step_hit(-1):
            self._step_run(-1, failures=True)

    def action_next_run(self) -> None:
        self._step_run(1, failures=False)

    def action_previous_run(self) -> None:
        self._step_run(-1, failures=False)

    def action_next_criterion(self) -> None:
        self._choose(self.controller.criterion_beside(1))

    def action_previous_criterion(self) -> None:
        self._choose(self.controller.criterion_beside(-1))

    def action_difference(self) -> None:
        """Beside the run of the test that says most."""
        self._turn_to("difference")

    def action_choose_difference(self) -> None:
        """Beside a run that is chosen from a list."""
        if run := self.shown_run:
            choose_other_run(self, run, partial(self._turn_to, "difference"))

    def action_error(self) -> None:
        """Why the agent did not finish."""
        if self.error.has_something:
            self._turn_to("error")
        elif self.controller.bench is not None:
            self._say("The agent finished: this run has no error.")

    def action_output(self) -> None:
        """What the agent's code printed and logged."""
        if self.controller.bench is not None:
            self._turn_to("output")

    def action_state(self) -> None:
        """What the run left behind."""
        if self.controller.bench is not None:
            self._turn_to("state")

    def action_context(self) -> None:
        """What the model was asked for the answer under the cursor; from the first block, for the last one."""
        bench = self.controller.bench
        if bench is None:
            return
        if bench.transcript.requests is None:
            self._say("What the model saw is not recorded: record the run with `capture: model`.")
            return
        view = self.transcript.view
        message = message_of(view.cursor_key, bench.transcript)
        if message is not None and view.cursor > 0:
            self.context.go_to_answer(message)
        self._turn_to("context")

    def on_context_pane_answer_wanted(self, event: ContextPane.AnswerWanted) -> None:
        """The answer to a request, in the transcript."""
        event.stop()
        if event.message is None:
            self._say("This request has no answer in the transcript.")
            return
        self._turn_to("transcript")
        self.transcript.view.go_to_key(("message", event.message))

    def on_error_pane_editor_wanted(self, event: ErrorPane.EditorWanted) -> None:
        """The line of a frame; its file is named from the suite's folder."""
        event.stop()
        bench, frame = self.controller.bench, event.frame
        if bench is None or frame is None:
            self._say("This error has no traceback.")
            return
        path = Path(bench.run.suite_key)
        path = (path.parent if path.suffix else path) / frame.file
        if not frame.project or not path.is_file():
            self._say(f"{one_line(frame.file, 80)} is not a file of this project.")
        else:
            self.agenteval.open_editor(path.resolve(), frame.line)

    def action_branches(self) -> None:
        """The repetitions of the test as a tree."""
        self._turn_to("branches")

    def action_versions(self) -> None:
        """The versions of the criterion that is open; one can be restored."""
        bench, name = self.controller.bench, self.controller.criterion_name
        if bench is not None and bench.criteria:
            run = bench.run
            show_versions(self, run.suite_key, run.test_id, name, lambda: self._read_run(run.id, criterion=name))

    # The config of the chosen criterion

    def _choose(self, number: int | None) -> None:
        """Another criterion of the open run."""
        if number is not None:
            self.controller.edit(self.config.editor.text)
            self._show_config(self.controller.choose(number))

    def _show_config(self, config: ConfigToEdit) -> None:
        """What the controller chose: its config, what it looked at, its evidence."""
        self.config.load(config)
        if self.controller.is_judged_later:
            self.evidence.say(("Checking the config …", "dim"))
        self._draw(keep_place=False)
        self.config.judge(first=not config.judged)

    def on_config_pane_judged(self, event: ConfigPane.Judged) -> None:
        """The verdict on the open run is known."""
        if event.first:
            self._draw(keep_place=False)
        else:
            self._draw_verdict()
            start_worker(self, self._draw_beside, group="beside")

    def on_config_pane_edits_known(self, event: ConfigPane.EditsKnown) -> None:
        """The evidence says whether there are any."""
        self._draw_evidence()

    def on_config_pane_failed(self, event: ConfigPane.Failed) -> None:
        """Say why there is no verdict."""
        self.agenteval.say_error(event.error)

    async def action_explain(self) -> None:
        if self.controller.bench is not None and not await self.config.explain():
            self._say("Nothing to explain here: move to a metric, a property or a matcher.")

    def action_apply_fix(self) -> None:
        if not self.config.editor.apply_first_fix():
            self._say("No problem here has an automatic fix.")

    def action_revert(self) -> None:
        if self.controller.is_edited:
            self.config.revert()
        else:
            self._say("Nothing is changed.")

    def action_flips(self) -> None:
        def chosen(run: str) -> None:
            self._places.forget()
            self._read_run(run, view="transcript")

        show_flips(self, self.controller.impact, chosen)

    def _failing(self) -> Workbench | None:
        """The workbench, when the chosen criterion fails on the open run; else that is said."""
        state = self.controller
        if state.bench is None or state.result is None or state.result.outcome == "failed":
            return state.bench if state.result is not None else None
        name = one_line(state.criterion_name, 60)
        if state.is_unreadable:
            self._say(f"{name} could not be graded: its config has an error. Press {{inspect.fix}} to fix it.")
        else:
            self._say(f"{name} does not fail on this run.")
        return None

    def action_relax(self) -> None:
        """List the smallest edits under which this run passes."""
        bench = self._failing()
        if bench is None:
            return
        editor = self.config.editor

        def chosen(config: str) -> None:
            editor.replace_all(config)
            self._focus_pane("config")

        self.app.push_screen(
            RelaxScreen(bench, self.controller.criterion, editor.text, self.controller.alone), if_answered(chosen)
        )

    def action_relax_now(self) -> None:
        """The smallest edit under which this run passes goes into the editor."""
        bench = self._failing()
        if bench is not None:
            start_worker(self, partial(self._relax_now, bench), group="relax", awaited=True)

    async def _relax_now(self, bench: Workbench) -> None:
        state, editor = self.controller, self.config.editor
        number, text = state.criterion, editor.text
        edit = await state.alone.smallest_edit(bench, number, text)
        # The person has gone on: the edit is of another text.
        if (bench, number, text) != (state.bench, state.criterion, editor.text):
            return
        if edit is None:
            self._say(NO_EDIT)
            return
        editor.replace_all(edit.new_text)
        self._focus_pane("config")
        self._say(
            "Press {inspect.save} to save, {inspect.relax} for other edits, {inspect.revert} to revert:"
            f" {one_line(edit.title, 120)}"
        )

    def action_run_again(self) -> None:
        """The test of the open run, with what was saved: what an edit affects."""
        bench = self.controller.bench
        if bench is not None:
            run_again(self, bench.loaded, bench.run.test_id, edited=self.controller.has_drafts())

    # Saving

    def action_save(self) -> None:
        state = self.controller
        if state.bench is None:
            return
        if state.is_new:
            # The Editor takes the config as it is here, and knows the rest of the criterion.
            self.agenteval.go("editor")
            self._say(
                f"{one_line(state.criterion_name, 40)} is in the form as edited. Press {{inspect.save}} to save it."
            )
            return
        try:
            saving = state.saving(self.config.editor.text)
        except AgentevalError as error:
            self.agenteval.say_error(error)
            return
        if saving is not None:
            errors = state.errors_of(saving)
            fix = self.action_apply_fix if any(error.fix is not None for error in errors) else None
            ask_and_save(self, [error.message for error in errors], partial(self._save, saving), fix)

    def _save(self, saving: EditToSave) -> None:
        if self.still_writes("save"):
            return

        def failed(error: AgentevalError) -> None:
            if isinstance(error, FileChanged):
                self._offer_merge(error.diff, saving)
            else:
                self.agenteval.say_error(error)

        work = partial(write, self.agenteval.session, saving)
        self.ask(work, partial(self._saved, saving), group="save", failed=failed)

    def _saved(self, saving: EditToSave, loaded: LoadedSuite) -> None:
        state = self.controller
        line = state.saved(saving, loaded)
        self._say(f"Saved {loaded.path.name}:{line}. Press {again_key(self)} to run the test again.")
        if state.bench is saving.bench:
            self._read_run(state.run_id, criterion=state.criterion_name, edit=self._typing)

    def _offer_merge(self, diff: str, saving: EditToSave) -> None:
        def answered(_: bool) -> None:
            # Read once more: the file may have changed while the question was there.
            self.ask(partial(on_fresh_file, saving), self._save_merged, group="reload")

        def ask(merged: EditToSave) -> None:
            both = values_of_both(merged.key[2], merged.both)
            self.app.push_screen(FileConflictScreen(merged.loaded.path.name, diff, both=both), if_answered(answered))

        self.ask(partial(on_fresh_file, saving), ask, group="reload")

    def _save_merged(self, merged: EditToSave) -> None:
        state = self.controller
        if state.bench is merged.bench and state.is_open(merged.key) and self.config.editor.text != merged.text:
            self.config.editor.replace_all(merged.text)  # who looks at it sees what is saved
        self._save(merged)

    # What a person makes of the run: a criterion, a label, a row of a dataset, a file, a copy

    def action_make_criterion(self) -> None:
        self._make_criterion(
            self.transcript.starter(),
            "Select some text with the mouse, search for it with /, or go to a tool call, to make a criterion from it.",
        )

    def action_calls_criterion(self) -> None:
        bench = self.controller.bench
        starter = starter_of_calls(bench.transcript) if bench is not None else None
        self._make_criterion(starter, "No tool call here succeeded.")

    def _make_criterion(self, starter: Starter | None, otherwise: str) -> None:
        bench = self.controller.bench
        if bench is None or starter is None:
            self._say(otherwise)
        elif bench.loaded is None:
            self._say("This test is not in a suite file, so you can't add a criterion.", severity="warning")
        else:
            self.agenteval.edit_test(bench.run.suite_key, bench.run.test_id, starter=starter, run=bench.run.id)

    def action_decisive(self) -> None:
        """Go to the step where the run was lost; from there to those that are named beside it."""
        state, bench = self.controller, self.controller.bench
        if bench is None:
            return
        here = step_at(bench.transcript, self.transcript.view.cursor_key) if self.pane == "transcript" else -1
        step = state.suspect_after(here)
        if step is not None and state.blame is not None:
            self.go_to_step(step)
            self._say(one_line(suspect_line(state.blame, step), 200) + _blame_key("all of it"))
        elif not state.may_be_blamed:
            self._say("This run did not fail.")
        elif state.blame is None and state.blame_error is not None:
            self.agenteval.say_error(state.blame_error)
        elif state.blame is None:
            start_worker(self, self._go_to_decisive, group="decisive", awaited=True)
        else:
            self._say("No step of this run is to blame." + _blame_key("why"))

    async def _go_to_decisive(self) -> None:
        """Go to the decisive step as soon as it is known, if that takes no longer than a key may wait."""
        bench = self.controller.bench
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._blame_known.wait(), LOOKING_SECONDS)
        # Another run was opened meanwhile.
        if self.controller.bench is not bench:
            return
        if self._blame_known.is_set():
            self.action_decisive()
        else:
            self._say("Still looking for the step where this run went wrong. Try again in a moment.")

    def go_to_step(self, step: int) -> None:
        """Show a message in the transcript."""
        bench = self.controller.bench
        if bench is None or step >= len(bench.transcript.messages):
            return
        if self.view != "transcript":
            self._turn_to("transcript")
        self._focus_pane("transcript")
        any(self.transcript.view.go_to_key(key) for key in keys_of(bench.transcript, step))

    def action_label(self) -> None:
        """What a person thinks of the run, or of the criterion that is shown."""
        state = self.controller
        bench, name = state.bench, state.criterion_name
        if bench is None:
            return

        def kept(_: LabelSaved) -> None:
            if state.bench is bench:
                self._read_run(bench.run.id, criterion=name)

        ask("label", self, bench.run.id, name if state.was_graded else "", kept)

    def action_replies(self) -> None:
        """What judges and others were asked about this run, and what they said; its failed attempts."""
        facts = self.controller.facts
        if self.controller.bench is None:
            return
        if not facts.replies and not facts.attempts:
            self._say("No judge was asked about this run, and no attempt failed.")
            return
        names, chosen = self.controller.names_by_hash(), self.controller.criterion_name
        first = next((digest for digest, name in names.items() if name == chosen), "")
        entries = entries_of(facts.replies, facts.attempts, names, first)
        self.app.push_screen(JudgeLogScreen(entries, asked_summary(facts.replies, facts.attempts)))

    def action_export(self) -> None:
        """Write the run to a file."""
        if self.controller.bench is None:
            return

        def written(path: Path) -> None:
            place = NotificationSource("file", str(path.resolve()))
            self.agenteval.say(f"Wrote {one_line(str(path), 200)}", place=place)

        self.app.push_screen(sheet("export_run", self.controller.bench.run), if_answered(written))

    def action_add_row(self) -> None:
        """The run becomes a row of a dataset."""
        bench = self.controller.bench
        if bench is None:
            return
        row = row_of_run(bench.run, bench.transcript)
        provenance = provenance_of(bench.run, self.controller.facts.labels)

        def done(added: RowAdded) -> None:
            self._added_row = added
            self._say(
                f"Added row {added.number} to {one_line(added.path.name, 60)}. Press {{inspect.take_back}} to undo."
            )

        path, encoding = dataset_for(bench.run, bench.loaded)
        self.app.push_screen(sheet("add_row", path, row, provenance, encoding), if_answered(done))

    def action_take_back_row(self) -> None:
        """The row that was added last goes again."""
        added = self._added_row
        if added is None:
            self._say("No row was added since the app started.")
            return
        if self.still_writes("row"):
            return

        def gone(_: None) -> None:
            self._added_row = None
            self._say(f"Row {added.number} removed from {one_line(added.path.name, 80)}.")

        self.ask(lambda: undo_add_row(added), gone, group="row")

    def action_copy_text(self) -> None:
        """The selected text, else the block under the cursor."""
        selected = self.get_selected_text()
        text = selected or self.transcript.view.selected_text
        if not text:
            self._say("Nothing to copy: select some text, or move the cursor to a block.")
            return
        what = "what is selected" if selected else "this block"
        self.agenteval.copy(displayable(text), f"{what}, {len(text):,} characters.")

    def action_open_attachment(self) -> None:
        """The image or file under the cursor, else the next one below, else the first."""
        attachment = self.transcript.attachment()
        if attachment is None:
            self._say("No message of this run has an image or a file.")
        else:
            self.agenteval.open_attachment(attachment)

    def action_copy_address(self) -> None:
        """The command that opens this run at this criterion."""
        address = self.controller.address()
        if not address:
            return
        opens = f"`agenteval open{self.agenteval.session.db_option}`"
        self.agenteval.copy(address, f"{one_line(address)}; {opens} with this address brings you back here.")


def _blame_key(what: str) -> str:
    """Which key shows more of a blame, where the app has that action."""
    return f" Press {{inspect.blame}} to see {what}." if "inspect.blame" in BY_ID else ""
