"""The tab `error` of Inspect: why the agent did not finish, what functions around it raised, and the frames in which
they broke, to step through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from agenteval_tui.analysis.raised import Raised
from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.traceback import Frame, Traceback, frame_places
from agenteval_tui.tui.actions import pane_bindings
from agenteval_tui.tui.presenters.error_lines import Place, raised_lines
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane


class ErrorPane(TitledPane[None]):
    """The error of the open run and what functions around the agent raised, with the cursor on a frame."""

    NAME = "error"
    BINDINGS: ClassVar[list[BindingType]] = list(pane_bindings("error"))

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
