"""Who changed a verdict: the agent, the criterion, both, or the judge's mood.

For a run that passed before and fails now (or the reverse) the old output is graded with the new criterion and the new
output with the old one, without calling anybody. A criterion is what judges: its version, and the variables of the row
that fill it. The test as a whole is graded crosswise in the same way, by all that decides it: its criteria with their
severities and weights, and its threshold, as they were when it ran. Errors are never verdicts: if one of the two
crosswise gradings is impossible, no side is named.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.agreement import sole_of_results
from agenteval_tui.analysis.divergence import StepChange, first_change
from agenteval_tui.analysis.regrade import threshold_of
from agenteval_tui.analysis.setup_changes import Change
from agenteval_tui.analysis.trajectory_alignment import align
from agenteval_tui.core.document import Document, StatusOrNone
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.runs.stored_judgments import stored_answers
from agenteval_tui.transcripts.model import Transcript

Who = Literal["agent", "criterion", "both", "judge noise", "unknown"]
ReasonCode = Literal[
    "version_unknown",  # by: who judged, "" where the version is not stored
    "no_verdict",  # output: old or new; result: what the other side's criterion says of it
    # changed: criterion, row, or rules (of the test; `changes` lists them); now: the verdict
    "each_alone",
    "criterion_alone",
    "output_alone",
    "only_together",
    "judged_otherwise",
    "measured_otherwise",
    "output_changed",
    "judge_varies",  # output: old or new; times, passed
    "same_end",
    "not_a_verdict",  # status
    "criteria_agree",  # criterion, more: how many others; reason: of the first
    "criteria_differ",  # by: who, by criterion
    "criterion_came",
    "criterion_gone",  # criterion
    "no_criterion",
    "rules_unknown",
    "score_moved",
    "pairs_differ",  # reason: of the most frequent; number, pairs, others: how many pairs, by whom
]
RuleKind = Literal[
    "added",
    "removed",
    "config",
    "expected_value",
    "negate",
    "pass_threshold",
    "severity",
    "weight",
    "test_threshold",
    "row",
]
PAIRS = 5
"""Pairs of runs of a test that are looked at: the first ones."""


class Reason(Struct, frozen=True):
    """Why a side is named: a code, and the fields that its sentence needs (`views.attribution.reason_text`)."""

    code: ReasonCode
    fields: Mapping[str, Any] = {}


class RuleChange(Change[RuleKind, Any], frozen=True):
    """One thing that decides a test and is another now: a criterion was `added` or `removed`, or its `config`,
    `expected_value`, `negate`, `pass_threshold`, `severity` or `weight` changed (`criterion`: its name), the
    `test_threshold`, or the variables of the dataset's `row`. `was` and `now` are values of a figure or a word."""


_Why = TypeVar("_Why", Reason, str)


class Changer(Document, Generic[_Why], frozen=True):
    """Who changed a verdict; the reason as a code with fields, or in words."""

    who: Who
    reason: _Why


class Attribution(Changer[_Why], Generic[_Why], frozen=True):
    """Who changed one verdict. `criterion` is its name ("": the verdict of the test as a whole).

    `was` and `now` are the stored outcomes; `old_under_new` (the old output, the new criterion) and `new_under_old` the
    crosswise ones, "" where they were not needed or are impossible.
    """

    criterion: str = ""
    was: StatusOrNone = ""
    now: StatusOrNone = ""
    old_under_new: str = ""
    new_under_old: str = ""


class Flip(Struct, frozen=True):
    """A run before and one after it with another verdict. `divergence`: the first step that differs; None: both did the
    same. `criteria`: those of its criteria whose verdict changed."""

    before: str
    after: str
    test: Attribution[Reason]
    criteria: tuple[Attribution[Reason], ...]
    divergence: StepChange | None


class Attributed(Changer[Reason], frozen=True):
    """Who changed a test's verdicts, over its `flips`; `by_criterion`: the same of each criterion by name."""

    divergence: StepChange | None
    flips: tuple[Flip, ...]
    by_criterion: Mapping[str, Attribution[Reason]] = field(default_factory=dict)


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
    def threshold(self) -> float | None:
        """The test's threshold when it ran; where that is not stored, none if the run ended as its criteria say, else
        the one in the suite's file."""
        if self._store.task_of(self.row.id) is None and self._ends_as_stored(None):
            return None
        return threshold_of(self._store, self.row)

    @property
    def explained(self) -> bool:
        """Whether its criteria and its test's threshold give the verdict that it has."""
        return self._ends_as_stored(self.threshold)

    def _ends_as_stored(self, threshold: float | None) -> bool:
        return str(verdict_of(self.results, threshold).outcome) == self.row.status

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """What people said of it."""
        return tuple(self._store.labels([self.row.id]))


def attribute(store: Store, pairs: Sequence[tuple[str, str]], *, most: int = PAIRS) -> Attributed | None:
    """Who changed the verdicts of these pairs of runs (before, after); None when none can be read.

    Where pairs say different things the most frequent one is taken, and the reason says how many there were.
    """
    flips = []
    # A pair takes two transcripts and judges them crosswise: some say enough.
    for before, after in pairs[:most]:
        try:
            flips.append(attribute_pair(store, before, after))
        except AgentevalError:
            continue  # deleted in the meantime, or its transcript is lost
    if not flips:
        return None
    first = _most_frequent([flip.test for flip in flips])
    chosen = next(flip for flip in flips if flip.test.who == first.who)
    by_name = grouped((criterion.criterion, criterion) for flip in flips for criterion in flip.criteria)
    return Attributed(
        first.who,
        first.reason,
        chosen.divergence,
        tuple(flips),
        {name: _most_frequent(attributions) for name, attributions in by_name.items()},
    )


def attribute_pair(store: Store, before: str, after: str) -> Flip:
    """Who changed the verdict between two runs. Raises `AgentevalError` when a run can't be read."""
    old, new = _Stored(store, before), _Stored(store, after)
    criteria = tuple(_of_criteria(store, old, new))
    changed = first_change(old.transcript, new.transcript)
    return Flip(before, after, _of_test(store, old, new, criteria), criteria, changed)


def _most_frequent(attributions: Sequence[Attribution[Reason]]) -> Attribution[Reason]:
    counts = Counter(attribution.who for attribution in attributions)
    who, number = counts.most_common(1)[0]
    chosen = next(attribution for attribution in attributions if attribution.who == who)
    if len(counts) == 1:
        return chosen
    others = {other: times for other, times in counts.items() if other != who}
    return _named(
        chosen, who, "pairs_differ", reason=chosen.reason, number=number, pairs=len(attributions), others=others
    )


def _named(attribution: Attribution[Reason], who: Who, code: ReasonCode, **fields: Any) -> Attribution[Reason]:
    return replace(attribution, who=who, reason=Reason(code, fields))


# Reading


def _spec(store: Store, result: CriterionResult) -> CriterionSpec | None:
    """The version that judged, under the name and the weight that it had then; None: it is not stored."""
    spec = known_spec(store, result.criterion_hash)
    if spec is None:
        return None
    return replace(spec, name=result.criterion, weight=result.weight, severity=result.severity)


# Criteria


def _of_criteria(store: Store, old: _Stored, new: _Stored) -> Iterable[Attribution[Reason]]:
    """The criteria that both runs have and that were decided otherwise."""
    for was, now in _matched(old, new):
        if was is None or now is None or was.outcome == now.outcome:
            continue
        if was.outcome not in DECIDED or now.outcome not in DECIDED:
            continue
        yield _of_criterion(store, old, new, was, now)


def _matched(old: _Stored, new: _Stored) -> list[tuple[CriterionResult | None, CriterionResult | None]]:
    """The criteria of both runs: those of one name, then those of one version, which were renamed. None: on that side
    there is none."""
    before = {result.criterion: result for result in old.results}
    pairs: list[tuple[CriterionResult | None, CriterionResult | None]] = []
    others = []
    # Names first: a criterion that was edited has another version and its old name.
    for now in new.results:
        was = before.pop(now.criterion, None)
        if was is None:
            others.append(now)
        else:
            pairs.append((was, now))
    for now in others:
        versions = (
            name for name, was in before.items() if now.criterion_hash and was.criterion_hash == now.criterion_hash
        )
        name = next(versions, None)
        pairs.append((None if name is None else before.pop(name), now))
    return [*pairs, *((was, None) for was in before.values())]


def _of_criterion(
    store: Store, old: _Stored, new: _Stored, was: CriterionResult, now: CriterionResult
) -> Attribution[Reason]:
    specs = _spec(store, was), _spec(store, now)
    attribution = Attribution("unknown", Reason("version_unknown"), now.criterion, str(was.outcome), str(now.outcome))
    if specs[0] is None or specs[1] is None:
        return _named(attribution, "unknown", "version_unknown", by=now.source or was.source)
    same = specs[0].hash == specs[1].hash and old.row.variables == new.row.variables
    if same:
        return _same_criterion(attribution, specs[1], old, new)
    # Of both runs: where only a threshold changed, the question is the same, and its answer is stored with either run.
    replies = (*old.replies, *new.replies)
    crossed = (
        _judged(specs[1], old, new.row.variables, replies),
        _judged(specs[0], new, old.row.variables, replies),
    )
    attribution = replace(attribution, old_under_new=str(crossed[0].outcome), new_under_old=str(crossed[1].outcome))
    for result, output in zip(crossed, ("old", "new"), strict=True):
        if result.outcome not in DECIDED:
            return _named(attribution, "unknown", "no_verdict", output=output, result=result)
    by_criterion, by_agent = (result.outcome == now.outcome for result in crossed)
    who, code = _CROSSWISE[by_criterion, by_agent]
    changed = "criterion" if specs[0].hash != specs[1].hash else "row"
    return _named(attribution, who, code, changed=changed, now=str(now.outcome))


_CROSSWISE: dict[tuple[bool, bool], tuple[Who, ReasonCode]] = {
    (True, True): ("both", "each_alone"),
    (True, False): ("criterion", "criterion_alone"),
    (False, True): ("agent", "output_alone"),
    (False, False): ("both", "only_together"),
}
"""By whether the new criterion alone, and the new output alone, gives the new verdict."""


def _same_criterion(
    attribution: Attribution[Reason], spec: CriterionSpec, old: _Stored, new: _Stored
) -> Attribution[Reason]:
    """The same version and the same variables judged both."""
    asks = compile_criterion(spec).asks
    if not align(old.transcript, new.transcript).differences:
        return _of_alike(attribution, asks=asks)
    # The judge is noisy if it ever contradicted itself about one of the two outputs.
    for run, output in ((new, "new"), (old, "old")) if asks else ():
        passed, times = _asked_again(spec, run)
        if 0 < passed < times:
            return _named(attribution, "judge noise", "judge_varies", output=output, times=times, passed=passed)
    return _named(attribution, "agent", "output_changed")


def _of_alike(attribution: Attribution[Reason], *, asks: bool) -> Attribution[Reason]:
    """The outputs and the rules are the same: a judge said something else, or what is measured around them (time, cost)
    was different."""
    if asks:
        return _named(attribution, "judge noise", "judged_otherwise")
    return _named(attribution, "agent", "measured_otherwise")


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
    answers = stored_answers([spec], run.transcript, run.row.variables, run.replies, run.labels, sole)
    questions = grouped(
        (_question(request.to_json()), request.hash)
        for request in checker.requests(run.transcript, run.row.variables, {})
        if request.kind == "chat"
    )
    passed = times = 0
    for question, hashes in questions.items():
        for reply in run.replies:
            if reply.reply.error or _question(reply.request.to_json()) != question:
                continue
            # One stored reply in place of all votes: what would the verdict be if only this had been said?
            replies: dict[str, Reply] = {**answers, **dict.fromkeys(hashes, reply.reply)}
            outcome = checker.check(run.transcript, run.row.variables, replies=replies).outcome
            passed += outcome is Outcome.PASSED
            times += outcome in DECIDED
    return passed, times


def _question(request: Mapping[str, Any]) -> str:
    payload = {key: value for key, value in request["payload"].items() if key != "vote"}
    return json.dumps([request["kind"], request["target"], payload], sort_keys=True, default=str)


# The test


def _of_test(store: Store, old: _Stored, new: _Stored, criteria: Sequence[Attribution[Reason]]) -> Attribution[Reason]:
    """The old output by the new rules, and the new output by the old ones; where the rules are the same, what the
    criteria that changed as the test did say."""
    was, now = old.row.status, new.row.status
    attribution = Attribution("unknown", Reason("same_end"), "", was, now)
    if was == now:
        return attribution
    # An error or a wait is no verdict that somebody could have changed.
    if {was, now} != {*DECIDED}:
        return _named(attribution, "unknown", "not_a_verdict", status=was if was not in DECIDED else now)
    if not old.results or not new.results:
        return _named(attribution, "unknown", "no_criterion")
    changes = _rule_changes(store, old, new)
    if changes:
        return _by_rules(store, attribution, old, new, criteria, changes)
    return _by_criteria(attribution, new, criteria) or _by_score(store, attribution, old, new)


def _by_criteria(
    attribution: Attribution[Reason], new: _Stored, criteria: Sequence[Attribution[Reason]]
) -> Attribution[Reason] | None:
    """Of the criteria that changed as the test did, what all say; None: no criterion that decides changed."""
    deciding = {result.criterion for result in new.results if result.severity == "error"}
    alike = [
        criterion for criterion in criteria if criterion.now == attribution.now and criterion.criterion in deciding
    ]
    if not alike:
        return None
    sides = {criterion.who for criterion in alike}
    first = alike[0]
    if len(alike) == 1:
        return replace(attribution, who=first.who, reason=first.reason)
    if len(sides) == 1:
        return _named(
            attribution,
            first.who,
            "criteria_agree",
            criterion=first.criterion,
            more=len(alike) - 1,
            reason=first.reason,
        )
    # One that is not known could be any of the others.
    if "unknown" in sides:
        return replace(attribution, reason=next(criterion.reason for criterion in alike if criterion.who == "unknown"))
    return _named(
        attribution, "both", "criteria_differ", by={criterion.criterion: criterion.who for criterion in alike}
    )


def _by_score(store: Store, attribution: Attribution[Reason], old: _Stored, new: _Stored) -> Attribution[Reason]:
    """No criterion that decides changed its verdict, and the rules are the same: the score crossed the threshold."""
    if not (old.explained and new.explained):
        return _named(attribution, "unknown", "rules_unknown")
    if align(old.transcript, new.transcript).differences:
        return _named(attribution, "agent", "score_moved")
    moved = [now for was, now in _matched(old, new) if was is not None and now is not None and was.score != now.score]
    specs = [spec for result in moved if (spec := _spec(store, result)) is not None]
    return _of_alike(attribution, asks=any(compile_criterion(spec).asks for spec in specs))


# The rules of a test


def _rule_changes(store: Store, old: _Stored, new: _Stored) -> tuple[RuleChange, ...]:
    """What decides the test otherwise now. Weights count only where the test has a threshold."""
    changes: list[RuleChange] = []
    # Without a threshold the severities alone decide.
    weighed = old.threshold is not None or new.threshold is not None
    for was, now in _matched(old, new):
        if was is None or now is None:
            criterion = now or was
            assert criterion is not None
            if _decides(criterion, weighed):
                changes.append(RuleChange("added" if was is None else "removed", criterion.criterion))
            continue
        if not _decides(was, weighed) and not _decides(now, weighed):
            continue
        if was.criterion_hash != now.criterion_hash:
            changes += _spec_changes(now.criterion, _spec(store, was), _spec(store, now))
        if was.severity != now.severity:
            changes.append(RuleChange("severity", now.criterion, was.severity, now.severity))
        if weighed and was.weight != now.weight:
            changes.append(RuleChange("weight", now.criterion, was.weight, now.weight))
    if old.threshold != new.threshold:
        changes.append(RuleChange("test_threshold", "", old.threshold, new.threshold))
    if old.row.variables != new.row.variables:
        changes.append(RuleChange("row"))
    return tuple(changes)


def _decides(result: CriterionResult, weighed: bool) -> bool:
    return result.severity == "error" or (weighed and result.weight > 0)


def _spec_changes(name: str, was: CriterionSpec | None, now: CriterionSpec | None) -> list[RuleChange]:
    """How two versions of a criterion differ; where one is not stored, that they do."""
    if was is None or now is None:
        return [RuleChange("config", name)]
    changes = []
    if was.negate != now.negate:
        changes.append(RuleChange("negate", name, was.negate, now.negate))
    if was.pass_threshold != now.pass_threshold:
        changes.append(RuleChange("pass_threshold", name, was.pass_threshold, now.pass_threshold))
    if was.expected_value != now.expected_value:
        changes.append(RuleChange("expected_value", name))
    # With these equal, another hash means another config.
    alike = replace(was, negate=now.negate, pass_threshold=now.pass_threshold, expected_value=now.expected_value)
    if alike.hash != now.hash:
        changes.append(RuleChange("config", name))
    return changes


def _by_rules(
    store: Store,
    attribution: Attribution[Reason],
    old: _Stored,
    new: _Stored,
    criteria: Sequence[Attribution[Reason]],
    changes: tuple[RuleChange, ...],
) -> Attribution[Reason]:
    """The verdicts of the test for the old output by the new rules and for the new output by the old rules."""
    if not (old.explained and new.explained):
        by_criteria = _by_criteria(attribution, new, criteria)
        if by_criteria is not None and by_criteria.who == "unknown":
            return by_criteria
        return _named(attribution, "unknown", "rules_unknown")
    outcomes = []
    for output, rules, side in ((old, new, "old"), (new, old, "new")):
        results = _crosswise(store, output, rules, _matched(old, new) if output is old else _matched(new, old))
        if results is None:
            return _named(attribution, "unknown", "version_unknown", by="")
        verdict = verdict_of(results, rules.threshold)
        if verdict.outcome not in DECIDED:
            # One of them has none: it is what the sentence names.
            open_ = next(result for result in results if result.outcome not in DECIDED)
            return _named(attribution, "unknown", "no_verdict", output=side, result=open_)
        outcomes.append(str(verdict.outcome))
    attribution = replace(attribution, old_under_new=outcomes[0], new_under_old=outcomes[1])
    by_criterion, by_agent = (outcome == attribution.now for outcome in outcomes)
    who, code = _CROSSWISE[by_criterion, by_agent]
    # A criterion's own reason says more than that of the rules, where both name the same side.
    lifted = _by_criteria(attribution, new, criteria)
    # Crosswise a judge's mood looks like another output: only the criterion's own replies tell them apart.
    if who == "agent" and lifted is not None and lifted.who == "judge noise":
        return lifted
    flips = [criterion for criterion in criteria if criterion.now == attribution.now]
    if lifted is not None and lifted.who == who and len(flips) == 1 and _only(changes, flips[0].criterion):
        return lifted
    if who == "criterion" and len(changes) == 1:
        if changes[0].kind == "added" and attribution.now == "failed":
            return _named(attribution, who, "criterion_came", criterion=changes[0].criterion)
        if changes[0].kind == "removed" and attribution.now == "passed":
            return _named(attribution, who, "criterion_gone", criterion=changes[0].criterion)
    return _named(attribution, who, code, changed="rules", changes=changes, now=attribution.now)


def _only(changes: Sequence[RuleChange], criterion: str) -> bool:
    """Whether nothing but how this criterion judges changed."""
    versions = ("config", "expected_value", "negate", "pass_threshold")
    return all(
        change.kind == "row" or (change.criterion == criterion and change.kind in versions) for change in changes
    )


def _crosswise(
    store: Store,
    output: _Stored,
    rules: _Stored,
    matched: Iterable[tuple[CriterionResult | None, CriterionResult | None]],
) -> list[CriterionResult] | None:
    """What the criteria of `rules` say of `output`; None: one that decides can't be asked. `matched`: its results, and
    those of `rules`, which tell how much each criterion counts."""
    same_row = output.row.variables == rules.row.variables
    replies = (*output.replies, *rules.replies)
    results = []
    for own, judge in matched:
        if judge is None:
            continue
        if own is not None and own.criterion_hash == judge.criterion_hash and same_row:
            # The same version said it already; of another tool's verdict there is no version, and nobody to ask.
            results.append(replace(own, severity=judge.severity, weight=judge.weight))
            continue
        spec = _spec(store, judge)
        if spec is not None:
            results.append(_judged(spec, output, rules.row.variables, replies))
        elif _decides(judge, rules.threshold is not None):
            return None
    return results
