"""What a report of an execution says, before it is Markdown or HTML: its head, its figures, its tests, its failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.history.rows import ExecutionRow, RunRow

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

BAD = ("error", "failed", "needs_review")
"""The outcomes that a reader must see, worst first."""


@dataclass(frozen=True, slots=True)
class TestLine:
    """A test of the report: how many of its runs passed, of how many that were decided, and what else is known."""

    __test__ = False  # not a test class, whatever its name says to pytest

    id: str
    name: str
    suite: str
    passed: int
    n: int
    errors: int
    interval: tuple[float, float]
    p50_ms: float | None
    flaky: bool


@dataclass(frozen=True, slots=True)
class ReportFigures:
    """A report. `metrics` are (name, value as people read it); texts are raw: whoever writes them makes them safe."""

    execution: ExecutionRow
    runs: tuple[RunRow, ...]
    metrics: tuple[tuple[str, str], ...]
    tests: tuple[TestLine, ...]

    @property
    def date(self) -> str:
        """The day it was started, in UTC."""
        return datetime.fromtimestamp(self.execution.started_ms / 1000, UTC).strftime("%Y-%m-%d")

    @property
    def dataset(self) -> str:
        """The suites and how much was run of them."""
        row = self.execution
        return f"{row.suites or row.title} ({counted(len(self.tests), 'test')}, {counted(row.runs, 'run')})"

    @property
    def experiment(self) -> str:
        """The execution, with the agents that took part."""
        agents = f", agents {self.execution.agents}" if self.execution.agents else ""
        return f"{self.execution.id}{agents}"

    @property
    def bad_runs(self) -> list[RunRow]:
        """The runs that did not pass: errors first, then failures, then what waits for a person."""
        return sorted((run for run in self.runs if run.status in BAD), key=lambda run: BAD.index(run.status))

    @property
    def failures(self) -> list[list[RunRow]]:
        """The same, with repetitions of a test together that did not pass for the same reason."""
        alike: dict[tuple[object, ...], list[RunRow]] = {}
        for run in self.bad_runs:
            key = (run.status, run.suite_key, run.test_id, run.variation, run.row, run.why, run.error_message)
            alike.setdefault(key, []).append(run)
        return list(alike.values())

    @property
    def conclusion(self) -> str:
        """What the numbers say, and no more."""
        row, tests = self.execution, self.tests
        decided = [test for test in tests if test.n]
        whole = [test for test in decided if test.passed == test.n and not test.errors]
        said = []
        if not decided:
            said.append("No run was decided.")
        elif len(whole) == len(tests):
            said.append(f"All {counted(len(tests), 'test')} passed." if len(tests) > 1 else "The test passed.")
        else:
            said.append(f"{len(whole)} of {counted(len(tests), 'test')} passed in every run.")
        if never := sum(test.passed == 0 for test in decided):
            said.append(f"{counted(never, 'test')} never passed.")
        if flaky := sum(test.flaky for test in tests):
            said.append(f"{counted(flaky, 'test')} passed in some runs and not in others.")
        if row.errors:
            said.append(f"{counted(row.errors, 'run')} ended in an error, which no rate counts.")
        if row.status not in ("finished", "running"):
            said.append(f"The execution was {row.status}" + (f": {row.message}." if row.message else "."))
        return " ".join(said)


def report_figures(store: Store, execution: ExecutionRow) -> ReportFigures:
    """Everything that a report says of an execution."""
    runs = tuple(store.runs_of_execution(execution.id))
    stats = execution_stats(runs, steps=store.steps_of_execution(execution.id))
    replies, judged = store.judge_usage(execution.id)
    judges: list[tuple[str, str]] = []
    if replies:
        judges.append(("Judges: replies", f"{replies:,}"))
        if judged.total_tokens is not None:
            judges.append(("Judges: tokens", f"{judged.total_tokens:,}"))
        if judged.cost is not None:
            judges.append(("Judges: cost", dollars(judged.cost)))
    return ReportFigures(
        execution=execution,
        runs=runs,
        metrics=(*_metrics(execution, stats["overall"], stats["tests"]), *judges),
        tests=tuple(_test(one) for one in stats["tests"]),
    )


def _metrics(row: ExecutionRow, overall: dict[str, Any], tests: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    low, high = overall["interval"]
    rate = overall["pass_rate"]
    known = f"{share(rate)} (95 % interval {share(low)} to {share(high)})"
    found = [
        ("Pass rate", "none was decided" if rate is None else known),
        ("Runs passed", f"{row.passed:,} of {overall['n']:,} decided"),
    ]
    # Of the most repetitions that all tests have: further on it would be a figure of a few of them.
    decided = sum(test["n"] > 0 for test in tests)
    k = str(max((int(one) for one, count in overall["tests_at_k"].items() if count == decided), default=1))
    if k != "1":
        found.append((f"pass^{k}", share(overall["pass_hat_k"][k])))
        found.append((f"pass@{k}", share(overall["pass_at_k"][k])))
    for name, count in (("In error", row.errors), ("To be reviewed", row.needs_review), ("Cancelled", row.cancelled)):
        if count:
            found.append((name, f"{count:,}"))
    if row.skipped:
        found.append(("Saved by early stopping", counted(row.skipped, "run")))
    if flaky := sum(test["flaky"] for test in tests):
        found.append(("Flaky tests", f"{flaky:,}"))
    latency, tokens, cost, steps = (overall[name] for name in ("latency_ms", "tokens", "cost", "steps"))
    if latency["p50"] is not None:
        found += [("Latency (p50)", seconds(latency["p50"])), ("Latency (p95)", seconds(latency["p95"]))]
    if tokens["p50"] is not None:
        found.append(("Tokens/run (p50)", f"{tokens['p50']:,.0f}"))
        found.append(("Tokens, all runs", f"{row.input_tokens:,} in, {row.output_tokens:,} out"))
    if cost["p50"] is not None:
        found.append(("Cost/run (p50)", dollars(cost["p50"])))
    if row.cost is not None:
        found.append(("Cost, all runs", dollars(row.cost)))
    if steps["p50"] is not None:
        found.append(("Tool calls/run (p50)", f"{steps['p50']:g}"))
    return found


def _test(one: dict[str, Any]) -> TestLine:
    low, high = one["interval"]
    return TestLine(
        one["id"], one["name"], one["suite"], one["passed"], one["n"], one["errors"], (low, high),
        one["latency_ms"]["p50"], one["flaky"],
    )  # fmt: skip


def counted(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def share(value: float | None) -> str:
    """`87 %`, and `87.5 %` where that says more; `–` for None."""
    if value is None:
        return "–"
    number = f"{100 * value:.1f}".removesuffix(".0")
    return f"{number} %"


def seconds(milliseconds: float | None) -> str:
    """`340 ms`, `1.5 s`; `–` for None."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def dollars(cost: float | None) -> str:
    """`$0.0180`, `$12.34`: cents of small sums matter; `–` for None."""
    if cost is None:
        return "–"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def repetitions(alike: Sequence[RunRow]) -> str:
    """`3 runs: repetitions 1, 2, 4`; "" for one run."""
    return f"{len(alike)} runs: repetitions {', '.join(str(run.repetition) for run in alike)}" if len(alike) > 1 else ""


def left_out(failures: Sequence[Sequence[RunRow]], most: int) -> str:
    """How many runs are behind the first `most` failures; "" for none."""
    left = sum(len(alike) for alike in failures[most:])
    return f"{counted(left, 'more run')} that did not pass: not listed here." if left else ""
