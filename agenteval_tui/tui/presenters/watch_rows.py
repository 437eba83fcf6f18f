"""Runs that a change of the agent's code made again, as rows of a list, and the change in a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import about_dollars
from agenteval_tui.runs.change.model import CodeChange, RunChange
from agenteval_tui.tui.presenters.status_style import glyph, token
from agenteval_tui.tui.styled_text import Cell, Line, between, cell_len, fit, left, spread, wrap
from agenteval_tui.views.code_change import EFFECTS, change_text

_ORDER = {"passes": 0, "fails": 1, "needs_model": 2, "unchanged": 3}
STYLES = {"good": "passed", "bad": "failed", "warn": "review", "dim": "dim", "": ""}
_EFFECT = 16
_NAMES = 40  # cells of a run's name at most


class WatchRows:
    """The list's source: what changed first. Unchanged runs are listed only where `everything` is."""

    def __init__(self, runs: Sequence[RunChange], *, everything: bool) -> None:
        listed = [run for run in runs if everything or run.effect != "unchanged"]
        self.runs = sorted(listed, key=lambda run: _ORDER[run.effect])
        self._names = max((_named(*_words(run))[1] for run in listed), default=0)

    def count(self) -> int:
        """How many there are."""
        return len(self.runs)

    def key(self, index: int) -> str:
        """The id of the recorded run."""
        return self.runs[index].before

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """`passes now       ✗ → ✓  cancel#1   It is cancelled   HSG6J0M2 → 7J2K`."""
        run = self.runs[index]
        words, meaning = EFFECTS[run.effect]
        style = STYLES[meaning]
        status = "needs_review" if run.effect == "needs_model" else run.status or run.status_before
        cells: list[Cell] = [
            (left(words, _EFFECT), style),
            (glyph(run.status_before), token(run.status_before)),
            (" → ", "dim"),
            (glyph(status), token(status)),
            ("  ", ""),
            (left(_name(run), min(self._names, _NAMES)), "bold" if run.effect != "unchanged" else ""),
            ("  ", ""),
        ]
        if run.effect == "needs_model":
            price = f", {about_dollars(run.cost)}" if run.cost else ""
            cells.append((f"from request {run.request} on{price}: " if run.request else "", ""))
        named = f"{run.criterion}: " if run.criterion else ""
        cells.append((one_line(f"{named}{run.reason}", 400), "dim"))
        tail: list[Cell] = [(f" {short_id(run.after)} ", "dim")] if run.after and width >= 100 else []
        return spread(cells, tail, width)


def change_spans(change: CodeChange, folder: Path, width: int) -> list[Line]:
    """The change in words, wrapped, with their colours."""
    spans = [
        (displayable(text).replace("\n", " "), STYLES.get(meaning, "")) for text, meaning in change_text(change, folder)
    ]
    whole = "".join(text for text, _ in spans)
    return [fit(between(spans, start, end), width) for start, end in wrap(whole, max(width, 10))]


def _name(run: RunChange) -> str:
    return _named(*_words(run))[0]


def _words(run: RunChange) -> tuple[str, int, str, str]:
    return run.test, run.repetition, run.row_key, run.variation


@lru_cache(10_000)  # the rows are put together anew ten times in a second, while runs are made
def _named(test: str, repetition: int, row_key: str, variation: str) -> tuple[str, int]:
    """A run's name, and its cells."""
    row = f" {row_key.partition(':')[2]}" if row_key else ""
    variations = f" ({variation})" if variation else ""
    name = one_line(f"{test}#{repetition}{row}{variations}", 80)
    return name, cell_len(name)
