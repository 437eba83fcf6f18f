"""Runs per second: 1,000 tests with 5 checks each, an agent in the process, and every result stored durably.

    python -m benchmarks.runs [--quick] [--tests N] [--rounds N] [--json FILE]

The time is from the start of the execution until its end is on the disk: planning rows, running, grading, recording,
committing, and an event for each step to one watcher that keeps its view. Loading the suite is a separate figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agenteval_tui.agents.base import AgentEvent, AgentRequest, AgentSetup, CheckReport, Done, TextDelta
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import AGENTS
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Event
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_text
from benchmarks.table import Row

DUE = 2_500
CHECKS: list[dict[str, object]] = [
    {"type": "TextMatch", "contains": "order"},
    {"type": "TextMatch", "contains_all": ["arrive", "Friday"]},
    {"type": "TextMatch", "contains_ignore_case": "FRIDAY"},
    {"type": "TextMatch", "not_contains_any": ["sorry", "cannot"]},
    {"type": "TextMatch", "ends_with": "."},
]


class EchoAgent:
    """Answers at once, in two pieces, with the number in the question."""

    def __init__(self, setup: AgentSetup) -> None:
        del setup

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One short answer."""
        yield TextDelta(f"You asked: {request.messages[-1].content} ")
        yield TextDelta("Your order will arrive on Friday.")
        yield Done()

    async def check(self, thorough: bool = False) -> CheckReport:
        """It is always reachable."""
        return CheckReport(True, "in this process")

    async def close(self) -> None:
        """Closes nothing."""


def suite_text(tests: int, distinct: bool) -> str:
    """A suite with this number of tests, each with a different prompt; `distinct`: also with different checks."""
    lines = ["name: Throughput", "agent: echo", "agents: {echo: {kind: echo}}", "tests:"]
    for number in range(tests):
        checks = [{**CHECKS[0], "contains": f"order {number}"}, *CHECKS[1:]] if distinct else CHECKS
        criterion = {"name": "Answers", "prototype_class": "TextResponse", "config_uxon": {"metrics": checks}}
        prompt = f"Where is order {number}?"
        lines.append(f"  - {{id: test-{number}, prompt: '{prompt}', criteria: {json.dumps([criterion])}}}")
    return "\n".join(lines)


def measure(tests: int, distinct: bool = False, concurrency: int = 8) -> dict[str, float]:
    """One round in a new history. Returns the seconds, and the runs per second."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        loaded = load_text(suite_text(tests, distinct), Path(folder) / "throughput.suite.yaml")
        plan = make_plan([loaded], PlanOptions(concurrency=concurrency), user_agents={})
        planned = time.perf_counter()
        view = ExecutionView()

        def watch(event: Event) -> None:
            view.apply(event)

        with Store.open(Path(folder) / "history.db") as store:
            opened = time.perf_counter()
            ended = asyncio.run(Engine(plan, store, watch, env={}).run())
            finished = time.perf_counter()
            row = store.execution(plan.execution_id)
        if (ended.status, row.passed, view.count("passed")) != ("finished", tests, tests):
            raise SystemExit(f"something is wrong: {ended}, {row}")
        with Store.open(Path(folder) / "history.db", read_only=True) as again:
            if again.execution(plan.execution_id).passed != tests:
                raise SystemExit("what was told is not in the file")
    return {"load_s": planned - began, "run_s": finished - opened, "runs_per_s": tests / (finished - opened)}


def run(quick: bool = False) -> list[Row]:
    """The figures as rows of the common table."""
    rows = []
    for report in (measured(quick), measured(quick, distinct=True)):
        rate = report["runs_per_s"]["median"]
        what = f"{report['tests']:,} tests, {report['checks']} checks, in-process agent, stored durably"
        if report["distinct"]:
            rows.append(Row(f"{what}; no two tests with the same checks", f"{rate:,}/s", "", None))
        else:
            rows.append(Row(what, f"{rate:,}/s", f"> {DUE:,}/s", rate > DUE))
    return rows


def measured(quick: bool, distinct: bool = False, tests: int = 1_000, rounds: int = 5) -> dict[str, Any]:
    """Several rounds; the median, the best and the worst."""
    sys.modules["benchmark_agents"] = SimpleNamespace(EchoAgent=EchoAgent)  # type: ignore[assignment]
    entry_points.own(AGENTS)["echo"] = "benchmark_agents:EchoAgent"
    collect_less_often()
    tests, rounds = (100, 1) if quick else (tests, rounds)
    measure(min(tests, 50))  # imports and caches are not measured
    results = [measure(tests, distinct) for _ in range(rounds)]
    rates = [one["runs_per_s"] for one in results]
    return {
        "benchmark": "runs",
        "tests": tests,
        "checks": len(CHECKS),
        "distinct": distinct,
        "rounds": rounds,
        "runs_per_s": {
            "median": round(statistics.median(rates)),
            "best": round(max(rates)),
            "worst": round(min(rates)),
        },
        "load_s": round(statistics.median(one["load_s"] for one in results), 3),
        "due_runs_per_s": DUE,
        "machine": {
            "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
    }


def main() -> None:
    """Measure, print a table, and with --json write a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="one small round, to see that it works")
    parser.add_argument("--tests", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON (- is the standard output)")
    given = parser.parse_args()
    reports = [measured(given.quick, distinct, given.tests, given.rounds) for distinct in (False, True)]
    if given.json == "-":
        print(json.dumps(reports, indent=2))
        return
    one = reports[0]
    print(f"{one['tests']} tests x {one['checks']} checks, in-process agent, results durable; {one['rounds']} rounds")
    print(f"{'runs a second':<36}{'median':>9}{'best':>9}{'worst':>9}{'due':>9}")
    for report in reports:
        name = "each test with checks of its own" if report["distinct"] else "all tests with the same checks"
        rates = "".join(f"{report['runs_per_s'][which]:>9,}" for which in ("median", "best", "worst"))
        print(f"{name:<36}{rates}{'' if report['distinct'] else f'{DUE:,}':>9}")
    print(f"load and plan: {one['load_s']} s; load of the machine: {one['machine']['load']}")
    if given.json:
        Path(given.json).write_text(json.dumps(reports, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
