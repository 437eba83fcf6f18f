"""What a person is asked of a run: the question, what was looked at, what was said of it before."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agenteval_tui.analysis.review_queue import Item
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import age
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.label_lines import label_words
from agenteval_tui.tui.presenters.status_style import mark, word
from agenteval_tui.tui.presenters.text_layout import labelled, paragraph, wrap_to
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit
from agenteval_tui.views.evidence import fact_tree

WHY = {
    "needs_review": "waits for a person",
    "failure": "failed, and nobody has labelled it",
    "disagreement": "differs from its label",
    "sample": "chosen by chance",
}


def review_lines(
    item: Item,
    row: RunRow,
    results: Sequence[CriterionResult],
    labels: Sequence[Label],
    comment: str,
    width: int,
    now: int,
) -> list[Line]:
    """Everything that stands beside the transcript."""
    name = item.criterion or "the run as a whole"
    lines: list[Line] = [fit((mark(item.status), (" ", ""), (one_line(name, 80), "bold")), width)]
    lines += [fit(((WHY[item.why], "review"),), width), ()]
    if item.question:
        lines += [*paragraph(item.question, width, "bold accent"), ()]
    if comment:
        lines += [*labelled("comment", comment, width, style="accent"), ()]
    said = [one for one in labels if one.criterion in ("", item.criterion)]
    if said:
        lines.append((("labels", "dim"),))
        for one in said:
            of: Line = (("  ", ""),)
            if not one.criterion:
                of = (("  criterion unknown: " if one.unknown else "  the run: ", "dim"),)
            lines.append((*of, *label_words(one), (f"  {age(one.at_ms, now)}", "dim")))
        lines.append(())
    lines += labelled("run", f"{row.test_id}, run {row.repetition}, agent {one_line(row.agent, 40)}", width)
    lines += labelled("outcome", word(row.status), width)
    chosen = results[item.position : item.position + 1] if item.position >= 0 else results
    if chosen and chosen[0].value is not None and item.position >= 0:
        lines += [(), (("looked at", "dim"),), *paragraph(chosen[0].value, width)]
    if chosen:
        # What was looked at stands above in full.
        without = [replace(one, value=None) if item.position >= 0 else one for one in chosen]
        lines += [(), *view_lines((fact_tree(explain(without)),), width)]
    return wrap_to(lines, width)


def ended_lines(labelled_now: int, skipped: int, width: int) -> list[Line]:
    """What is said when nothing waits any more."""
    if not labelled_now and not skipped:
        head: Cell = ("Nothing waits for a person.", "passed")
    else:
        head = (f"That was all: {labelled_now} labelled, {skipped} skipped.", "passed")
    keys = (
        ("f", "failures that nobody has labelled"),
        ("d", "results that differ from their label"),
        ("m", "20 runs by chance"),
        ("A", "how far criteria and judges agree with people"),
        ("u", "back to the one before"),
    )
    lines: list[Line] = [(), (("  ", ""), head), ()]
    lines += [fit((("  ", ""), (key, "bold accent"), (f"  {what}", "dim")), width) for key, what in keys]
    return lines
