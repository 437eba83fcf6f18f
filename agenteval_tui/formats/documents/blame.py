"""Blame as the document of `agenteval blame --json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.analysis.blame.model import Blame, BlameFigures, Clue, ClueCode, Decision, Fault, Step, Suspect
from agenteval_tui.analysis.blame.reliability import Reliability, reliability_of
from agenteval_tui.core.document import Count, Document, extended, one_of
from agenteval_tui.formats.documents.model_request import LostDocument, lost_document
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


class BlameDocument(BlameFigures, frozen=True, kw_only=True):
    """`agenteval blame`: the step where a run was lost."""

    version: Literal[1] = 1
    decision: Annotated[
        Decision,
        Meta(
            description="step: `decisive` is it; none: sampling found that no step decides; luck: most repetitions"
            " passed; criterion: a person called the run good; not_known: no evidence is reliable enough"
        ),
    ]
    decisive: Annotated[
        SuspectDocument | None,
        Meta(description="by sampling, or by evidence of a kind that proved reliable; else null"),
    ]
    others: Annotated[
        tuple[SuspectDocument, ...],
        Meta(description="further steps with evidence, the strongest first; it does not say that they decided"),
    ]
    lost_from_sight: Annotated[
        tuple[LostDocument, ...],
        Meta(description="what later requests of the model did not have any more; empty too where they are not known"),
    ]


def blame_document(blame: Blame) -> BlameDocument:
    """The document with the four answers and their evidence. Texts are raw."""
    return extended(
        BlameDocument,
        blame,
        decisive=None if blame.decisive is None else suspect_document(blame.decisive),
        others=tuple(map(suspect_document, blame.others)),
        lost_from_sight=tuple(lost_document(lost, blame.run) for lost in blame.lost),
    )


def suspect_document(suspect: Suspect) -> SuspectDocument:
    """A step with its evidence."""
    return SuspectDocument(step=suspect.step, fault=suspect.fault, clues=tuple(map(_clue, suspect.clues)))


def _clue(clue: Clue) -> ClueDocument:
    return ClueDocument(
        code=str(clue.code),
        fault=clue.fault,
        tool_call=clue.call,
        fields=dict(clue.fields),
        message=clue_text(clue),
        reliability=reliability_of(clue.code),
    )
