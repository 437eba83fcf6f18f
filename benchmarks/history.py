"""The history: how many runs it stores durably per second, and how long lists and searches of 100,000 runs take.

    python -m benchmarks.history [--quick] [--json FILE]

A run has 10 messages, 2 tool calls and 5 criteria with one metric each. A figure is the median, followed by the worst.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage
from benchmarks.table import Row, markdown

TESTS = 50
SUITES = 10
IN_FLIGHT = 256  # runs that wait for the disk at a time
HISTORIES = "BENCHMARKS_HISTORIES"
"""The environment variable with the folder of the histories that this round has filled."""

_dice = random.Random(1)
_WORDS = ["".join(_dice.choices("abcdefghiklmnoprstuvw", k=_dice.randint(3, 9))) for _ in range(5_000)]


def _words(number: int) -> str:
    return " ".join(_dice.choices(_WORDS, k=number))


def transcript(number: int) -> Transcript:
    """A transcript of ten messages and two tool calls. No two transcripts are equal."""
    answer = f"Your order {number} is on its way. {_words(30)}"
    messages = (
        Message("system", "You help customers of a shop."),
        Message("user", f"Where is order number {number}? {_words(20)}"),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", _words(20), tool_call=0, tool_call_id="c0"),
        Message("assistant", "", tool_calls=(1,)),
        Message("tool", _words(20), tool_call=1, tool_call_id="c1"),
        Message("assistant", _words(15)),
        Message("user", _words(10)),
        Message("user", _words(10)),
        Message("assistant", answer),
    )
    calls = (
        ToolCall("c0", "get_order", {"order_id": f"#W{number}"}, messages[3].content, "ok", 1.0, 2.0, 2),
        ToolCall("c1", "query", {"sql": f"SELECT * FROM {_words(3)}"}, messages[5].content, "ok", 4.0, 2.0, 4),
    )
    return Transcript(messages, calls, Timing(1.0, 20.0), Usage(300, 80, cost=0.001), "model", "stop", answer)


def results(number: int) -> tuple[CriterionResult, ...]:
    """Five criteria with one metric and two conditions each; every third run has a failed one."""
    made = []
    for criterion in range(5):
        outcome = Outcome.FAILED if number % 3 == 0 and criterion == 0 else Outcome.PASSED
        evidence = tuple(
            Evidence(f"contains_all[{one}]", True, "found", "way", "way", (Span("message", 9, 3, 8),)) for one in (0, 1)
        )
        metric = MetricResult("words", "TextMatch", outcome, 1.0, evidence=evidence)
        name, content_hash = f"criterion {criterion}", f"hash-{criterion}"
        made.append(CriterionResult(name, outcome, 1.0, criterion_hash=content_hash, value="way", metrics=(metric,)))
    return tuple(made)


def execution(name: str, number: int, first: int) -> tuple[ExecutionRecord, list[tuple[PlannedRun, RunEnded]]]:
    """An execution with this number of runs."""
    suite = f"/suites/{first % SUITES}.suite.yaml"
    hashes = tuple(f"hash-{one}" for one in range(5))
    runs = []
    for position in range(number):
        test = position % TESTS
        run = PlannedRun(
            *(f"{name}-{position:06}", name, position, suite, "Support", f"test-{test}", f"Test {test}"),
            agent="demo",
            prompt=f"Where is order number {test}?",
            criteria=hashes,
            specs=tuple({"name": one} for one in hashes),
        )
        passed = (first + position) % 3 != 0
        status, why = ("passed", "") if passed else ("failed", "criterion 0: the word is missing")
        one = transcript(first + position)
        runs.append((run, RunEnded(run.id, status, 1.0, 5_000, 12.0, 1, one, results(first + position), 0, why)))
    return ExecutionRecord(name, "smoke", "run", "Support", (suite,), first), runs


def stored_per_second(folder: Path, number: int, round_: int) -> float:
    """Start and end runs one by one, as an execution does. Returns the time until the last run is on the disk."""
    record, runs = execution(f"RATE{round_}", number, 0)
    with Store.open(folder / f"rate-{round_}.db") as store:
        store.begin_execution(record, [run for run, _ in runs]).result()
        waiting: deque[Future[None]] = deque()
        gc.collect()
        gc.freeze()  # the garbage collector leaves out the benchmark's own objects
        began = time.perf_counter()
        for run, ended in runs:
            store.run_started(run.id, 1, 5_000)
            waiting.append(store.run_ended(ended))
            if len(waiting) >= IN_FLIGHT:
                waiting.popleft().result()
        for future in waiting:
            future.result()
        took = time.perf_counter() - began
        gc.unfreeze()
        if store.execution("last").ended != number:
            raise SystemExit("not all runs were stored")
    return number / took


def filled(path: Path, number: int) -> Store:
    """A history with this number of runs, in executions of 500. A copy, if a module of this round has made one."""
    made = Path(os.environ[HISTORIES], f"{number}.db") if HISTORIES in os.environ else None
    if made is not None and made.is_file():
        shutil.copyfile(made, path)
        return Store.open(path)
    with Store.open(path) as store:
        for first in range(0, number, 500):
            record, runs = execution(f"E{first:06}", 500, first // 500)
            store.import_runs(record, iter(runs))
    if made is not None:
        shutil.copyfile(path, made)
    return Store.open(path)


def readings(store: Store) -> Iterator[tuple[str, float, Callable[[], object]]]:
    """Actions in the history: a name, the target in milliseconds (0: none), and the function to measure."""

    def first_page() -> object:
        return store.run_rows(store.run_ids()[:200])

    ids = store.run_ids()
    places = iter(range(1_000, len(ids) - 200, 997))
    orders = iter(range(10_000))
    yield "first page of runs (ids of all, 200 rows)", 100, first_page
    yield "next page (200 rows anywhere)", 16, lambda: store.run_rows(ids[(at := next(places)) : at + 200])
    yield "first page of executions (200 rows)", 100, store.executions
    yield "search: a word in few runs", 100, lambda: store.run_ids(RunFilter(text=f"#W{next(orders)}"))
    yield "search: two words in all runs", 100, lambda: store.run_ids(RunFilter(text="order number "))
    yield "search: the start of a word", 100, lambda: store.run_ids(RunFilter(text="ab"))
    yield "search: a phrase in failed runs", 100, lambda: store.run_ids(RunFilter('"is on its way"', ("failed",)))
    yield "filter: failed runs", 100, lambda: store.run_ids(RunFilter(outcomes=("failed", "error")))
    yield "summaries of a suite of 50 tests", 20, lambda: store.test_summaries("/suites/3.suite.yaml")
    yield "one run: row, transcript, results", 0, lambda: _one(store, f"E{500 * (next(orders) % 10):06}-000123")


def _one(store: Store, run: str) -> None:
    store.run(run)
    store.transcript(run)
    store.results(run)


def measure(what: Callable[[], object], times: int) -> list[float]:
    """The milliseconds of each call."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        took.append((time.perf_counter() - began) * 1e3)
    return took


def run(quick: bool = False) -> list[Row]:
    """All figures, in a new folder."""
    number = 5_000 if quick else 100_000
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = [stored_per_second(folder, 500 if quick else 3_000, round_) for round_ in range(1 if quick else 5)]
        middle = statistics.median(rates)
        measured = f"{middle:,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})"
        rows.append(Row("runs stored durably: 10 messages, 5 metrics", measured, "> 2,500/s", middle > 2_500))
        with filled(folder / "history.db", number) as store:
            for what, due, reading in readings(store):
                took = measure(reading, 3 if quick else 15)
                middle = statistics.median(took)
                measured = f"{middle:.1f} ms (worst {max(took):.1f})"
                label = f"{what}, {number:,} runs stored"
                rows.append(Row(label, measured, f"< {due:g} ms" if due else "", middle < due if due else None))
            size = store.path.stat().st_size / number
        rows.append(Row("size of the file", f"{size / 1e3:.1f} KB a run", "", None))
    return rows


def main() -> None:
    """Measure, print the table, and with --json write a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="5,000 runs, to see that it works")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON (- is the standard output)")
    given = parser.parse_args()
    rows = run(given.quick)
    text = json.dumps([row.as_json() for row in rows], indent=2)
    if given.json == "-":
        print(text)
        return
    if given.json:
        Path(given.json).write_text(text + "\n", encoding="utf-8")
    print(markdown(rows))


if __name__ == "__main__":
    main()
