"""Measures all figures of this folder, and prints one table.

    python -m benchmarks [--quick] [--only MODULE] [--json FILE] [--write]

Runs every module that has `run(quick) -> list[Row]`, each in a separate process, so that no module warms the caches of
another or leaves garbage to it. Exit code 1 if a module could not be measured. A missed figure is a ✗, not an error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.history import HISTORIES
from benchmarks.machine import Machine, this_machine
from benchmarks.table import Row, markdown

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- figures: made by python -m benchmarks --write -->", "<!-- end of figures -->"
_BUSY = (
    " The machine was shared: the load is that of other work when measuring started, and figures are likely worse than"
    " on a quiet one, those of throughput most."
)
_NO_FIGURES = ("__main__", "accuracy", "machine", "table")


def modules() -> list[str]:
    """The names of the modules with figures."""
    return sorted(found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name not in _NO_FIGURES)


def measure_here(name: str, quick: bool) -> list[Row]:
    """The figures of one module, measured in this process."""
    rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run(quick)
    return rows


def measure_apart(name: str, quick: bool) -> list[Row]:
    """The figures of one module, measured in a separate process. Raises `subprocess.CalledProcessError`."""
    command = [sys.executable, "-m", "benchmarks", "--only", name, "--json", "-", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=PAGE.parents[1], stdout=subprocess.PIPE, text=True, check=True)
    return [Row(**one) for one in json.loads(done.stdout)["figures"]]


def measure_all(quick: bool) -> tuple[list[Row], list[str]]:
    """The figures of all modules, and the names of those that could not be measured."""
    rows: list[Row] = []
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as histories:
        os.environ[HISTORIES] = histories
        for name in modules():
            print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
            began = time.monotonic()
            try:
                rows += measure_apart(name, quick)
                print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
            except (subprocess.CalledProcessError, ValueError, KeyError) as error:
                broken.append(name)
                print(f"could not be measured: {error}", file=sys.stderr)
    return rows, broken


def page_with(page: str, table: str, machine: Machine, quick: bool) -> str:
    """The page with a new table between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no marks for the figures: {BEGIN} and {END}")
    short = " A quick round: the figures only show that it works." if quick else ""
    busy = _BUSY if machine.load > machine.cores / 2 else ""
    return f"{head}{BEGIN}\n\nMeasured on: {machine}.{busy}{short}\n\n{table}\n\n{END}{tail}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write it to the requested files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="All figures of the project.")
    parser.add_argument("--quick", action="store_true", help="small rounds, to see that it works")
    parser.add_argument("--only", metavar="MODULE", choices=modules(), help="the figures of this module alone")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON (- is the standard output)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name} of this folder")
    given = parser.parse_args(arguments)
    machine = this_machine()  # before the benchmarks add to the load
    # The measured histories belong to no project in this folder.
    os.environ.setdefault("AGENTEVAL_SCOPE", "all")
    rows, broken = (measure_here(given.only, given.quick), []) if given.only else measure_all(given.quick)
    report: dict[str, Any] = {"version": 1, "machine": machine.as_json(), "quick": given.quick}
    text = json.dumps({**report, "figures": [row.as_json() for row in rows]}, indent=2)
    if given.json == "-":
        print(text)
    else:
        print(f"{machine}\n\n{markdown(rows)}")
        if given.json:
            Path(given.json).write_text(text + "\n", encoding="utf-8")
    if given.write and broken:
        print(f"{PAGE.name} stays as it is: not all could be measured", file=sys.stderr)
    elif given.write:
        PAGE.write_text(page_with(PAGE.read_text("utf-8"), markdown(rows), machine, given.quick), encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
