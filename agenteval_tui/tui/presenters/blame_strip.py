"""The strip beside a transcript: a bar for each step, the decisive one and those named beside it marked."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.view_lines import cell
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.views.blame import bars, sign_of, suspects_in

# Colour never says it alone: the more a step is suspected, the heavier is its line. By levels of `views.blame.bars`.
_LINES = {7: "┃", 4: "│", 1: "╎", 0: "┊"} if UNICODE else {7: "#", 4: "|", 1: ":", 0: "."}


class BlameStrip(Struct, frozen=True):
    """`heads`: what stands in the first row of a step that is named; `lines`: what stands in the others, by step."""

    heads: Mapping[int, Cell]
    lines: Mapping[int, Cell]

    def cell(self, step: int, *, first: bool) -> Cell:
        """What stands beside a row of a step; `first`: the step begins there."""
        plain = self.lines.get(step, (" ", ""))
        return self.heads.get(step, plain) if first else plain


def blame_strip(blame: Blame) -> BlameStrip:
    """The strip of a run."""
    made = bars(blame)
    lines = {how: cell(_LINES[how[0]], how[1]) for how in {(bar.level, bar.token) for bar in made}}
    return BlameStrip(
        {step: cell(*sign_of(blame, step)) for step in suspects_in(blame)},
        {bar.step: lines[bar.level, bar.token] for bar in made},
    )


def decisive_cells(blame: Blame, key: str) -> tuple[Cell, ...]:
    """Which step is named first, with its sign, and the `key` that goes there; () where no step is named."""
    named = suspects_in(blame)
    if not named:
        return ()
    return cell(*sign_of(blame, named[0])), (f" step {named[0] + 1} ", "bold"), (f"({key})", "accent")
