"""τ-bench's check of the database's end state as a suite: the recorded calls are made on a database, and criteria of
the class State give the verdict that τ-bench recorded."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDED = SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"

AIRLINE = '''
"""The airline's database, and the tools that write to it."""
import json
import sqlite3

def create():
    with sqlite3.connect("airline.db") as database:
        make_tables(database)

def make_tables(database):
    database.execute("create table reservations (id text primary key, status text, cabin text, flights text, "
                     "paid text, bags text, passengers text)")
    database.execute("create table bookings (details text)")
    database.execute("create table certificates (details text)")

def answer(variables):
    with sqlite3.connect("airline.db") as database:
        for call in variables["calls"]:
            write(database, call["name"], call["arguments"])
    return "Done."

def write(database, name, given):
    text = json.dumps(given, sort_keys=True)
    if name == "book_reservation":
        database.execute("insert into bookings values (?)", (text,))
        return
    if name == "send_certificate":
        database.execute("insert into certificates values (?)", (text,))
        return
    row = given["reservation_id"]
    database.execute("insert into reservations (id, paid) values (?, '') on conflict do nothing", (row,))

    def put(**columns):
        for column, value in columns.items():
            database.execute(f"update reservations set {column} = ? where id = ?", (value, row))

    if name == "cancel_reservation":
        put(status="cancelled")
    elif name == "update_reservation_flights":
        flights = [[one["flight_number"], one["date"]] for one in given["flights"]]
        put(cabin=given["cabin"], flights=json.dumps(flights))
    elif name == "update_reservation_baggages":
        put(bags=json.dumps([given["total_baggages"], given["nonfree_baggages"]]))
    elif name == "update_reservation_passengers":
        put(passengers=json.dumps(given["passengers"], sort_keys=True))
    if "payment_id" in given:
        database.execute("update reservations set paid = paid || ? || ' ' where id = ?", (given["payment_id"], row))
'''
TABLES = {
    "reservations": "select * from reservations order by id",
    "bookings": "select rowid as number, details from bookings order by details",
    "certificates": "select rowid as number, details from certificates order by details",
}
SUITE = """
name: Airline
agent: recorded
agents:
  recorded: {kind: python, callable: "airline:answer"}
workdir: fresh
before: ["airline:create"]
state:
  reservations: {sql: "%(reservations)s", database: airline.db}
  bookings: {sql: "%(bookings)s", database: airline.db}
  certificates: {sql: "%(certificates)s", database: airline.db}
tests:
  - id: task
    prompt: "{{instruction}}"
    dataset: {file: tasks.jsonl}
    criteria:
      - name: The reservations are as they should be
        prototype_class: State
        config_uxon: {probe: reservations, metrics: [{type: Json, equals: "{{end.reservations}}"}]}
      - name: The bookings are as they should be
        prototype_class: State
        config_uxon: {probe: bookings, metrics: [{type: Json, equals: "{{end.bookings}}"}]}
      - name: The certificates are as they should be
        prototype_class: State
        config_uxon: {probe: certificates, metrics: [{type: Json, equals: "{{end.certificates}}"}]}
"""


@pytest.fixture
def airline(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "airline.py"
    path.write_text(AIRLINE)
    spec = util.spec_from_file_location("airline_of_tau", path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("airline_of_tau", None)


def end_state(airline: ModuleType, calls: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The tables after these calls, on a database of their own."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        airline.make_tables(database)
        for call in calls:
            airline.write(database, call["name"], call["arguments"])
        return {name: [dict(row) for row in database.execute(sql)] for name, sql in TABLES.items()}


def writes(name: str) -> bool:
    return name.startswith("update_reservation") or name in (
        "book_reservation", "cancel_reservation", "send_certificate"
    )  # fmt: skip


def made_calls(trajectory: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The writes that the airline took: one that it refused changed nothing."""
    asked: dict[str, dict[str, Any]] = {}
    for message in trajectory:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            asked[call["id"]] = {"name": function["name"], "arguments": json.loads(function["arguments"])}
        if message["role"] == "tool":
            call = asked[message["tool_call_id"]]
            if writes(call["name"]) and not message["content"].startswith("Error"):
                yield call


async def test_the_verdicts_of_tau_bench(execution: Any, airline: ModuleType, tmp_path: Path) -> None:
    if not RECORDED.is_file():
        pytest.skip(f"no recordings of tau-bench in {RECORDED.parent}")
    rows, rewards = [], {}
    for number, recorded in enumerate(json.loads(RECORDED.read_text("utf-8"))):
        task = recorded["info"]["task"]
        verdict = (recorded["info"].get("reward_info") or {}).get("info", {})
        if "r_actions" not in verdict:
            continue  # it was stopped before, or its answer decides as well
        right = [{"name": one["name"], "arguments": one["kwargs"]} for one in task["actions"] if writes(one["name"])]
        rewards[str(number)] = bool(verdict["r_actions"])
        rows.append(
            {
                "id": str(number),
                "instruction": task["instruction"],
                "calls": list(made_calls(recorded["traj"])),
                "end": end_state(airline, right),
            }
        )
    assert len(rows) == 88
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = execution(SUITE % TABLES, trust=True)
    await made.engine.run()
    made.store.flush()
    stored = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert {row.status for row in stored} == {"passed", "failed"}
    by_row = {rows[row.row - 1]["id"]: row.status == "passed" for row in stored}
    assert by_row == rewards
    assert sum(rewards.values()) > 20
