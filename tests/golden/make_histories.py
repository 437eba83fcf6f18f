"""Makes `histories/VERSION.sql`: small histories as the programs of past commits wrote them. To make one anew:

    git worktree add --detach OLD COMMIT
    PYTHONPATH=OLD python tests/golden/make_histories.py OLD tests/golden/histories/VERSION.sql

`orders.sql` is the one that all commands are recorded over. It is of this program, and of the suite in `project/`:

    python tests/golden/make_histories.py orders tests/golden/histories/orders.sql

`COMMITS` has the last commit at which each version of the file was the newest. Who adds a migration adds a line, and
makes the history of the version before. The sample suites of that commit are run by its own command line, and decisions
are made about them by those verbs that it had. It happens in `/golden/project`, which must not be there yet.
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

COMMITS = {
    1: "d137e19",
    2: "ef76afc",
    3: "e584541",
    4: "3008a9e",
    5: "c3387e0",
    6: "4aa7dab",
    7: "4dc04a2",
    8: "db1567a",
    9: "e262f22",
    10: "492b4b3",
    11: "6058b5a",
    12: "34a06ee",
    13: "145ad25",
    14: "9ba033f",
    15: "f82c579",
}
PROJECT = Path("/golden/project")
FIRST_MS = 1_796_115_600_000
"""2026-12-01 09:00, UTC."""
SUITES = ("shop-sql", "tabellen", "support")
"""The sample suites that a history is made of; the first was renamed to the second."""


def main(old: Path | None, target: Path) -> None:
    """Make a history with the program in `old` (None: this one), and write it as SQL text."""
    from sql_text import dumped

    PROJECT.mkdir(parents=True)
    try:
        os.chdir(PROJECT)
        for file in (Path(__file__).parent / "project").iterdir():
            if old is None:
                shutil.copy(file, PROJECT)
        for suite in SUITES:
            if old is not None and (file := old / "sample_suites" / f"{suite}.suite.yaml").exists():
                shutil.copy(file, PROJECT)
        place = Path("/golden/places")
        for name in ("CONFIG", "DATA", "CACHE", "RUNTIME"):
            os.environ[f"AGENTEVAL_{name}_DIR"] = str(place / name.lower())
        os.environ |= {"AGENTEVAL_DB": str(PROJECT / "history.db"), "CI": "true", "AGENTEVAL_WHO": "kim"}
        orders() if old is None else samples()
        with sqlite3.connect("history.db") as history:
            history.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            history.execute("UPDATE executions SET owner = 'machine/boot/1/1'")
            print(history.execute("PRAGMA user_version").fetchone(), target)
        target.write_text(dumped(PROJECT / "history.db"), "utf-8")
    finally:
        shutil.rmtree("/golden")


def samples() -> None:
    """Two executions, of which the second has other criteria; then what people decide, by the verbs that there are."""
    support = PROJECT / "support.suite.yaml"
    run("--seed", "7", tests=("tausenderpunkt", "order-status", "return-window", "unknown-order"))
    support.write_text(support.read_text("utf-8").replace("14 days\n", "14 nights\n"), "utf-8")
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
    for cause, decision in zip(causes.get("causes", []) if causes else [], ("accept", "fix", "ignore"), strict=False):
        name = cause.get("cause") or cause.get("id") or cause.get("name")
        call("triage", str(name), decision, "--note", f"decided: {decision}", "--who", "kim")


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
    suites = [name for suite in SUITES if Path(name := f"{suite}.suite.yaml").exists()]
    call("run", *suites, *chosen, "--repeat", "1", "--concurrency", "1", *options)


def call(*words: str) -> int:
    """One call of that commit's command line; a verb that it does not have is no error."""
    from agenteval_tui.__main__ import main as agenteval

    with patch.object(sys, "argv", ["agenteval", *words]):
        try:
            code = agenteval()
        except SystemExit as ended:
            code = ended.code
    print(words, "->", code, file=sys.stderr)
    return int(code or 0)


def printed(*words: str) -> dict[str, Any]:
    """The document that it prints; {} if it has no such verb."""
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        call(*words)
    try:
        value = json.loads(out.getvalue())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {"causes": value}


if __name__ == "__main__":
    given = None if sys.argv[1] == "orders" else Path(sys.argv[1]).absolute()
    main(given, Path(sys.argv[2]).absolute())
