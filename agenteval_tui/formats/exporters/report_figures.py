"""What a report of an execution says, before it is Markdown or HTML: its head, its figures, its tests, its failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.comparison_model import TestChange
from agenteval_tui.analysis.costs import costs_of
from agenteval_tui.analysis.quarantine_gate import GatedRuns, gating_now
from agenteval_tui.analysis.regression_gate import BaselineResult, compare_to_baseline
from agenteval_tui.analysis.summary import ExecutionFigures, TestFigures, TestKey, execution_stats, key_of
from agenteval_tui.analysis.test_gates import TestGates, gates_now
from agenteval_tui.core import numbers
from agenteval_tui.core.document import extended
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.grading.sentences import not_made_in_runs_sentence
from agenteval_tui.history.feedback import Feedback, means
from agenteval_tui.history.labels import Label, by_run
from agenteval_tui.history.records import ExecutionRow, RunRow, checks_not_made
from agenteval_tui.history.store import Store
from agenteval_tui.views.baseline import fell_text, notice_lines, regressed_text
from agenteval_tui.views.comparison import (
    AttributedTests,
    counts_text,
    power_text,
    rate_text,
    regression_text,
    significance_text,
)
from agenteval_tui.views.execution import version_words
from agenteval_tui.views.gates import excuse_text, gate_text, gates_text
from agenteval_tui.views.model import OUTCOMES, Column, Row, Table, sentence, text, text_table
from agenteval_tui.views.quarantine import held_text, left_out_text

BAD = ("error", "failed", "needs_review")
"""The outcomes that a reader must see, worst first."""
MOST_ATTRIBUTED = 20  # tests of which a report says who changed them: transcripts are read for that


_NOT_RUN = ("cancelled", "queued", "running", "grading")


class TestLine(Struct, frozen=True):
    """A test of the report: how many of its runs passed, of how many that were decided, and what else is known."""

    __test__ = False  # not a test class, whatever its name says to pytest

    id: str
    name: str
    suite: str
    passed: int
    n: int
    errors: int
    interval: tuple[float, float] | None
    p50_ms: float | None
    flaky: bool
    stopped_early: bool = False
    quarantine: str = ""
    gate: str = ""
    """Its gate, and whether it was reached: `gate 80 % missed`; "" without one."""
    waiting: int = 0
    """Runs that wait for a person."""
    not_run: int = 0
    """Runs that were cancelled or never started."""

    @property
    def note(self) -> str:
        """What else a reader must know of it: `flaky, in quarantine until 2026-12-06`."""
        errors = f"{self.errors} in error" if self.errors else ""
        flaky, stopped = "flaky" * self.flaky, "stopped early" * self.stopped_early
        waiting = f"{self.waiting} to be reviewed" if self.waiting else ""
        not_run = f"{self.not_run} not run" if self.not_run else ""
        parts = (self.gate, flaky, stopped, errors, waiting, not_run, self.quarantine)
        return ", ".join(part for part in parts if part)


class Figure(NamedTuple):
    """A figure of an execution as people read it; `value` is the number itself, where a change of it says something.

    `unit`: "share" (0..1: changes are points), "count", or "amount" (changes are parts of what it was).
    """

    name: str
    text: str
    value: float | None = None
    unit: str = ""


class ReportFigures(Struct, frozen=True):
    """A report. `metrics` are (name, value as people read it); texts are raw: whoever writes them makes them safe.

    `against`: the comparison with the baseline, with `compared`, the same metrics as (name, baseline, now, change);
    None and empty where there is no baseline.
    """

    execution: ExecutionRow
    runs: tuple[RunRow, ...]
    metrics: tuple[tuple[str, str], ...]
    tests: tuple[TestLine, ...]
    against: BaselineResult | None = None
    compared: tuple[tuple[str, str, str, str], ...] = ()
    gating: GatedRuns = field(default_factory=GatedRuns)
    """The tests and criteria in quarantine, which do not gate."""
    gates: TestGates = TestGates()
    """The results of the tests that have a gate."""
    labels: tuple[tuple[RunRow, Label], ...] = ()
    """People's labels for its runs, each with its run, in the order of the runs."""
    feedback: tuple[tuple[RunRow, Feedback], ...] = ()
    """The scores by key that its runs were given."""

    @property
    def date(self) -> str:
        """The day on which it started, in UTC. For an import, also the days on which its runs were made."""
        day = _day(self.execution.started_ms)
        if self.execution.kind != "import":
            return day
        days_run = sorted({_day(run.started_ms) for run in self.runs if run.started_ms is not None})
        days = days_run[0] if len(days_run) == 1 else f"{days_run[0]} to {days_run[-1]}" if days_run else ""
        return f"{days} (imported {day})" if days else f"{day} (imported)"

    @property
    def dataset(self) -> str:
        """The suites, with the number of tests and runs."""
        row = self.execution
        return f"{row.suites or row.title} ({count(len(self.tests), 'test')}, {count(row.runs, 'run')})"

    @property
    def experiment(self) -> str:
        """What the execution is called, its id, and the agents that took part."""
        agents = f", agents {self.execution.agents}" if self.execution.agents else ""
        named = f"{self.execution.name} ({self.execution.id})" if self.execution.name else self.execution.id
        return f"{named}{agents}"

    @property
    def version(self) -> str:
        """The commits that it started with, and its metadata; "" where nothing is known."""
        return ", ".join(version_words(self.execution))

    @property
    def bad_runs(self) -> list[RunRow]:
        """The runs that did not pass: errors first, then failures, then runs that wait for a person."""
        return sorted((run for run in self.runs if run.status in BAD), key=lambda run: BAD.index(run.status))

    @property
    def failures(self) -> list[list[RunRow]]:
        """The same, with repetitions of a test together that did not pass for the same reason."""
        test = attrgetter("suite_key", "test_id", "variation", "row", "row_key")
        reason = attrgetter("status", "why", "error_message")
        alike = grouped(((*test(run), *reason(run)), run) for run in self.bad_runs)
        return list(alike.values())

    def about(self, alike: Sequence[RunRow]) -> str:
        """What is said before the explanation of these repetitions: which they are, if there are several, and why their
        failure does not gate, if it does not."""
        which = f"{len(alike)} runs: repetitions {', '.join(str(run.repetition) for run in alike)}"
        parts = (which if len(alike) > 1 else "", excuse_text(alike[0], self.gating, self.gates))
        return ". ".join(part for part in parts if part)

    @property
    def conclusion(self) -> str:
        """What the numbers say, and no more."""
        row, tests = self.execution, self.tests
        decided = [test for test in tests if test.n]
        whole = [
            test for test in decided if test.passed == test.n and not (test.errors or test.waiting or test.not_run)
        ]
        sentences = []
        if not decided:
            # An import without a verdict has failed in nothing: it waits for criteria.
            graded = row.kind != "import" or row.skipped < row.runs
            sentences.append("No run was decided." if graded else "No run is graded yet: `agenteval grade` does it.")
        elif len(whole) == len(tests):
            sentences.append(f"All {count(len(tests), 'test')} passed." if len(tests) > 1 else "The test passed.")
        else:
            sentences.append(f"{len(whole)} of {count(len(tests), 'test')} passed in every run.")
        if never := sum(test.passed == 0 for test in decided):
            sentences.append(f"{count(never, 'test')} never passed.")
        if flaky := sum(test.flaky for test in tests):
            sentences.append(f"{count(flaky, 'test')} passed in some runs and not in others.")
        if row.errors:
            sentences.append(f"{count(row.errors, 'run')} ended in an error, which no rate counts.")
        if row.needs_review:
            sentences.append(
                f"{count(row.needs_review, 'run')} {'waits' if row.needs_review == 1 else 'wait'} for a person."
            )
        if not_run := sum(test.not_run for test in tests):
            sentences.append(f"{count(not_run, 'run')} did not take place.")
        if missing := checks_not_made(self.runs):
            sentences.append(f"{not_made_in_runs_sentence(missing)}.")
        if self.gates.verdicts:
            sentences.append(gates_text(self.gates))
        if self.gating.left_out:
            sentences.append(left_out_text(self.gating.left_out))
        if self.against is not None:
            sentences.append(_said_of_baseline(self.against))
        if row.status not in ("finished", "running"):
            sentences.append(f"The execution was {row.status}" + (f": {row.message}." if row.message else "."))
        return " ".join(sentences)


def results_table(figures: ReportFigures) -> Table:
    """The figures; with a baseline beside those of then, and what changed."""
    if figures.compared:
        return text_table(("Metric", "Baseline", "Now", "Change"), figures.compared)
    return text_table(("Metric", "Value"), figures.metrics)


def tests_table(tests: Sequence[TestLine]) -> Table:
    """A row a test: how many of its runs passed, with interval, how long they took, and what else is to be known."""
    rows = []
    for test in tests:
        whole = "passed" if test.n and test.passed == test.n else "failed" if test.n else "cancelled"
        # A test without a decided run has the sign of why it has none.
        without = "error" if test.errors else "needs_review" if test.waiting else whole
        sign, token = OUTCOMES[whole if test.n else without]
        cells = (
            text((sign, token), f" {test.id}"),
            text((test.name, "dim")),
            text(f"{test.passed}/{test.n}"),
            text(share_range(test.interval) if test.n else "–"),
            text(seconds(test.p50_ms)),
            text(test.note),
        )
        rows.append(Row(cells, test.id))
    columns = (
        Column("Test"),
        Column("Name"),
        Column("Passed", "right"),
        Column("95 % interval"),
        Column("Latency (p50)", "right"),
        Column("Note"),
    )
    return Table(columns, tuple(rows))


def report_figures(store: Store, execution: ExecutionRow) -> ReportFigures:
    """Everything that a report says of an execution."""
    runs = tuple(store.runs_of_execution(execution.id))
    stats = execution_stats(runs, steps=store.steps_of_execution(execution.id), imported=execution.kind == "import")
    replies, judged = store.judge_usage(execution.id)
    others: list[Figure] = []
    if replies:
        others.append(Figure("Judges: replies", f"{replies:,}"))
        if judged.total_tokens is not None:
            others.append(Figure("Judges: tokens", f"{judged.total_tokens:,}"))
        if judged.cost is not None:
            others.append(Figure("Judges: cost", numbers.dollars(judged.cost)))
    users = costs_of(store.costs(execution.id), runs).users
    if users.count:
        others.append(Figure("Simulated users: messages", f"{users.count:,}"))
        others.append(Figure("Simulated users: tokens", f"{users.tokens:,}"))
        if users.cost is not None:
            others.append(Figure("Simulated users: cost", numbers.dollars(users.cost)))
    gating = gating_now(store, runs)
    gates = gates_now(store, execution, runs, gating)
    # By the keys of their suites: two files may give theirs one name, and their tests one id.
    ends = Counter((key_of(run), run.status) for run in runs)
    figures = [*_metrics(execution, runs, stats, gating), *others]
    if missing := checks_not_made(runs):
        figures.append(Figure("Checks that could not run", f"{missing:,}", missing, "count"))
    against = compare_to_baseline(store, execution)
    labels = by_run(store.labels([run.id for run in runs]))
    feedback = by_run(store.feedback([run.id for run in runs]))
    figures += [
        Figure(f"Feedback {mean.key}", f"{mean.mean:.2f} ({count(mean.n, 'score')})", mean.mean, "share")
        for mean in means(
            (entry.key, run.rowid, entry.who, entry.score) for run in runs for entry in feedback.get(run.id, ())
        )
    ]
    return ReportFigures(
        execution=execution,
        runs=runs,
        metrics=tuple((figure.name, figure.text) for figure in figures),
        tests=tuple(_test(test, key, gating, gates, ends) for test, key in zip(stats.tests, stats.keys, strict=True)),
        against=against,
        compared=_compared(store, execution, against, figures) if against is not None else (),
        gating=gating,
        gates=gates,
        labels=tuple((run, label) for run in runs for label in labels.get(run.id, ())),
        feedback=tuple((run, entry) for run in runs for entry in feedback.get(run.id, ())),
    )


def _compared(
    store: Store, execution: ExecutionRow, against: BaselineResult, now: Sequence[Figure]
) -> tuple[tuple[str, str, str, str], ...]:
    """The figures beside those of the baseline's runs, in the same words."""
    rows = store.run_rows([run.rowid for run in against.shown.a.runs])
    stats = execution_stats(rows, steps=_steps(store, against))
    # The quarantine of now for both sides: else a test that was put there since would look like a change.
    was_held = gating_now(store, rows)
    before = _metrics(_as_execution(execution, rows), rows, stats, was_held)
    figure_by_name = {figure.name: figure for figure in before}
    compared = []
    for figure in now:
        was = figure_by_name.get(figure.name)
        compared.append((figure.name, was.text if was is not None else "–", figure.text, _change(was, figure)))
    return tuple(compared)


def _steps(store: Store, against: BaselineResult) -> dict[str, int]:
    steps: dict[str, int] = {}
    for execution in against.shown.a.executions:
        steps |= store.steps_of_execution(execution)
    return steps


def _as_execution(execution: ExecutionRow, rows: Sequence[RunRow]) -> ExecutionRow:
    """The totals of a baseline's runs, in the shape of an execution."""
    counts = Counter(row.status for row in rows)
    costs = [row.cost for row in rows if row.cost is not None]
    return replace(
        execution,
        runs=len(rows),
        passed=counts["passed"],
        failed=counts["failed"],
        errors=counts["error"],
        skipped=counts["skipped"],
        cancelled=counts["cancelled"],
        needs_review=counts["needs_review"],
        input_tokens=sum(row.input_tokens or 0 for row in rows),
        output_tokens=sum(row.output_tokens or 0 for row in rows),
        cost=sum(costs) if costs else None,
    )


def _change(was: Figure | None, now: Figure) -> str:
    if was is None or was.value is None or now.value is None:
        return ""
    difference = now.value - was.value
    if now.unit == "share":
        return f"{numbers.points(difference)} points"
    if now.unit == "count":
        return f"{difference:+,.0f}" if difference else "0"
    if not was.value:
        return "" if difference else "0 %"
    percent = round(100 * difference / was.value)
    return f"{percent:+d} %" if percent else "0 %"


def _said_of_baseline(against: BaselineResult) -> str:
    """What the numbers say against the baseline: what regressed, the difference, how sure that is, what is missing."""
    overall = against.gating.overall
    regressed = [regressed_text(against, test) for test in against.regressed]
    sentences = [f"Against the baseline: {counts_text(against.shown)}."]
    if regressed:
        sentences.append(f"Regressed: {abridged(regressed, 5, separator='; ')}.")
    by_chance = [regression_text(test) for test in against.by_chance]
    chance = f"fell, within chance: {abridged(by_chance, 5, separator='; ')}" if by_chance else ""
    parts = (fell_text(against), chance, *notice_lines(against.notices), f"pass rate {rate_text(overall)}")
    sentences += [sentence(part) for part in (*parts, significance_text(overall), power_text(overall)) if part]
    if against.without_baseline:
        sentences.append(f"{count(against.without_baseline, 'test')} without a baseline.")
    return " ".join(sentences)


def _metrics(
    row: ExecutionRow,
    runs: Sequence[RunRow],
    stats: ExecutionFigures,
    gating: GatedRuns,
) -> list[Figure]:
    overall = stats.overall
    rate = overall.pass_rate
    text = "none was decided"
    if rate is not None:
        text = f"{numbers.percent(rate, 1)} ({numbers.interval_phrase(overall.interval, 1)})"
    figures = [
        Figure("Pass rate", text, rate, "share"),
        Figure("Runs passed", f"{row.passed:,} of {overall.n:,} decided"),
    ]
    if gating.left_out and (rate_outside := gating.pass_rate) is not None:
        figures.insert(
            1, Figure("Pass rate without quarantine", numbers.percent(rate_outside, 1), rate_outside, "share")
        )
    # Of the most repetitions that all tests have: further on it would be a figure of a few of them.
    decided = sum(test.n > 0 for test in stats.tests)
    k = str(max((int(number) for number, tests_at in overall.tests_at_k.items() if tests_at == decided), default=1))
    if k != "1":
        for name, by_k in (("pass^", overall.pass_hat_k[k]), ("pass@", overall.pass_at_k[k])):
            lean = " (tests stopped early lean)" if overall.stopped_early else ""
            figures.append(Figure(f"{name}{k}", numbers.percent(by_k, 1) + lean, by_k, "share"))
    for name, many in (("In error", row.errors), ("To be reviewed", row.needs_review), ("Cancelled", row.cancelled)):
        if many:
            figures.append(Figure(name, f"{many:,}", many, "count"))
    if row.skipped:
        # What came in from elsewhere without a verdict waits for criteria: nothing was saved there.
        name = "Not graded yet" if row.kind == "import" else "Saved by early stopping"
        figures.append(Figure(name, count(row.skipped, "run")))
    if overall.flaky:
        figures.append(Figure("Flaky tests", f"{overall.flaky:,}", overall.flaky, "count"))
    for name, latency in (("p50", overall.latency_ms.p50), ("p95", overall.latency_ms.p95)):
        if latency is not None:
            figures.append(Figure(f"Latency ({name})", seconds(latency), latency, "amount"))
    if (tokens := overall.tokens.p50) is not None:
        figures.append(Figure("Tokens/run (p50)", f"{tokens:,.0f}", tokens, "amount"))
        figures.append(Figure("Tokens, all runs", f"{row.input_tokens:,} in, {row.output_tokens:,} out"))
    if (cost := overall.cost.p50) is not None:
        figures.append(Figure("Cost/run (p50)", numbers.dollars(cost), cost, "amount"))
    if row.cost is not None:
        text = numbers.dollars(row.cost, whole=all(run.priced for run in runs))
        figures.append(Figure("Cost, all runs", text, row.cost, "amount"))
    if (steps := overall.steps.p50) is not None:
        figures.append(Figure("Tool calls/run (p50)", f"{steps:g}", steps, "amount"))
    return figures


def _test(
    line: TestFigures, key: TestKey, gating: GatedRuns, gates: TestGates, ends: Mapping[tuple[TestKey, str], int]
) -> TestLine:
    verdict = gates.by_test.get((key.suite_key, key.test_id, key.variation))
    return extended(
        TestLine,
        line,
        p50_ms=line.latency_ms.p50,
        quarantine=held_text(gating.held.get((key.suite_key, key.test_id), ())),
        gate="" if verdict is None else f"{gate_text(verdict.gate.pass_rate)} {verdict.outcome}",
        waiting=ends.get((key, "needs_review"), 0),
        not_run=sum(ends.get((key, status), 0) for status in _NOT_RUN),
    )


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def share_range(interval: tuple[float, float] | None) -> str:
    """`12 % to 40.5 %`: both ends of an interval of shares; `too few` where there is none."""
    if interval is None:
        return numbers.TOO_FEW
    return " to ".join(f"{end} %" for end in numbers.percent_interval(*interval, 1))


def seconds(milliseconds: float | None) -> str:
    """`340 ms`, `1.5 s`; `–` for None."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def attributed_changes(store: Store, tests: Sequence[TestChange]) -> AttributedTests:
    """Who changed these tests, of the first `MOST_ATTRIBUTED` that were looked at."""
    return {test.key: attribute(store, test.pairs) for test in tests[:MOST_ATTRIBUTED]}


def left_out(failures: Sequence[Sequence[RunRow]], most: int) -> str:
    """How many runs are behind the first `most` failures; "" for none."""
    remaining = sum(len(alike) for alike in failures[most:])
    return f"{count(remaining, 'more run')} that did not pass: not listed here." if remaining else ""


def html_comment_escape(id: str) -> str:
    """An id for a comment or a line of code: letters, digits, `.`, `_` and single dashes, as all ids of ours are.

    A foreign history may call anything an id.
    """
    return re.sub("-(?=-)|[^0-9A-Za-z._-]", "_", id)
