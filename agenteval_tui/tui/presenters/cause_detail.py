"""One cause of failures in full: what was decided, how much of it there is, its tests, and one of its runs."""

from __future__ import annotations

from agenteval_tui.analysis.causes import CauseGroup
from agenteval_tui.core.display import one_line
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.cause_rows import CauseRow
from agenteval_tui.tui.presenters.evidence_pane import result_lines
from agenteval_tui.tui.presenters.status_style import mark
from agenteval_tui.tui.presenters.text_layout import paragraph, wrap_to
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit, longest_that_fits
from agenteval_tui.views.causes import cause_in_full


def cause_lines(
    row: CauseRow,
    width: int,
    now: int,
    example: RunRow | None = None,
    result: CriterionResult | None = None,
    number: int = 0,
) -> list[Line]:
    """One cause in full: what was decided, how much of it there is, its tests, and one of its runs explained."""
    lines: list[Line] = []
    for element in cause_in_full(row.group, row.standing, now):
        lines += [*([()] if lines else []), *view_lines((element,), width)]
    if example is not None:
        lines += [(), *_example(row.group, example, result, number, width)]
    return wrap_to(lines, width)


def _example(group: CauseGroup, example: RunRow, result: CriterionResult | None, number: int, width: int) -> list[Line]:
    place = f"{number + 1} of {len(group.runs)}"
    whose: list[Cell] = [mark(example.status), (f" {one_line(example.test_id, 60)}", "accent")]
    run, agent, example_text = f"  run {example.repetition}", f"  {one_line(example.agent, 30)}", f"   example {place}"
    heads: list[Line] = [(*whose, (f"{run}{agent}{example_text}", "dim")), (*whose, (f"{run}{example_text}", "dim"))]
    lines: list[Line] = [longest_that_fits([*heads, (*whose, (f"  {place}", "dim"))], width)]
    if example.prompt_head:
        lines.append(fit((("user  ", "role-user"), (one_line(example.prompt_head, 300), "dim")), width))
    if result is not None:
        return [*lines, (), *result_lines(result, width)]
    message = example.error_message or example.why
    return [*lines, (), *paragraph(message or "There are no more details.", width)]
