"""A comparison as JSON: what `agenteval compare --json` prints, and what results say of their baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from agenteval_tui.analysis.attribution import Attributed, Attribution
from agenteval_tui.analysis.comparison_model import (
    ORDER,
    Comparison,
    CriterionChange,
    MetricChange,
    Overall,
    RowChange,
    Side,
    SummaryMetric,
    Tally,
    TestChange,
    TestKey,
)
from agenteval_tui.analysis.regression_gate import BaselineResult, GateNotice
from agenteval_tui.analysis.regressions import Regression, Regressions, regressions_of
from agenteval_tui.analysis.setup_changes import SetupChange
from agenteval_tui.core.document import Count, Document, RowKey, Share, StatusOrNone, Time, one_of
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.history.baselines import Baseline
from agenteval_tui.suites.commits import Commit
from agenteval_tui.views.attribution import reason_text
from agenteval_tui.views.comparison import counts_text, notes, overall_text
from agenteval_tui.views.divergence import step_change_text

TestState = Annotated[str, one_of(*ORDER)]
Who = Annotated[str, one_of("agent", "criterion", "both", "judge noise", "unknown")]
_Pair = Annotated[tuple[str, str] | None, Meta(description="a run of each side that show the change")]


class StateCounts(Document, frozen=True, kw_only=True):
    """How many tests are in each state; states without any are left out."""

    worse: Count | UnsetType = UNSET
    better: Count | UnsetType = UNSET
    mixed: Count | UnsetType = UNSET
    score: Count | UnsetType = UNSET
    criteria: Count | UnsetType = UNSET
    undecided: Count | UnsetType = UNSET
    added: Count | UnsetType = UNSET
    removed: Count | UnsetType = UNSET
    same: Count | UnsetType = UNSET


class Measure(Document, frozen=True, kw_only=True):
    """How a mean changed."""

    was: float
    now: float
    difference: float
    interval: Annotated[
        tuple[float, float] | None, Meta(description="95 %, of the difference; null for fewer than five cases")
    ]
    n: Annotated[Count, Meta(description="cases that both sides have")]


class TallyFigures(Document, frozen=True, kw_only=True):
    """Runs of a test, or results of one criterion or metric."""

    runs: Count
    n: Annotated[Count, Meta(description="those that passed or failed")]
    passed: Count
    errors: Count
    score: Share | None
    latency_ms: float | None
    tokens: float | None
    cost: float | None


class Pairs(Document, frozen=True, kw_only=True):
    """Pairs of runs, by which run passed."""

    both: Count
    only_a: Count
    only_b: Count
    neither: Count


class OverallChange(Document, frozen=True, kw_only=True):
    """All tests together."""

    pass_rate: Measure | None
    test: Annotated[
        str,
        one_of("mcnemar", "sign-flip", "fisher"),
        Meta(
            description="mcnemar: every case ran once; sign-flip: repetitions; fisher: no case in common, or the"
            " repetitions of a single case"
        ),
    ]
    one_case: Annotated[bool, Meta(description="the repetitions of one case are compared; others may differ")]
    n: Annotated[Count, Meta(description="pairs, cases, or runs of the smaller side: what the test counts")]
    p_value: Share | None
    detectable_drop: Annotated[
        Share | None,
        Meta(description="smallest drop detectable with 80 % power; null: not even a drop of 1"),
    ]
    pairs: Pairs
    left_out: Annotated[Count, Meta(description="cases that were decided on one side only")]
    score: Measure | None
    latency_ms: Measure | None
    tokens: Measure | None
    cost: Measure | None
    said: str


class ComparedSide(Document, frozen=True, kw_only=True):
    """One of the two sides."""

    kind: Annotated[str, one_of("execution", "baseline", "agent", "variation", "version")]
    name: str
    reference: str
    executions: tuple[str, ...]
    runs: Count
    started: Time | None
    commits: Annotated[
        tuple[Commit, ...],
        Meta(description="of its suites' and agents' repositories; empty for several executions"),
    ]
    meta: Annotated[dict[str, str], Meta(description="its execution's metadata")]


class AttributedCriterion(Document, frozen=True, kw_only=True):
    """Who changed the verdict of a criterion."""

    who: Who
    reason: str
    criterion: str
    was: StatusOrNone
    now: StatusOrNone
    old_under_new: str
    new_under_old: str


class ComparedMetric(Document, frozen=True, kw_only=True):
    """A metric of a criterion on both sides."""

    name: str
    type: str
    was: TallyFigures | None
    now: TallyFigures | None


class ComparedCriterion(Document, frozen=True, kw_only=True):
    """A criterion of a test on both sides."""

    criterion: str
    was_name: str
    comparable: Annotated[bool, Meta(description="one version of it judged both sides")]
    state: TestState
    was: TallyFigures | None
    now: TallyFigures | None
    versions_was: tuple[str, ...]
    versions_now: tuple[str, ...]
    attribution: AttributedCriterion | None
    metrics: tuple[ComparedMetric, ...]


class ComparedRow(Document, frozen=True, kw_only=True):
    """A row of a test's dataset on both sides."""

    row: Annotated[str, Meta(description="its id, else its place in the file")]
    row_key: RowKey
    state: TestState
    was: TallyFigures | None
    now: TallyFigures | None
    place_was: Annotated[Count | None, Meta(description="null: it didn't exist")]
    place_now: Annotated[Count | None, Meta(description="null: it no longer exists")]
    moved: Annotated[bool, Meta(description="out of the order of the others")]
    content_changed: Annotated[
        tuple[str, ...], Meta(description="the variables that are others now, of a row that has an id")
    ]
    runs: _Pair


class AttributedFlip(Document, frozen=True, kw_only=True):
    """A run before and one after it with another verdict."""

    before: str
    after: str
    who: Who
    divergence: str


class AttributedTest(Document, frozen=True, kw_only=True):
    """Who changed a test's verdicts."""

    who: Who
    reason: str
    divergence: str
    flips: tuple[AttributedFlip, ...]


class ComparedTest(Document, frozen=True, kw_only=True):
    """A test on both sides."""

    __test__ = False  # not a test class, whatever its name says to pytest

    suite: str
    test: str
    name: str
    variation: str
    state: TestState
    comparable: Annotated[bool, Meta(description="false: it is judged differently on the right")]
    setup: Annotated[
        tuple[SetupChange, ...], Meta(description="what it was asked and judged with, as far as that is different now")
    ]
    regressions: Annotated[
        tuple[Regression, ...],
        Meta(description="of the test and of its rows, by the rules of `run --no-regressions`"),
    ]
    cases: Count
    was: TallyFigures | None
    now: TallyFigures | None
    difference: float | None
    score_difference: float | None
    p_value: Share | None
    quarantine: Annotated[str, Meta(description='why it does not gate; "": it does')]
    rows: Annotated[
        tuple[ComparedRow, ...],
        Meta(description="of its dataset, in the order of the right side; those that went are last"),
    ]
    runs: _Pair
    attribution: AttributedTest | None
    criteria: tuple[ComparedCriterion, ...]


class PairedSuites(Document, frozen=True, kw_only=True):
    """Two suites that are compared with each other."""

    was: Annotated[str, Meta(description="its key in a")]
    now: Annotated[str, Meta(description="its key in b")]
    by: Annotated[
        str,
        one_of("name", "tests"),
        Meta(
            description="name: a suite's file that lies elsewhere; tests: two imported files whose tests have the same"
            " ids"
        ),
    ]
    asked_alike: Annotated[bool, Meta(description="a test of both was asked the same")]


class ComparedSides(Document, frozen=True, kw_only=True):
    """`agenteval compare`: everything of a comparison."""

    version: Literal[1] = 1
    a: ComparedSide
    b: ComparedSide
    overall: OverallChange
    counts: StateCounts
    said: str
    notes: tuple[str, ...]
    paired_suites: Annotated[
        tuple[PairedSuites, ...],
        Meta(description="suites that are compared with each other though their files differ"),
    ]
    tests: Annotated[tuple[ComparedTest, ...], Meta(description="what passes less often first")]


class ChangedTest(Document, frozen=True, kw_only=True):
    """A test that is not as in its baseline."""

    test: str
    variation: str
    state: TestState
    was: TallyFigures | None
    now: TallyFigures | None
    p_value: Share | None
    rows: Annotated[tuple[ComparedRow, ...], Meta(description="those of its dataset that are worse or better")]


class AgainstBaseline(Document, frozen=True, kw_only=True):
    """What an execution says against the baseline of its tests."""

    executions: tuple[str, ...]
    started: Time | None
    overall: Annotated[OverallChange, Meta(description="of the tests that gate")]
    counts: StateCounts
    regressed: Annotated[tuple[str, ...], Meta(description="tests that regressed, or that have a row that did")]
    regressions: Annotated[
        tuple[Regression, ...], Meta(description="what regressed: cases, tests, or everything together")
    ]
    notices: Annotated[
        tuple[GateNotice, ...],
        Meta(description="what could not be compared, or not as it stands; options let it gate"),
    ]
    selected: Annotated[tuple[str, ...], Meta(description="options by which tests were left out on purpose")]
    from_history: Annotated[Count, Meta(description="answers that were taken from the history (`--cache`)")]
    not_comparable: Annotated[
        tuple[str, ...],
        Meta(description="tests that are judged differently than in the baseline; they still count"),
    ]
    within_chance: Annotated[tuple[str, ...], Meta(description="tests that passed less often, as chance explains")]
    quarantined: tuple[str, ...]
    without_baseline: Count
    changes: tuple[ChangedTest, ...]


class ListedBaseline(Document, frozen=True, kw_only=True):
    """A baseline in `agenteval baseline list`."""

    suite: str
    suite_key: str
    test: str
    name: str
    execution: str
    run: Annotated[str, Meta(description='"": all runs of the execution')]
    who: str
    set: Time
    started: Time
    runs: Count
    passed: Count
    errors: Count


class CriterionVersion(Document, frozen=True, kw_only=True):
    """A version of a criterion."""

    hash: str
    first: Time
    last: Time
    runs: Count
    passed: Count
    failed: Count
    current: bool
    text: str


class CriterionVersions(Document, frozen=True, kw_only=True):
    """`agenteval criterion`."""

    version: Literal[1] = 1
    suite_key: str
    test: str
    criterion: str
    current: Annotated[str, Meta(description='the hash in the suite\'s file; "": it is not there')]
    was_named: Annotated[str, Meta(description="the name before its first version here; empty: as now")]
    versions: Annotated[tuple[CriterionVersion, ...], Meta(description="newest first")]


def comparison_document(
    found: Comparison,
    attributed: Mapping[TestKey, Attributed | None] | None = None,
    metrics: Mapping[TestKey, Mapping[str, tuple[MetricChange, ...]]] | None = None,
) -> ComparedSides:
    """Everything of a comparison. `attribution` is null where nothing flipped, and for what was not looked at."""
    regressions = regressions_of(found)
    return ComparedSides(
        a=_side(found.a),
        b=_side(found.b),
        overall=_overall(found.overall),
        counts=StateCounts(**found.counts()),
        said=counts_text(found),
        notes=tuple(notes(found)),
        paired_suites=tuple(
            PairedSuites(
                was=one.was,
                now=one.now,
                by=one.by,
                asked_alike=one.asked_alike,
            )
            for one in found.paired
        ),
        tests=tuple(
            _test(one, (attributed or {}).get(one.key), (metrics or {}).get(one.key, {}), regressions)
            for one in found.tests
        ),
    )


def against_document(found: BaselineResult) -> AgainstBaseline:
    """What an execution says against its baseline: the figures, and the tests that changed."""
    changed = [one for one in found.shown.tests if one.state in ("worse", "better", "mixed", "score", "undecided")]
    return AgainstBaseline(
        executions=tuple(found.shown.a.executions),
        started=iso(found.shown.a.started_ms),
        overall=_overall(found.gating.overall),
        counts=StateCounts(**found.shown.counts()),
        regressed=tuple(one.label for one in found.regressed),
        regressions=found.regressions.found,
        notices=found.notices,
        selected=found.selected,
        from_history=found.from_history,
        not_comparable=tuple(one.label for one in found.shown.not_comparable),
        within_chance=tuple(one.label for one in found.by_chance),
        quarantined=tuple(one.label for one in found.shown.in_state("worse") if one.quarantine),
        without_baseline=found.without_baseline,
        changes=tuple(
            ChangedTest(
                test=one.test,
                variation=one.variation,
                state=one.state,
                was=_tally(one.was),
                now=_tally(one.now),
                p_value=one.p_value,
                rows=tuple(_row(row) for row in one.rows if row.state in ("worse", "better")),
            )
            for one in changed
        ),
    )


def _side(side: Side) -> ComparedSide:
    return ComparedSide(
        kind=side.kind,
        name=side.name,
        reference=side.reference,
        executions=tuple(side.executions),
        runs=len(side.runs),
        started=iso(side.started_ms or None),
        commits=side.commits,
        meta=dict(side.meta),
    )


def _overall(one: Overall) -> OverallChange:
    return OverallChange(
        pass_rate=_measure(one.rate),
        test=one.test,
        n=one.n,
        p_value=one.p_value,
        detectable_drop=one.detectable,
        one_case=one.one_case,
        pairs=Pairs(**asdict(one.pairs)),
        left_out=one.left_out,
        score=_measure(one.score),
        latency_ms=_measure(one.latency_ms),
        tokens=_measure(one.tokens),
        cost=_measure(one.cost),
        said=overall_text(one),
    )


def _measure(one: SummaryMetric | None) -> Measure | None:
    return None if one is None else Measure(**asdict(one))


def _test(
    one: TestChange,
    attributed: Attributed | None,
    metrics: Mapping[str, tuple[MetricChange, ...]],
    regressions: Regressions,
) -> ComparedTest:
    by_criterion = attributed.by_criterion if attributed is not None else {}
    return ComparedTest(
        suite=one.suite,
        test=one.test,
        name=one.name,
        variation=one.variation,
        state=one.state,
        comparable=one.comparable,
        setup=one.setup,
        regressions=tuple(regression for regression in regressions.found if regression.key == one.key),
        cases=one.cases,
        was=_tally(one.was),
        now=_tally(one.now),
        difference=one.difference,
        score_difference=one.score,
        p_value=one.p_value,
        quarantine=one.quarantine,
        rows=tuple(_row(row) for row in one.rows),
        runs=one.pair,
        attribution=_attributed(attributed),
        criteria=tuple(
            _criterion(each, by_criterion.get(each.name), metrics.get(each.name, ())) for each in one.criteria
        ),
    )


def _row(row: RowChange) -> ComparedRow:
    return ComparedRow(
        row=row.label,
        row_key=row.key,
        state=row.state,
        was=_tally(row.was),
        now=_tally(row.now),
        place_was=row.place_was,
        place_now=row.place_now,
        moved=row.moved,
        content_changed=tuple(row.content),
        runs=row.pair,
    )


def _tally(one: Tally | None) -> TallyFigures | None:
    return None if one is None else TallyFigures(**asdict(one))


def _criterion(
    one: CriterionChange, attribution: Attribution | None, metrics: tuple[MetricChange, ...]
) -> ComparedCriterion:
    return ComparedCriterion(
        criterion=one.name,
        was_name=one.was_name,
        comparable=one.comparable,
        state=one.state,
        was=_tally(one.was),
        now=_tally(one.now),
        versions_was=tuple(one.versions_was),
        versions_now=tuple(one.versions_now),
        attribution=None
        if attribution is None
        else AttributedCriterion(**{**asdict(attribution), "reason": reason_text(attribution.reason)}),
        metrics=tuple(
            ComparedMetric(
                name=each.name,
                type=each.type,
                was=_tally(each.was),
                now=_tally(each.now),
            )
            for each in metrics
        ),
    )


def _attributed(one: Attributed | None) -> AttributedTest | None:
    if one is None:
        return None
    return AttributedTest(
        who=one.who,
        reason=reason_text(one.reason),
        divergence=step_change_text(one.divergence),
        flips=tuple(
            AttributedFlip(
                before=flip.before,
                after=flip.after,
                who=flip.test.who,
                divergence=step_change_text(flip.divergence),
            )
            for flip in one.flips
        ),
    )


def listed_baseline(one: Baseline) -> ListedBaseline:
    """What `agenteval baseline list` says of a baseline."""
    return ListedBaseline(
        suite=one.suite_name,
        suite_key=one.suite_key,
        test=one.test_id,
        name=one.test_name,
        execution=one.execution_id,
        run=one.run_id,
        who=one.who,
        set=iso(one.at_ms),
        started=iso(one.started_ms),
        runs=one.runs,
        passed=one.passed,
        errors=one.errors,
    )
