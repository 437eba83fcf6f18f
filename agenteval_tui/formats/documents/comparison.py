"""A comparison as JSON: what `agenteval compare --json` prints, and what results say of their baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis.attribution import Attributed, Attribution, Changer, Who
from agenteval_tui.analysis.code_changes import FileChange
from agenteval_tui.analysis.comparison_model import (
    Comparison,
    CriterionChange,
    MetricChange,
    NamedSide,
    Overall,
    PairedSuites,
    RowChange,
    Side,
    State,
    Tally,
    TestChange,
    TestKey,
    TestOnBothSides,
)
from agenteval_tui.analysis.regression_gate import BaselineResult, GateNotice
from agenteval_tui.analysis.regressions import Regression, Regressions, regressions_of
from agenteval_tui.core.document import Count, Document, Share, Time, extended, one_of
from agenteval_tui.core.numbers import iso
from agenteval_tui.history.baselines import Baseline
from agenteval_tui.views.attribution import reason_text
from agenteval_tui.views.comparison import counts_text, notes, overall_text
from agenteval_tui.views.divergence import step_change_text

_Who = Annotated[str, one_of(*get_args(Who))]


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


class OverallChange(Overall, frozen=True, kw_only=True):
    """All tests together, in figures and in words."""

    summary: str


class ComparedSide(NamedSide, frozen=True, kw_only=True):
    """One of the two sides."""

    runs: Count
    started: Time | None


class ComparedCriterion(CriterionChange, frozen=True, kw_only=True):
    """A criterion of a test on both sides."""

    comparable: Annotated[bool, Meta(description="one version of it judged both sides")]
    attribution: Attribution[str] | None
    metrics: tuple[MetricChange, ...]


class AttributedFlip(Document, frozen=True, kw_only=True):
    """A run before and one after it with another verdict."""

    before: str
    after: str
    who: _Who
    divergence: str


class AttributedTest(Changer[str], frozen=True, kw_only=True):
    """Who changed a test's verdicts."""

    divergence: str
    flips: tuple[AttributedFlip, ...]


class ComparedTest(TestOnBothSides, frozen=True, kw_only=True):
    """A test on both sides."""

    comparable: Annotated[bool, Meta(description="false: it is judged differently on the right")]
    regressions: Annotated[
        tuple[Regression, ...],
        Meta(description="of the test and of its rows, by the rules of `run --no-regressions`"),
    ]
    attribution: AttributedTest | None
    criteria: tuple[ComparedCriterion, ...]


class ComparedSides(Document, frozen=True, kw_only=True):
    """`agenteval compare`: everything of a comparison."""

    version: Literal[1] = 1
    a: ComparedSide
    b: ComparedSide
    overall: OverallChange
    counts: StateCounts
    summary: str
    notes: tuple[str, ...]
    paired_suites: Annotated[
        tuple[PairedSuites, ...],
        Meta(description="suites that are compared with each other though their files differ"),
    ]
    files: Annotated[
        tuple[FileChange, ...],
        Meta(
            description="files of the agents' projects that differ between the two executions; empty where that is "
            "not known"
        ),
    ]
    tests: Annotated[tuple[ComparedTest, ...], Meta(description="what passes less often first")]


class ChangedTest(Document, frozen=True, kw_only=True):
    """A test that is not as in its baseline."""

    test: str
    variation: str
    state: State
    was: Tally | None
    now: Tally | None
    p_value: Share | None
    rows: Annotated[tuple[RowChange, ...], Meta(description="those of its dataset that are worse or better")]


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
    comparison: Comparison,
    attributed: Mapping[TestKey, Attributed | None] | None = None,
    metrics: Mapping[TestKey, Mapping[str, tuple[MetricChange, ...]]] | None = None,
) -> ComparedSides:
    """Everything of a comparison. `attribution` is null where nothing flipped, and for what was not looked at."""
    regressions = regressions_of(comparison)
    return ComparedSides(
        a=_side(comparison.a),
        b=_side(comparison.b),
        overall=_overall(comparison.overall),
        counts=StateCounts(**comparison.counts()),
        summary=counts_text(comparison),
        notes=tuple(notes(comparison)),
        paired_suites=comparison.paired,
        files=comparison.files,
        tests=tuple(
            _test(test, (attributed or {}).get(test.key), (metrics or {}).get(test.key, {}), regressions)
            for test in comparison.tests
        ),
    )


def against_document(result: BaselineResult) -> AgainstBaseline:
    """What an execution says against its baseline: the figures, and the tests that changed."""
    changed = result.shown.in_state("worse", "better", "mixed", "score", "undecided")
    return AgainstBaseline(
        executions=tuple(result.shown.a.executions),
        started=iso(result.shown.a.started_ms),
        overall=_overall(result.gating.overall),
        counts=StateCounts(**result.shown.counts()),
        regressed=tuple(change.label for change in result.regressed),
        regressions=result.regressions.found,
        notices=result.notices,
        selected=result.selected,
        from_history=result.from_history,
        not_comparable=tuple(change.label for change in result.shown.not_comparable),
        within_chance=tuple(change.label for change in result.by_chance),
        quarantined=tuple(change.label for change in result.shown.in_state("worse") if change.quarantine),
        without_baseline=result.without_baseline,
        changes=tuple(
            extended(ChangedTest, test, rows=tuple(row for row in test.rows if row.state in ("worse", "better")))
            for test in changed
        ),
    )


def _side(side: Side) -> ComparedSide:
    return extended(ComparedSide, side, runs=len(side.runs), started=iso(side.started_ms or None))


def _overall(overall: Overall) -> OverallChange:
    return extended(OverallChange, overall, summary=overall_text(overall))


def _test(
    test: TestChange,
    attributed: Attributed | None,
    metrics: Mapping[str, tuple[MetricChange, ...]],
    regressions: Regressions,
) -> ComparedTest:
    by_criterion = attributed.by_criterion if attributed is not None else {}
    return extended(
        ComparedTest,
        test,
        regressions=tuple(regression for regression in regressions.found if regression.key == test.key),
        attribution=_attributed(attributed),
        criteria=tuple(
            extended(
                ComparedCriterion,
                criterion,
                attribution=None
                if (attribution := by_criterion.get(criterion.name)) is None
                else extended(Attribution, attribution, reason=reason_text(attribution.reason)),
                metrics=metrics.get(criterion.name, ()),
            )
            for criterion in test.criteria
        ),
    )


def _attributed(attributed: Attributed | None) -> AttributedTest | None:
    if attributed is None:
        return None
    return AttributedTest(
        who=attributed.who,
        reason=reason_text(attributed.reason),
        divergence=step_change_text(attributed.divergence),
        flips=tuple(
            AttributedFlip(
                before=flip.before,
                after=flip.after,
                who=flip.test.who,
                divergence=step_change_text(flip.divergence),
            )
            for flip in attributed.flips
        ),
    )


def listed_baseline(baseline: Baseline) -> ListedBaseline:
    """What `agenteval baseline list` says of a baseline."""
    return extended(
        ListedBaseline,
        baseline,
        suite=baseline.suite_name,
        test=baseline.test_id,
        name=baseline.test_name,
        execution=baseline.execution_id,
        run=baseline.run_id,
        set=iso(baseline.at_ms),
        started=iso(baseline.started_ms),
    )
