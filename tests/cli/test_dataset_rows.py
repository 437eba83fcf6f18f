"""Two executions of one dataset: rows are paired by what they are, and what became of each is said everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from agenteval_tui.analysis.comparison import compare
from agenteval_tui.analysis.comparison_model import Comparison, TestChange
from agenteval_tui.analysis.comparison_sides import execution_side
from agenteval_tui.analysis.regression_gate import GateOptions, compare_to_baseline
from agenteval_tui.analysis.trends import TrendQuery
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.formats.documents.comparison import comparison_document
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import RowKeys
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.presenters.comparison import detail_lines, rows_of
from agenteval_tui.views.baseline import missed_gates
from agenteval_tui.views.comparison import comparison_page, notes, rows_text
from agenteval_tui.views.markdown import markdown

Row = tuple[dict[str, Any], bool]
TWENTY = [f"r{n:02}" for n in range(1, 21)]


def plain(names: Sequence[str], failing: Sequence[str]) -> list[Row]:
    return [({"q": name}, name not in failing) for name in names]


def named(names: Sequence[str], failing: Sequence[str] = (), **edited: str) -> list[Row]:
    return [({"id": name, "q": edited.get(name, name)}, name not in failing) for name in names]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def keep(store: Store, rows: Sequence[Row], repeat: int = 1) -> str:
    execution, keys, runs = new_id(), RowKeys(), []
    for number, (variables, good) in enumerate(rows, 1):
        key = keys.of(variables, number)
        assert isinstance(key, str)
        for repetition in range(1, repeat + 1):
            planned = PlannedRun(
                new_id(), execution, len(runs), "/s", "S", "t", "t", row=number, repetition=repetition, agent="bot",
                variables=variables, row_key=key, agent_version="v",
            )  # fmt: skip
            status = "passed" if good else "failed"
            said = Transcript(messages=(Message("assistant", status),))
            runs.append((planned, RunEnded(planned.id, status, float(good), now_ms() - 1, 1.0, 1, said)))
    store.import_runs(ExecutionRecord(execution, "e", "run", "s", ("/s",), started_ms=now_ms()), runs)
    return execution


def both(store: Store, was: Sequence[Row], now: Sequence[Row], repeat: int = 1) -> tuple[Comparison, TestChange]:
    executions = [keep(store, rows, repeat) for rows in (was, now)]
    found = compare(store, *(execution_side(store, store.execution(one)) for one in executions))
    (test,) = found.tests
    return found, test


def states(test: TestChange) -> dict[str, str]:
    """What is said of each row that changed, by its label."""
    said = {}
    for row in test.rows:
        words = [row.state] if row.state != "same" else []
        words += ["moved"] if row.moved else []
        words += [f"content {','.join(row.content)}"] if row.content else []
        if words:
            said[row.label] = " ".join(words)
    return said


TURNS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "as it was": lambda rows: rows,
    "rotated": lambda rows: rows[6:] + rows[:6],
    "reversed": lambda rows: rows[::-1],
    "inserted in front": lambda rows: [({"q": "new"}, True), *rows],
    "inserted in the middle": lambda rows: [*rows[:10], ({"q": "new"}, True), *rows[10:]],
    "sorted by another column": lambda rows: sorted(rows, key=lambda row: row[0]["q"][::-1]),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_regression_shows_wherever_the_rows_stand(store: Store, turn: Callable[[list[Row]], list[Row]]) -> None:
    was, now = plain(TWENTY, TWENTY[14:]), turn(plain(TWENTY, TWENTY[8:]))
    set_baseline(store, keep(store, was))
    keep(store, now)
    found = compare_to_baseline(store, store.execution("last"))
    assert found is not None
    missed, fell = missed_gates(found, GateOptions(no_regressions=True))
    assert re.search(r"t: 14/20, now (8/20|9/21); rows [\d, ]+ and 1 more passed before", missed)
    assert fell == "--no-regressions: all tests together fell: 70 % to 40 % (exact test over 20 cases, p = 0.016)"
    (test,) = found.shown.tests
    assert [row.state for row in test.rows].count("worse") == 6
    assert {test.pair is not None} == {True}
    for one, two in test.pairs:
        assert store.run(one).variables == store.run(two).variables


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_an_agent_that_does_the_same_is_neither_changed_nor_flaky(
    store: Store, turn: Callable[[list[Row]], list[Row]]
) -> None:
    rows = plain(TWENTY, TWENTY[14:])
    _, test = both(store, rows, turn(rows))
    assert (test.state, test.difference) == ("same", 0.0)
    assert not ledger(store, TrendQuery(None, now_ms() + 10_000), now_ms()).flaky
    assert len(store.read(lambda c: c.execute("SELECT 1 FROM dataset_rows").fetchall())) == len(test.rows)


@pytest.mark.parametrize(
    ("was", "now", "state", "said"),
    [
        (plain("ab", "b"), plain("ab", "a"), "mixed", {"1": "worse", "2": "better"}),
        (plain("ab", "b"), plain("ba", "a"), "mixed", {"1": "better", "2": "worse moved"}),
        (plain("abc", ""), plain("ac", ""), "same", {"2": "removed"}),
        (plain("abc", ""), plain("xabc", ""), "same", {"1": "added"}),
        (plain("abc", ""), plain("abcx", "x"), "worse", {"4": "added"}),
        (plain("abcd", ""), plain("dabc", ""), "same", {"1": "moved"}),
        (plain("abcd", ""), plain("bcda", ""), "same", {"4": "moved"}),
        (plain("ab", ""), plain("ax", ""), "same", {"2": "added removed"}),
        (plain("aab", ""), plain("aaab", ""), "same", {"3": "added"}),
        (plain("ab", ""), plain("cd", ""), "undecided", {"1": "added removed", "2": "added removed"}),
        (named("ab"), named("ab", b="other"), "same", {"b": "content q"}),
        (named("ab"), named("ab", "b", b="other"), "worse", {"b": "worse content q"}),
        (named("abc"), named("cab"), "same", {"c": "moved"}),
        (named("ab"), named("axb", "x"), "worse", {"x": "added"}),
        (named("ab", "a"), named("ab", "b"), "mixed", {"a": "better", "b": "worse"}),
    ],
)
def test_what_became_of_each_row(
    store: Store, was: list[Row], now: list[Row], state: str, said: dict[str, str]
) -> None:
    found, test = both(store, was, now)
    told: dict[str, str] = {}
    for row in test.rows:
        one = states(replace(test, rows=(row,)))
        for label, words in one.items():
            told[label] = f"{told[label]} {words}" if label in told else words
    assert (test.state, told) == (state, said)
    quiet = {"worse", "better"}
    assert bool(notes(found)) == any(set(words.split()) - quiet for words in said.values())
    document = to_builtins(comparison_document(found))["tests"][0]["rows"]
    assert len(document) == len(test.rows)
    assert {one["row_key"] for one in document} == {row.key for row in test.rows}
    text = markdown(comparison_page(found)) + rows_text(test)
    (row,) = [one for one in rows_of(found, everything=True) if one.change is not None]
    screen = "\n".join("".join(cell for cell, _ in line) for line in detail_lines(row, 120, None, None))
    for word in {word for words in said.values() for word in words.split()} - {"q", "content"}:
        assert word in text, word
        assert word in screen, word


def test_repetitions_of_rows_are_told_apart(store: Store) -> None:
    _, test = both(store, named("abc", "b"), named("cab", "a"), repeat=5)
    assert test.state == "mixed"
    assert {row.label: (row.was and row.was.passed, row.now and row.now.passed) for row in test.rows} == {
        "a": (5, 0), "b": (0, 5), "c": (5, 5)
    }  # fmt: skip


SUITE = """
name: Shop
agent: bot
agents: {bot: {kind: command, command: "python agent.py"}}
tests:
  - id: rows
    prompt: "{{q}}"
    dataset: {file: rows.csv}
    criteria:
      - {name: says, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: good}]}}
"""


def test_a_gate_is_missed_although_the_rows_were_turned(cli: Any, tmp_path: Path) -> None:
    """The way of a user: the file is sorted anew, and six rows that passed fail now."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "s.suite.yaml").write_text(SUITE, "utf-8")

    def run(failing: Sequence[str], names: Sequence[str], *options: str) -> Any:
        (folder / "rows.csv").write_text("\n".join(["q", *names]) + "\n", "utf-8")
        (folder / "agent.py").write_text(
            f"import sys\ntext = sys.stdin.read()\nbad = {list(failing)!r}\n"
            "print('bad' if any(one in text for one in bad) else 'good')\n",
            "utf-8",
        )
        db = tmp_path / "h.db"
        return cli("run", folder / "s.suite.yaml", "--trust", "--concurrency", "8", *options, "--db", db)

    run(TWENTY[14:], TWENTY)
    assert cli("baseline", "set", "last", "--db", tmp_path / "h.db").code == 0
    done = run(TWENTY[8:], TWENTY[6:] + TWENTY[:6], "--no-regressions")
    assert done.code == 1
    assert re.search(r"rows: 14/20, now 8/20", done.out + done.err)
    said = cli("compare", "--db", tmp_path / "h.db")
    assert "20 rows: 6 worse, 14 unchanged; 6 moved" in said.out
    whole = cli("compare", "--all", "--db", tmp_path / "h.db").out
    assert whole.count("1/1 → 0/1") >= 6
    rows = cli("compare", "--json", "--db", tmp_path / "h.db").json("compare")["tests"][0]["rows"]
    assert [one["state"] for one in rows].count("worse") == 6
    assert sum(one["moved"] for one in rows) == 6


def test_an_id_that_is_used_twice_is_an_error(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "s.suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "rows.csv").write_text("id,q\na,1\nb,2\na,3\n", "utf-8")
    done = cli("validate", tmp_path / "s.suite.yaml")
    assert done.code != 0
    assert "the row id 'a' is used twice: also on line 2" in done.out + done.err
    assert "row_id: COLUMN" in done.out + done.err
    (tmp_path / "s.suite.yaml").write_text(SUITE.replace("rows.csv}", "rows.csv, row_id: q}"), "utf-8")
    assert cli("validate", tmp_path / "s.suite.yaml").code == 0


def test_a_row_is_graded_again_with_its_own_values(cli: Any, tmp_path: Path) -> None:
    """The test's variables are what rows without such a column fall back on: here and when a run is graded again."""
    (tmp_path / "rows.csv").write_text("word\nalpha\nbeta\n", "utf-8")
    (tmp_path / "echo.suite.yaml").write_text(
        """\
name: Echo
agent: echo
agents: {echo: {kind: command, command: [cat]}}
tests:
  - id: says
    prompt: "{{word}} {{tone}}"
    variables: {word: gamma, tone: soft}
    dataset: {file: rows.csv}
    criteria:
      - name: Says its word
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains_all: ["{{word}}", "{{tone}}"]}]}
""",
        "utf-8",
    )
    ran = cli("run", tmp_path / "echo.suite.yaml", "--trust")
    assert ran.code == 0, ran.out + ran.err
    again = cli("grade", "--execution", "last", tmp_path / "echo.suite.yaml", "--json")
    assert again.code == 0, again.out + again.err
