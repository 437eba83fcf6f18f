"""What an edited criterion says of one recorded run, and what saving it would change over all: under and beside the
config editor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agenteval_tui.analysis.criterion_preview import Trial
from agenteval_tui.analysis.workbench import Impact
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import line_and_column
from agenteval_tui.core.numbers import age, count, decimal, percent
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.tui.presenters.evidence_pane import FIRST_CONDITIONS, looked_rows
from agenteval_tui.tui.presenters.status_style import UNICODE, WARNING, glyph, mark, token, word
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    fit,
    fit_reason,
    longest_that_fits,
    paragraph,
    spread,
    width_of,
    wrap_to,
)
from agenteval_tui.uxon.diagnostics import Diagnostic

STRIP = 40
"""A strip of outcomes is at most this many cells long."""
MINUS = "−" if UNICODE else "-"
ORDER = ("passed", "failed", "error", "needs_review", "skipped")


def impact_lines(impact: Impact | None, edited: bool, width: int, flips_key: str = "F9") -> list[Line]:
    """Now and with the edit, over all stored runs that the criterion applies to; how many flip.

    `flips_key` lists them. Of a criterion that is in no file yet there is no now.
    """
    if impact is None:
        return [fit(((" reading the stored runs …", "dim"),), width)]
    if impact.total == 0:
        return [fit(((" no other stored runs yet", "dim"),), width)]
    graded = "" if impact.done == impact.total else f"{impact.done:,} of "
    runs = f"{graded}{count(impact.total, 'run')}"
    whole = f"{runs} of {count(impact.tests, 'test')}"
    if edited and impact.done and not impact.now:
        return [_counted((f" if saved: {whole}", f" if saved: {runs}", " if saved:"), "bold", impact.then, width)]
    if not edited:
        return [_counted((f" stored: {whole}", f" stored: {runs}", " stored:"), "dim", impact.now, width)]
    return [fit(((f" if saved: {whole}", "bold"),), width), *_now_and_then(impact, width, flips_key)]


def _counted(heads: Sequence[str], style: str, numbers: Mapping[str, int], width: int) -> Line:
    """How many of each outcome, behind the longest of the heads (longest first) that leaves room for all."""
    figures = counts(numbers)
    lines = [((head, style), (space, ""), *figures) for head in heads for space in ("   ", " ")]
    return longest_that_fits(lines, width)


def impact_in_one_line(impact: Impact | None, edited: bool, width: int, flips_key: str = "F9") -> list[Line]:
    """The same without a heading, for a narrow screen."""
    if impact is None or impact.total == 0 or not edited:
        return impact_lines(impact, False, width)
    if impact.done and not impact.now:
        return [_counted((f" if saved, of {count(impact.total, 'run')}:", " if saved:"), "dim", impact.then, width)]
    return _now_and_then(impact, width, flips_key)


def _now_and_then(impact: Impact, width: int, key: str) -> list[Line]:
    """The outcomes with the saved config and with the edit, run below run: first those that flip."""
    end: tuple[Cell, ...] = ((" no run flips", "dim"),)
    if impact.flips:
        end = ((" ", ""), *gain(impact), (f"  {key} list", "dim"))
    room = width - len(" then  100 %  ") - width_of(end)
    columns = _columns(impact, max(min(room, STRIP), 4))
    lines = []
    for name, place, numbers, right in (("now ", 0, impact.now, ()), ("then", 1, impact.then, end)):
        cells: list[Cell] = [(f" {name} ", "dim")]
        for pair, size in columns:
            cells.append((glyph(pair[place]) * size, token(pair[place])))
        rate = percent(numbers.get("passed", 0) / max(impact.done, 1))
        lines.append(fit((*cells, (f" {rate:>5} ", "bold" if place else ""), *right), width))
    return lines


def _columns(impact: Impact, room: int) -> list[tuple[tuple[str, str], int]]:
    """Outcome now and then, and how many cells of a strip it takes: one a run, or less where there is no room for all.

    What is there takes a cell at least.
    """
    pairs = Counter((now, then) for _, now, then in impact.flips)
    for outcome in ORDER:  # so that both strips have the same runs below each other
        # Only flips are listed; what stays is counted.
        stays = impact.now.get(outcome, 0) - sum(number for (now, _), number in pairs.items() if now == outcome)
        if stays:
            pairs[outcome, outcome] = stays
    ordered = sorted(
        pairs.items(), key=lambda entry: (entry[0][0] == entry[0][1], *map(ORDER.index, reversed(entry[0])))
    )
    total = sum(pairs.values())
    if total <= room:
        return ordered
    sizes = [max(number * room // total, 1) for _, number in ordered]
    # What rounding leaves goes to the largest, where it shows least.
    largest = sizes.index(max(sizes))
    sizes[largest] = max(sizes[largest] + room - sum(sizes), 1)
    return [(pair, size) for (pair, _), size in zip(ordered, sizes, strict=True)]


def gain(impact: Impact) -> tuple[Cell, ...]:
    """How many more runs pass, how many that passed do not any more, and what becomes of others: `+15 −1 ! 2`."""
    better = impact.flipped_to("passed")
    worse = sum(1 for _, now, _ in impact.flips if now == "passed")
    cells: list[Cell] = [(f"+{better:,}", "bold passed")] if better else []
    cells += [(f"{' ' if cells else ''}{MINUS}{worse:,}", "bold failed")] if worse else []
    others = Counter(then for _, now, then in impact.flips if now != "passed" and then != "passed")
    for outcome in ORDER:
        if others[outcome]:
            space = " " if cells else ""
            cells.append((f"{space}{glyph(outcome)} {others[outcome]:,}", f"bold {token(outcome)}"))
    return tuple(cells) or (("±0" if UNICODE else "0", "dim"),)


def counts(numbers: Mapping[str, int]) -> tuple[Cell, ...]:
    """How many of each outcome."""
    cells: list[Cell] = []
    for outcome in ORDER:
        number = numbers.get(outcome, 0)
        if number or outcome in ("passed", "failed"):
            cells.append((f"{'  ' if cells else ''}{glyph(outcome)} {number}", outcome if number else "dim"))
    return tuple(cells)


def problem_lines(
    result: CriterionResult | None,
    diagnostics: Sequence[Diagnostic],
    text: str,
    width: int,
    most: int = 4,
    room: int | None = None,
    *,
    fix_key: str = "F4",
) -> list[Line]:
    """This run's verdict under the config in the editor, and the config's problems, in at most `room` lines.

    The errors come first, one of each place, in as many lines as it needs, and below it its fix with the key that
    applies it (`fix_key`).
    """
    head = _verdict_and_problems(result, len(diagnostics), width)
    if not diagnostics:
        return [head]
    rank = {"error": 0, "warning": 1, "info": 2}
    ordered = sorted(diagnostics, key=lambda diagnostic: (rank.get(diagnostic.severity, 3), diagnostic.start))
    # What else is wrong at a place mostly follows from what is wrong there first.
    first = list({diagnostic.start: diagnostic for diagnostic in reversed(ordered)}.values())[::-1][:most]
    lines: list[Line] = [head]
    remaining = len(ordered)
    for diagnostic in first:
        rows = _problem(diagnostic, text, width, fix_key)
        # The line that counts the rest needs room too. The first problem is always there.
        if room is not None and remaining < len(ordered) and len(lines) + len(rows) + (remaining > 1) > room:
            break
        lines += rows
        remaining -= 1
    if remaining:
        lines = lines[: room - 1] if room is not None else lines
        lines.append(fit(((f"   … {remaining} more", "dim"),), width))
    return lines[:room]


def _problem(diagnostic: Diagnostic, text: str, width: int, fix_key: str) -> list[Line]:
    """What is wrong, where, and its fix."""
    line, column = line_and_column(text, diagnostic.start)
    style = "failed" if diagnostic.severity == "error" else "error" if diagnostic.severity == "warning" else "dim"
    place = f" {_SIGNS.get(diagnostic.severity, '·')} {line}:{column} "
    room, space = max(width - len(place), 1), " " * len(place)
    rows = [
        ((space if number else place, style), *rest) for number, rest in enumerate(paragraph(diagnostic.message, room))
    ]
    if diagnostic.fix is not None:
        rows += [
            ((space, ""), *rest) for rest in paragraph(f"{fix_key} {one_line(diagnostic.fix.title)}", room, "accent")
        ]
    return wrap_to(rows, width)


def _verdict_and_problems(result: CriterionResult | None, problems: int, width: int) -> Line:
    """`this run ✗ failed 0.70   problems 2`; on a narrow pane with fewer words, but with both figures."""
    problems_cell = (f"problems {problems}", "bold" if problems else "dim")
    if result is None:
        return longest_that_fits([((" this run ", "dim"), problems_cell), ((" ", ""), problems_cell)], width)
    if result.neutral:
        none: Line = (mark("none"), (" checks nothing", "dim"))
        return longest_that_fits(
            [
                ((" this run ", "dim"), *none, ("   ", ""), problems_cell),
                ((" ", ""), mark("none"), ("  ", ""), problems_cell),
            ],
            width,
        )
    style, score = token(result.outcome), f" {decimal(result.score)}" if result.score is not None else ""
    verdict: Line = (mark(result.outcome), (f" {word(result.outcome)}{score}", style))
    short: Line = (mark(result.outcome), (score, style))
    return longest_that_fits(
        [
            ((" this run ", "dim"), *verdict, ("   ", ""), problems_cell),
            ((" ", ""), *verdict, ("   ", ""), problems_cell),
            ((" ", ""), *short, ("  ", ""), problems_cell),
        ],
        width,
    )


_SIGNS = {"error": glyph("error"), "warning": WARNING, "info": "·"}


def flip_line(test: str, repetition: int, why: str, now: str, then: str, width: int) -> Line:
    """A run in the list of flips: what it is now and would be."""
    cells: list[Cell] = [(" ", ""), mark(now), (" → ", "dim"), mark(then), ("  ", ""), (one_line(test), "")]
    cells += [(f"  run {repetition}", "dim"), ("  ", "")]
    cells.append((fit_reason(one_line(why, 300), max(width - width_of(cells) - 1, 1)), "dim"))
    return fit(cells, width)


def trial_lines(
    trial: Trial,
    number: int,
    result: CriterionResult,
    *,
    now_ms: int,
    width: int,
    keys: Mapping[str, str],
    has_edit: bool | None,
) -> list[Line]:
    """The run, what the criterion as it is edited looked at in it, and what it found. `keys` and `has_edit`: as of
    `looked_rows`."""
    run = trial.bench.run
    start: list[Cell] = [mark(run.status), (" ", ""), (one_line(run.test_id), "bold")]
    if run.variation:
        start.append((f" · {one_line(run.variation)}", ""))
    if any(run.row for run in trial.runs):
        start.append((f"  #{one_line(run.row_label, 24)}", "dim"))
    start.append((f"  run {run.repetition}", "dim"))
    # The agent gives way to the test, and both to what the criterion says below.
    when = age(run.started_ms, now_ms)
    ends = [" · ".join(filter(None, (one_line(run.agent, 30), when))), when]
    end = next((candidate for candidate in ends if width_of(start) + cell_len(candidate) < width), when)
    lines: list[Line] = [spread(start, ((end, "dim"),), width)]
    if run.output_head:
        answer = paragraph(one_line(run.output_head, 240), width, "dim")
        lines += answer[:2] if len(answer) > 3 else answer
        if len(answer) > 3:
            lines.append(fit((*answer[2], (" …", "dim")), width))
    rows = looked_rows(trial.bench, number, result, (), width, keys=keys, most=FIRST_CONDITIONS, has_edit=has_edit)
    return [*lines, (), *rows.lines]


def trial_title(trial: Trial | None) -> str:
    """Which of the test's runs it is."""
    return f"run {trial.at + 1:,} of {len(trial.runs):,}" if trial is not None else ""


def nothing_yet(test: str, run_key: str, width: int) -> list[Line]:
    """There is no recorded run."""
    words = f"{test} has no recorded run yet. Run it ({run_key}) to see here what each criterion says about it."
    return [(), *paragraph(words, width, "dim")]


def impact_below(impact: Impact | None, edited: bool, key: str, width: int) -> list[Line]:
    """What saving would do to all stored runs."""
    return [] if impact is None else impact_lines(impact, edited, width, key)


def verdict_line(
    trial: Trial | None, result: CriterionResult | None, impact: Impact | None, edited: bool, key: str, width: int
) -> list[Line]:
    """The run's verdict in a line, and behind it what flips: below the config, whatever stands beside it."""
    if trial is None or result is None:
        return []
    score = f" {decimal(result.score)}" if result.score is not None else ""
    head: list[Cell] = [(f" run {trial.at + 1:,} of {len(trial.runs):,} ", "dim"), mark(result.outcome)]
    head.append((f" {word(result.outcome)}{score}", token(result.outcome)))
    if impact is None or not impact.total:
        return [fit(head, width)]
    if edited and impact.now:
        flipped = [f"{impact.flipped_to(outcome)} → {word(outcome)}" for outcome in ORDER if impact.flipped_to(outcome)]
        flips = f"if saved {', '.join(flipped)}  {key}" if flipped else "no run flips"
        head += [("   ", ""), (flips, "bold" if flipped else "dim")]
    else:
        head += [("   if saved " if edited else "   stored ", "dim"), *counts(impact.then)]
    return [fit(head, width)]
