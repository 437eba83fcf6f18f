"""A step that a run may have been lost at, with the evidence against it, as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from agenteval_tui.analysis.blame.model import Clue, ClueCode, Fault, Step, Suspect
from agenteval_tui.analysis.blame.reliability import Reliability, reliability_of
from agenteval_tui.core.document import Count, Document, extended, one_of
from agenteval_tui.views.blame import clue_text


class ClueDocument(Document, frozen=True, kw_only=True):
    """A piece of evidence against a step."""

    code: Annotated[str, one_of(*ClueCode)]
    fault: Fault
    tool_call: Annotated[Count | None, Meta(description="the index of the tool call that it is about")]
    fields: Annotated[dict[str, Any], Meta(description="what the code speaks of; steps in it count from 0")]
    message: str
    reliability: Annotated[
        Reliability | None,
        Meta(description="how often evidence of this kind named the right step; null if it was not measured"),
    ]


class SuspectDocument(Document, frozen=True, kw_only=True):
    """A step with the evidence against it, the strongest first."""

    step: Step
    fault: Fault
    clues: tuple[ClueDocument, ...]


def suspect_document(suspect: Suspect) -> SuspectDocument:
    """A step with its evidence."""
    return SuspectDocument(step=suspect.step, fault=suspect.fault, clues=tuple(map(_clue, suspect.clues)))


def _clue(clue: Clue) -> ClueDocument:
    return extended(
        ClueDocument,
        clue,
        code=str(clue.code),
        tool_call=clue.call,
        fields=dict(clue.fields),
        message=clue_text(clue),
        reliability=reliability_of(clue.code),
    )
