"""How long each view of the trends over 100,000 runs takes.

    python -m benchmarks.trends [--quick]

The runs are those of `benchmarks.history`, spread over 90 days; a figure is the median of several readings.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from agenteval_tui.analysis.time_buckets import DAY_MS
from agenteval_tui.analysis.trend_alerts import watch
from agenteval_tui.analysis.trend_scores import extras
from agenteval_tui.analysis.trends import TrendQuery, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.history.store import Store
from benchmarks.history import filled, measure
from benchmarks.table import Row, markdown

_NOW = 1_795_262_400_000
_DAYS = 90


def spread_out(path: Path, number: int) -> None:
    """Spread the runs of a history over 90 days and two agents, with different latencies."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE runs SET started_ms = ? - (? - id) * ?, duration_ms = 500 + abs(random() % 4000),"
            " agent = CASE WHEN id % 3 THEN 'demo' ELSE 'other' END",
            (_NOW, number, _DAYS * DAY_MS // number),
        )


def views(store: Store) -> Iterator[tuple[str, Callable[[], object]]]:
    """The views: a name, and the function that reads each."""
    every = TrendQuery(_NOW - _DAYS * DAY_MS, _NOW + 1, "day")
    yield "pass rate by day, all runs", lambda: trend(store, every)
    for group in ("suite", "test", "agent", "tag"):
        wanted = TrendQuery(every.since_ms, every.until_ms, "day", group)
        yield f"pass rate by day and {group}", lambda wanted=wanted: trend(store, wanted)  # type: ignore[misc]
    yield "pass rate by execution", lambda: trend(store, TrendQuery(every.since_ms, every.until_ms, "execution"))
    yield "latency p50 and p95 by day", lambda: trend(store, every, ("latency",))
    yield "scores of criteria, causes of failures", lambda: extras(store, every)
    yield "flaky tests and criteria", lambda: ledger(store, every, _NOW, judges=False)
    yield "an alert over the last 24 h", lambda: watch(store, TrendQuery(_NOW - DAY_MS, _NOW + 1), 0.7, _NOW)


def run(quick: bool = False) -> list[Row]:
    """All figures, in a new folder."""
    number = 5_000 if quick else 100_000
    rows = []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "history.db"
        filled(path, number).close()
        spread_out(path, number)
        with Store.open(path) as store:
            for what, view in views(store):
                took = measure(view, 2 if quick else 7)
                middle = statistics.median(took)
                measured = f"{middle:.0f} ms (worst {max(took):.0f})"
                rows.append(Row(f"trends of {number:,} runs: {what}", measured, "< 200 ms", middle < 200))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trends", description="Trends over 100,000 runs.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
