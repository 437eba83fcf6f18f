"""What an edit would change, in a few lines: under the config editor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval_tui.analysis.workbench import Impact
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import line_and_column
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.tui.presenters.status_style import glyph, mark, token, word
from agenteval_tui.tui.styled_text import Cell, Line, fit
from agenteval_tui.uxon.diagnostics import Diagnostic

ORDER = ("passed", "failed", "error", "needs_review", "skipped")


def impact_lines(impact: Impact | None, edited: bool, width: int, flips_key: str = "F9") -> list[Line]:
    """Now and with the edit, over all stored runs that the criterion applies to; how many flip.

    `flips_key` lists them. Of a criterion that is in no file yet there is no now.
    """
    if impact is None:
        return [fit(((" reading the stored runs …", "dim"),), width)]
    if impact.total == 0:
        return [fit(((" no other stored run of this test yet", "dim"),), width)]
    graded = "" if impact.done == impact.total else f"{impact.done} of "
    head = f" if saved: {graded}{count(impact.total, 'run')} of {count(impact.tests, 'test')}"
    if edited and impact.done and not impact.now:
        return [fit(((head, "bold"), ("   ", ""), *counts(impact.then)), width)]
    if not edited:
        return [fit(((head.replace("if saved", "stored"), "dim"), ("   ", ""), *counts(impact.now)), width)]
    now: tuple[Cell, ...] = ((" now ", "dim"), *counts(impact.now))
    then: tuple[Cell, ...] = ((" with this edit ", "dim"), *counts(impact.then))
    both: tuple[Cell, ...] = (*now, ("  ", ""), *then)
    lines = [fit(((head, "bold"),), width)]
    lines += [fit(both, width)] if width >= 52 else [fit(now, width), fit(then, width)]
    lines.append(fit((*_flips(impact, flips_key),), width))
    return lines


def impact_in_one_line(impact: Impact | None, edited: bool, width: int, flips_key: str = "F9") -> list[Line]:
    """The same in one line, for a narrow screen."""
    if impact is None or impact.total == 0 or not edited:
        return impact_lines(impact, False, width)
    head: Cell = (f" if saved, of {count(impact.total, 'run')}:", "dim")
    if impact.done and not impact.now:
        return [fit((head, (" ", ""), *counts(impact.then)), width)]
    return [fit((head, *_flips(impact, flips_key)), width)]


def counts(numbers: Mapping[str, int]) -> tuple[Cell, ...]:
    """How many of each outcome."""
    cells: list[Cell] = []
    for outcome in ORDER:
        number = numbers.get(outcome, 0)
        if number or outcome in ("passed", "failed"):
            cells.append((f"{glyph(outcome)} {number}  ", outcome if number else "dim"))
    return tuple(cells)


def _flips(impact: Impact, key: str) -> tuple[Cell, ...]:
    if not impact.flips:
        return ((" no run flips", "dim"),)
    cells: list[Cell] = []
    for outcome in ORDER:
        number = impact.flipped_to(outcome)
        if number:
            verb = "run flips" if number == 1 else "runs flip"
            cells.append((f" {number} {verb} to {word(outcome)}", f"bold {token(outcome)}"))
    cells.append((f"   {key} list", "dim"))
    return tuple(cells)


def problem_lines(
    result: CriterionResult | None, diagnostics: Sequence[Diagnostic], text: str, width: int, most: int = 4
) -> list[Line]:
    """This run's verdict under the config as it stands in the editor, and the config's problems.

    The errors come first, each in one line with its place, and its fix with the key that applies it.
    """
    head: list[Cell] = [(" this run ", "dim")]
    if result is not None:
        score = f" {result.score:.2f}" if result.score is not None else ""
        head += [mark(result.outcome), (f" {word(result.outcome)}{score}", token(result.outcome)), ("   ", "")]
    head.append((f"problems {len(diagnostics)}", "bold" if diagnostics else "dim"))
    if not diagnostics:
        return [fit(head, width)]
    rank = {"error": 0, "warning": 1, "info": 2}
    ordered = sorted(diagnostics, key=lambda one: (rank.get(one.severity, 3), one.start))
    lines: list[Line] = [fit(head, width)]
    for one in ordered[:most]:
        line, column = line_and_column(text, one.start)
        style = "failed" if one.severity == "error" else "error" if one.severity == "warning" else "dim"
        cells: list[Cell] = [(f" {_SIGNS.get(one.severity, '·')} {line}:{column} ", style), (one_line(one.message), "")]
        lines.append(fit(cells, width))
        if one.fix is not None:
            lines.append(fit(((f"     F4 {one_line(one.fix.title)}", "accent"),), width))
    if len(ordered) > most:
        lines.append(fit(((f"   … {len(ordered) - most} more", "dim"),), width))
    return lines


_SIGNS = {"error": "✗", "warning": "!", "info": "·"}


def flip_line(test: str, repetition: int, why: str, now: str, then: str, width: int) -> Line:
    """A run in the list of flips: what it is now and would be."""
    cells: list[Cell] = [(" ", ""), mark(now), (" → ", "dim"), mark(then), ("  ", ""), (one_line(test), "")]
    cells += [(f"  run {repetition}", "dim"), (f"  {one_line(why, 160)}", "dim")]
    return fit(cells, width)
