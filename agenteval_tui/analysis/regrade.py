"""Stored runs graded anew with other criteria, without calling an agent; another tool's verdict beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agenteval_tui.grading.grade import grade, verdict_of
from agenteval_tui.grading.results import CriterionResult, Outcome, Verdict
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.rows import ExecutionRecord, ExecutionRow, PlannedRun, RunEnded, RunRow
from agenteval_tui.text.identity import new_id, now_ms

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.transcripts.model import Transcript


@dataclass(frozen=True, slots=True)
class Rules:
    """What a run is graded with. `variables` fill placeholders, before those that are stored with the run."""

    specs: tuple[CriterionSpec, ...]
    pass_threshold: float | None = None
    variables: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Regraded:
    """One run: what it was, our verdict now, and the verdicts of other tools that are stored with it."""

    row: RunRow
    verdict: Verdict
    foreign: tuple[CriterionResult, ...]
    rules: Rules

    @property
    def foreign_outcome(self) -> Outcome | None:
        """What the other tools say together; None when there is none."""
        return verdict_of(self.foreign).outcome if self.foreign else None


def rules_of_suites(loaded: Sequence[LoadedSuite]) -> Callable[[RunRow], Rules | None]:
    """The rules for a run: those of the test with the same id, ignoring case; None when no suite has one.

    Where several suites have a test of that id, the one that the run came from is taken, else the first.
    """
    from agenteval_tui.runs.criteria import spec_of

    by_id: dict[str, list[tuple[str, Rules]]] = {}
    for one in loaded:
        for test in one.suite.tests if one.suite is not None else ():
            threshold = test.pass_threshold
            if threshold is None and one.suite is not None:
                threshold = one.suite.defaults.pass_threshold
            rules = Rules(tuple(map(spec_of, test.criteria)), threshold, test.variables)
            by_id.setdefault(test.id.casefold(), []).append((one.key, rules))

    def find(row: RunRow) -> Rules | None:
        found = by_id.get(row.test_id.casefold(), [])
        own = [rules for key, rules in found if key == row.suite_key]
        return own[0] if own else found[0][1] if found else None

    return find


def regrade(
    store: Store, rows: Iterable[RunRow], rules_of: Callable[[RunRow], Rules | None]
) -> Iterator[tuple[Regraded, Transcript]]:
    """Grade stored runs, in their order. Runs without rules, and runs that have not ended, are left out."""
    chosen = {row.id: (row, rules) for row in rows if (rules := rules_of(row)) is not None}
    for run_id, transcript in store.transcripts(list(chosen)):
        row, rules = chosen[run_id]
        variables = {**row.variables, **(rules.variables or {})}
        foreign = tuple(result for result in store.results(run_id) if result.source)
        yield Regraded(row, grade(transcript, rules.specs, variables, rules.pass_threshold), foreign, rules), transcript


def agreement(regraded: Iterable[Regraded]) -> dict[str, int]:
    """How often our verdict and the other tools' are alike, over the runs that have both, decided."""
    counts = dict.fromkeys(("both_passed", "both_failed", "only_ours_passed", "only_theirs_passed", "undecided"), 0)
    for one in regraded:
        theirs = one.foreign_outcome
        if theirs is None:
            continue
        decided = (Outcome.PASSED, Outcome.FAILED)
        if one.verdict.outcome not in decided or theirs not in decided:
            counts["undecided"] += 1
        elif one.verdict.outcome is theirs:
            counts["both_passed" if theirs is Outcome.PASSED else "both_failed"] += 1
        else:
            counts["only_theirs_passed" if theirs is Outcome.PASSED else "only_ours_passed"] += 1
    return counts


def save(store: Store, execution: ExecutionRow, runs: Iterable[tuple[Regraded, Transcript]], title: str) -> str:
    """Keep the new verdicts as an execution of their own; gives its id.

    The outcome of its runs is ours. Verdicts of other tools stay with them, as information.
    """
    record = ExecutionRecord(
        id=new_id(),
        title=title,
        kind="import",
        source=f"graded again: {execution.id}",
        suite_keys=execution.suite_keys,
        started_ms=now_ms(),
        options={"graded_from": execution.id},
    )
    store.import_runs(record, (_stored(record, *one) for one in runs))
    return record.id


def _stored(record: ExecutionRecord, one: Regraded, transcript: Transcript) -> tuple[PlannedRun, RunEnded]:
    from agenteval_tui.runs.criteria import spec_to_dict

    row = one.row
    planned = PlannedRun(
        id=new_id(),
        execution_id=record.id,
        position=row.position,
        suite_key=row.suite_key,
        suite_name=row.suite_name,
        test_id=row.test_id,
        test_name=row.test_name,
        variation=row.variation,
        row=row.row,
        repetition=row.repetition,
        agent=row.agent,
        prompt=row.prompt_head,
        tags=row.tags,
        variables={**row.variables, **(one.rules.variables or {})},
        criteria=tuple(spec.hash for spec in one.rules.specs),
        specs=tuple(spec_to_dict(spec) for spec in one.rules.specs),
    )
    theirs = tuple(replace(result, severity="info") for result in one.foreign)
    ended = RunEnded(
        run_id=planned.id,
        status=str(one.verdict.outcome),
        score=one.verdict.score,
        started_ms=row.started_ms,
        duration_ms=row.duration_ms,
        attempts=row.attempts,
        transcript=transcript,
        results=(*one.verdict.results, *theirs),
        warnings=one.verdict.warnings,
        why=one.verdict.reason,
    )
    return planned, ended
