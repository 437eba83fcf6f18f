"""What left the model's sight in a recorded run: parts of the conversation that its later requests did not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, content_of
from agenteval_tui.transcripts.request_changes import LostFromSight, RequestChange
from agenteval_tui.transcripts.sight import losses

_MOST_TOLD = 3
_SHORTEST = 3
"""Characters of an expected text that are looked for: shorter ones stand in any message."""


def lost_from_sight(requests: ModelRequests | None, results: Sequence[CriterionResult]) -> tuple[LostFromSight, ...]:
    """The losses of a run, those that a failed criterion needed first, at most three; () where its requests are not
    known, or nothing left the model's sight."""
    if requests is None:
        return ()
    needles = tuple(dict.fromkeys(_expected(results)))
    lost = [
        LostFromSight(request.number, change, _needed(needles, before, request, change))
        for before, request, change in losses(requests)
    ]
    return tuple(sorted(lost, key=lambda one: not one.needed)[:_MOST_TOLD])


def _expected(results: Sequence[CriterionResult]) -> Iterator[str]:
    """The texts that criteria looked for and did not find."""
    for result in results:
        for metric in result.metrics if result.outcome is Outcome.FAILED and not result.negate else ():
            for evidence in metric.evidence:
                if evidence.passed is not False or evidence.code == Code.PRESENT:
                    continue  # it holds, or something is there that must not be
                listed = evidence.expected if isinstance(evidence.expected, list | tuple) else [evidence.expected]
                yield from (one.strip() for one in listed if isinstance(one, str) and len(one.strip()) >= _SHORTEST)


def _needed(
    needles: Sequence[str], before: ModelRequest, after: ModelRequest, change: RequestChange
) -> tuple[str, ...]:
    lost = "\n".join(content_of(before.messages[place]) for place in change.before).casefold()
    left = "\n".join([after.system, *map(content_of, after.messages)]).casefold()
    return tuple(needle for needle in needles if needle.casefold() in lost and needle.casefold() not in left)
