"""What is shown of a review: what waits for a person, and one of these things in full."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.review_queue import QueueItem, Why
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.evidence import place_of
from agenteval_tui.views.label import feedback_view, labels_view
from agenteval_tui.views.model import (
    Fact,
    Facts,
    Paragraph,
    View,
    outcome_sign,
    outcome_text,
    paragraphs,
    plain,
    text,
)

WHY: dict[Why, tuple[str, str]] = {
    "needs_review": ("waits", "waits for a person"),
    "failure": ("failed", "failed and not labelled yet"),
    "disagreement": ("differs", "differs from its label"),
    "sample": ("sample", "in a random sample"),
}
"""Why something is looked at, in short and in full."""
NOTHING = "nothing is waiting for a person"
_SHOWN = 50


def waiting_view(items: Sequence[QueueItem]) -> View:
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


def question_view(item: QueueItem, comment: str = "") -> View:
    """What is asked of one thing: the criterion, why it is looked at, the question, and the `comment` that goes with
    the next verdict."""
    sign, token = outcome_sign(item.status)
    name = one_line(item.criterion or "the run as a whole", 80)
    return (
        Paragraph(text((f"{sign} ", token), (name, "bold"), (f"   {WHY[item.why][1]}", "warn"))),
        *paragraphs([text((one_line(item.question, 400), "bold accent"))]),
        *((Facts((Fact("comment", text((comment, "accent"))),)),) if comment else ()),
    )


def item_in_full(
    item: QueueItem, row: RunRow, labels: Sequence[Label], feedback: Sequence[Feedback], now_ms: int
) -> View:
    """What was said of it before, and what it is."""
    elements = labels_view(((label, False) for label in labels if label.criterion in ("", item.criterion)), now_ms)
    elements += feedback_view(feedback, now_ms)
    run = Fact("run", text(one_line(plain(place_of(row)))))
    facts = Facts((run, Fact("outcome", text(outcome_text(row.status)[0]))))
    return (*elements, Paragraph(()), facts) if elements else (facts,)
