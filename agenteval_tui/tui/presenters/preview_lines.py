"""What the edited criterion says of a recorded run: the Editor's pane beside the config, and its last line."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.analysis.criterion_preview import Trial
from agenteval_tui.analysis.workbench import Impact
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import age, decimal
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.tui.presenters.evidence_pane import FIRST_CONDITIONS, looked_rows
from agenteval_tui.tui.presenters.impact import ORDER, counts, impact_lines
from agenteval_tui.tui.presenters.status_style import mark, token, word
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, paragraph, spread, width_of


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
