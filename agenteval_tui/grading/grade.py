"""From a transcript and a test's criteria to a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Fields, Outcome, Verdict, weighted_mean
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript


def grade(
    transcript: Transcript,
    specs: Iterable[CriterionSpec],
    variables: Mapping[str, Any] | None = None,
    pass_threshold: float | None = None,
    *,
    explain: bool = True,
    replies: Mapping[str, Reply] | None = None,
    row: int = 0,
) -> Verdict:
    """The verdict of all criteria. Never raises. `replies`: what judges and others said (`grading.remote`).

    `row`: the dataset's row (from 1) that `variables` are of, so that an error about its data can name it.

    A transcript whose agent did not finish is not graded: outcome `error`, and every criterion is `skipped`.
    """
    if transcript.error is not None:
        why = {"kind": transcript.error.kind, "message": transcript.error.message}
        skipped = tuple(_skipped(spec, why) for spec in specs)
        return Verdict(Outcome.ERROR, None, skipped, 0, code=Code.NOT_FINISHED, fields=why)
    results = tuple(
        [compile_criterion(spec).check(transcript, variables, explain=explain, replies=replies) for spec in specs]
    )
    if row:
        results = tuple([_of_row(result, row) if result.code == Code.EMPTY_VARIABLE else result for result in results])
    return verdict_of(results, pass_threshold)


def _of_row(result: CriterionResult, row: int) -> CriterionResult:
    return replace(result, fields={**result.fields, "row": row})


def verdict_of(results: Sequence[CriterionResult], pass_threshold: float | None = None) -> Verdict:
    """The verdict that criterion results make together.

    Score: the weighted mean of those that have one. Criteria of severity `error` decide: one failed makes the
    verdict failed; else one in error makes it error, one waiting for a person needs_review. With a threshold every
    criterion of weight above 0 decides in the same way, whatever its severity: without its score the mean is unknown.
    A criterion that checks nothing, or was skipped, counts nowhere.
    """
    criterion_results = tuple(results)
    scored = [criterion_result for criterion_result in criterion_results if criterion_result.score is not None]
    score = weighted_mean(scored)
    warnings = sum(
        criterion_result.severity == "warning" and criterion_result.outcome is Outcome.FAILED
        for criterion_result in criterion_results
    )
    for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.NEEDS_REVIEW):
        if any(
            criterion_result.outcome is outcome and _decides(criterion_result, pass_threshold)
            for criterion_result in criterion_results
        ):
            if pass_threshold is not None and outcome is not Outcome.FAILED:
                # A score of the other criteria would be the mean of something else.
                fields: Fields = {"threshold": pass_threshold}
                return Verdict(outcome, None, criterion_results, warnings, code=Code.SCORE_UNKNOWN, fields=fields)
            return Verdict(outcome, score if scored else None, criterion_results, warnings)
    # A mean of decimal numbers may fall a hair short of what it is.
    if pass_threshold is not None and score < pass_threshold - 1e-9:
        fields = {"of": "test", "score": score, "threshold": pass_threshold, "reached": False}
        return Verdict(Outcome.FAILED, score, criterion_results, warnings, code=Code.THRESHOLD, fields=fields)
    return Verdict(Outcome.PASSED, score, criterion_results, warnings)


def _decides(result: CriterionResult, pass_threshold: float | None) -> bool:
    if result.severity == "error":
        return True
    return pass_threshold is not None and result.weight > 0 and result.outcome is not Outcome.FAILED


def not_made(results: Iterable[CriterionResult]) -> int:
    """How many checks could not run: criteria in error."""
    return sum(result.outcome is Outcome.ERROR for result in results)


def foreign_result(
    name: str, *, score: float | None = None, passed: bool | None = None, source: str, reason: str = ""
) -> CriterionResult:
    """Another tool's verdict as a criterion result: `name` is what it is called ("tau-bench reward").

    Without `passed`, a score of 1 passes. Without a score it is 1 or 0. With neither: needs_review.
    """
    if isinstance(score, float) and not math.isfinite(score):
        return unreadable_result(
            name, source=source, reason=f"the score is not a number: {score}; {reason}".rstrip("; ")
        )
    if score is not None:
        score = float(min(1, max(0, score)))
    if passed is None and score is not None:
        passed = score >= 1.0 - 1e-9
    if passed is None:
        code = "" if reason else Code.NO_VERDICT
        return CriterionResult(name, Outcome.NEEDS_REVIEW, None, message=reason, source=source, code=code)
    if score is None:
        score = 1.0 if passed else 0.0
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    return CriterionResult(name, outcome, score, message=reason, source=source)


def unreadable_result(name: str, *, source: str, reason: str) -> CriterionResult:
    """Another tool's verdict that can't be read: an error, which says nothing of the agent."""
    return CriterionResult(name, Outcome.ERROR, None, message=reason, source=source)


def _skipped(spec: CriterionSpec, why: Fields) -> CriterionResult:
    return CriterionResult(
        criterion=spec.name,
        outcome=Outcome.SKIPPED,
        score=None,
        severity=spec.severity,
        weight=spec.weight,
        negate=spec.negate,
        prototype_class=spec.prototype,
        criterion_hash=spec.hash,
        code=Code.NOT_FINISHED,
        fields=why,
    )
