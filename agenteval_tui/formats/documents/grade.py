"""Verdicts that were given again: what `agenteval grade --execution --json` prints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Outcome, Share
from agenteval_tui.grading.codec import CriterionDocument


class GradingSummary(Document, frozen=True, kw_only=True):
    """How many runs were graded, how they came out, and whether that is as before."""

    runs: Count
    left_out: Count
    outcomes: dict[str, Count]
    agreement: dict[str, Count]


class GradedRun(Document, frozen=True, kw_only=True):
    """A run with its new verdict."""

    run: str
    test: str
    repetition: Count
    outcome: Outcome
    score: Share | None
    criteria: tuple[CriterionDocument, ...]
    foreign: Annotated[
        tuple[CriterionDocument, ...], Meta(description="verdicts of other tools that are stored with the run")
    ]


class GradedExecution(Document, frozen=True, kw_only=True):
    """`agenteval grade --execution`."""

    version: Literal[1] = 1
    execution: str
    saved: str | None
    summary: GradingSummary
    runs: tuple[GradedRun, ...]
