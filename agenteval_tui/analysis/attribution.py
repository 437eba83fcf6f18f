"""Who changed a verdict: the agent, the criterion, both, or the judge's mood.

For a run that passed before and fails now (or the reverse) the old output is graded with the new criterion and the new
output with the old one, without calling anybody. A criterion is what judges: its version, and the variables of the row
that fill it. Errors are never verdicts: if one of the two crosswise gradings is impossible, no side is named.
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
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.runs.stored_answers import stored_answers
from agenteval_tui.transcripts.model import Transcript

Who = Literal["agent", "criterion", "both", "judge noise", "unknown"]
ReasonCode = Literal[
    "version_unknown",  # by: who judged, "" where the version is not stored
    "no_verdict",  # output: old or new; result: what the other side's criterion says of it
    "each_alone", "criterion_alone", "output_alone", "only_together",  # changed: criterion or row; now: the verdict
    "judged_otherwise", "measured_otherwise", "output_changed",
    "judge_varies",  # output: old or new; times, passed
    "same_end", "not_a_verdict",  # status
    "criteria_agree",  # criterion, more: how many others; reason: of the first
    "criteria_differ",  # by: who, by criterion
    "criterion_came", "criterion_gone", "criterion_counts",  # criterion
    "no_criterion", "threshold_changed", "score_moved",
    "pairs_differ",  # reason: of the most frequent; number, pairs, others: how many pairs, by whom
]  # fmt: skip
_DECIDED = (Outcome.PASSED, Outcome.FAILED)
PAIRS = 5
"""Pairs of runs of a test that are looked at: the first ones."""


class Reason(Struct, frozen=True):
    """Why a side is named: a code, and the fields that its sentence needs (`views.attribution.reason_text`)."""

    code: ReasonCode
    fields: Mapping[str, Any] = {}


class Attribution(Struct, frozen=True):
    """Who changed one verdict. `criterion` is its name ("": the verdict of the test as a whole).

    `was` and `now` are the stored outcomes; `old_under_new` (the old output, the new criterion) and `new_under_old` the
    crosswise ones, "" where they were not needed or are impossible.
    """

    who: Who
    reason: Reason
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
    reason: Reason
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
    """Who changed the verdicts of these pairs of runs (before, after); None when none can be read.

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
    """Who changed the verdict between two runs. Raises `AgentevalError` when a run can't be read."""
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
    others = {other: times for other, times in counts.items() if other != who}
    return _named(
        chosen, who, "pairs_differ", reason=chosen.reason, number=number, pairs=len(attributions), others=others
    )


def _named(made: Attribution, who: Who, code: ReasonCode, **fields: Any) -> Attribution:
    return replace(made, who=who, reason=Reason(code, fields))


# Reading


def _spec(store: Store, result: CriterionResult) -> CriterionSpec | None:
    """The version that judged, under the name and the weight that it had then; None: it is not stored."""
    spec = known_spec(store, result.criterion_hash)
    if spec is None:
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
    made = Attribution("unknown", Reason("version_unknown"), now.criterion, str(was.outcome), str(now.outcome))
    if specs[0] is None or specs[1] is None:
        return _named(made, "unknown", "version_unknown", by=now.source or was.source)
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
    for result, output in zip(crossed, ("old", "new"), strict=True):
        if result.outcome not in _DECIDED:
            return _named(made, "unknown", "no_verdict", output=output, result=result)
    by_criterion, by_agent = (result.outcome == now.outcome for result in crossed)
    who, code = _CROSSWISE[by_criterion, by_agent]
    changed = "criterion" if specs[0].hash != specs[1].hash else "row"
    return _named(made, who, code, changed=changed, now=str(now.outcome))


_CROSSWISE: dict[tuple[bool, bool], tuple[Who, ReasonCode]] = {
    (True, True): ("both", "each_alone"),
    (True, False): ("criterion", "criterion_alone"),
    (False, True): ("agent", "output_alone"),
    (False, False): ("both", "only_together"),
}
"""By whether the new criterion alone, and the new output alone, gives the new verdict."""


def _same_criterion(made: Attribution, spec: CriterionSpec, old: _Stored, new: _Stored, *, alike: bool) -> Attribution:
    """The same version and the same variables judged both."""
    asks = compile_criterion(spec).asks
    if alike:
        return _named(made, "judge noise", "judged_otherwise") if asks else _named(made, "agent", "measured_otherwise")
    for run, output in ((new, "new"), (old, "old")) if asks else ():
        passed, times = _asked_again(spec, run)
        if 0 < passed < times:
            return _named(made, "judge noise", "judge_varies", output=output, times=times, passed=passed)
    return _named(made, "agent", "output_changed")


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
    """Of the criteria that changed as the test did, what all say."""
    was, now = old.row.status, new.row.status
    made = Attribution("unknown", Reason("same_end"), "", was, now)
    if was == now:
        return made
    if {was, now} != {"passed", "failed"}:
        return _named(made, "unknown", "not_a_verdict", status=was if was not in _DECIDED else now)
    deciding = {result.criterion for result in new.results if result.severity == "error"}
    alike = [criterion for criterion in criteria if criterion.now == now and criterion.criterion in deciding]
    if not alike:
        return _without_flip(made, old, new)
    found = {criterion.who for criterion in alike}
    first = alike[0]
    if len(alike) == 1:
        return replace(made, who=first.who, reason=first.reason)
    if len(found) == 1:
        return _named(
            made, first.who, "criteria_agree", criterion=first.criterion, more=len(alike) - 1, reason=first.reason
        )
    if "unknown" in found:
        return replace(made, reason=next(criterion.reason for criterion in alike if criterion.who == "unknown"))
    return _named(made, "both", "criteria_differ", by={criterion.criterion: criterion.who for criterion in alike})


def _without_flip(made: Attribution, old: _Stored, new: _Stored) -> Attribution:
    """No criterion that decides changed its verdict: criteria came or went, or count otherwise."""
    before, after = ({result.criterion: result for result in run.results} for run in (old, new))

    def failed(results: Iterable[CriterionResult], elsewhere: Mapping[str, CriterionResult]) -> list[str]:
        return [
            result.criterion
            for result in results
            if result.criterion not in elsewhere and result.severity == "error" and result.outcome is Outcome.FAILED
        ]

    came, gone = failed(new.results, before), failed(old.results, after)
    if came and made.now == "failed":
        return _named(made, "criterion", "criterion_came", criterion=came[0])
    if gone and made.now == "passed":
        return _named(made, "criterion", "criterion_gone", criterion=gone[0])
    moved = [
        name
        for name in before.keys() & after.keys()
        if (before[name].severity, before[name].weight) != (after[name].severity, after[name].weight)
    ]
    if moved:
        return _named(made, "criterion", "criterion_counts", criterion=min(moved))
    if not old.results or not new.results:
        return _named(made, "unknown", "no_criterion")
    scores = [{name: result.score for name, result in side.items()} for side in (before, after)]
    if scores[0] == scores[1]:
        return _named(made, "criterion", "threshold_changed")
    return _named(made, "agent", "score_moved")
