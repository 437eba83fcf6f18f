"""What two runs did otherwise, on the command line; and where the repetitions of a run's test part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

if TYPE_CHECKING:
    from conftest import CommandLine

GOOD, BAD, LONE = "RUN-GOOD-1", "RUN-BADD-1", "RUN-LONE-1"


def transcript(country: str, *, looks: bool) -> Transcript:
    messages = [Message("system", "Be kind."), Message("user", "Customers, please."), Message("user", "All of them.")]
    calls = []
    if looks:
        messages.append(Message("assistant", "", tool_calls=(0,)))
        calls.append(ToolCall("a", "describe", {"table": "customers"}, "id, name", message=3))
    messages.append(Message("assistant", "", tool_calls=(len(calls),)))
    calls.append(
        ToolCall("b", "query", {"limit": 5, "sql": f"SELECT name\nWHERE country = '{country}'"}, "\x1b[31mred")
    )
    answer = "\n".join(["Here it is:", *(f"row {n}" for n in range(9)), f"That is {country}.", "::error:: no"])
    return Transcript((*messages, Message("assistant", answer)), tuple(calls))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Five repetitions of a test, of which three looked at the table and passed, and a run of another test."""
    path = tmp_path / "history.db"
    good, bad = transcript("Österreich", looks=True), transcript("AT", looks=False)
    runs = [(GOOD, "a", good), (BAD, "a", bad), *((f"RUN-MORE-{n}", "a", good if n % 2 else bad) for n in range(3))]
    runs += [("RUN-GOOD-2", "a", good), (LONE, "b", good)]

    def stored() -> Iterator[tuple[PlannedRun, RunEnded]]:
        for number, (run, test, one) in enumerate(runs):
            status = "passed" if one is good else "failed"
            planned = PlannedRun(run, "EXECUTION", number, "import:x", "Suite", test, f"Test {test}", repetition=number)
            yield planned, RunEnded(run, status, float(one is good), 1, 1.0, 1, one)

    store = Store.open(path)
    store.import_runs(ExecutionRecord("EXECUTION", "x", "import", "x", ("import:x",), 1), stored())
    store.close()
    return path


def test_the_difference_as_lines(cli: CommandLine, db: Path) -> None:
    result = cli("show", BAD, "--diff", GOOD, "--db", db)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].startswith(f"- {BAD}  failed 0.00")
    assert lines[1].startswith(f"+ {GOOD}  passed 1.00")
    assert lines[3:] == [
        "  … 2 steps alike",
        "  user  All of them.",
        "+ tool describe",
        '+   table = "customers"',
        "+ result of describe",
        "+   id, name",
        "  tool query",
        '    limit = "5"',
        '    sql = "SELECT name',
        "-   WHERE country = '[-AT-]'\"",
        "+   WHERE country = '{+Österreich+}'\"",
        "  result of query  ␛[31mred",
        "  assistant",
        "    Here it is:",
        "    row 0",
        "    … 6 lines alike",
        "    row 7",
        "    row 8",
        "-   That is [-AT-].",
        "+   That is {+Österreich+}.",
        "    ::error:: no",
        "4 differences in 8 steps",
    ]


def test_the_difference_as_json(cli: CommandLine, db: Path) -> None:
    found = cli("show", BAD, "--diff", GOOD, "--db", db, "--json").json("difference")
    assert found["differences"] == 4
    assert (found["left"]["run"], found["right"]["run"]) == (BAD, GOOD)
    (query,) = [step for step in found["steps"] if step["tool"] == "query" and step["kind"] == "call"]
    assert query["arguments"] == [
        {
            "path": "sql",
            "state": "changed",
            "left": "SELECT name\nWHERE country = 'AT'",
            "right": "SELECT name\nWHERE country = 'Österreich'",
        }
    ]
    assert [step["state"] for step in found["steps"]].count("right") == 2


def test_a_run_beside_itself(cli: CommandLine, db: Path) -> None:
    result = cli("show", GOOD, "--diff", GOOD, "--db", db)
    assert result.out.splitlines()[3:] == ["  … 8 steps alike", "both runs took the same steps"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", GOOD, "--diff", "NONE-SUCH"), "and no test 'NONE-SUCH'"),
        (("show", "EXECUTION", "--diff", GOOD), "execution EXECUTION has 7 runs"),
        (("show", GOOD, "--diff", BAD, "--transcript"), "can't be used together"),
    ],
)
def test_what_can_not_be_compared_says_so(cli: CommandLine, db: Path, arguments: tuple[str, ...], said: str) -> None:
    result = cli(*arguments, "--db", db)
    assert result.code == 2
    assert said in result.err
    assert result.out == ""


def test_why_says_where_repetitions_part(cli: CommandLine, db: Path) -> None:
    said = "passing runs call describe at step 1 (3 of 3 pass); this run called query (0 of 3 pass)"
    assert f"first divergence: {said}" in cli("why", BAD, "--db", db).out.splitlines()
    assert cli("why", BAD, "--db", db, "--json").json("why")["divergence"] == said
    assert "first divergence: passing runs call describe" in cli("why", BAD, "--db", db, "--markdown").out
    assert "divergence" not in cli("why", LONE, "--db", db).out
    assert json.loads(cli("why", LONE, "--db", db, "--json").out)["divergence"] == ""
