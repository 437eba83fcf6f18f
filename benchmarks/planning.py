"""How long it takes to plan 100,000 rows of a dataset, and to estimate the usage of a plan from 100,000 stored runs.

python -m benchmarks.planning [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import estimate
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.transcripts.model import Transcript, Usage
from benchmarks.table import Row

ROWS = 100_000
RUNS = 100_000
TESTS = 100
DUE_ROWS_A_SECOND = 10_000
DUE_ESTIMATE_MS = 100
_CRITERIA = '[{name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: "order"}]}}]'


def planned_rows(folder: Path, rows: int) -> tuple[Plan, float, float]:
    """Make a plan with a run for each row. Returns the seconds, and the growth of the process in megabytes."""
    with (folder / "rows.csv").open("w", encoding="utf-8") as stream:
        stream.write("question,expected,customer\n")
        for number in range(rows):
            stream.write(f'"Where is the order number {number}, please?",order {number} is on its way,c-{number}\n')
    text = (
        "name: Rows\nagent: bot\nagents: {bot: {kind: demo}}\ntests:\n"
        "  - {id: rows, prompt: '{{question}} I am {{customer}}.', dataset: {file: rows.csv},\n"
        f"     criteria: {_CRITERIA}}}\n"
    )
    loaded = load_text(text, folder / "rows.suite.yaml")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    plan = make_plan([loaded], PlanOptions(), user_agents={})
    took = time.perf_counter() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return plan, took, grown / 1024


def _suite(folder: Path) -> LoadedSuite:
    tests = "".join(f"  - {{id: t{number}, prompt: hi, criteria: {_CRITERIA}}}\n" for number in range(TESTS))
    text = f"name: S\nagent: bot\nagents: {{bot: {{kind: demo}}, new: {{kind: demo}}}}\ntests:\n{tests}"
    return load_text(text, folder / "many.suite.yaml")


def _history(suite_key: str, runs: int) -> Iterator[tuple[PlannedRun, RunEnded]]:
    draw = random.Random(1)
    for number in range(runs):
        test = f"t{number % TESTS}"
        planned = PlannedRun(f"E-{number:06}", "E", number, suite_key, "S", test, test, agent="bot", prompt="hi")
        transcript = Transcript(usage=Usage(100, 20, cost=0.001))
        yield planned, RunEnded(planned.id, "passed", 1.0, 1, draw.uniform(500, 1500), 1, transcript)


def estimate_ms(folder: Path, runs: int) -> dict[str, float]:
    """The milliseconds to estimate a plan, for an agent that made all stored runs, and for an agent without runs."""
    loaded = _suite(folder)
    found = {}
    with Store.open(folder / "history.db") as store:
        record = ExecutionRecord("E", "t", "run", "s", (loaded.key,), started_ms=1)
        store.import_runs(record, _history(loaded.key, runs))
        for agent in ("bot", "new"):
            plan = make_plan([loaded], PlanOptions(agent=agent, repeat=3), user_agents={})
            took = []
            for _ in range(5):
                began = time.perf_counter()
                estimate(plan, store)
                took.append((time.perf_counter() - began) * 1000)
            found[agent] = sorted(took)[2]
    return found


def run(quick: bool = False) -> list[Row]:
    """The figures."""
    rows, runs = (2_000, 2_000) if quick else (ROWS, RUNS)
    with tempfile.TemporaryDirectory() as name:
        plan, took, grown = planned_rows(Path(name), rows)
        found = estimate_ms(Path(name), runs)
    speed = len(plan.runs) / took
    worst = max(found.values())
    return [
        Row(
            f"Planning {rows:,} rows of a dataset",
            f"{took:.1f} s ({speed:,.0f} rows a second, {grown:,.0f} MB)",
            f"{DUE_ROWS_A_SECOND:,} rows a second",
            speed >= DUE_ROWS_A_SECOND,
        ),
        Row(
            f"Estimating a plan of {3 * TESTS} runs from {runs:,} stored ones",
            f"{found['bot']:.0f} ms (an agent that never ran: {found['new']:.0f} ms)",
            f"{DUE_ESTIMATE_MS} ms",
            worst <= DUE_ESTIMATE_MS,
        ),
    ]


def main() -> int:
    """Measure and print. Exit code 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = run(given.quick)
    for row in rows:
        sign = "✓" if row.reached else "✗"
        print(f"{sign} {row.what}: {row.measured} (due: {row.due})")
    if given.json:
        given.json.write_text(json.dumps([row.as_json() for row in rows], indent=2), "utf-8")
    return 0 if all(row.reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
