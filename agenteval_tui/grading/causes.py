"""The cause of a failure: a signature that is the same wherever the same thing is wrong in the same way.

A failed criterion result has one cause, that of its first missed condition: the criterion's name and prototype class,
the metric's type, the condition, what it is about (a tool, an argument, a missing key) and how it was missed. What was
found, where, and how near it was is in no cause; neither is the criterion's hash, nor the test: an edit of the
criterion and another test leave the cause what it is. A run whose agent failed has a cause of its own, by the error's
kind, code and fields (`transcripts.error_codes`).

Signatures are kept in histories and decisions are made about them: changing how one is made makes those decisions
speak of nothing. `tests/grading/test_causes.py` holds them fast; a change needs a new `VERSION`, and a migration that
rewrites what is stored (`history.signatures`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from agenteval_tui.grading.cause_ways import error_way, extraction_way, way_of
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.text.fingerprint import cut
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import RunError

Kind = Literal["failed", "error", "agent", "threshold", "ending"]
"""`failed`: a criterion; `error`: a check that could not be made; `agent`: the agent did not finish; `threshold`: every
criterion passed, and the score is below the test's `pass_threshold`; `ending`: the answer was cut, or stopped by a
filter, and then failed: `condition` is which."""
_KINDS: tuple[Kind, ...] = ("failed", "error", "agent", "threshold", "ending")
_OWN_ENDINGS = ("length", "content_filter", "malformed_call", "incomplete")  # an empty answer is each criterion's own
VERSION = 3
"""Of how signatures are made. 1 read the sentences of evidence and of errors, 2 those of agents' errors."""
_ID = 10
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Cause:
    """What is wrong, and in which way. Of an agent's error `condition` is the kind, and
    `about` the code with what it is about in `way`; of somebody else's words, `way` is their fingerprint alone."""

    kind: Kind
    criterion: str = ""
    prototype: str = ""
    metric: str = ""
    condition: str = ""
    about: str = ""
    way: str = ""

    @property
    def signature(self) -> str:
        """The text that is stored and compared: a JSON array."""
        parts = [self.kind, self.criterion, self.prototype, self.metric, self.condition, self.about, self.way]
        while parts and not parts[-1]:
            parts.pop()
        return _encode(parts)

    @property
    def id(self) -> str:
        """Ten hexadecimal digits of the signature's hash: its name for people."""
        return cause_id(self.signature)

    @property
    def words(self) -> str:
        """What is wrong, without the criterion's name: `get_order was never called`."""
        from agenteval_tui.grading.cause_words import words_of

        return words_of(self)

    @property
    def title(self) -> str:
        """One line: `Looks it up: get_order was never called`."""
        return f"{self.criterion}: {self.words}" if self.criterion else self.words


UNEXPLAINED = Cause("failed")
"""Of a failed run that has no result that says why."""


def cause_from(signature: str) -> Cause:
    """The cause that a signature was made of. Raises ValueError for anything else."""
    try:
        parts = json.loads(signature)
        if not isinstance(parts, list) or not all(isinstance(one, str) for one in parts) or parts[0] not in _KINDS:
            raise ValueError
        return Cause(*parts)
    except (ValueError, TypeError, IndexError):
        raise ValueError(f"this is no signature of a cause: {signature[:80]!r}") from None


@lru_cache(maxsize=4096)
def cause_id(signature: str) -> str:
    """The short name of a signature."""
    return hashlib.sha256(signature.encode("utf-8", "surrogatepass")).hexdigest()[:_ID]


def cause_of(result: CriterionResult) -> Cause | None:
    """The cause of a result that failed or is an error; None for any other."""
    name, prototype = cut(result.criterion), result.prototype_class
    if result.outcome is Outcome.ERROR:
        broken = next((one for one in result.metrics if one.outcome is Outcome.ERROR), None)
        of = result if broken is None else broken
        condition, about, way = error_way(of.code, of.fields, of.message)
        return Cause("error", name, prototype, "" if broken is None else broken.type, condition, about, way)
    if result.outcome is not Outcome.FAILED:
        return None
    if result.source:
        return Cause("failed", name, condition="verdict of " + cut(result.source))
    if result.negate:
        types = ", ".join(dict.fromkeys(one.type for one in result.metrics if not one.neutral))
        return Cause("failed", name, prototype, cut(types), "negate")
    for metric in result.metrics:
        if metric.outcome is Outcome.FAILED:
            return _of_metric(result, metric, name)
    return Cause("failed", name, prototype, condition="score")


def _of_metric(result: CriterionResult, metric: MetricResult, name: str) -> Cause:
    prototype = result.prototype_class
    if metric.type == "extraction" and metric.evidence:
        return Cause("failed", name, prototype, "extraction", way=extraction_way(metric.evidence[0]))
    if result.value == "" and prototype == "TextResponse":
        # Whatever was looked for: nothing was there to look in.
        return Cause("failed", name, prototype, way="empty answer")
    missed = [one for one in metric.evidence if one.passed is False]
    if not missed:
        return Cause("failed", name, prototype, metric.type, "score")
    line = missed[0]
    if metric.type == "Python" and len(missed) > 1:
        line = missed[1]  # the function's own conditions say more than that it said no
    condition, about, way = way_of(metric.type, line)
    return Cause("failed", name, prototype, metric.type, condition, about, way)


def agent_cause(error: RunError) -> Cause:
    """The cause of a run whose agent did not finish: what its code and fields say, or the reduced words of others."""
    error = error.coded
    condition, words = cut(error.kind) or "unknown", error.fields.get("fingerprint")
    if isinstance(words, str):
        return Cause("agent", condition=condition, way=cut(words))
    details = " ".join(str(value) for _, value in sorted(error.fields.items()))
    return Cause("agent", condition=condition, about=cut(error.code), way=cut(details))


def signatures(
    status: str, results: Sequence[CriterionResult], error: RunError | None = None, ending: str = ""
) -> list[str | None]:
    """For each result of a run its signature, as it is stored: None where nothing failed, "" where what failed did not
    decide (a warning).

    `error`: of a run whose agent did not finish: its first result stands for it. So does the result
    with the lowest score where only the test's threshold was missed. `ending`: what ended the answer (the codes of
    `transcripts.ending`); where that is a cause, it stands for all that failed, at the first of it.
    """
    if status == "cancelled":
        return [None] * len(results)
    if error is not None:
        made: list[str | None] = [None] * len(results)
        if made:
            made[0] = agent_cause(error).signature
        return made
    if status == "passed" and all(one.outcome is Outcome.PASSED for one in results):
        return [None] * len(results)
    made = [_signature(one) for one in results]
    _derived(status, results, made)
    if status == "failed" and not any(made):
        scored = [number for number, one in enumerate(results) if one.score is not None]
        if scored:
            lowest = min(scored, key=lambda number: results[number].score or 0.0)
            made[lowest] = Cause("threshold", cut(results[lowest].criterion)).signature
    if status == "failed" and ending in _OWN_ENDINGS:
        failed = [number for number, one in enumerate(results) if made[number] and one.outcome is not Outcome.ERROR]
        for number in failed:
            made[number] = Cause("ending", condition=ending).signature if number == failed[0] else ""
    return made


def _derived(status: str, results: Sequence[CriterionResult], made: list[str | None]) -> None:
    """Where nothing but another tool's verdicts says that a run failed, the cause is what the first criterion misses
    that was derived from its file: the verdict alone is the same for every failure."""
    if status != "failed" or not any(one.derived for one in results):
        return
    decided = [number for number, one in enumerate(results) if made[number]]
    if not decided or any(not results[number].source for number in decided):
        return
    for number, one in enumerate(results):
        cause = cause_of(one) if one.derived and one.outcome is Outcome.FAILED else None
        if cause is not None:
            for other in decided:
                made[other] = ""
            made[number] = cause.signature
            return


def _signature(result: CriterionResult) -> str | None:
    if result.outcome not in (Outcome.FAILED, Outcome.ERROR):
        return None
    if result.severity != "error":
        return ""
    cause = cause_of(result)
    return None if cause is None else cause.signature
