"""The runs that an edit would flip, as a list; enter opens one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.run_navigation import known_runs
from agenteval_tui.analysis.workbench import Impact
from agenteval_tui.core.numbers import count
from agenteval_tui.history.store import Store
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.impact import flip_line
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.terminal.sheet import Sheet, if_answered
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

Flip = tuple[str, str, int, str, str, str]
"""Run id, test, repetition, why it failed, outcome now, outcome with the edit."""

LISTED = 500  # all of thousands are read from the history, and nobody reads them all


class VerdictChangesScreen(Sheet[str]):
    """Dismissed with the id of the run to open, or None."""

    SCOPE = "flips"
    BINDINGS: ClassVar[list[BindingType]] = bindings("flips")

    def __init__(self, flips: Sequence[Flip], total: int) -> None:
        """`total` flips, of which the first are listed."""
        super().__init__()
        self._flips = flips
        self._total = total

    def compose(self) -> ComposeResult:
        subject = f"the first {len(self._flips)}" if self._total > len(self._flips) else ""
        title = f"{count(self._total, 'run')} would flip: now → with this edit"
        with SheetFrame(title, self.edge(("enter", "open this run")), subject=subject, width="large"):
            yield VirtualList(
                Rows(self._flips, lambda flip, width: flip_line(*flip[1:], width), lambda flip: flip[0]), id="flips"
            )

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Open this run."""
        self.dismiss(event.key)


def show_flips(screen: FrameScreen, impact: Impact | None, chosen: Callable[[str], None]) -> None:
    """List the stored runs that an edit would flip, or say that there are none. `chosen` gets the id of the run that is
    opened there."""
    if impact is None or not impact.flips:
        screen.agenteval.say("No run flips with this edit.")
        return
    # The impact is counted further while they are read.
    flips, store = list(impact.flips), screen.agenteval.session.store

    def show(rows: list[Flip]) -> None:
        if screen.is_current:
            screen.app.push_screen(VerdictChangesScreen(rows, len(flips)), if_answered(chosen))

    screen.ask(lambda: listed_flips(store, flips), show, group="flips")


def listed_flips(store: Store, flips: Sequence[tuple[str, str, str]]) -> list[Flip]:
    """The first of these flips, of which the runs are still there."""
    then_of = {run: (now, then) for run, now, then in flips[:LISTED]}
    return [(row.id, row.test_id, row.repetition, row.why, *then_of[row.id]) for row in known_runs(store, then_of)]
