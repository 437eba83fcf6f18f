"""Blame as the document of `agenteval blame --json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.analysis.blame.model import Blame, Clue, ClueCode, SampledAnswer, Suspect
from agenteval_tui.core.document import Count, Document, Share, one_of
from agenteval_tui.formats.documents.model_request import LostDocument, lost_document
from agenteval_tui.views.blame import clue_text

FaultWord = Annotated[str, one_of("agent", "user", "tool", "environment", "criterion", "unknown")]
Step = Annotated[int, Meta(ge=0, description="a message of the transcript, by its index from 0")]


class ClueDocument(Document, frozen=True, kw_only=True):
    """A piece of evidence against a step."""

    code: Annotated[str, one_of(*ClueCode)]
    fault: FaultWord
    tool_call: Annotated[Count | None, Meta(description="the index of the tool call that it is about")]
    fields: Annotated[dict[str, Any], Meta(description="what the code speaks of; steps in it count from 0")]
    message: str


class SuspectDocument(Document, frozen=True, kw_only=True):
    """A step with the evidence against it, the strongest first."""

    step: Step
    fault: FaultWord
    clues: tuple[ClueDocument, ...]


class PrefixDocument(Document, frozen=True, kw_only=True):
    """The number of stored runs that did the same up to and including a step, and how many of these runs passed."""

    step: Step
    runs: Count
    passed: Count


class RateDocument(Document, frozen=True, kw_only=True):
    """How often the run passed after the agent repeated a step. The earlier steps stay the same."""

    step: Step
    passed: Count
    n: Count
    low: Annotated[Share, Meta(description="the lower end of the 95 % confidence sequence")]
    high: Share


class SampledDocument(Document, frozen=True, kw_only=True):
    """The result of sampling."""

    answer: Literal["step", "none", "undecided"]
    step: Step | None
    rates: tuple[RateDocument, ...]
    samples: Annotated[Count, Meta(description="the most continuations of one step")]
    asked: Annotated[Count, Meta(description="continuations in all")]
    known: Annotated[Count, Meta(description="how many of these were stored before, and cost nothing")]
    cost: Annotated[float | None, Meta(description="US dollars of the agents; null if it was not measured")]
    execution: Annotated[str, Meta(description="the execution that holds them; empty if nothing was asked")]
    stopped: Annotated[str, Meta(description="why it ended early; empty if it did not")]


class BlameDocument(Document, frozen=True, kw_only=True):
    """`agenteval blame`: the step where a run was lost."""

    version: Literal[1] = 1
    run: str
    steps: Annotated[Count, Meta(description="how many messages the transcript has")]
    reproduces: Annotated[
        Literal["always", "mostly", "luck", "once"],
        Meta(description="luck: more than half of the stored repetitions passed; once: it is the only run"),
    ]
    runs: Annotated[Count, Meta(description="stored repetitions of the same agent, this run included")]
    passed: Count
    low: Annotated[Share, Meta(description="the lower end of the 95 % interval of the pass rate")]
    high: Share
    could_pass: Annotated[
        Literal["yes", "never", "unknown"], Meta(description="whether any stored run of the test passed")
    ]
    fault: FaultWord
    free_fault: Annotated[
        str,
        one_of("agent", "user", "tool", "environment", "criterion", "unknown"),
        Meta(description="by the transcript and stored runs alone: less sure than `fault` if the run was sampled"),
    ]
    decisive: SuspectDocument | None
    others: tuple[SuspectDocument, ...]
    prefixes: tuple[PrefixDocument, ...]
    sampled: Annotated[SampledDocument | None, Meta(description="null if the run was not sampled")]
    lost_from_sight: Annotated[
        tuple[LostDocument, ...],
        Meta(description="what later requests of the model did not have any more; empty too where they are not known"),
    ]


def blame_document(blame: Blame) -> BlameDocument:
    """The document with the four answers and their evidence. Texts are raw."""
    return BlameDocument(
        run=blame.run,
        steps=blame.steps,
        reproduces=blame.reproduces,
        runs=blame.runs,
        passed=blame.passed,
        low=blame.low,
        high=blame.high,
        could_pass=blame.possible,
        fault=blame.fault,
        free_fault=blame.free_fault,
        decisive=None if blame.decisive is None else suspect_document(blame.decisive),
        others=tuple(map(suspect_document, blame.others)),
        prefixes=tuple(PrefixDocument(step=one.step, runs=one.runs, passed=one.passed) for one in blame.prefixes),
        sampled=None if blame.sampled is None else _sampled(blame.sampled),
        lost_from_sight=tuple(lost_document(lost, blame.run) for lost in blame.lost),
    )


def _sampled(sampled: SampledAnswer) -> SampledDocument:
    return SampledDocument(
        answer=sampled.answer,
        step=sampled.step,
        rates=tuple(
            RateDocument(step=one.step, passed=one.passed, n=one.n, low=one.low, high=one.high) for one in sampled.rates
        ),
        samples=sampled.samples,
        asked=sampled.asked,
        known=sampled.known,
        cost=sampled.cost,
        execution=sampled.execution,
        stopped=sampled.stopped,
    )


def suspect_document(suspect: Suspect) -> SuspectDocument:
    """A step with its evidence."""
    return SuspectDocument(step=suspect.step, fault=suspect.fault, clues=tuple(map(_clue, suspect.clues)))


def _clue(clue: Clue) -> ClueDocument:
    return ClueDocument(
        code=str(clue.code), fault=clue.fault, tool_call=clue.call, fields=dict(clue.fields), message=clue_text(clue)
    )
