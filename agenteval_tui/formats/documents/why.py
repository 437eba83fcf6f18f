"""An explanation as the document of `agenteval why --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.analysis.code_changes import EarlierProgram
from agenteval_tui.analysis.explanation import Explanation, address_of
from agenteval_tui.core.document import Count, Document, Status, extended
from agenteval_tui.formats.documents.blame import SuspectDocument, suspect_document
from agenteval_tui.formats.documents.model_request import LostDocument, lost_document
from agenteval_tui.formats.labels import LabelDocument, label_document
from agenteval_tui.grading.codec import CriterionDocument, result_document
from agenteval_tui.grading.explain import FactDocument, fact_document, headline
from agenteval_tui.transcripts.model import Note, Output, RunError
from agenteval_tui.views.divergence import parting_text


class AnswerEnding(Document, frozen=True, kw_only=True):
    """What ended an answer that is not whole."""

    code: str
    finish_reason: str
    message: str


class ExplainedCriterion(Document, frozen=True, kw_only=True):
    """A criterion with the explanation of its verdict."""

    address: Annotated[str, Meta(description="what to say to `agenteval why` to see this one again")]
    headline: str
    explanation: FactDocument
    result: CriterionDocument


class Why(Document, frozen=True, kw_only=True):
    """`agenteval why`: why a run failed."""

    version: Literal[1] = 1
    run: str
    execution: str
    suite: str
    test: str
    test_name: str
    variation: str
    repetition: Count
    agent: str
    status: Status
    checks_not_made: Count
    error: Annotated[RunError | None, Meta(description="why the agent did not finish")]
    logged: Annotated[
        tuple[Output, ...],
        Meta(description="the last errors that its code logged, where `error` has no traceback"),
    ]
    ending: Annotated[
        AnswerEnding | None,
        Meta(description="why the answer ended, if it was cut off, stopped by a filter, or empty"),
    ]
    notes: tuple[Note, ...]
    divergence: Annotated[
        str,
        Meta(description="where passing and failing repetitions of the test part; empty when nothing parts them"),
    ]
    decisive: Annotated[
        SuspectDocument | None,
        Meta(description="the step where the run went wrong (`agenteval blame`); null where that adds nothing"),
    ]
    stands_out: Annotated[
        SuspectDocument | None,
        Meta(description="the step with the strongest evidence where the decisive one is not known; else null"),
    ]
    lost_from_sight: Annotated[
        tuple[LostDocument, ...],
        Meta(description="what later requests of the model did not have any more; empty too where they are not known"),
    ]
    earlier_program: Annotated[
        EarlierProgram | None,
        Meta(description="the code of the agent's project that the test last passed with, if it has not passed since"),
    ]
    labels: Annotated[tuple[LabelDocument, ...], Meta(description="what people said of these criteria, and of the run")]
    criteria: tuple[ExplainedCriterion, ...]


def explanation_document(explanation: Explanation) -> Why:
    """The run, why its agent failed, labels, and each criterion with its facts and its result; texts are raw."""
    row = explanation.run
    return extended(
        Why,
        row,
        run=row.id,
        execution=row.execution_id,
        suite=row.suite_name,
        test=row.test_id,
        error=explanation.error,
        logged=explanation.logged,
        ending=None
        if explanation.ending is None
        else AnswerEnding(
            code=explanation.ending.code,
            finish_reason=explanation.ending.finish_reason,
            message=explanation.ending.description,
        ),
        notes=tuple(explanation.notes),
        divergence=parting_text(explanation.divergence),
        decisive=None
        if explanation.blame is None or explanation.blame.decisive is None
        else suspect_document(explanation.blame.decisive),
        stands_out=suspect_document(explanation.blame.named[0])
        if explanation.blame is not None and explanation.blame.decision == "not_known"
        else None,
        lost_from_sight=tuple(lost_document(lost, row.id) for lost in explanation.lost),
        earlier_program=explanation.earlier_program,
        labels=tuple(label_document(label) for label in explanation.labels),
        criteria=tuple(
            ExplainedCriterion(
                address=address_of(row.id, number),
                headline=headline(result),
                explanation=fact_document(fact),
                result=result_document(result),
            )
            for (number, result), fact in zip(explanation.criteria, explanation.facts, strict=True)
        ),
    )
