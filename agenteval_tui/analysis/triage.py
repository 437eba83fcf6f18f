"""Deciding about causes, and whether what was decided still holds.

A decision is open again (it "no longer holds"):

- when its date has passed: `until` of any decision; for a quarantine also when it ended or was removed;
- accept, fix, label, ignore: when runs that started after the decision have the cause with a version of the criterion
that did not exist at that time. For `fix` that means that the fix did not work;
- every decision: when runs that started after it have the cause in tests that it was not decided for;
- accept, ignore: when the share of failed runs of the decided tests grew by more than chance: in runs that started
after the decision the lower end of its 95 % interval (Wilson) lies above the share at the time of the decision.

Nothing of that is written: a decision holds or does not, for the runs that are looked at. `reopen` takes one back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from agenteval_tui.analysis.agreement import sole_of_results
from agenteval_tui.analysis.causes import CauseGroup, Causes, execution_scope, group_failures
from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms, short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history import quarantines, triage
from agenteval_tui.history.baselines import TestKey, set_baseline
from agenteval_tui.history.labels import Label, by_run, label_of
from agenteval_tui.history.quarantines import DAY_MS, DEFAULT_DAYS, ActiveQuarantines, Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Context, Decision, Recurrence

if TYPE_CHECKING:
    from sqlite3 import Connection


_BY_VERSION = ("accept", "fix", "label", "ignore")
_BY_SHARE = ("accept", "ignore")
_EXAMPLES = 3
_AT_ONCE = 500  # labels in a transaction
DECISION_TEXTS = {
    "accept": "accepted as baseline",
    "fix": "the criterion is to be fixed",
    "quarantine": "in quarantine",
    "label": "labelled by a person",
    "ignore": "ignored until it changes",
}


class TriageStatus(Struct, frozen=True):
    """What was decided about a cause. `open_again`: why it no longer holds; "" while it does."""

    decision: Decision
    open_again: str = ""

    @property
    def holds(self) -> bool:
        """Whether the decision is in force."""
        return not self.open_again

    @property
    def description(self) -> str:
        """In words: `ignored until it changes`, `open again: …`."""
        words = DECISION_TEXTS.get(self.decision.decision, self.decision.decision)
        return words if self.holds else f"open again (was: {words}): {self.open_again}"


def causes_of_execution(store: Store, execution_id: str) -> tuple[Causes, dict[str, TriageStatus]]:
    """The causes of an execution, and what was decided about them by signature."""
    causes = group_failures(store, execution_scope(store, execution_id))
    return causes, statuses(store, causes)


def statuses(store: Store, causes: Causes, at_ms: int | None = None) -> dict[str, TriageStatus]:
    """What was decided about the causes that are looked at, by signature. Causes without a decision are left out."""
    decided = triage.decisions_by_signature(store)
    if not decided:
        return {}
    now = now_ms() if at_ms is None else at_ms
    held = quarantines.active(store, now)
    by_signature: dict[str, TriageStatus] = {}
    for group in causes.groups:
        decision = decided.get(group.cause.signature)
        if decision is not None:
            later = _later(store, group, causes, decision)
            by_signature[decision.signature] = TriageStatus(decision, open_reason(group, decision, later, held, now))
    return by_signature


def open_reason(group: CauseGroup, decision: Decision, later: Recurrence, held: ActiveQuarantines, now: int) -> str:
    """Why a decision no longer holds, in a few words; "" while it does. The rules are this module's docstring."""
    kind, context = decision.decision, decision.context
    if decision.until_ms is not None and now >= decision.until_ms:
        return "its date has passed"
    # The quarantine may have been ended by hand, and the decision not.
    if kind == "quarantine" and group.trend != "gone":
        name = group.cause.criterion
        free = [key for key in context.tests if key in group.tests and held.criterion(*key, name) is None]
        if free:
            return f"{free[0][1]} is no longer in quarantine"
    fresh = [version for version in later.versions if version not in context.versions]
    # Without versions (an agent's error, an old history) no change of one can be told.
    if kind in _BY_VERSION and context.versions and fresh:
        return "the criterion was changed" if kind != "fix" else "the criterion was changed, and it still fails"
    named = _named(context.tests)
    others = [test for suite, test in later.tests if (_file(suite), test) not in named]
    if others:
        return f"it is in {abridged(others, 1)} too"
    if kind in _BY_SHARE and context.runs and later.runs:
        share = context.failed / context.runs
        if wilson(later.failed, later.runs)[0] > share:
            return f"it grew from {context.failed:,} of {context.runs:,} runs to {later.failed:,} of {later.runs:,}"
    return ""


def _later(store: Store, group: CauseGroup, causes: Causes, decision: Decision) -> Recurrence:
    """Those of the runs looked at that started after the decision."""
    if group.trend == "gone":
        return Recurrence()

    def read(c: Connection) -> tuple[list[tuple[int, str, str]], list[tuple[str, str, int]]]:
        began = (
            " FROM runs r JOIN tests t ON t.id = r.test JOIN suites s ON s.id = t.suite"
            " WHERE r.started_ms > ? AND r.id IN (SELECT value FROM json_each(?))"
        )
        own = c.execute(f"SELECT r.id, s.key, t.test_id{began}", (decision.at_ms, json.dumps(list(group.runs))))
        rows = own.fetchall()
        every = c.execute(
            f"SELECT s.key, t.test_id, count(*){began} GROUP BY t.id",
            (decision.at_ms, json.dumps(list(causes.scope.runs))),
        )
        return rows, every.fetchall()

    own, every = store.read(read)
    fresh, decided = {run for run, _, _ in own}, _named(decision.context.tests)
    versions = {digest for run, digest in zip(group.runs, group.hashes, strict=True) if run in fresh} - {""}
    tests = tuple(dict.fromkeys((suite, test) for _, suite, test in own))
    failed = sum((_file(suite), test) in decided for _, suite, test in own)
    return Recurrence(
        tuple(sorted(versions)),
        tests,
        failed,
        sum(number for suite, test, number in every if (_file(suite), test) in decided),
    )


def _file(suite_key: str) -> str:
    """A suite's file without its folder: a suite that was moved is the same one."""
    return suite_key.replace("\\", "/").rpartition("/")[2]


def _named(tests: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(_file(suite), test) for suite, test in tests}


# Deciding


def context_of(group: CauseGroup) -> Context:
    """The present state of a cause, with its newest runs and its oldest run as examples."""
    examples = dict.fromkeys((*group.run_ids[: _EXAMPLES - 1], *group.run_ids[-1:]))
    return Context(group.versions, group.tests, group.count, group.ended, tuple(examples))


class DecisionResult(Struct, frozen=True):
    """A stored decision, and a sentence on what it did."""

    decision: Decision
    effect: str


def decide(
    store: Store,
    group: CauseGroup,
    decision: str,
    *,
    note: str = "",
    who: str = "",
    until_ms: int | None = None,
    execution_id: str = "",
    passed: bool = False,
) -> DecisionResult:
    """Decide about a cause, and carry it out. Blocks.

    accept: the runs of `execution_id` ("": of each test's newest execution with the cause) become the baseline of its
    tests. quarantine: its tests are in quarantine until `until_ms` (14 days); if the cause is a criterion's, only that
    criterion of each test. label: its unlabelled runs get the label failed, or passed if `passed` is true. Raises
    AgentevalError if that is impossible, and then writes nothing.
    """
    if group.trend == "gone" and decision in ("accept", "quarantine", "label"):
        raise AgentevalError("this cause is gone: there is nothing to decide", fix="choose one that has runs")
    message = DECISION_TEXTS.get(decision, "")
    if decision == "accept":
        message = _accept(store, group, execution_id, who)
    elif decision == "quarantine":
        until_ms = until_ms if until_ms is not None else now_ms() + DEFAULT_DAYS * DAY_MS
        message = _quarantine(store, group, until_ms, note, who)
    elif decision == "label":
        message = _label(store, group, passed, note, who)
    triaged = Decision(
        group.cause.signature,
        decision=decision,
        note=note,
        who=who,
        at_ms=now_ms(),
        until_ms=until_ms,
        context=context_of(group),
    )
    triage.decide(store, triaged)
    return DecisionResult(triaged, message)


def _accept(store: Store, group: CauseGroup, execution_id: str, who: str) -> str:
    tests_by_execution: dict[str, list[TestKey]] = {execution_id: list(group.tests)} if execution_id else {}
    if not execution_id:  # of each test the newest execution that has the cause
        handled: set[TestKey] = set()
        for row in store.run_rows(group.runs):
            test = (row.suite_key, row.test_id)
            if test not in handled:
                handled.add(test)
                tests_by_execution.setdefault(row.execution_id, []).append(test)
    # The newest execution comes first: if it has not finished, that is refused before anything is written.
    done = [set_baseline(store, execution, tests=tests, who=who) for execution, tests in tests_by_execution.items()]
    what = (
        f"execution {short_id(next(iter(tests_by_execution)))}"
        if len(tests_by_execution) == 1
        else "the newest execution of each"
    )
    sentence = f"{what} is the baseline of {count(sum(len(baseline_set.tests) for baseline_set in done), 'test')}"
    left_out = sum(len(baseline_set.left_out) for baseline_set in done)
    rest = f"; {count(left_out, 'test')} left out, because none of its runs has a verdict" if left_out else ""
    return sentence + rest


def _quarantine(store: Store, group: CauseGroup, until_ms: int, note: str, who: str) -> str:
    name = group.cause.criterion if group.cause.kind in ("failed", "error") else ""
    reason = note or group.cause.title
    futures = [
        quarantines.put(store, Quarantine(suite, test, until_ms, name, reason, who)) for suite, test in group.tests
    ]
    for future in futures:
        future.result()
    what = f"{name} of {count(len(group.tests), 'test')}" if name else count(len(group.tests), "test")
    return f"{what} in quarantine"


def _label(store: Store, group: CauseGroup, passed: bool, note: str, who: str) -> str:
    # 100 ms with what judges: whoever lists causes and reports them needs none of it.
    from agenteval_tui.analysis.labels import give_labels

    labels = by_run(store.labels(group.run_ids))
    new_labels: list[Label] = []
    for run, position in zip(group.run_ids, group.positions, strict=True):
        run_labels = labels.get(run, ())
        results = store.results(run) if position >= 0 else ()
        if not 0 <= position < len(results):  # the agent failed: there is no criterion to speak of
            if not any(label.whole for label in run_labels):
                new_labels.append(Label(run, None, "", note, who, passed=passed))
        elif label_of(run_labels, results[position].criterion, sole_of_results(results)) is None:
            new_labels.append(Label(run, None, results[position].criterion, note, who, passed=passed))
    for start in range(0, len(new_labels), _AT_ONCE):
        give_labels(store, new_labels[start : start + _AT_ONCE])
    verdict = "passed" if passed else "failed"
    many = count(len(new_labels), "run")
    return f"{many} labelled {verdict}" if new_labels else "every run already had a label"
