"""The errors of an execution, grouped by kind and agent, and the sheet that lists them: how many of each, what
happened, how to fix it; enter goes to the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.runs.events import RunState
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.run_grid import RETRIED
from agenteval_tui.tui.presenters.status_style import mark
from agenteval_tui.tui.styled_text import Cell, Line, fit, paragraph, spread
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

MOST = 20_000
"""Runs that are looked at: a key press must not wait for more."""


class ErrorGroup(Struct):
    """Errors that have one agent and one message, figures in it apart. `retried`: they passed by themselves, or may."""

    agent: str
    message: str
    fix: str
    retried: bool
    runs: list[str]
    places: list[str]


def error_groups(view: ExecutionView) -> list[ErrorGroup]:
    """What ended runs first, most frequent first; then what was tried again."""
    groups: dict[tuple[str, str, bool], ErrorGroup] = {}

    def add(run: RunState, message: str, fix: str, retried: bool) -> None:
        key = (run.ref.agent, _shape(message), retried)
        group = groups.get(key)
        if group is None:
            group = groups[key] = ErrorGroup(run.ref.agent, message, fix, retried, [], [])
        group.fix = group.fix or fix
        if not group.runs or group.runs[-1] != run.ref.run:
            group.runs.append(run.ref.run)
            group.places.append(_place(run))

    for run in _erring(view):
        if run.status == "error":
            add(run, run.error or _why(run), run.fix, False)
        for message in run.retries:
            add(run, message, "", True)
    return sorted(groups.values(), key=lambda error_group: (error_group.retried, -len(error_group.runs)))


def group_line(group: ErrorGroup, width: int) -> Line:
    """A row of the list: how often, on which agent, what."""
    sign = RETRIED if group.retried else mark("error")
    words = "tried again" if group.retried else "ended in an error"
    start: list[Cell] = [(" ", ""), sign, (f" {len(group.runs):>4} ", "bold"), (one_line(group.message, 300), "")]
    end = ((f"  {one_line(group.agent, 24)}", "dim"), (f"  {words} ", "dim"))
    return spread(start, end if width >= 90 else (), width)


def group_detail(group: ErrorGroup, width: int) -> list[Line]:
    """The whole message, the remedy, the runs."""
    sign = "tried again" if group.retried else "ended in an error"
    lines: list[Line] = [
        fit(((one_line(group.agent, 60), "bold"), (f"   {count(len(group.runs), 'run')} {sign}", "dim")), width)
    ]
    lines += paragraph(group.message, width)
    if group.fix:
        lines += [(), (("Remedy", "accent"),), *paragraph(group.fix, width)]
    lines.append(())
    lines += paragraph(abridged(group.places, 5), width, "dim")
    return lines


def _erring(view: ExecutionView) -> Iterable[RunState]:
    for number, run in enumerate(view.runs.values()):
        if number >= MOST and len(view.runs) > MOST:
            # Of a huge execution: those that did not pass, which are known.
            yield from (view.runs[failure] for failure in view.failures[:MOST] if view.runs[failure].status == "error")
            return
        if run.status == "error" or run.retries:
            yield run


def _why(run: RunState) -> str:
    return "; ".join(f"{name}: {why}" for name, why in run.failed) or "no reason given"


def _place(run: RunState) -> str:
    ref = run.ref
    variation = f" · {one_line(ref.variation, 24)}" if ref.variation else ""
    row = f" #{one_line(ref.row_label, 24)}" if ref.row else ""
    return f"{one_line(ref.test, 40)}{variation}{row} run {ref.repetition}"


def _shape(message: str) -> str:
    """The message without its figures: "12.3 s" and "12.4 s" are one error."""
    # The start tells errors apart; behind it a server may repeat all that it was sent.
    return "".join("0" if char.isdigit() else char for char in message[:200])


class RunErrorsScreen(Sheet[str]):
    """Dismissed with the id of the run to go to, or None. Enter again goes to the group's next run."""

    SCOPE = "errors"
    BINDINGS: ClassVar[list[BindingType]] = bindings("errors")

    def __init__(self, groups: Sequence[ErrorGroup]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        keys = self.edge(("enter", "go to the run"), ("tab", "pane"))
        with SheetFrame("Errors", keys, subject=self._subject(), width="large"):
            yield VirtualList(Rows(self._groups, group_line), id="groups")
            yield Section("what happened, and how to fix it")
            yield LinesView(id="detail")

    def _subject(self) -> str:
        ended = sum(len(group.runs) for group in self._groups if not group.retried)
        again = sum(len(group.runs) for group in self._groups if group.retried)
        parts = [f"{count(ended, 'run')} ended in an error"] if ended else []
        parts += [f"{count(again, 'run')} tried again"] if again else []
        return ", ".join(parts)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show what this one is about."""
        group = self._groups[event.index]
        self.query_one("#detail", LinesView).show(lambda width: group_detail(group, width), keep_place=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Go to the first run of the group."""
        self.dismiss(self._groups[event.index].runs[0])
