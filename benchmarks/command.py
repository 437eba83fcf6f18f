"""The whole command: `agenteval run` of 1,000 tests with 5 checks each, from its start to its end.

    python -m benchmarks.command [--quick]

The agent is a Python function, once with nothing else configured (each run has a process of its own) and once with
`reuse: true`; every run is stored durably. Measures the wall time, and the processor time of the command and of all
processes that it started.
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

DUE_S = {"kind: python, callable: 'quick:f'": 2.5, "kind: python, callable: 'quick:f', reuse: true": 1.2}
AGENT = 'def f(prompt):\n    return f"You asked: {prompt} Your order will arrive on Friday."\n'


def measure(folder: Path, config: str, number: int) -> tuple[float, float]:
    """The wall time and the processor time of one command with a new history, in seconds."""
    (folder / "quick.py").write_text(AGENT, encoding="utf-8")
    suite = folder / "throughput.suite.yaml"
    suite.write_text(suite_text(number, False).replace("kind: echo", config), encoding="utf-8")
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
    """The medians of several commands, the configurations in turns. The first command of each doesn't count."""
    number, rounds = (100, 1) if quick else (1_000, 7)
    took: dict[str, list[tuple[float, float]]] = {config: [] for config in DUE_S}
    with tempfile.TemporaryDirectory() as name:
        for config in DUE_S:
            measure(Path(name), config, 10)
        for _ in range(rounds):
            for config, figures in took.items():
                figures.append(measure(Path(name), config, number))
    rows = []
    for config, figures in took.items():
        clock, processor = (statistics.median(one) for one in zip(*figures, strict=True))
        how = "a Python function, `reuse: true`" if "reuse" in config else "a Python function, a fork for each run"
        what = f"agenteval run: {number:,} tests, 5 checks, {how}, stored durably"
        measured = f"{clock:.2f} s ({processor:.2f} s of processor time)"
        rows.append(Row(what, measured, f"< {DUE_S[config]} s", clock < DUE_S[config]))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command", description="The whole command.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
