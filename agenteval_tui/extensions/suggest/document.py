"""Suggested criteria as the document of `agenteval suggest --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Share, extended
from agenteval_tui.extensions.suggest.search import Check, SuggestionFigures, Suggestions
from agenteval_tui.extensions.suggest.stored_examples import TestExamples


class SuggestedCriterion(SuggestionFigures, frozen=True, kw_only=True):
    """A criterion that agrees with the labels."""

    name: Annotated[str, Meta(description="a name for the criterion")]


class SuggestionsCheck(Document, frozen=True, kw_only=True):
    """What the suggestions are worth, told by labels that they were not made of."""

    labels: Annotated[Count, Meta(description="labels that it was tried on: each was left out once")]
    right: Annotated[Count, Meta(description="those about which the first criterion, made without them, is right")]
    usual: Annotated[Count, Meta(description="those about which always saying the more frequent label is right")]
    better: Annotated[bool, Meta(description="false: always answering with the more frequent label is as good")]


class Suggested(Document, frozen=True, kw_only=True):
    """`agenteval suggest`: criteria from examples."""

    version: Literal[1] = 1
    test: Annotated[str, Meta(description="the test's id; empty: of an execution")]
    criterion: Annotated[str, Meta(description="the criterion that the labels are of; empty: of the run as a whole")]
    from_judge: Annotated[bool, Meta(description="whether the labels are a judge's stored verdicts")]
    runs: Count
    good: Count
    bad: Count
    label_next: Annotated[str, Meta(description="the run whose label would tell most; empty: none")]
    unseen: Annotated[
        Share | None,
        Meta(description="the share of good runs that may lack what these share (95 %); null: bad runs are known"),
    ]
    check: Annotated[
        SuggestionsCheck | None, Meta(description="null: there are fewer than five labels, or of one kind only")
    ] = None
    contradictions: Annotated[
        tuple[tuple[str, str], ...],
        Meta(description="a good and a bad run in which the same was said and done: no criterion agrees with both"),
    ] = ()
    suggestions: tuple[SuggestedCriterion, ...]


def suggested_document(suggestions: Suggestions, examples: TestExamples, checked: Check | None = None) -> Suggested:
    """The criteria, best first."""
    return extended(
        Suggested,
        suggestions,
        test=examples.test_id,
        criterion=examples.criterion,
        from_judge=examples.judge,
        check=None if checked is None else extended(SuggestionsCheck, checked),
        suggestions=tuple(extended(SuggestedCriterion, suggestion) for suggestion in suggestions.suggestions),
    )
