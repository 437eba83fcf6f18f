"""Makes `histories/NAME.sql`, small histories of which all else is recorded. To make one anew:

    python tests/golden/make_histories.py NAME

`orders` is the one that all commands are recorded over, of the suite in `project/`; `support` is another person's, of
sample suites. It happens in `/golden/project`, which must not be there yet.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

PROJECT = Path("/golden/project")
FIRST_MS = 1_796_115_600_000
"""2026-12-01 09:00, UTC."""
SUITES = ("tabellen.suite.yaml", "support.suite.yaml")


def main(name: str) -> None:
    """Make this history, and write it as SQL text."""
    from sql_text import dumped

    here = Path(__file__).parent
    PROJECT.mkdir(parents=True)
    try:
        os.chdir(PROJECT)
        for file in (here / "project").iterdir() if name == "orders" else (here.parents[1] / "sample_suites").iterdir():
            if name == "orders" or file.name in SUITES:
                shutil.copy(file, PROJECT)
        place = Path("/golden/places")
        for kind in ("CONFIG", "DATA", "CACHE", "RUNTIME"):
            os.environ[f"AGENTEVAL_{kind}_DIR"] = str(place / kind.lower())
        os.environ |= {"AGENTEVAL_DB": str(PROJECT / "history.db"), "CI": "true", "AGENTEVAL_WHO": "kim"}
        {"orders": orders, "support": support}[name]()
        with sqlite3.connect("history.db") as history:
            history.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            history.execute("UPDATE executions SET owner = 'machine/boot/1/1'")
        (here / "histories" / f"{name}.sql").write_text(dumped(PROJECT / "history.db"), "utf-8")
    finally:
        shutil.rmtree("/golden")


def support() -> None:
    """Two executions, of which the second has other criteria; then what people decide."""
    suite = PROJECT / "support.suite.yaml"
    run("--seed", "7", tests=("tausenderpunkt", "order-status", "return-window", "unknown-order"))
    suite.write_text(suite.read_text("utf-8").replace("14 days\n", "14 nights\n"), "utf-8")
    run("--seed", "8", tests=("order-status", "return-window"))
    with sqlite3.connect("history.db") as history:
        failed = [row[0] for row in history.execute("SELECT uid FROM runs WHERE status = 'failed' ORDER BY id")]
        (first,) = history.execute("SELECT uid FROM executions ORDER BY id LIMIT 1").fetchone()
    call("label", f"{failed[0]}/1", "failed", "--comment", "the wrong country", "--who", "kim")
    call("label", failed[-1], "4", "--who", "alex")
    call("baseline", "set", first, "--who", "kim")
    call("quarantine", "add", "tausenderpunkt", "--reason", "varies", "--who", "kim", "--until", "2030-01-01")
    call("grade", "support.suite.yaml", "--execution", "last", "--save")
    causes = printed("causes", "--all", "--json")
    for cause, decision in zip(causes["causes"], ("accept", "fix", "ignore"), strict=False):
        call("triage", cause["id"], decision, "--note", f"decided: {decision}", "--who", "kim")


def orders() -> None:
    """Some days with two versions of an agent: what got better and worse, and what was decided about it."""
    suite = PROJECT / "orders.suite.yaml"
    with Clock() as clock:

        def run(*options: str) -> None:
            call("run", "orders.suite.yaml", "--trust", "--concurrency", "1", *options)
            clock.day += 1

        run("--seed", "1")
        call("baseline", "set", "last", "--who", "kim")
        call("label", "status", "passed", "--comment", "as it should be", "--who", "kim")
        call("label", "tone/2", "4", "--who", "alex")
        run("--agent", "v2", "--seed", "2")
        call("label", "refund/1", "failed", "--comment", "the total is a text", "--who", "kim")
        call("label", "refund/2", "passed", "--comment", "the customer has the money", "--who", "alex")
        second = printed("show", "last", "--json")["execution"]
        before = suite.read_text("utf-8")
        suite.write_text(before.replace('"arrives on Friday"', '"Friday"'), "utf-8")
        run("--agent", "v2", "--test", "status", "--test", "tone", "--seed", "3")
        suite.write_text(before, "utf-8")
        run("--ab", "v1", "v2", "--test", "status", "--test", "secret", "--seed", "4")
        run("--test", "status", "--repeat", "3", "--seed", "5")
        call("grade", "orders.suite.yaml", "--execution", str(second), "--save", "--trust")
        clock.day += 1
        call("import", "promptfoo.json")
        call("import", "messages.jsonl")
        causes = printed("causes", str(second), "--json")["causes"]
        for cause, decision in zip(causes, ("fix", "ignore", "accept", "quarantine"), strict=False):
            call("triage", cause["id"], decision, "--note", f"decided: {decision}", "--who", "kim")
        call("quarantine", "add", "search", "--reason", "varies", "--who", "kim", "--until", "2030-01-01")
        call("quarantine", "add", "refund", "--criterion", "Costs little", "--who", "alex", "--until", "2030-01-01")


class Clock:
    """Tells the time of a fixed day, and of the days after it."""

    def __init__(self) -> None:
        self.day = 0
        self._passed = (time.monotonic(), time.monotonic)

    def now_ns(self) -> int:
        began, monotonic = self._passed
        return FIRST_MS * 1_000_000 + self.day * 86_400 * 10**9 + int((monotonic() - began) * 1e9)

    def __enter__(self) -> Clock:
        self._patches = (
            patch.object(time, "time_ns", self.now_ns),
            patch.object(time, "time", lambda: self.now_ns() / 1e9),
        )
        for one in self._patches:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()


def run(*options: str, tests: tuple[str, ...]) -> None:
    """An execution of these tests, one run of each."""
    chosen = [word for test in tests for word in ("--test", test)]
    call("run", *SUITES, *chosen, "--repeat", "1", "--concurrency", "1", *options)


def call(*words: str) -> int:
    """One call of the command line. Returns its exit code."""
    from agenteval_tui.__main__ import main as agenteval

    with patch.object(sys, "argv", ["agenteval", *words]):
        try:
            code = agenteval()
        except SystemExit as ended:
            code = ended.code
    print(words, "->", code, file=sys.stderr)
    return int(code or 0)


def printed(*words: str) -> dict[str, Any]:
    """The document that it prints."""
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        call(*words)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


if __name__ == "__main__":
    main(sys.argv[1])
