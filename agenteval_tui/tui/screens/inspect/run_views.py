"""The tabs of Inspect in the transcript's place: the difference with another run, where the repetitions of the test
diverge, what the run printed, the state around it, why its agent broke off, and what the model had of its context.
Those that are about another run tell the screen which one is wanted; evidence and config stay beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message

from agenteval_tui.analysis.function_exceptions import Raised
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.analysis.trajectory_alignment import Alignment
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.around.record import AroundRecord
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.transcripts.traceback import Frame, Traceback, frame_places
from agenteval_tui.tui.actions import bindings, key_of
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.presenters import fork_columns
from agenteval_tui.tui.presenters.branch_tree import TreeRow, detail_lines, head_lines
from agenteval_tui.tui.presenters.difference import WIDE, DifferenceDocument, half_width, run_line
from agenteval_tui.tui.presenters.fork_columns import ForkTree
from agenteval_tui.tui.presenters.run_tabs import Place, output_rows, raised_lines, state_rows
from agenteval_tui.tui.presenters.status_style import COLUMN_RULE, RULE
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.screens.inspect.branches import BranchesController, ForksController
from agenteval_tui.tui.screens.inspect.run_pair import RunPair
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Line, indented, pad, paragraph
from agenteval_tui.tui.widgets.blocks_view import BlocksView
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.views.difference import verdict_text
from agenteval_tui.views.divergence import divergence_text
from agenteval_tui.views.model import sentence
from agenteval_tui.views.model_request import request_view


class DifferenceView(BlocksView[DifferenceDocument], can_focus=True):
    """Shows an alignment: side by side where there is room, else one above the other."""

    class Moved(Message):
        """The cursor is on another block now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._alignment = Alignment(())

    def _make_document(self, width: int) -> DifferenceDocument:
        return DifferenceDocument(self._alignment, width)

    def show(self, alignment: Alignment) -> None:
        """Show another difference, at its first one."""
        self._alignment = alignment
        self._document = None
        document = self.document  # puts the cursor on its first block
        self._resize_content()
        self._scroll(0)
        self.refresh()
        if document.differences:
            self.go_to_pair(document.differences[0])

    def go_to_pair(self, pair: int) -> None:
        """Put the cursor on a pair of steps, a little below the first row."""
        self._show_block(self.document.block_of(pair))

    def next_difference(self, direction: int) -> bool:
        """Go to the difference after (1) or before (-1) the cursor; False when there is none."""
        block = self.document.next_difference(self.cursor, direction)
        if block is not None:
            self._show_block(block)
        return block is not None

    def toggle_fold(self) -> None:
        """Fold or unfold; the cursor stays on its step."""
        if self.cursor < 0:
            return
        document = self.document
        # Folding joins and splits blocks: a number of a block means another one then.
        pair, anchor = document.blocks[self.cursor].first, document.anchor(self.scroll_offset.y)
        document.fold(self.cursor, folded=not document.is_folded(self.cursor))
        self.cursor = document.block_of(pair)
        self._keep(anchor)

    def fold_all(self, folded: bool) -> None:
        """Fold everything that is alike, or open it; the cursor stays on its step."""
        pair = self.document.blocks[self.cursor].first if self.cursor >= 0 else 0
        super().fold_all(folded)
        self.cursor = self.document.block_of(pair) if self.document.blocks else -1

    def _tell_cursor(self) -> None:
        self.post_message(self.Moved())

    def _show_block(self, block: int) -> None:
        document, height = self.document, self._view_height()
        document.settle(document.top(block), height)
        self._resize_content()
        first, last = document.top(block), document.bottom(block)
        top = self.scroll_offset.y
        if first < top or last > top + height:
            # With what is before it in sight: that says where one is.
            self._scroll(max(first - min(height // 4, max(height - (last - first), 0)), 0))
        self.cursor = block


NO_OTHER = "No other run of this test and row is stored, so there is nothing to compare with."
SIDE_BY_SIDE = 100
"""Cells from which the tree of branches has its details beside it, not below."""


@dataclass
class RunWanted(Message):
    """A person wants to see a run, so; esc leads back to where they were."""

    run: str
    how: InspectTarget


class DifferencePane(TitledPane[None]):
    """The open run (left) beside another run of its test, step by step."""

    NAME = "difference"
    BINDINGS: ClassVar[list[BindingType]] = bindings("difference")

    class Changed(Message):
        """What the title says has changed."""

    def __init__(self) -> None:
        super().__init__(None)
        self.pair: RunPair | None = None
        self._notice = ""

    def parts(self) -> ComposeResult:
        yield LineBlock(self._run_lines, id="runs")
        yield DifferenceView(id="difference")

    @property
    def view(self) -> DifferenceView:
        """The steps."""
        return self.query_one("#difference", DifferenceView)

    def heading(self) -> Heading:
        return "difference", self.much

    @property
    def much(self) -> Line:
        """How much differs, and at which difference the cursor is."""
        if self.pair is None:
            return ()
        verdict = (verdict_text(self.pair.alignment), "dim")
        return ((f"{self.number}   ", "bold"), verdict) if self.number else (verdict,)

    @property
    def number(self) -> str:
        """At which difference the cursor is: "3 of 6"; "" where it is on none."""
        document = self.view.document
        number = document.number_of(self.view.cursor) if self.pair is not None else 0
        return f"{number} of {len(document.differences)}" if number else ""

    def shows(self, run: str, other: str = "") -> bool:
        """Is this run shown beside that one ("": any)?"""
        return self.pair is not None and self.pair.left.id == run and other in ("", self.pair.right.id)

    def show(self, pair: RunPair | None) -> None:
        """Show two runs; None: there is no other run to compare with."""
        self.pair = pair
        self._notice = "" if pair is not None else NO_OTHER
        self.view.display = pair is not None
        if pair is not None:
            self.view.show(pair.alignment)
        self.query_one("#runs", LineBlock).retell()
        self._tell()

    def on_resize(self, event: Resize) -> None:
        """Beside each other or one above the other: so stand their names too."""
        self.query_one("#runs", LineBlock).retell()

    def on_difference_view_moved(self, event: DifferenceView.Moved) -> None:
        """Say which difference this is."""
        event.stop()
        self._tell()

    def _tell(self) -> None:
        self.retitle()
        self.post_message(self.Changed())

    def _run_lines(self, width: int) -> list[Line]:
        """Both runs, in the place and with the sign that their texts have below."""
        pair = self.pair
        if pair is None:
            return [(), *paragraph(self._notice, max(width - 1, 1), "dim", 2)] if self._notice else []
        minus, plus = ("-", "removed bold"), ("+", "added bold")
        # The view below has a column for its cursor and one for its scroll bar.
        inner = width - 2
        if inner < WIDE:
            lines = [run_line(pair.left, minus, inner), run_line(pair.right, plus, inner)]
            return [*indented(lines), ((RULE * width, "rule"),)]
        column = half_width(inner)
        left, right = run_line(pair.left, minus, column), run_line(pair.right, plus, column)
        return [((" ", ""), *pad(left, column), (COLUMN_RULE, "rule"), *right), ((RULE * width, "rule"),)]

    # Actions

    def action_next_difference(self) -> None:
        self._step(1)

    def action_previous_difference(self) -> None:
        self._step(-1)

    def _step(self, direction: int) -> None:
        if not self.view.next_difference(direction) and self.pair is not None:
            services(self).say("There is no difference. Both runs did the same.")

    def action_open_left(self) -> None:
        """The transcript, at the step under the cursor."""
        self._open_side("left")

    def action_open_right(self) -> None:
        """The transcript of the other run, there."""
        self._open_side("right")

    def _open_side(self, side: str) -> None:
        pair, view = self.pair, self.view
        if pair is not None:
            place = pair.place(view.document.blocks[view.cursor].first, side) if view.cursor >= 0 else None
            run = pair.left if side == "left" else pair.right
            how: InspectTarget = (
                {"view": "state"} if place and place[0] == "state" else {"view": "transcript", "at": place}
            )
            self.post_message(RunWanted(run.id, how))

    def action_swap(self) -> None:
        """The other run is the open one now, and this one is what it is compared with."""
        if self.pair is not None:
            self.post_message(RunWanted(self.pair.right.id, {"view": "difference", "beside": self.pair.left.id}))

    def action_fold(self) -> None:
        self.view.toggle_fold()

    def action_fold_all(self) -> None:
        self.view.action_fold_all()

    def action_copy(self) -> None:
        """Copy the command that prints this difference."""
        if self.pair is not None:
            command = self.pair.command(services(self).session.db_option)
            services(self).copy(command, command)


class BranchesPane(TitledPane[BranchesController]):
    """The repetitions of the open run's test as a tree; the step under the cursor in full with the runs that took
    it."""

    NAME = "branches"
    BINDINGS: ClassVar[list[BindingType]] = bindings("branches")

    @dataclass
    class Asked(Message):
        """Another tree is wanted: out of other executions, or with other arguments as other steps or not."""

        other_scope: bool = False
        other_arguments: bool = False

    @dataclass
    class ForksWanted(Message):
        """The forks of the run are wanted, or its repetitions."""

        forks: bool

    @dataclass
    class KeepWanted(Message):
        """A fork of run `run` is to be kept: as a test, or its system prompt as that of the agent."""

        run: str
        branch: Outcomes
        prompt: bool

    class StopWanted(Message):
        """The continuations that are at work are to be stopped."""

    def __init__(self, controller: BranchesController, forks: ForksController) -> None:
        """`forks`: those of the run, which can be shown in the place of its repetitions."""
        super().__init__(controller)
        self.forks = forks
        self.shows_forks = False

    def parts(self) -> ComposeResult:
        yield LineBlock(self._head_lines, id="heading")
        with Container(id="steps"):
            yield VirtualList(id="branches")
            yield LinesView(id="branch")

    @property
    def steps(self) -> VirtualList:
        """The list of steps."""
        return self.query_one("#branches", VirtualList)

    def heading(self) -> Heading:
        if self.shows_forks and self.forks.tree is not None:
            return "where runs diverge", count(len(self.forks.tree.forks.branches), "fork")
        divergence = self._controller.divergence
        return "where runs diverge", count(len(divergence.rows), "run") if divergence is not None else ""

    def on_resize(self, event: Resize) -> None:
        """The details have the side that has room."""
        self.set_class(event.size.width >= SIDE_BY_SIDE, "wide")

    def show_forks(self, tree: ForkTree) -> None:
        """Show the forks, with the cursor on the newest; later it stays on its row until there is a new branch."""
        before, cursor = self.forks.rows if self.shows_forks else None, self.steps.cursor
        self.shows_forks = True
        # The rows before had the run itself, too: where they are no more than the branches now, a branch came.
        begins = before is None or before.count() <= len(tree.forks.branches)
        key = None if begins or before is None or cursor >= before.count() else before.key(cursor)
        self.forks.show(tree)
        if self.forks.rows is not None:
            self.steps.set_source(self.forks.rows, keep_key=key)
        if begins:
            self.steps.cursor = tree.newest
        self.query_one("#heading", LineBlock).retell()
        self.retitle()
        self.show_step()

    def show(self, divergence: Divergence) -> None:
        """Show a tree, at the branch that the open run took."""
        self.shows_forks = False
        self._controller.show(divergence)
        self._draw_tree()
        # Where they part nowhere, it stays there.
        self.steps.cursor = 0
        self.query_one("#heading", LineBlock).retell()
        self.retitle()
        self._to_fork()
        self.show_step()

    def _draw_tree(self, keep_key: str | None = None) -> None:
        if self._controller.rows is not None:
            self.steps.set_source(self._controller.rows, keep_key=keep_key)

    def _head_lines(self, width: int) -> list[Line]:
        if self.shows_forks and self.forks.tree is not None:
            return fork_columns.head_lines(self.forks.tree, key_of("inspect.fork", services(self).keymap), width)
        divergence = self._controller.divergence
        return head_lines(divergence, width) if divergence is not None else []

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Open a fold; else inspect a run of this branch."""
        event.stop()
        if self.shows_forks:
            self.action_inspect()
            return
        row = self._row()
        if row is not None and row.hidden:
            self.action_fold()
        else:
            self.action_inspect()

    def _row(self) -> TreeRow | None:
        return self._controller.row(self.steps.cursor)

    def show_step(self) -> None:
        """Show the step under the cursor in full; when it moves is the screen's to say."""
        if self.shows_forks and (tree := self.forks.tree) is not None:
            chosen = self.steps.cursor
            self.query_one("#branch", LinesView).show(
                lambda width: fork_columns.column_lines(tree, chosen, width), keep_place=False
            )
            return
        divergence, row = self._controller.divergence, self._row()
        if divergence is not None and row is not None:
            self.query_one("#branch", LinesView).show(
                lambda width: detail_lines(divergence, row, width), keep_place=False
            )

    def _to_fork(self) -> bool:
        """Put the cursor on the branch at the fork that the run itself took, else on the first."""
        place, rows = self._controller.fork_row(), self._controller.rows
        if place is not None and rows is not None:
            self.steps.move_to_key(rows.key(place), center=True)
        return place is not None

    # Actions

    def action_forks(self) -> None:
        """The forks of the run in the place of its repetitions, or the other way round."""
        self.post_message(self.ForksWanted(not self.shows_forks))

    def action_stop(self) -> None:
        """Stop the running continuations."""
        self.post_message(self.StopWanted())

    def action_keep(self) -> None:
        """The fork under the cursor becomes a test."""
        self._keep(prompt=False)

    def action_keep_prompt(self) -> None:
        """The system prompt of the fork under the cursor becomes that of the agent."""
        self._keep(prompt=True)

    def _keep(self, *, prompt: bool) -> None:
        branch = self.forks.branch(self.steps.cursor) if self.shows_forks else None
        if branch is None or self.forks.tree is None:
            services(self).say("Choose a fork first. Press {branches.forks} to show them.")
        else:
            self.post_message(self.KeepWanted(self.forks.tree.forks.run.id, branch, prompt))

    def _is_about_repetitions(self) -> bool:
        """Say, where forks are shown, that a key is about repetitions."""
        if not self.shows_forks:
            return True
        services(self).say("This works on repetitions. Press {branches.forks} to show them.")
        return False

    def action_fork(self) -> None:
        if not self._is_about_repetitions():
            return
        if not self._to_fork() and self._controller.divergence is not None:
            services(self).say(sentence(divergence_text(self._controller.divergence)))

    def action_fold(self) -> None:
        """Open what is folded under the cursor, or fold everything again."""
        if not self._is_about_repetitions():
            return
        row = self._row()
        if row is not None:
            place = self._controller.fold(row)
            rows = self._controller.rows
            self._draw_tree(rows.key(place) if rows is not None and place is not None else None)
            self.show_step()

    def action_inspect(self) -> None:
        """A run of the branch."""
        if self.shows_forks and self.forks.tree is not None:
            fork, continued = self.forks.runs_of(self.steps.cursor)
            if fork:
                how: InspectTarget = {"view": "transcript", "runs": continued} if continued else {"view": "transcript"}
                self.post_message(RunWanted(fork, how))
            return
        row = self._row()
        if row is not None:
            run, runs = self._controller.runs_of(row)
            self.post_message(RunWanted(run, {"view": "transcript", "runs": runs}))

    def action_compare(self) -> None:
        """A failing run of where they part beside a passing one; the run beside its fork."""
        if self.shows_forks and self.forks.tree is not None:
            run, runs = self.forks.runs_of(self.steps.cursor)
            if runs:
                self.post_message(RunWanted(self.forks.tree.forks.run.id, {"view": "difference", "beside": run}))
            return
        pair = self._controller.pair()
        if pair is not None:
            self.post_message(RunWanted(pair[0], {"view": "difference", "beside": pair[1]}))
        elif self._controller.divergence is not None:
            services(self).say("There is nothing to compare: you need a passing run and a failing run.")

    def action_arguments(self) -> None:
        """Whether other arguments make another step."""
        if self._is_about_repetitions():
            self.post_message(self.Asked(other_arguments=True))

    def action_scope(self) -> None:
        """The run's own execution, or all."""
        if self._is_about_repetitions():
            self.post_message(self.Asked(other_scope=True))


class _RunPane(TitledPane[None]):
    """Lines about the open run."""

    def __init__(self) -> None:
        super().__init__(None)
        self._transcript = Transcript()

    def parts(self) -> ComposeResult:
        yield LinesView(id=self.NAME)

    def _show(self, transcript: Transcript, rows: Callable[[int], list[Line]]) -> None:
        self._transcript = transcript
        self.query_one(f"#{self.NAME}", LinesView).show(rows, keep_place=False)
        self.retitle()


class OutputPane(_RunPane):
    """The output of the open run, with its time, and what hooks and services printed."""

    NAME = "output"

    def heading(self) -> Heading:
        lines = sum(max(1, piece.text.count("\n")) for piece in self._transcript.output)
        return self.NAME, count(lines, "line") if lines else ""

    def open(self, transcript: Transcript, record: AroundRecord) -> None:
        """Show the output of another run, and what its execution had around it."""
        self._show(transcript, partial(output_rows, transcript, record))


class StatePane(_RunPane):
    """The state before and after the open run, with what changed."""

    NAME = "state"

    def heading(self) -> Heading:
        probes = len(self._transcript.state)
        return self.NAME, count(probes, "probe") if probes else ""

    def open(self, transcript: Transcript) -> None:
        """Show the state of another run."""
        self._show(transcript, partial(state_rows, transcript))


class ErrorPane(TitledPane[None]):
    """The error of the open run and what functions around the agent raised, with the cursor on a frame."""

    NAME = "error"
    BINDINGS: ClassVar[list[BindingType]] = bindings("error")

    @dataclass
    class EditorWanted(Message):
        """The line of a frame is to be opened in the person's editor."""

        frame: Frame | None

    def __init__(self) -> None:
        super().__init__(None)
        self._error: RunError | None = None
        self._raised: tuple[Raised, ...] = ()
        self._all_frames = False
        self._place: Place | None = None
        self._rows: dict[Place, int] = {}

    def parts(self) -> ComposeResult:
        yield LinesView(id="error")

    @property
    def view(self) -> LinesView:
        """The lines."""
        return self.query_one("#error", LinesView)

    @property
    def frame(self) -> Frame | None:
        """The frame under the cursor."""
        if self._place is None:
            return None
        number, raised, place = self._place
        return self._tracebacks()[number].exceptions[raised].frames[place]

    @property
    def has_something(self) -> bool:
        """Whether the run has an error, or a function around the agent raised."""
        return self._error is not None or bool(self._raised)

    def heading(self) -> Heading:
        places = self._places()
        if self._place not in places:
            return "error", ""
        return "error", f"{places.index(self._place) + 1} of {count(len(places), 'frame')}"

    def open(self, error: RunError | None, raised: tuple[Raised, ...] = ()) -> None:
        """Show the error of another run (None: there is none) and what was raised around it, at the project's last
        frame."""
        self._error, self._raised, self._all_frames = error, raised, False
        self._place = next(iter(self._places()), None)
        self._draw(keep_place=False)

    def _tracebacks(self) -> dict[int, Traceback]:
        own = {} if self._error is None or self._error.traceback is None else {0: self._error.traceback}
        return {**own, **{number: each.traceback for number, each in enumerate(self._raised, 1)}}

    def _places(self) -> list[Place]:
        return [
            (number, *place)
            for number, traceback in self._tracebacks().items()
            for place in frame_places(traceback, all_frames=self._all_frames)
        ]

    def _draw(self, *, keep_place: bool = True) -> None:
        error, raised, place, all_frames = self._error, self._raised, self._place, self._all_frames

        def lines(width: int) -> list[Line]:
            if error is None and not raised:
                return [(), ((" The agent finished: this run has no error.", "dim"),)]
            visible, self._rows = raised_lines(error, raised, width, place, all_frames=all_frames)
            return visible

        self.view.show(lines, keep_place=keep_place)
        self.retitle()

    # Actions

    def action_next_frame(self) -> None:
        """The caller of this frame, then the frames of what it came from."""
        self._step(1)

    def action_previous_frame(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        places = self._places()
        if not places:
            return
        # From nowhere, either way leads to the first frame.
        before = places.index(self._place) if self._place in places else -step
        self._place = places[max(0, min(before + step, len(places) - 1))]
        self._draw()
        row, view = self._rows.get(self._place, 0), self.view
        if not view.scroll_offset.y <= row < view.scroll_offset.y + view.size.height - 2:
            view.scroll_to(y=max(0, row - 1), animate=False)

    def action_fold(self) -> None:
        """Show the frames of packages too, or fold them again."""
        self._all_frames = not self._all_frames
        if self._place not in self._places():
            places = self._places()
            self._place = places[0] if places else None
        self._draw()

    def action_open_editor(self) -> None:
        """The line of the frame in $EDITOR."""
        self.post_message(self.EditorWanted(self.frame))


_MOST = 300
"""Messages of a request that are shown first, so that a context of thousands opens at once."""


class ContextPane(TitledPane[None]):
    """The requests of the open run, one at a time."""

    NAME = "context"
    BINDINGS: ClassVar[list[BindingType]] = bindings("context")

    @dataclass
    class AnswerWanted(Message):
        """The transcript's message that the shown request led to is to be seen."""

        message: int | None

    def __init__(self) -> None:
        super().__init__(None)
        self._requests = ModelRequests()
        self._calls: list[str] = []
        self.number = 0
        """The request that is shown, from 1; 0: there is none."""
        self._most = _MOST

    def parts(self) -> ComposeResult:
        yield LinesView(id="context")

    def heading(self) -> Heading:
        return "context", f"request {self.number} of {len(self._requests.references)}" if self.number else ""

    def open(self, transcript: Transcript) -> None:
        """Show the last request of another run."""
        self._requests = transcript.requests or ModelRequests()
        self._calls = [call.name for call in transcript.tool_calls]
        self.go_to(len(self._requests.references))

    def go_to_answer(self, message: int) -> None:
        """Show the request for this message of the transcript, or for the first answer behind it."""
        answers = [
            (reference.answer, number)
            for number, reference in enumerate(self._requests.references, 1)
            if reference.answer is not None and reference.answer >= message
        ]
        if answers:
            self.go_to(min(answers)[1])

    def go_to(self, number: int) -> None:
        """Show a request by its number."""
        self.number = max(1, min(number, len(self._requests.references))) if self._requests.references else 0
        self._most = _MOST
        self._draw()

    def _draw(self) -> None:
        requests, number, calls, most = self._requests, self.number, self._calls, self._most
        more = f"press {key_of('context.older', services(self).keymap)} to show more"

        def lines(width: int) -> list[Line]:
            if not number:
                return [
                    (),
                    ((" What the model saw is not recorded: `capture: model` of the agent records it.", "dim"),),
                ]
            lines = view_lines(request_view(requests, number, calls, most=most, more=more), width - 1)
            return indented(lines)

        self.query_one("#context", LinesView).show(lines, keep_place=False)
        self.retitle()

    # Actions

    def action_next_request(self) -> None:
        """The request after this one."""
        self.go_to(self.number + 1)

    def action_previous_request(self) -> None:
        self.go_to(self.number - 1)

    def action_older_messages(self) -> None:
        """More of the messages at its beginning."""
        self._most += 2 * _MOST
        self._draw()

    def action_answer(self) -> None:
        """The answer to it, in the transcript."""
        if self.number:
            self.post_message(self.AnswerWanted(self._requests.references[self.number - 1].answer))


def message_of(key: BlockKey | None, transcript: Transcript) -> int | None:
    """The message that a block of the transcript belongs to: its own, or that of its call."""
    kind, index = key or ("", 0)
    if kind in ("message", "reasoning"):
        return index
    calls = transcript.tool_calls
    return calls[index].message if kind in ("call", "result") and index < len(calls) else None
