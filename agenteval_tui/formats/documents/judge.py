"""How good judges are: what `agenteval judge-report --json` prints."""

from __future__ import annotations

from statistics import median, pstdev
from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.analysis.agreement import JudgedVersion, JudgeFigures
from agenteval_tui.analysis.judge_repeatability import RepeatedResults
from agenteval_tui.core.document import Count, Document, Outcome, Rating, Share, extended, one_of
from agenteval_tui.formats.labels import LabelWords
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.results import Outcome as GradedOutcome
from agenteval_tui.grading.sentences import criterion_sentence, metric_sentence
from agenteval_tui.history.labels import Label
from agenteval_tui.history.replies import StoredReply


class JudgedCriterion(Document, frozen=True, kw_only=True):
    """A criterion of a suite, with what judges and people said of its runs."""

    suite: str
    criterion: str
    by_judge: Annotated[bool, Meta(description="false: the criterion asks no judge")]
    judges: Annotated[tuple[str, ...], Meta(description="the models that judged")]
    judged: Annotated[Count, Meta(description="runs that the criterion was applied to")]
    passed: Count
    errors: Count
    labelled: Annotated[Count, Meta(description="of these, labelled by a person")]
    undecided: Annotated[Count, Meta(description="labelled runs without a verdict; left out of n")]
    n: Annotated[Count, Meta(description="runs that judge and person both decided")]
    both_yes: Count
    both_no: Count
    only_judge: Count
    only_person: Count
    accuracy: Share | None
    interval: Annotated[
        tuple[Share, Share] | None,
        Meta(description="Wilson's 95 % interval of the accuracy; null: fewer than five were rated"),
    ]
    kappa: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        Meta(description="Cohen's kappa; null where it is not defined"),
    ]
    differ: Annotated[tuple[str, ...], Meta(description="RUN/NUMBER of the runs on which judge and person differ")]
    silent: Annotated[Count, Meta(description="runs of which the judge kept silent: a person decides them")] = 0
    silent_n: Annotated[Count, Meta(description="of these, labelled by a person")] = 0
    silent_right: Annotated[Count, Meta(description="of these, the verdict that it kept to itself agrees")] = 0
    versions: Annotated[tuple[JudgedVersion, ...], Meta(description="of the judged criterion, newest first")] = ()


class JudgeReport(Document, frozen=True, kw_only=True):
    """`agenteval judge-report`."""

    version: Literal[1] = 1
    criteria: tuple[JudgedCriterion, ...]


class PersonsLabel(LabelWords, frozen=True, kw_only=True):
    """A person's label for the verdict."""

    rating: Rating
    at: Count


class Question(Document, frozen=True, kw_only=True):
    """A request to a server or a person."""

    kind: Annotated[str, one_of("chat", "embed", "call", "person", "labels")]
    target: str
    payload: dict[str, Any]


class JudgeReply(Document, frozen=True, kw_only=True):
    """A request, and the reply."""

    request: Question
    raw: Annotated[str, Meta(description="the reply, unchanged")]
    error: Annotated[str, Meta(description="why there is no reply")]
    model: str
    input_tokens: Count | None
    output_tokens: Count | None
    at: Annotated[Count, Meta(description="milliseconds since 1970")]


class JudgeReplies(Document, frozen=True, kw_only=True):
    """`agenteval judge-report RUN/CRITERION`: all requests to judges for a verdict."""

    version: Literal[1] = 1
    run: str
    criterion: str
    outcome: Outcome
    score: Share | None
    label: PersonsLabel | None
    replies: tuple[JudgeReply, ...]


class RepeatedJudgment(Document, frozen=True, kw_only=True):
    """`agenteval judge-report RUN/CRITERION --reask N`: the same judgment, made several times."""

    version: Literal[1] = 1
    run: str
    criterion: str
    stored: Outcome
    times: Count
    outcomes: dict[str, Count]
    scores: tuple[Share, ...]
    median: Share | None
    spread: Share | None
    standard_deviation: float | None
    flips: Annotated[Count, Meta(description="verdicts that differ from the majority")]
    reasons: tuple[str, ...]
    asked: Annotated[Count, Meta(description="questions that were sent, with second tries")]
    input_tokens: Count | None
    output_tokens: Count | None


def judged_criterion(figures: JudgeFigures) -> JudgedCriterion:
    """A criterion of a judge report."""
    return extended(
        JudgedCriterion,
        figures,
        figures.agreement,
        differ=tuple(figures.differ),
        silent_n=figures.unsaid.n,
        silent_right=figures.unsaid.both_yes + figures.unsaid.both_no,
    )


def judge_replies(run: str, result: CriterionResult, label: Label | None, replies: list[StoredReply]) -> JudgeReplies:
    """All that was asked for the verdict `result` of a run, and what a person says of it."""
    return JudgeReplies(
        run=run,
        criterion=result.criterion,
        outcome=str(result.outcome),
        score=result.score,
        label=None if label is None else _label(label),
        replies=tuple(
            extended(JudgeReply, stored.reply, request=_question(stored.request), at=stored.reply.at_ms)
            for stored in replies
        ),
    )


def repeated_judgment(run: str, stored: CriterionResult, again: RepeatedResults) -> RepeatedJudgment:
    """The verdict `stored` of a run, judged `again` several times."""
    scores = tuple(result.score for result in again.results if result.score is not None)
    outcomes = {str(kind): sum(result.outcome is kind for result in again.results) for kind in GradedOutcome}
    return RepeatedJudgment(
        run=run,
        criterion=stored.criterion,
        stored=str(stored.outcome),
        times=len(again.results),
        outcomes={name: number for name, number in outcomes.items() if number},
        scores=scores,
        median=median(scores) if scores else None,
        spread=max(scores) - min(scores) if scores else None,
        standard_deviation=pstdev(scores) if scores else None,
        flips=min(outcomes["passed"], outcomes["failed"]),
        reasons=tuple(
            metric_sentence(result.metrics[0]) or criterion_sentence(result)
            for result in again.results
            if result.metrics
        ),
        asked=again.asked,
        input_tokens=again.input_tokens,
        output_tokens=again.output_tokens,
    )


def _label(label: Label) -> PersonsLabel:
    return extended(PersonsLabel, label, at=label.at_ms)


def _question(request: RemoteRequest) -> Question:
    return Question(kind=request.kind, target=request.target, payload=dict(request.payload))
