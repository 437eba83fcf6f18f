"""Blame as the document of `agenteval blame --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.analysis.blame.model import Blame, BlameFigures, Decision
from agenteval_tui.core.document import extended
from agenteval_tui.formats.documents.blame import SuspectDocument, suspect_document
from agenteval_tui.formats.documents.model_request import LostDocument, lost_document


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
