"""The strip beside a transcript: a bar for each step, with marks at the decisive step and other suspects."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.view_lines import cell
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.views.blame import bars, sign_of, suspects_in

# Not only the colour shows suspicion: a more suspect step has a heavier line. By levels of `views.blame.bars`.
_LINES = {7: "┃", 4: "│", 1: "╎", 0: "┊"} if UNICODE else {7: "#", 4: "|", 1: ":", 0: "."}


class BlameStrip(Struct, frozen=True):
    """By step: `heads` has the cell for the first row of a suspected step, `lines` the cell for other rows."""

    heads: Mapping[int, Cell]
    lines: Mapping[int, Cell]

    def cell(self, step: int, *, first: bool) -> Cell:
        """The cell beside a row of a step; `first`: the row is the step's first."""
        plain = self.lines.get(step, (" ", ""))
        return self.heads.get(step, plain) if first else plain


def blame_strip(blame: Blame) -> BlameStrip:
    """The strip of a run."""
    levels = bars(blame)
    lines = {how: cell(_LINES[how[0]], how[1]) for how in {(bar.level, bar.token) for bar in levels}}
    return BlameStrip(
        {step: cell(*sign_of(blame, step)) for step in suspects_in(blame)},
        {bar.step: lines[bar.level, bar.token] for bar in levels},
    )


def decisive_cells(blame: Blame, key: str) -> tuple[Cell, ...]:
    """The most suspect step with its sign, and the `key` that goes there; () if no step is suspected."""
    named = suspects_in(blame)
    if not named:
        return ()
    return cell(*sign_of(blame, named[0])), (f" step {named[0] + 1} ", "bold"), (f"({key})", "accent")
