"""What an execution sends while it runs, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from recorder import MADE, Files, Recorder, Said

from agenteval_tui.history.blobs import inflated
from agenteval_tui.runs.events import (
    EVENTS,
    VERBS,
    Command,
    HistoryAwaited,
    RunAdded,
    RunPreparing,
    RunRef,
    ServiceChanged,
    Throttled,
    encode,
)

RUN = ("run", "live.suite.yaml", "--trust", "--concurrency", "1", "--seed", "1", "--json", "-")
# Another at each execution: what was measured, the process, and the numbers of events, of which texts are merged.
MEASURED = {
    *(
        "duration_ms",
        "elapsed_s",
        "eta_s",
        "first_token_ms",
        "levels",
        "memory_mb",
        "owner",
        "processes",
        "pid",
        "rate",
        "retry_in_s",
        "seq",
    ),
    *("started_ms", "total_ms", "wait_s"),
}
UNTIL_S = 60.0


@dataclass
class Watcher:
    """Reads an execution's socket as any program can, and says all commands to it but `cancel`."""

    sockets: Path
    gate: Path
    card: dict[str, Any] = field(default_factory=dict)
    ps: Any = None
    came: list[dict[str, Any]] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """In a thread of its own, until the execution has ended."""
        try:
            self._run()
        except BaseException as error:
            self.failed.append(error)
        finally:
            (self.gate / "open").touch()

    def _run(self) -> None:
        until(lambda: (self.gate / "waiting").exists() and bool(list((self.sockets / "live").glob("*.json"))))
        (card,) = (self.sockets / "live").glob("*.json")
        path = card.with_suffix(".sock")
        self.card = json.loads(card.read_text("utf-8"))
        program = [sys.executable, "-m", "agenteval_tui", "ps", "--json"]
        self.ps = json.loads(subprocess.run(program, capture_output=True, check=True, timeout=UNTIL_S).stdout)
        for execution in self.ps["executions"]:
            # No run has told yet what it used, or one has told that it was nothing: which, is a matter of the moment.
            execution.update({key: execution[key] or 0 for key in ("input_tokens", "output_tokens")})

        def has_begun() -> bool:
            """Whether what it said before it waits has come, and the first figures, which are sent now and then."""
            snapshot = self._first(path)
            return bool(snapshot["states"][0].get("parts") and snapshot.get("progress"))

        until(has_begun)
        with socket.socket(socket.AF_UNIX) as connected:
            connected.settimeout(UNTIL_S)
            connected.connect(str(path))
            lines = connected.makefile("rwb")

            def say(command: Command) -> None:
                lines.write(f"{encode(command)}\n".encode())
                lines.flush()

            def read(until: Callable[[dict[str, Any]], object]) -> None:
                while True:
                    event = json.loads(lines.readline())
                    self.came.append(event)
                    if until(event):
                        return

            read(lambda event: event["type"] == "snapshot")
            say(Command("pause"))
            read(lambda event: event["type"] == "progress" and event["paused"])
            say(Command("set_concurrency", number=2))
            read(lambda event: event["type"] == "progress" and event["concurrency"] == 2)
            say(Command("watch", self.came[0]["planned"]["runs"][0]["run"]))
            read(lambda event: event["type"] == "run")
            say(Command("watch"))
            read(lambda event: event["type"] == "snapshot")
            say(Command("resume"))
            read(lambda event: event["type"] == "progress" and not event["paused"])
            (self.gate / "open").touch()
            read(lambda event: event["type"] == "ended")

    @staticmethod
    def _first(path: Path) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connected:
            connected.settimeout(UNTIL_S)
            connected.connect(str(path))
            found: dict[str, Any] = json.loads(connected.makefile("rb").readline())
            return found


def until(condition: Callable[[], bool]) -> None:
    """Wait for it. Raises AssertionError when it does not come."""
    end = time.monotonic() + UNTIL_S
    waiting = threading.Event()
    while not condition():
        assert time.monotonic() < end
        waiting.wait(0.01)


@dataclass
class Execution:
    """One that ran: what was printed, sent and stored."""

    db: Path
    watcher: Watcher
    printed: Said
    resumed: Said


@cache
def executed(recorder: Recorder) -> Execution:
    """An execution of `live.suite.yaml` in this process, watched at its socket by a thread; then what failed, again."""
    gate, db = recorder.folder / "gate", recorder.folder / "live.db"
    gate.mkdir()
    watcher = Watcher(recorder.sockets, gate)
    thread = threading.Thread(target=watcher.run)
    with pytest.MonkeyPatch.context() as patch, recorder.places():
        patch.setenv("GOLDEN_GATE", str(gate))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        thread.start()
        printed = recorder.call(*RUN, db=db)
        thread.join()
        resumed = recorder.call("resume", "last", "--errors", "--trust", "--json", "-", db=db)
    for error in watcher.failed:
        raise error
    return Execution(db, watcher, printed, resumed)


def events(recorder: Recorder) -> Files:
    """Every kind of event and command, as they travel."""
    found = executed(recorder).watcher
    # These need a server that is busy for long, a history that is locked for seconds, imports that take a moment, and a
    # program that sends traces.
    made = (
        Throttled(6, "busy", 1, 4, 2.5),
        HistoryAwaited(7, "waiting for the history file"),
        RunPreparing(7, "RUN"),
        RunPreparing(7, "RUN", 1250.5),
        RunAdded(8, RunRef("RUN", "support", "Where is my order?", "", 0, 1, "support-bot", "shop")),
        ServiceChanged(9, "shop", "failed", "the service shop ended with exit code 1 before it was ready", "run it"),
    )
    constructed = [json.loads(encode(one)) for one in made]
    kinds = {one["type"] for one in [*found.came, *constructed]} | {"planned"}  # which is in each snapshot
    assert kinds == set(EVENTS), f"no such event came: {set(EVENTS) - kinds}"
    commands = [Command(verb, *(("RUN", 4) if verb == "set_concurrency" else ())) for verb in VERBS]
    sent = {"card": found.card, "ps": found.ps, **in_order(found.came), "constructed": constructed}
    return {
        "events.json": json.loads(recorder.settled(json.dumps(unmeasured(sent)))),
        "commands.txt": "".join(f"{encode(one)}\n" for one in [*commands, Command("watch", "RUN")]),
    }


def in_order(came: list[dict[str, Any]]) -> dict[str, Any]:
    """The events in an order that does not depend on when they were sent: of the whole execution, and of each run.

    Pieces of a text are one. Figures are here where something was asked for, and at the end.
    """
    tests = {one["run"]: one["test"] for one in came[0]["planned"]["runs"]}
    whole: list[dict[str, Any]] = []
    of_run: dict[str, list[dict[str, Any]]] = {test: [] for test in tests.values()}
    for number, one in enumerate(came):
        if "run" in one:
            told = of_run[tests[one["run"]]]
            if told and told[-1]["type"] == one["type"] and one["type"] in ("text", "reasoning"):
                told[-1] = {**one, "text": told[-1]["text"] + one["text"]}
            else:
                told.append(one)
        elif one["type"] != "progress":
            whole.append(one)
        elif not any(later["type"] == "progress" for later in came[number + 1 :]):
            whole.append({**one, "eta_s": 0})  # it may be null as well
        elif _is_news(came, number):
            whole.append({key: one[key] for key in ("type", "paused", "concurrency")})
    return {"execution": whole, "runs": of_run}


def _is_news(came: list[dict[str, Any]], number: int) -> bool:
    before = next((one for one in reversed(came[:number]) if one["type"] == "progress"), None)
    return before is None or any(before[key] != came[number][key] for key in ("paused", "concurrency"))


def unmeasured(value: Any) -> Any:
    """`value` with placeholders for what is another at each execution."""
    if isinstance(value, dict):
        return {key: MADE if key in MEASURED and one is not None else unmeasured(one) for key, one in value.items()}
    return [unmeasured(one) for one in value] if isinstance(value, list) else value


def printed(recorder: Recorder) -> Files:
    """What `run` and `resume` print with `--json`."""
    found = executed(recorder)
    (ran,), (resumed,) = found.printed.documents, found.resumed.documents
    again = {**resumed, "runs": [one for one in resumed["runs"] if one["test"] == "fails"]}
    return {
        "run.json": {"exit code": found.printed.code, "stdout": unmeasured(ran)},
        "resume.json": {"exit code": found.resumed.code, "stdout": unmeasured(again)},
    }


# Columns of blobs, and whether they are packed with the words of transcripts and results.
PACKED = {
    ("transcripts", "data"): True,
    ("evidence", "data"): True,
    ("tasks", "data"): False,
    ("judge_replies", "data"): False,
}


def rows(recorder: Recorder) -> Files:
    """Every row that executions write, as it is stored, blobs unpacked. One execution a test: their order is known."""
    db, gate = recorder.folder / "rows.db", recorder.folder / "rows"
    gate.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOLDEN_GATE", str(gate))
        for test in ("tools", "talk", "judged", "fails", "recorded"):
            recorder.call(*RUN, "--test", test, db=db)
    found: dict[str, list[Any]] = {}
    with closing(sqlite3.connect(db)) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (table,) in names:
            if not table.startswith(("search", "sqlite_")):
                rows = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
                found[table] = [_placed(table, _row(table, row)) for row in rows]
    return {"rows.json": json.loads(recorder.settled(json.dumps(unmeasured(found))))}


def _row(table: str, row: sqlite3.Row) -> dict[str, Any]:
    return {key: _value(table, key, row[key]) for key in row.keys()}  # noqa: SIM118


def _value(table: str, key: str, value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    if (table, key) in PACKED:
        return json.loads(inflated(value, 1 << 20, words=PACKED[table, key]))
    return value.hex()


# Tables with hashes that depend on the suite's folder, or on what was measured. Others have hashes of content alone.
HASHED = {"tasks", "judge_replies", "transcripts"}
HASH = re.compile(r"\b[0-9a-f]{32}\b")


def _placed(table: str, value: Any) -> Any:
    """A row of such a table with placeholders; a transcript's times have no names."""
    if table not in HASHED:
        return value
    if isinstance(value, dict):
        return {HASH.sub("HASH", key): _placed(table, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_placed(table, one) for one in value]
    if isinstance(value, str):
        return HASH.sub("HASH", value)
    return MADE if isinstance(value, float) and table == "transcripts" else value
