"""Checking suites (`agenteval validate`, the beginning of every run, the Suites screen) beside reading them.

    python -m benchmarks.checking [--quick]

A suite without errors of 1,000 tests, each with a criterion of 5 checks, in three forms: UXON in a block, YAML, and
UXON in a block with a warning in each config, so that places are looked up. Processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from agenteval_tui.analysis.lint import check_suite
from agenteval_tui.suites.load import load_text
from benchmarks.runs import CHECKS, suite_text
from benchmarks.table import Row, markdown


def in_blocks(tests: int, *, warned: bool = False) -> str:
    """A suite whose configs are UXON in literal blocks; `warned`: with an unknown variable."""
    lines = ["name: Blocks", "agent: shop", "agents: {shop: {kind: demo}}", "tests:"]
    for number in range(tests):
        asked = "{{unknown}}" if warned else f"order {number}"
        config = json.dumps({"metrics": [{**CHECKS[0], "contains": asked}, *CHECKS[1:]]}, indent=2)
        lines += [f"  - id: test-{number}", f"    prompt: Where is order {number}?", "    criteria:"]
        lines += ["      - name: Answers", "        prototype_class: TextResponse", "        config_uxon: |"]
        lines += [f"          {line}" for line in config.split("\n")]
    return "\n".join(lines) + "\n"


def figures(text: str, rounds: int) -> tuple[float, float, int]:
    """The milliseconds for reading and for checking (medians), and the number of problems."""
    reading, checking, problems = [], [], 0
    for number in range(rounds + 1):
        began = time.process_time()
        loaded = load_text(text, Path("bench.suite.yaml"))
        read = time.process_time()
        problems = len(check_suite(loaded, {}))
        if number:  # imports and schemas are not measured
            reading.append((read - began) * 1e3)
            checking.append((time.process_time() - read) * 1e3)
    return statistics.median(reading), statistics.median(checking), problems


def run(quick: bool = False) -> list[Row]:
    """A row for each form of the configs."""
    tests, rounds = (100, 2) if quick else (1_000, 7)
    texts = {
        "UXON in blocks": in_blocks(tests),
        "YAML": suite_text(tests, True).replace("kind: echo", "kind: demo"),
        "UXON in blocks, a problem in each": in_blocks(tests, warned=True),
    }
    rows = []
    for what, text in texts.items():
        read, checked, problems = figures(text, rounds)
        if (problems >= tests) != ("problem" in what):
            raise SystemExit(f"{what}: {problems} problems")
        measured = f"{checked:.0f} ms, {checked / read:.1f} times reading it"
        rows.append(Row(f"checking a suite of {tests:,} tests, 5 checks each; {what}", measured, "", None))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checking", description="Checking suites.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
