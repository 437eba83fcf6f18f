"""The end of an execution with histories of different lengths: the last lines of `agenteval run`.

    python -m benchmarks.ending [--quick]

A suite of 50 tests with 5 criteria was executed 0, 10, 100 and 1,000 times before, and every third run failed. The
figure is the processor time from the end of the last run to the last line (`cli.run_finish.finish`): reading the runs,
their statistics, the causes of failures, the earlier results of each test, and the usage. The histories take turns, so
that both figures of a ratio are from the same time. Measured once without a baseline, and once with the first execution
as the baseline.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from agenteval_tui.cli.output import Output
from agenteval_tui.cli.run_finish import finish
from agenteval_tui.cli.run_progress import ProgressState, RunProgress
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.store import Store
from benchmarks.history import TESTS, execution
from benchmarks.table import Row, markdown

LENGTHS = (0, 10, 100, 1_000)
DUE = 1.1


def with_executions(path: Path, number: int) -> Store:
    """A history with this number of executions of the suite, and the execution that ends now ("NOW")."""
    store = Store.open(path)
    names = [*(f"E{one:06}" for one in range(number)), "NOW"]
    record, runs = execution("any", TESTS, 0)
    for started, name in enumerate(names):
        renamed = [
            (
                replace(run, id=f"{name}-{run.position}", execution_id=name),
                replace(ended, run_id=f"{name}-{run.position}"),
            )
            for run, ended in runs
        ]
        store.import_runs(replace(record, id=name, started_ms=started), iter(renamed))
    return store


def seconds_of_end(store: Store) -> float:
    """The processor time for the end of "NOW", in seconds."""
    out = Output(io.StringIO(), {})
    progress = RunProgress(out, ProgressState.of(store))
    began = time.process_time()
    finish(store, "NOW", progress, interrupted=False)
    return time.process_time() - began


def rows_of(stores: Mapping[int, Store], rounds: int, title: str) -> list[Row]:
    """A figure for each history, by its length. The others are compared with the first."""
    took: dict[int, list[float]] = {number: [] for number in stores}
    for store in stores.values():
        seconds_of_end(store)  # imports and caches are not measured
    for _ in range(rounds):
        for number, store in stores.items():
            took[number].append(seconds_of_end(store))
    first = next(iter(stores))
    rows = []
    for number, seconds in took.items():
        ratio = statistics.median(one / least for one, least in zip(seconds, took[first], strict=True))
        measured = f"{statistics.median(seconds) * 1e3:.1f} ms"
        what = f"the end of an execution, {title}: {number:,} earlier executions of the suite"
        if number == first:
            rows.append(Row(what, measured, "", None))
        else:
            rows.append(Row(what, f"{measured}, {ratio:.2f} times that", f"<= {DUE} times", ratio <= DUE))
    return rows


def run(quick: bool = False) -> list[Row]:
    """All figures, in new histories."""
    rounds = 3 if quick else 21
    with tempfile.TemporaryDirectory() as folder:
        lengths = LENGTHS[:3] if quick else LENGTHS
        stores = {number: with_executions(Path(folder) / f"{number}.db", number) for number in lengths}
        rows = rows_of(stores, rounds, "no baseline")
        earlier = {number: store for number, store in stores.items() if number}
        for store in earlier.values():
            set_baseline(store, "E000000")
        rows += rows_of(earlier, rounds, "with a baseline")
        for store in stores.values():
            store.close()
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ending", description="The end of an execution.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
