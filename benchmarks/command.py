"""The whole command: `agenteval run` of 1,000 tests with 5 checks each, from its start to its end.

    python -m benchmarks.command [--quick]

The agent is a Python function in a separate process, which is reused; every run is stored durably. Measures the wall
time, and the processor time of the command and of all processes that it started.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.runs import suite_text
from benchmarks.table import Row, markdown

DUE_S = 1.2
AGENT = 'def f(prompt):\n    return f"You asked: {prompt} Your order will arrive on Friday."\n'
CONFIG = "kind: python, callable: 'quick:f', reuse: true"


def measure(folder: Path, number: int) -> tuple[float, float]:
    """The wall time and the processor time of one command with a new history, in seconds."""
    (folder / "quick.py").write_text(AGENT, encoding="utf-8")
    suite = folder / "throughput.suite.yaml"
    suite.write_text(suite_text(number, False).replace("kind: echo", CONFIG), encoding="utf-8")
    own = {f"AGENTEVAL_{one}_DIR": str(folder / "own") for one in ("DATA", "CONFIG", "RUNTIME", "CACHE")}
    database = folder / f"{time.monotonic_ns()}.db"
    command = [sys.executable, "-m", "agenteval_tui", "run", "--trust", "--db", str(database), str(suite)]
    # Without bytecode, the agent's process would compile its imports each time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | own
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, os.times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def run(quick: bool = False) -> list[Row]:
    """The medians of several commands. The first command doesn't count."""
    number, rounds = (100, 1) if quick else (1_000, 7)
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), 10)
        clock, processor = zip(*(measure(Path(name), number) for _ in range(rounds)), strict=True)
    took = statistics.median(clock)
    what = f"agenteval run: {number:,} tests, 5 checks, a Python function in a separate process, stored durably"
    measured = f"{took:.2f} s ({statistics.median(processor):.2f} s of processor time)"
    return [Row(what, measured, f"< {DUE_S} s", took < DUE_S)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command", description="The whole command.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
