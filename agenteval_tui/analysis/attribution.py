"""Who changed a verdict: the agent, the criterion, both, or the judge's mood.

For a run that passed before and fails now (or the reverse) the old output is graded with the new criterion and the new
output with the old one, without calling anybody. A criterion is what judges: its version, and the variables of the row
that fill it. Errors are never verdicts: where one of the two crosswise gradings can't be made nobody is named.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.agreement import sole_of_results
from agenteval_tui.analysis.divergence import StepChange, first_change
from agenteval_tui.analysis.trajectory_alignment import align
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import sentences
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_from_dict
from agenteval_tui.runs.stored_answers import stored_answers
from agenteval_tui.transcripts.model import Transcript

Who = Literal["agent", "criterion", "both", "judge noise", "unknown"]
_DECIDED = (Outcome.PASSED, Outcome.FAILED)
PAIRS = 5
"""Pairs of runs of a test that are looked at: the first ones."""


class Attribution(Struct, frozen=True):
    """Who changed one verdict. `criterion` is its name ("": the verdict of the test as a whole).

    `was` and `now` are the stored outcomes; `old_under_new` (the old output, the new criterion) and `new_under_old` the
    crosswise ones, "" where they were not needed or can't be made. `reason` is a sentence.
    """

    who: Who
    reason: str
    criterion: str = ""
    was: str = ""
    now: str = ""
    old_under_new: str = ""
    new_under_old: str = ""


class Flip(Struct, frozen=True):
    """A run before and one after it with another verdict. `divergence`: the first step that differs; None: both did the
    same. `criteria`: those of its criteria whose verdict changed."""

    before: str
    after: str
    test: Attribution
    criteria: tuple[Attribution, ...]
    divergence: StepChange | None


class Attributed(Struct, frozen=True):
    """Who changed a test's verdicts, over its `flips`; `by_criterion`: the same of each criterion by name."""

    who: Who
    reason: str
    divergence: StepChange | None
    flips: tuple[Flip, ...]
    by_criterion: Mapping[str, Attribution] = field(default_factory=dict)


class _Stored:
    """A run as it is stored. What judges and people said of it is read when a criterion asks for it: most do not."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self.row: RunRow = store.run(run)
        self.transcript: Transcript = store.transcript(self.row.id)
        self.results: tuple[CriterionResult, ...] = store.results(self.row.id)

    @cached_property
    def replies(self) -> tuple[StoredReply, ...]:
        """What judges answered."""
        return self._store.replies(self.row.id)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """What people said of it."""
        return tuple(self._store.labels([self.row.id]))


def attribute(store: Store, pairs: Sequence[tuple[str, str]], *, most: int = PAIRS) -> Attributed | None:
    """Who changed the verdicts of these pairs of runs (before, after); None when none of them can be read.

    Where pairs say different things the most frequent one is taken, and the reason says how many there were.
    """
    flips = []
    for before, after in pairs[:most]:
        try:
            flips.append(attribute_pair(store, before, after))
        except AgentevalError:
            continue  # deleted in the meantime, or its transcript is lost
    if not flips:
        return None
    first = _most_frequent([one.test for one in flips])
    shown = next(one for one in flips if one.test.who == first.who)
    by_name: dict[str, list[Attribution]] = {}
    for flip in flips:
        for criterion in flip.criteria:
            by_name.setdefault(criterion.criterion, []).append(criterion)
    return Attributed(
        first.who,
        first.reason,
        shown.divergence,
        tuple(flips),
        {name: _most_frequent(found) for name, found in by_name.items()},
    )


def attribute_pair(store: Store, before: str, after: str) -> Flip:
    """Who changed the verdict between two runs. Raises `AgentevalError` when one of them can't be read."""
    old, new = _Stored(store, before), _Stored(store, after)
    criteria = tuple(_of_criteria(store, old, new))
    changed = first_change(old.transcript, new.transcript)
    return Flip(before, after, _of_test(old, new, criteria), criteria, changed)


def _most_frequent(attributions: Sequence[Attribution]) -> Attribution:
    counts = Counter(attribution.who for attribution in attributions)
    who, number = counts.most_common(1)[0]
    chosen = next(attribution for attribution in attributions if attribution.who == who)
    if len(counts) == 1:
        return chosen
    rest = ", ".join(f"{other} in {times}" for other, times in counts.items() if other != who)
    return replace(chosen, reason=f"{chosen.reason} ({number} of {len(attributions)} pairs of runs; {rest})")


# Reading


def _spec(store: Store, result: CriterionResult) -> CriterionSpec | None:
    """The version that judged, under the name and the weight that it had then; None: it is not stored."""
    found = store.criterion(result.criterion_hash) if result.criterion_hash else None
    if found is None:
        return None
    try:
        spec = spec_from_dict(found)
    except KeyError:
        return None
    return replace(spec, name=result.criterion, weight=result.weight, severity=result.severity)


# Criteria


def _of_criteria(store: Store, old: _Stored, new: _Stored) -> Iterable[Attribution]:
    """The criteria that both runs have and that were decided otherwise."""
    known = {result.criterion: result for result in old.results}
    by_hash = {result.criterion_hash: result for result in old.results if result.criterion_hash}
    for now in new.results:
        was = known.get(now.criterion) or by_hash.get(now.criterion_hash)
        if was is None or was.outcome == now.outcome:
            continue
        if was.outcome not in _DECIDED or now.outcome not in _DECIDED:
            continue
        yield _of_criterion(store, old, new, was, now)


def _of_criterion(store: Store, old: _Stored, new: _Stored, was: CriterionResult, now: CriterionResult) -> Attribution:
    specs = _spec(store, was), _spec(store, now)
    made = Attribution("unknown", "", now.criterion, str(was.outcome), str(now.outcome))
    if specs[0] is None or specs[1] is None:
        by = now.source or was.source
        why = f"it is the verdict of {by}, whose criterion is not known" if by else "its old version is not stored"
        return replace(made, reason=why)
    same = specs[0].hash == specs[1].hash and old.row.variables == new.row.variables
    alike = not align(old.transcript, new.transcript).differences
    if same:
        return _same_criterion(made, specs[1], old, new, alike=alike)
    replies = (*old.replies, *new.replies)
    crossed = (
        _judged(specs[1], old, new.row.variables, replies),
        _judged(specs[0], new, old.row.variables, replies),
    )
    made = replace(made, old_under_new=str(crossed[0].outcome), new_under_old=str(crossed[1].outcome))
    for one, what in zip(
        crossed, ("old output with the new criterion", "new output with the old criterion"), strict=True
    ):
        if one.outcome not in _DECIDED:
            return replace(
                made, reason=f"the {what} gives no verdict: {sentences.criterion_sentence(one) or one.outcome}"
            )
    by_criterion, by_agent = (one.outcome == now.outcome for one in crossed)
    what = "criterion" if specs[0].hash != specs[1].hash else "expected values of the row"
    verdict = "fails" if now.outcome is Outcome.FAILED else "passes"
    before = "passed" if now.outcome is Outcome.FAILED else "failed"
    if by_criterion and by_agent:
        return replace(made, who="both", reason=f"the {what} changed and the output changed: each alone {verdict}")
    if by_criterion:
        said = (
            f"the {what} changed: the old output {verdict} with it, too, and the new output {before} with the old one"
        )
        return replace(made, who="criterion", reason=said)
    if by_agent:
        said = f"the output changed: it {verdict} with the old {what}, too; the old output still {before} with the new"
        return replace(made, who="agent", reason=said)
    said = f"the {what} and the output changed, and only together it {verdict}"
    return replace(made, who="both", reason=said)


def _same_criterion(made: Attribution, spec: CriterionSpec, old: _Stored, new: _Stored, *, alike: bool) -> Attribution:
    """The same version and the same variables judged both."""
    asks = compile_criterion(spec).asks
    if alike and asks:
        return replace(made, who="judge noise", reason="the same output under the same criterion was judged otherwise")
    if alike:
        return replace(
            made, who="agent", reason="the same output under the same criterion: what was measured of it changed"
        )
    for run, which in ((new, "new"), (old, "old")) if asks else ():
        passed, times = _asked_again(spec, run)
        if 0 < passed < times:
            said = f"asked {times} times about the {which} output, the judge says passed {passed} times"
            return replace(made, who="judge noise", reason=said)
    return replace(made, who="agent", reason="the criterion is the same, the output changed")


def _judged(
    spec: CriterionSpec, run: _Stored, variables: Mapping[str, Any], stored: Sequence[StoredReply]
) -> CriterionResult:
    """What a criterion says of a run's output."""
    replies = stored_answers([spec], run.transcript, variables, stored, run.labels, sole_of_results(run.results))
    return compile_criterion(spec).check(run.transcript, variables, replies=replies)


def _asked_again(spec: CriterionSpec, run: _Stored) -> tuple[int, int]:
    """Of all stored replies to what the criterion asks about a run, each taken alone: (how many pass, how many say
    something). Votes and later askings are the same question."""
    checker = compile_criterion(spec)
    sole = sole_of_results(run.results)
    known = stored_answers([spec], run.transcript, run.row.variables, run.replies, run.labels, sole)
    questions: dict[str, list[str]] = {}
    for request in checker.requests(run.transcript, run.row.variables, {}):
        if request.kind == "chat":
            questions.setdefault(_question(request.to_json()), []).append(request.hash)
    passed = times = 0
    for question, hashes in questions.items():
        for reply in run.replies:
            if reply.reply.error or _question(reply.request.to_json()) != question:
                continue
            replies: dict[str, Reply] = {**known, **dict.fromkeys(hashes, reply.reply)}
            outcome = checker.check(run.transcript, run.row.variables, replies=replies).outcome
            passed += outcome is Outcome.PASSED
            times += outcome in _DECIDED
    return passed, times


def _question(request: Mapping[str, Any]) -> str:
    payload = {key: value for key, value in request["payload"].items() if key != "vote"}
    return json.dumps([request["kind"], request["target"], payload], sort_keys=True, default=str)


# The test


def _of_test(old: _Stored, new: _Stored, criteria: Sequence[Attribution]) -> Attribution:
    """Of the criteria that changed as the test did, what all of them say."""
    was, now = old.row.status, new.row.status
    made = Attribution("unknown", "", "", was, now)
    if was == now:
        return replace(made, reason="both ended alike")
    if {was, now} != {"passed", "failed"}:
        return replace(made, reason=f"a run ended as {was if was not in _DECIDED else now}, which is not a verdict")
    deciding = {result.criterion for result in new.results if result.severity == "error"}
    alike = [criterion for criterion in criteria if criterion.now == now and criterion.criterion in deciding]
    if not alike:
        return _without_flip(made, old, new)
    found = {one.who for one in alike}
    if len(found) == 1:
        said = (
            alike[0].reason if len(alike) == 1 else f"{alike[0].criterion} and {len(alike) - 1} more: {alike[0].reason}"
        )
        return replace(made, who=alike[0].who, reason=said)
    if "unknown" in found:
        return replace(made, reason=next(one.reason for one in alike if one.who == "unknown"))
    said = ", ".join(f"{one.criterion}: {one.who}" for one in alike)
    return replace(made, who="both", reason=said)


def _without_flip(made: Attribution, old: _Stored, new: _Stored) -> Attribution:
    """No criterion that decides changed its verdict: criteria came or went, or count otherwise."""
    sides = [{result.criterion: result for result in run.results} for run in (old, new)]
    came = [
        result.criterion
        for result in new.results
        if result.criterion not in sides[0] and result.severity == "error" and result.outcome is Outcome.FAILED
    ]
    gone = [
        result.criterion
        for result in old.results
        if result.criterion not in sides[1] and result.severity == "error" and result.outcome is Outcome.FAILED
    ]
    if came and made.now == "failed":
        return replace(made, who="criterion", reason=f"criterion {came[0]!r} is new, and fails")
    if gone and made.now == "passed":
        return replace(made, who="criterion", reason=f"criterion {gone[0]!r}, which failed, is gone")
    moved = [
        name
        for name in sides[0].keys() & sides[1].keys()
        if (sides[0][name].severity, sides[0][name].weight) != (sides[1][name].severity, sides[1][name].weight)
    ]
    if moved:
        return replace(made, who="criterion", reason=f"criterion {sorted(moved)[0]!r} counts differently than before")
    if not old.results or not new.results:
        return replace(made, reason="no criterion is stored with one of the runs")
    scores = [{result.criterion: result.score for result in run.results} for run in (old, new)]
    if scores[0] == scores[1]:
        return replace(made, who="criterion", reason="all criteria give the same scores: the test's threshold changed")
    return replace(made, who="agent", reason="the scores moved across the test's threshold")
