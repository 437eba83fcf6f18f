"""How far judges and other criteria agree with people: accuracy and Cohen's kappa over what both have decided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from agenteval_tui.analysis.statistics import Interval, interval_of, mcnemar_exact
from agenteval_tui.core.document import Count, Document, Share, extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading import registry
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.labels import label_of, labels_by_recording, sole_criterion
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store

if TYPE_CHECKING:
    from sqlite3 import Connection


class Agreement(Struct, frozen=True):
    """Two raters on the same things, each saying yes or no. `only_judge`: the judge said yes, the person no."""

    both_yes: int = 0
    both_no: int = 0
    only_judge: int = 0
    only_person: int = 0

    @property
    def n(self) -> int:
        """How many were rated by both."""
        return self.both_yes + self.both_no + self.only_judge + self.only_person

    @property
    def accuracy(self) -> float | None:
        """The share on which they agree; None without any."""
        return (self.both_yes + self.both_no) / self.n if self.n else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95 % interval of the accuracy; None: too few were rated."""
        return interval_of(self.both_yes + self.both_no, self.n)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960): (po - pe) / (1 - pe), agreement beyond what chance would give.

        None where it is not defined: nothing was rated, or both always said the same one thing (pe is 1).
        """
        n = self.n
        if not n:
            return None
        # In whole numbers, so that "pe is 1" is exact.
        judge, person = self.both_yes + self.only_judge, self.both_yes + self.only_person
        by_chance = judge * person + (n - judge) * (n - person)
        if by_chance == n * n:
            return None
        return (n * (self.both_yes + self.both_no) - by_chance) / (n * n - by_chance)


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """The agreement over (judge said yes, person said yes) pairs."""
    counts = Counter(pairs)
    return Agreement(counts[True, True], counts[False, False], counts[True, False], counts[False, True])


class JudgedVersion(Document, frozen=True, kw_only=True):
    """A version of a judged criterion: how far its verdicts agree with people's."""

    hash: Annotated[str, Meta(description="of the criterion's content")]
    judged: Annotated[Count, Meta(description="recordings that it judged")]
    labelled: Annotated[Count, Meta(description="of these, labelled by a person")]
    silent: Annotated[Count, Meta(description="of these, left to a person by the judge")]
    n: Annotated[Count, Meta(description="recordings that judge and person both decided")]
    accuracy: Share | None
    interval: Annotated[
        tuple[Share, Share] | None,
        Meta(description="Wilson's 95 % interval of the accuracy; null: fewer than five were rated"),
    ]
    kappa: Annotated[float, Meta(ge=-1, le=1)] | None
    both: Annotated[Count, Meta(description="labelled recordings that this version and the one before decided")]
    better: Annotated[Count, Meta(description="of these, only this version agrees with people")]
    worse: Annotated[Count, Meta(description="of these, only the version before agrees with people")]
    p_value: Annotated[Share | None, Meta(description="McNemar's exact test of that difference")]


class JudgeFigures(Struct):
    """One criterion of a suite. `labelled` runs have a person's label; `undecided` labelled runs have no verdict.

    `by_judge`: a judge took part in the verdicts. If not, `judged` counts the runs that were decided without a judge.
    """

    suite_key: str
    suite: str
    criterion: str
    judges: tuple[str, ...] = ()
    judged: int = 0
    passed: int = 0
    errors: int = 0
    labelled: int = 0
    undecided: int = 0
    agreement: Agreement = field(default_factory=Agreement)
    differ: list[str] = field(default_factory=list)
    """Addresses (RUN/NUMBER) of the runs on which judge and person differ, newest first."""
    by_judge: bool = True
    silent: int = 0
    """Runs of which the judge kept silent: people decide them."""
    unsaid: Agreement = field(default_factory=Agreement)
    """Of labelled runs of which it kept silent: how far the verdicts that it kept to itself agree with people."""
    versions: tuple[JudgedVersion, ...] = ()
    """Those of the judged criterion, newest first."""


def _once_each(rows: Iterable[RunRow]) -> list[RunRow]:
    """One run for each recording: the newest grading, or the first in `rows`. Leaves out forks."""
    by_recording: dict[str, RunRow] = {}
    for row in rows:
        if row.fork_of:
            continue
        earlier = by_recording.get(row.recorded)
        # `rows` come newest first; a grading that was superseded only counts where there is no other.
        if earlier is None or (earlier.superseded and not row.superseded):
            by_recording[row.recorded] = row
    return list(by_recording.values())


def judge_figures(store: Store, rows: Iterable[RunRow]) -> list[JudgeFigures]:
    """Every judged criterion of these runs (newest first), with what people's labels say of it, and the other criteria
    of labelled runs. Criteria that ask people are left out: they say what the label says.

    A label of the criterion counts before one of the run as a whole, and that only where the criterion alone decides
    the run; of several the last. Each recording counts once, by its newest grading among these runs: what people said
    of the output in any of its gradings is said of it.
    """
    rows = list(rows)
    listed = _once_each(rows)
    newest = {row.id for row in listed}
    labels = store.read(labels_by_recording)
    figures: dict[tuple[str, str], JudgeFigures] = {}
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    unsaid: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    by_version: dict[tuple[str, str], dict[str, _Version]] = {}
    replies = store.replies_of([row.id for row in listed])
    for row in rows:
        if row.fork_of or not (row.id in newest or row.recorded in labels):
            continue
        results = store.results(row.id)
        sole = sole_of_results(results)
        for number, result in enumerate(results, 1):
            judged = is_judged(result)
            if not judged and (row.recorded not in labels or asks_person(result)):
                continue
            key = (row.suite_key, result.criterion)
            label = label_of(labels.get(row.recorded, ()), result.criterion, sole)
            silent = is_silent(result)
            decided = not silent and result.outcome in DECIDED
            pair = (result.outcome is Outcome.PASSED, label.good) if decided and label is not None else None
            if judged:
                version = by_version.setdefault(key, {}).setdefault(result.criterion_hash, _Version())
                version.note(row, pair, labelled=label is not None, silent=silent)
            # Older gradings count for their versions only.
            if row.id not in newest:
                continue
            entry = figures.setdefault(key, JudgeFigures(row.suite_key, row.suite_name, result.criterion))
            entry.by_judge = judged
            # Judges may change from run to run: all are named, the newest first.
            entry.judges = tuple(dict.fromkeys((*entry.judges, *_models(replies.get(row.id, ())))))
            entry.judged += 1
            entry.silent += silent
            entry.passed += result.outcome is Outcome.PASSED and not silent
            entry.errors += result.outcome is Outcome.ERROR
            if label is None:
                continue
            entry.labelled += 1
            if pair is None:
                entry.undecided += 1
                own = _unsaid(result) if silent else None
                unsaid.setdefault(key, []).extend([] if own is None else [(own, label.good)])
                continue
            pairs.setdefault(key, []).append(pair)
            if pair[0] != pair[1]:
                entry.differ.append(f"{row.id}/{number}")
    for key, entry in figures.items():
        entry.agreement = agreement(pairs.get(key, ()))
        entry.unsaid = agreement(unsaid.get(key, ()))
        entry.versions = _versions(by_version.get(key, {}))
    return list(figures.values())


def _unsaid(result: CriterionResult) -> bool | None:
    """What the criterion would be if its judge had not kept silent; None: it can't be told."""
    figures = [line.fields for metric in result.metrics for line in metric.evidence if "least" in line.fields]
    scores = [figure["score"] >= figure["least"] - 1e-9 for figure in figures if figure.get("measure") == "score"]
    return all(scores) is not result.negate if scores else None


class _Version:
    """What one version of a criterion and people say, by recording: the newest grading counts."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.pairs: dict[str, tuple[bool, bool]] = {}
        self.labelled = 0
        self.silent = 0
        self.last = 0

    def note(self, row: RunRow, pair: tuple[bool, bool] | None, *, labelled: bool, silent: bool) -> None:
        """A run that this version judged; those of one recording come newest first."""
        if row.recorded in self.seen:
            return
        self.seen.add(row.recorded)
        self.last = max(self.last, row.rowid)
        self.labelled += labelled
        self.silent += silent
        if pair is not None:
            self.pairs[row.recorded] = pair


def _versions(by_version: Mapping[str, _Version]) -> tuple[JudgedVersion, ...]:
    """The versions, newest first, each compared with the one before it."""
    newest_first = sorted(by_version.items(), key=lambda item: -item[1].last)
    figures: list[JudgedVersion] = []
    for place, (digest, version) in enumerate(newest_first):
        before = newest_first[place + 1][1] if place + 1 < len(newest_first) else None
        both = [] if before is None else sorted(version.pairs.keys() & before.pairs.keys())
        right = [
            (_agrees(version.pairs[run_id]), before is not None and _agrees(before.pairs[run_id])) for run_id in both
        ]
        better, worse = sum(now and not then for now, then in right), sum(then and not now for now, then in right)
        figures.append(
            extended(
                JudgedVersion,
                agreement(version.pairs.values()),
                hash=digest,
                judged=len(version.seen),
                labelled=version.labelled,
                silent=version.silent,
                both=len(both),
                better=better,
                worse=worse,
                p_value=mcnemar_exact(better, worse) if both else None,
            )
        )
    return tuple(figures)


def _agrees(pair: tuple[bool, bool]) -> bool:
    return pair[0] == pair[1]


def disagreements(store: Store, runs: Iterable[int]) -> list[int]:
    """Those of these runs (rowids, in their order) of which `judge_figures` has something to say: results are not
    opened to find out. What a judge said is stored with its run, or its criterion's configuration names the judge."""
    judges = [name.casefold() for name in registry.metric_names() if _asks_judge(name)]

    def read(c: Connection) -> set[int]:
        criteria = [
            number
            for number, spec in c.execute("SELECT id, spec FROM criteria")
            # A version that was not stored may ask a judge: it is looked at.
            if spec is None or any(name in spec.casefold() for name in judges)
        ]
        rows = c.execute(
            "SELECT run FROM labels UNION SELECT run FROM run_replies UNION SELECT run FROM criterion_results"
            " WHERE criterion IS NULL OR criterion IN (SELECT value FROM json_each(?))",
            (json.dumps(criteria),),
        )
        return {row[0] for row in rows}

    disagreeing = store.read(read)
    return [run for run in runs if run in disagreeing]


def is_judged(result: CriterionResult) -> bool:
    """Whether a judge had a say in the result."""
    return any(_asks_judge(metric.type) for metric in result.metrics)


def asks_person(result: CriterionResult) -> bool:
    """Whether people decide the result, or did: a criterion that asks them, or a judge that keeps silent."""
    return any(metric.type == "Human" for metric in result.metrics) or is_silent(result)


def is_silent(result: CriterionResult) -> bool:
    """Whether a judge kept silent, also where a person has decided since."""
    return any(
        metric.code == Code.KEEPS_SILENT or any(line.code == Code.KEEPS_SILENT for line in metric.evidence)
        for metric in result.metrics
    )


def sole_of_results(results: Iterable[CriterionResult]) -> str:
    """The name of the only criterion that decides a run; "": none or several do."""
    return sole_criterion((result.criterion, result.severity) for result in results)


def _asks_judge(type_name: str) -> bool:
    try:
        metric = registry.metric(type_name)
    except AgentevalError:
        return False  # of a plug-in that is gone, or the extraction's own line
    return metric.asks == "chat"


def _models(replies: Iterable[StoredReply]) -> list[str]:
    return [reply.reply.model for reply in replies if reply.request.kind == "chat" and reply.reply.model]
