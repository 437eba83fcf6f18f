"""People's labels and feedback in documents and reports: as JSON data, and those of each run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Share, Time, extended
from agenteval_tui.core.numbers import iso
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label


class LabelWords(Document, frozen=True, kw_only=True):
    """What a person said."""

    passed: bool | None
    good: Annotated[bool, Meta(description="passed if that is given, else a rating of 4 or 5")]
    comment: str
    who: str


class LabelDocument(LabelWords, frozen=True, kw_only=True):
    """What a person said of a run or a criterion of it."""

    criterion: Annotated[str | None, Meta(description="its name; null: the run as a whole, or it is not known")]
    unknown: Annotated[bool, Meta(description="it names only a configuration, which several criteria have: no verdict")]
    rating: Count | None
    at: Time


def label_document(label: Label) -> LabelDocument:
    """A label as it is printed and exported."""
    return extended(LabelDocument, label, criterion=label.criterion or None, at=iso(label.at_ms))


class FeedbackDocument(Document, frozen=True, kw_only=True):
    """A score that somebody, or a program, gave a run."""

    key: Annotated[str, Meta(description="what was scored, such as user_satisfaction")]
    score: Annotated[Share, Meta(description="0 is the worst, 1 the best")]
    comment: str
    who: str
    at: Time


def feedback_document(feedback: Feedback) -> FeedbackDocument:
    """Feedback as it is printed and exported."""
    return extended(FeedbackDocument, feedback, at=iso(feedback.at_ms))
