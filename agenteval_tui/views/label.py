"""What is shown of people's labels and of feedback: in a line, one below the other, as a table; how verdicts agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.model import (
    Column,
    Element,
    Paragraph,
    Span,
    Table,
    Text,
    View,
    outcome_text,
    text,
    text_table,
)

# For types only: the workbench would load 107 modules more, for every view that has a label.
if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Agreement

RATINGS = {1: "bad", 2: "more bad than good", 3: "undecided", 4: "good", 5: "very good"}
WARNING: Span = ("▲", "broken")
"""Beside a label that contradicts the verdict."""
_UNKNOWN = "criterion unknown"
"""Of a label without a name that several criteria of the run could be about: it decides none of these."""


def subject_text(label: Label) -> str:
    """What it is a label of: the criterion's name, or `the run`. Raw."""
    return label.criterion or (_UNKNOWN if label.unknown else "the run")


def label_text(label: Label) -> str:
    """`label of tone by kim: failed, 2 of 5: too rude`. Raw: it holds foreign text."""
    of = f" ({_UNKNOWN})" if label.unknown else f" of {subject_text(label)}"
    who = f" by {label.who}" if label.who else ""
    comment = f": {label.comment}" if label.comment else ""
    return f"label{of}{who}: {label.verdict_text}{comment}"


def label_given(label: Label, status: str, *, taken_back: bool = False) -> Text:
    """`tone: passed, 4 of 5; the run now counts as failed`: the effect of a label, or of taking it back."""
    statement = f"{one_line(subject_text(label), 60)}: {'taken back: ' if taken_back else ''}{label.verdict_text}"
    return text(f"{statement}; the run now counts as ", outcome_text(status))


def labels_view(labels: Iterable[tuple[Label, bool]], now_ms: int | None = None) -> View:
    """Labels, each with its comment below it; a sign where it differs from the verdict. `now_ms`: how old each is."""
    elements = tuple(element for label, differs in labels for element in _label(label, differs, now_ms))
    return (Paragraph(text(("labels", "dim"))), *elements) if elements else ()


def _label(label: Label, differs: bool, now_ms: int | None) -> Iterator[Element]:
    warning = (f"{WARNING[0]} ", WARNING[1]) if differs else ""
    of = "" if label.criterion else (f"{subject_text(label)}: ", "dim")
    sign = ("✓ ", "good") if label.good else ("✗ ", "bad")
    age = f"  {numbers.age(label.at_ms, now_ms)}" if now_ms is not None else ""
    about = (f"  {one_line(label.who, 40)}{age}" if label.who else age, "dim")
    yield Paragraph(text(warning, of, sign, label.verdict_text, about), 1)
    if label.comment:
        yield Paragraph(text((label.comment, "dim")), 3)


def labels_table(labels: Iterable[tuple[RunRow, Label]]) -> Table:
    """A row a label: run, test, criterion, what was said, who said it, comment."""
    rows = (
        (run.id, run.test_id, subject_text(label), label.verdict_text, label.who, label.comment)
        for run, label in labels
    )
    return text_table(("Run", "Test", "Criterion", "Label", "Who", "Comment"), rows)


def feedback_text(feedback: Feedback) -> str:
    """`feedback user_satisfaction 0.80 by kim: was quick`. Raw: it holds foreign text."""
    who = f" by {feedback.who}" if feedback.who else ""
    comment = f": {feedback.comment}" if feedback.comment else ""
    return f"feedback {feedback_score(feedback)}{who}{comment}"


def feedback_score(feedback: Feedback) -> str:
    """`user_satisfaction 0.80`."""
    return f"{feedback.key} {numbers.decimal(feedback.score)}"


def feedback_view(feedback: Sequence[Feedback], now_ms: int | None = None) -> View:
    """Feedback, the newest last, each with its comment below it. `now_ms`: how old each is."""
    elements: list[Element] = [Paragraph(text(("feedback", "dim")))] if feedback else []
    for entry in feedback:
        age = f"  {numbers.age(entry.at_ms, now_ms)}" if now_ms is not None else ""
        about = f"  {one_line(entry.who, 40)}{age}" if entry.who else age
        elements.append(Paragraph(text(f"{entry.key} ", (numbers.decimal(entry.score), "bold"), (about, "dim")), 1))
        if entry.comment:
            elements.append(Paragraph(text((entry.comment, "dim")), 3))
    return tuple(elements)


def feedback_table(feedback: Iterable[tuple[RunRow, Feedback]]) -> Table:
    """A row for each score that runs were given."""
    rows = (
        (run.id, run.test_id, entry.key, numbers.decimal(entry.score), entry.who, entry.comment)
        for run, entry in feedback
    )
    return text_table(("Run", "Test", "Key", Column("Score", "right"), "Who", "Comment"), rows)


def said_last(label: Label, now_ms: int) -> str:
    """`Last label by kim 2 d ago: failed: too rude`."""
    who = f" by {one_line(label.who, 40)}" if label.who else ""
    comment = f": {one_line(label.comment, 200)}" if label.comment else ""
    return f"Last label{who} {numbers.age(label.at_ms, now_ms)}: {label.verdict_text}{comment}"


def labelled_text(labels: Sequence[Label]) -> str:
    """`labelled passed, 4 of 5 by kim and 1 more`: the last of these labels; "" for none."""
    if not labels:
        return ""
    who = f" by {one_line(labels[-1].who, 20)}" if labels[-1].who else ""
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return f"labelled {labels[-1].verdict_text}{who}{more}"


def agreement_text(labels: Agreement, *, edited: bool) -> Text:
    """With how many labelled runs a criterion agrees, now and when the edit is saved; nothing where none is."""
    if not labels.labelled:
        return ()
    flips = numbers.count(len(labels.against), "flip")
    return text(
        ("labels: ", "dim"),
        f"{labels.now} of {labels.labelled} agree",
        f", {labels.then} with this edit" if edited else "",
        (f"  {WARNING[0]} {flips} against a label" if labels.against else "", WARNING[1]),
    )
