"""Stored runs graded again with other criteria, without calling an agent; another tool's verdict beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.agreement import asks_person, sole_of_results
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading import sentences
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import grade, verdict_of
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome, Verdict
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, ExecutionRow, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec, spec_to_dict, specs_of
from agenteval_tui.runs.judge_client import Answers, JudgeRequestGroup
from agenteval_tui.runs.stored_judgments import JudgeLabels, sole_of_specs, stored_answers
from agenteval_tui.runs.task_payload import threshold_task
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.transcripts.model import Transcript

_BATCH = 50  # runs whose questions are asked together


class CriteriaSource(Struct, frozen=True):
    """What a run is graded with. `variables` fill placeholders, before those that are stored with the run."""

    specs: tuple[CriterionSpec, ...]
    pass_threshold: float | None = None
    variables: Mapping[str, Any] | None = None


class RegradeResult(Struct, frozen=True):
    """One run: what it was, our verdict now, and the verdicts of other tools that are stored with it."""

    row: RunRow
    verdict: Verdict
    foreign: tuple[CriterionResult, ...]
    rules: CriteriaSource
    replies: tuple[StoredReply, ...] = ()
    """What judges and others said of it: what is stored with the run, and what was asked now."""

    @property
    def foreign_outcome(self) -> Outcome | None:
        """What the other tools say together; None when there is none."""
        return verdict_of(self.foreign).outcome if self.foreign else None


def rules_of_suites(
    loaded: Sequence[LoadedSuite], rows: Sequence[RunRow] = ()
) -> Callable[[RunRow], CriteriaSource | None]:
    """The rules for a run: those of the test with the same id, ignoring case, of the suite that the run came from.

    `rows` are all runs that the suites are to be used for. A suite that some runs came from, or that has the name
    of one (it was moved or copied), has rules for these runs only. Any other suite has rules for every run, where it is
    the only one with a test of that id. None for the rest: the rules of another suite's test don't apply to a run.
    """
    keys = {loaded_suite.key for loaded_suite in loaded}
    own = {row.suite_key for row in rows} & keys
    names = {row.suite_name.casefold() for row in rows if row.suite_key not in keys}
    by_id: dict[str, list[tuple[LoadedSuite, CriteriaSource]]] = {}
    for loaded_suite in loaded:
        for test in loaded_suite.suite.tests if loaded_suite.suite is not None else ():
            threshold = test.pass_threshold
            if threshold is None and loaded_suite.suite is not None:
                threshold = loaded_suite.suite.defaults.pass_threshold
            rules = CriteriaSource(specs_of(test.criteria), threshold, test.variables)
            by_id.setdefault(test.id.casefold(), []).append((loaded_suite, rules))

    def find(row: RunRow) -> CriteriaSource | None:
        candidates = by_id.get(row.test_id.casefold(), [])
        # A run of one of these suites is of that one alone, also where its test is gone there.
        if row.suite_key in keys:
            candidates = [candidate for candidate in candidates if candidate[0].key == row.suite_key]
            return candidates[0][1] if candidates else None
        candidates = [candidate for candidate in candidates if candidate[0].key not in own]
        name = row.suite_name.casefold()
        fitting = [candidate for candidate in candidates if _name(candidate[0]) == name]
        fitting = fitting or [candidate for candidate in candidates if _name(candidate[0]) not in names - {name}]
        return fitting[0][1] if len(fitting) == 1 else None

    return find


def _name(loaded: LoadedSuite) -> str:
    return loaded.suite.name.casefold() if loaded.suite is not None else ""


Ask = Callable[[Sequence["JudgeRequestGroup"]], "Sequence[Answers]"]
"""Asks judges and others what the cases' criteria still want to know."""


def regrade(
    store: Store, rows: Iterable[RunRow], rules_of: Callable[[RunRow], CriteriaSource | None], ask: Ask | None = None
) -> Iterator[tuple[RegradeResult, Transcript]]:
    """Grade stored runs, in their order. Runs without rules, and runs that have not ended, are left out.

    Replies of judges and others are taken from the run's stored ones. Questions without an answer are asked with `ask`;
    without it they make the criterion an error.
    """
    chosen = {row.id: (row, rules) for row in rows if (rules := rules_of(row)) is not None}
    batch: list[tuple[RunRow, CriteriaSource, Transcript]] = []
    for run_id, transcript in store.transcripts(list(chosen)):
        batch.append((*chosen[run_id], transcript))
        if len(batch) >= _BATCH:
            yield from _regraded(store, batch, ask)
            batch = []
    yield from _regraded(store, batch, ask)


def _regraded(
    store: Store, batch: Sequence[tuple[RunRow, CriteriaSource, Transcript]], ask: Ask | None
) -> Iterator[tuple[RegradeResult, Transcript]]:
    answered = _answers(store, batch, ask)
    for row, rules, transcript in batch:
        foreign = tuple(result for result in store.results(row.id) if result.source)
        replies, stored_replies = answered.get(row.id, (None, ()))
        verdict = grade(
            transcript, rules.specs, _variables(row, rules), rules.pass_threshold, replies=replies, row=row.row
        )
        yield RegradeResult(row, verdict, foreign, rules, tuple(stored_replies)), transcript


def _answers(
    store: Store, batch: Sequence[tuple[RunRow, CriteriaSource, Transcript]], ask: Ask | None
) -> dict[str, tuple[Mapping[str, Reply], Sequence[StoredReply]]]:
    """By run id: the replies for grading, and the same to be stored. Only for runs whose criteria ask a respondent."""
    asking = [entry for entry in batch if any(compile_criterion(spec).asks for spec in entry[1].specs)]
    if not asking:
        return {}

    ids = [row.id for row, _, _ in asking]
    stored, labels, judge_labels = store.replies_of(ids), store.labels(ids), JudgeLabels(store)
    by_run: dict[str, tuple[Mapping[str, Reply], Sequence[StoredReply]]] = {}
    cases: list[JudgeRequestGroup] = []
    for row, rules, transcript in asking:
        own, variables = stored.get(row.id, []), _variables(row, rules)
        run_labels = tuple(label for label in labels if label.run_id == row.id)
        sole = sole_of_specs(rules.specs)
        replies = stored_answers(
            rules.specs,
            transcript,
            variables=variables,
            stored=own,
            labels=run_labels,
            sole=sole,
            labelled=judge_labels.of(row.suite_key),
        )
        by_run[row.id] = replies, own
        cases.append(JudgeRequestGroup(row.suite_key, rules.specs, transcript, variables, run_labels, replies))
    if ask is not None:
        for (row, _, _), answers in zip(asking, ask(cases), strict=True):
            by_run[row.id] = {**by_run[row.id][0], **answers.replies}, [*by_run[row.id][1], *answers.stored]
    return by_run


def _variables(row: RunRow, rules: CriteriaSource) -> dict[str, Any]:
    """Of a dataset's row the recorded values, as in a plan the row comes before the test; else today's of the test."""
    if row.row:
        return {**(rules.variables or {}), **row.variables}
    return {**row.variables, **(rules.variables or {})}


def with_labels(store: Store, row: RunRow, judge_labels: JudgeLabels) -> str:
    """Grade the criteria of a stored run that wait for a person again, now that it has labels; gives the new status.

    "" when none asks a person, or nothing changed. The other results stay as they are. `judge_labels`: made since the
    labels are stored; of many runs it is one, as what it answers takes a look at all runs with labels.
    """

    # Only what people decide is graded again: the others' criteria may be others today, and nobody asked for that.
    results, transcript = store.results(row.id), store.transcript(row.id)
    specs: dict[str, CriterionSpec] = {}
    for result in results:
        spec = known_spec(store, result.criterion_hash)
        if spec is not None and asks_person(result):
            # As the test names and weighs it: the stored version may be another test's.
            specs[result.criterion] = replace(
                spec, name=result.criterion, weight=result.weight, severity=result.severity
            )
    if not specs or transcript.error is not None:
        return ""
    labels, sole = store.labels([row.id]), sole_of_results(results)
    labelled = judge_labels.of(row.suite_key)
    replies = stored_answers(
        specs.values(),
        transcript,
        variables=row.variables,
        stored=store.replies(row.id),
        labels=labels,
        sole=sole,
        labelled=labelled,
    )
    fresh = []
    for result in results:
        spec = specs.get(result.criterion)
        if spec is not None:
            result = compile_criterion(spec).check(transcript, row.variables, replies=replies)
        fresh.append(result)
    if tuple(fresh) == results:
        return ""
    verdict = verdict_of(fresh, threshold_of(store, row))
    store.run_ended(
        RunEnded(
            run_id=row.id,
            status=str(verdict.outcome),
            score=verdict.score,
            started_ms=row.started_ms,
            duration_ms=row.duration_ms,
            attempts=row.attempts,
            transcript=transcript,
            results=verdict.results,
            warnings=verdict.warnings,
            why=sentences.verdict_sentence(verdict),
        )
    ).result()
    return str(verdict.outcome)


def threshold_of(store: Store, row: RunRow) -> float | None:
    """The test's threshold when the run was planned; of an imported run, the one in the suite's file, as far as that is
    there."""
    task = store.task_of(row.id)
    if task is not None:
        pass_threshold = task.get("pass_threshold")
        return None if pass_threshold is None else float(pass_threshold)
    try:
        rules = rules_of_suites([load_suite(Path(row.suite_key))])(row)
    except AgentevalError:
        return None
    return None if rules is None else rules.pass_threshold


def agreement(regraded: Iterable[RegradeResult]) -> dict[str, int]:
    """How often our verdict and the other tools' are alike, over the runs that have both, decided."""
    counts = dict.fromkeys(("both_passed", "both_failed", "only_ours_passed", "only_theirs_passed", "undecided"), 0)
    for regrade_result in regraded:
        theirs = regrade_result.foreign_outcome
        if theirs is None:
            continue
        if regrade_result.verdict.outcome not in DECIDED or theirs not in DECIDED:
            counts["undecided"] += 1
        elif regrade_result.verdict.outcome is theirs:
            counts["both_passed" if theirs is Outcome.PASSED else "both_failed"] += 1
        else:
            counts["only_theirs_passed" if theirs is Outcome.PASSED else "only_ours_passed"] += 1
    return counts


def save_verdicts(
    store: Store, execution: ExecutionRow, runs: Iterable[tuple[RegradeResult, Transcript]], title: str
) -> str:
    """Keep the new verdicts as an execution of their own; gives its id.

    The outcome of its runs is ours. Verdicts of other tools stay with them, as information.
    """
    record = ExecutionRecord(
        id=new_id(),
        title=title,
        kind="fork" if execution.kind == "fork" else "import",
        source=f"graded again: {execution.id}",
        suite_keys=execution.suite_keys,
        started_ms=now_ms(),
        options={"graded_from": execution.id},
        project=execution.project,
    )
    run_replies: list[tuple[str, tuple[StoredReply, ...]]] = []

    def stored() -> Iterator[tuple[PlannedRun, RunEnded]]:
        for regrade_result, transcript in runs:
            planned, ended = _stored(record, execution, regrade_result, transcript)
            if regrade_result.replies:
                run_replies.append((planned.id, regrade_result.replies))
            yield planned, ended

    store.import_runs(record, stored())
    # After the import: replies are kept with runs that are there.
    for future in [store.keep_replies(run_id, replies) for run_id, replies in run_replies]:
        future.result()
    return record.id


def _stored(
    record: ExecutionRecord, execution: ExecutionRow, regrade_result: RegradeResult, transcript: Transcript
) -> tuple[PlannedRun, RunEnded]:
    row = regrade_result.row
    rules = regrade_result.rules
    planned = extended(
        PlannedRun,
        row,
        id=new_id(),
        execution_id=record.id,
        recording=row.recorded,
        prompt=row.prompt_head,
        variables=_variables(row, rules),
        criteria=tuple(spec.hash for spec in rules.specs),
        specs=tuple(spec_to_dict(spec) for spec in rules.specs),
        task=threshold_task(rules.pass_threshold),
    )
    # As information, so that they don't decide the run as well.
    theirs = tuple(replace(result, severity="info") for result in regrade_result.foreign)
    ended = RunEnded(
        run_id=planned.id,
        status=str(regrade_result.verdict.outcome),
        score=regrade_result.verdict.score,
        # An output counts at the time when it was recorded, however late it is graded.
        started_ms=execution.started_ms if row.started_ms is None else row.started_ms,
        duration_ms=row.duration_ms,
        attempts=row.attempts,
        transcript=transcript,
        results=(*regrade_result.verdict.results, *theirs),
        warnings=regrade_result.verdict.warnings,
        why=sentences.verdict_sentence(regrade_result.verdict),
    )
    return planned, ended
