"""What is shown of a review: what waits for a person, and one of these things in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agenteval_tui.analysis.review_queue import Item, Why
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.evidence import fact_tree, place_of
from agenteval_tui.views.label import labels_view
from agenteval_tui.views.model import (
    OUTCOMES,
    Element,
    Fact,
    Facts,
    Paragraph,
    View,
    outcome_text,
    paragraphs,
    plain,
    text,
)

WHY: dict[Why, tuple[str, str]] = {
    "needs_review": ("waits", "waits for a person"),
    "failure": ("failed", "failed, and not labelled yet"),
    "disagreement": ("differs", "differs from its label"),
    "sample": ("sample", "chosen by chance"),
}
"""Why something is looked at, in short and in full."""
NOTHING = "nothing waits for a person"
_SHOWN = 50


def waiting_lines(items: Sequence[Item]) -> View:
    """A line for each thing that waits, and how to answer it."""
    if not items:
        return (Paragraph(text(NOTHING)),)
    lines = []
    for item in items[:_SHOWN]:
        what = f"{item.test_id} / {item.criterion}" if item.criterion else item.test_id
        lines.append(
            text(
                (f"{WHY[item.why][0]:<8}", outcome_text(item.status)[1]),
                f"{item.address}  {one_line(what, 60)}",
                (f"  {one_line(item.question, 80)}" if item.question else "", "dim"),
            )
        )
    if len(items) > _SHOWN:
        lines.append(text((f"and {len(items) - _SHOWN:,} more", "dim")))
    how = f"{numbers.count(len(items), 'result')}: agenteval label RUN/NUMBER passed|failed|1..5, or the app"
    return paragraphs([*lines, text((how, "dim"))])


def item_in_full(
    item: Item,
    row: RunRow,
    results: Sequence[CriterionResult],
    labels: Sequence[Label],
    comment: str,
    now_ms: int,
) -> View:
    """The question, what was said of it before, what was looked at, and what criteria say. `comment`: the one that
    goes with the next verdict."""
    return tuple(_in_full(item, row, results, labels, comment, now_ms))


def _in_full(
    item: Item, row: RunRow, results: Sequence[CriterionResult], labels: Sequence[Label], comment: str, now_ms: int
) -> Iterator[Element]:
    space = Paragraph(())
    sign, token = OUTCOMES.get(item.status, ("·", "dim"))
    yield Paragraph(text((f"{sign} ", token), (one_line(item.criterion or "the run as a whole", 80), "bold")))
    yield from (Paragraph(text((WHY[item.why][1], "warn"))), space)
    if item.question:
        yield from (Paragraph(text((item.question, "bold accent"))), space)
    if comment:
        yield from (Facts((Fact("comment", text((comment, "accent"))),)), space)
    if said := labels_view(((one, False) for one in labels if one.criterion in ("", item.criterion)), now_ms):
        yield from (*said, space)
    run = Fact("run", text(one_line(plain(place_of(row)))))
    yield Facts((run, Fact("outcome", text(outcome_text(row.status)[0]))))
    chosen = results[item.position : item.position + 1] if item.position >= 0 else results
    if item.position >= 0 and chosen and chosen[0].value is not None:
        yield from (space, Paragraph(text(("looked at", "dim"))), Paragraph(text(chosen[0].value)))
        # It stands above in full.
        chosen = [replace(chosen[0], value=None)]
    if chosen:
        yield from (space, fact_tree(explain(chosen)))
