"""`agenteval db query`: a person's own SQL. It reads views, changes nothing, and ends."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from failing import make

from agenteval_tui.history.execution_names import DescribeExecution, KeepCommits
from agenteval_tui.history.feedback import AddFeedback, Feedback
from agenteval_tui.history.sql_query import query
from agenteval_tui.history.sql_views import VERSION, VIEWS
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation
from agenteval_tui.suites.commits import Commit

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "sql.md"
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "made.db"
    with Store.open(path) as store:
        make(store, "E1", smoke=["", "text", "tool"], mood=["person"])
        store.write(DescribeExecution("E1", "v2.1", "a note", {"model": "mini"}))
        commit = Commit(of=("suites", "agents"), repository="/r", commit="a" * 40, branch="main", dirty=True)
        store.write(KeepCommits("E1", [commit])).result()
        store.label("E1-000", 2, comment="no", who="kim").result()
        store.write(AddFeedback(Feedback("E1-000", "user_satisfaction", 0.5, who="kim"))).result()
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows(cli: Any, db: Path, sql: str) -> Any:
    return cli("db", "query", sql, "--json", "--db", db).json("db-query")["rows"]


@pytest.mark.parametrize("sql", EXAMPLES, ids=lambda sql: sql.split("\n")[0][:40])
def test_the_examples_of_the_page_run(cli: Any, db: Path, sql: str) -> None:
    assert cli("db", "query", sql, "--json", "--db", db).json("db-query")["columns"]


def test_the_page_has_examples_and_all_views() -> None:
    assert len(EXAMPLES) >= 8
    page = PAGE.read_text("utf-8")
    script = runpy.run_path(str(ROOT / "docs" / "make_sql.py"))
    assert page == script["page_text"](page), "run python docs/make_sql.py"


def test_columns_of_published_views_stay() -> None:
    """The columns of version 1. More may come; when one goes or means something else, the version changes."""
    assert VERSION == 1
    columns = {view.name: " ".join(column.name for column in view.columns) + " " for view in VIEWS}
    assert columns == {
        "executions": (
            "id name note meta commit_hash branch dirty title kind status started finished project suites agents "
            "runs passed failed errors needs_review skipped cancelled input_tokens output_tokens cost "
        ),
        "runs": (
            "id execution execution_name project suite suite_file test test_name variation row repetition agent "
            "agent_version outcome passed score why error_kind started duration_ms attempts input_tokens "
            "output_tokens cost tool_calls cached prompt output_start tags variables "
        ),
        "criteria": ("run number criterion outcome passed score version cause "),
        "tool_calls": ("run number tool arguments status duration_ms "),
        "labels": ("run criterion passed rating comment who at "),
        "feedback": ("run key score comment who at "),
        "all_runs": (
            "id execution execution_name project suite suite_file test test_name variation row repetition agent "
            "agent_version outcome passed score why error_kind started duration_ms attempts input_tokens "
            "output_tokens cost tool_calls cached prompt output_start tags variables counts graded_again_of "
            "fork_of "
        ),
    }


def test_views_say_what_the_history_has(cli: Any, db: Path) -> None:
    (execution,) = rows(cli, db, "SELECT * FROM executions")
    assert (execution["name"], execution["note"], json.loads(execution["meta"])) == (
        "v2.1",
        "a note",
        {"model": "mini"},
    )
    assert (execution["commit_hash"], execution["branch"], execution["dirty"]) == ("a" * 40, "main", 1)
    found = rows(cli, db, "SELECT id, execution, execution_name, test, passed, outcome, score FROM runs ORDER BY id")
    assert [(run["test"], run["passed"]) for run in found] == [
        ("smoke", 1), ("smoke", 0), ("smoke", 0), ("mood", None),
    ]  # fmt: skip
    assert {run["execution_name"] for run in found} == {"v2.1"}
    assert rows(cli, db, "SELECT run, rating, comment, who FROM labels") == [
        {"run": "E1-000", "rating": 2, "comment": "no", "who": "kim"}
    ]
    assert rows(cli, db, "SELECT run, key, score FROM feedback") == [
        {"run": "E1-000", "key": "user_satisfaction", "score": 0.5}
    ]
    criteria = rows(cli, db, "SELECT r.test, c.passed FROM criteria c JOIN runs r ON r.id = c.run")
    assert {(one["test"], one["passed"]) for one in criteria} >= {("smoke", 1), ("smoke", 0), ("mood", None)}


def test_runs_are_those_that_count(cli: Any, db: Path) -> None:
    with Store.open(db) as store:
        make(store, "E2", smoke=["text"])
        store.write(Superseded("E2-000")).result()
    assert rows(cli, db, "SELECT count(*) AS n FROM runs") == [{"n": 4}]
    assert rows(cli, db, "SELECT id FROM all_runs WHERE NOT counts") == [{"id": "E2-000"}]
    assert rows(cli, db, "SELECT count(DISTINCT run) AS n FROM criteria") == [{"n": 4}]


class Superseded(Operation):
    run: str

    def apply(self, connection: Any, totals: Any) -> None:
        connection.execute("UPDATE runs SET superseded = 1 WHERE uid = ?", (self.run,))


def test_a_table_csv_and_json(cli: Any, db: Path) -> None:
    sql = "SELECT test, passed, '=1+1' AS formula, 'a,\n\"b' AS text, NULL AS missing FROM runs WHERE test = 'mood'"
    table = cli("db", "query", sql, "--db", db).out.splitlines()
    assert table[0].split() == ["test", "passed", "formula", "text", "missing"]
    assert "NULL" in table[1]
    assert list(csv.reader(io.StringIO(cli("db", "query", sql, "--csv", "--db", db).out)))[1][:3] == [
        "mood",
        "",
        "'=1+1",
    ]
    assert rows(cli, db, "SELECT 1 AS a, 2 AS a, x'00ff' AS b, NULL AS c") == [
        {"a": 1, "a_2": 2, "b": "00ff", "c": None}
    ]
    sums = cli("db", "query", "SELECT 123456789.25 AS a, 0.1 + 0.2 AS b, 999999.75 AS c", "--db", db)
    assert sums.out.splitlines()[1].split() == ["123456789.25", "0.3", "999999.75"]
    assert cli("db", "query", "SELECT 1 WHERE 0", "--db", db).out.splitlines()[-1].strip() == "no rows"


def test_foreign_text_stays_text(cli: Any, db: Path) -> None:
    sql = "SELECT char(27) || '[31mred' AS a, char(8238) AS b"
    for form in ((), ("--csv",)):
        out = cli("db", "query", sql, *form, "--db", db).out
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "there is no query"),
        (" \n ", "there is no query"),
        ("/* nothing */", "this query gives no rows"),
        ("SELEC 1", "query:1:1: this isn't SQL: syntax error near 'SELEC'"),
        ("SELECT\n  test,\n  FROM runs", "query:3:3: this isn't SQL: syntax error near 'FROM'"),
        ("SELECT * FROM\nruns WHERE", "query:2:11: the query is incomplete"),
        ("SELECT 'abc", "query:1:8: this isn't SQL"),
        ("SELECT 1; SELECT 2", "these are several statements"),
        ("SELECT * FROM run", "query:1:15: there is no view 'run' (did you mean runs?"),
        ("SELECT * FROM evaluation_results", "there is no view 'evaluation_results'"),
        (
            "SELECT status FROM runs",
            "there is no column 'status' (the view executions has one; `agenteval db query --views`",
        ),
        ("SELECT statuss FROM runs", "there is no column 'statuss' (`agenteval db query --views` lists"),
        ("SELECT tesst FROM runs", "query:1:8: there is no column 'tesst' (did you mean test?"),
        ("SELECT id FROM runs r JOIN executions e ON e.id = r.execution", "several views have a column 'id'"),
        ("SELECT median(score) FROM runs", "query:1:8: there is no function 'median'"),
        ("SELECT ?", "has a parameter"),
        ("SELECT :name", "has a parameter"),
        ("SELECT json_extract('{', '$')", "malformed JSON"),
        ("SELECT 1" + " " * 100_001, "characters"),
        ("INSERT INTO labels VALUES (1)", "it would write"),
        ("UPDATE runs SET score = 1", "it would write"),
        ("DELETE FROM main.runs", "it would delete"),
        ("WITH x AS (SELECT 1) DELETE FROM main.labels", "it would delete"),
        ("REPLACE INTO main.labels (id) VALUES (1)", "it would"),
        ("DROP TABLE main.runs", "it would delete"),
        ("DROP VIEW runs", "it would delete"),
        ("CREATE TABLE x (y)", "it would write"),
        ("CREATE TEMP TABLE x AS SELECT 1", "it would"),
        ("ALTER TABLE main.runs ADD COLUMN x", "this query is refused"),
        ("VACUUM", "this query is refused"),
        ("VACUUM INTO '/tmp/copy.db'", "this query is refused"),
        ("REINDEX", "this query is refused"),
        ("ANALYZE", "this query is refused"),
        ("BEGIN EXCLUSIVE", "keep others from writing"),
        ("SAVEPOINT x", "keep others from writing"),
        ("ATTACH '/tmp/x.db' AS x", "it would open another file"),
        ("DETACH main", "it would close a file"),
        ("PRAGMA query_only = OFF", "PRAGMA"),
        ("PRAGMA journal_mode = DELETE", "PRAGMA"),
        ("SELECT * FROM pragma_database_list", "this query is refused"),
        ("SELECT load_extension('x')", "leaves the history"),
        ("SELECT * FROM tests", "tests is a table of the history"),
        ("SELECT uid FROM main.runs", "runs is a table of the history"),
        ("WITH x AS (SELECT data FROM transcripts) SELECT * FROM x", "transcripts is a table of the history"),
        ("SELECT sql FROM sqlite_master", "sqlite_master is a table of the history"),
        ("SELECT hex(zeroblob(30000000))", "a value of more than 50,000,000 bytes"),
        (ENDLESS + "SELECT replace(hex(zeroblob(2000000)), '0', 'xx') FROM n", "have more than 200 MB"),
    ],
)
def test_a_query_that_can_t_be_run_says_why(cli: Any, db: Path, sql: str, said: str) -> None:
    before = digest(db)
    refused = cli("db", "query", "--db", db, "--", sql)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert "Traceback" not in refused.err
    assert digest(db) == before


def test_a_query_that_never_ends_is_ended(cli: Any, db: Path) -> None:
    refused = cli("db", "query", ENDLESS + "SELECT count(*) FROM n", "--timeout", "0.05", "--db", db)
    assert refused.code == 2
    assert (
        "longer than 0.05 seconds (narrow it with WHERE and LIMIT, or give it more time with --timeout)" in refused.err
    )


def test_ten_million_rows_are_cut_and_that_is_said(cli: Any, db: Path) -> None:
    sql = ENDLESS + "SELECT x FROM n LIMIT 10000000"
    printed = cli("db", "query", sql, "--json", "--db", db)
    document = printed.json("db-query")
    assert (len(document["rows"]), document["cut"]) == (10_000, True)
    assert "there are more rows: these are the first 10,000; --limit N prints more" in printed.err
    whole = query(db, ENDLESS + "SELECT x FROM n LIMIT 3", rows=3)
    assert (len(whole.rows), whole.cut) == (3, False)


def test_others_write_while_it_reads(db: Path) -> None:
    with Store.open(db) as store:
        assert query(db, "SELECT count(*) FROM runs").rows == ((4,),)
        make(store, "E2", smoke=[""])
        assert query(db, "SELECT count(*) FROM runs").rows == ((5,),)


def test_from_standard_input_and_the_list_of_views(cli: Any, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 1 AS a")))
    assert cli("db", "query", "-", "--json", "--db", db).json("db-query")["rows"] == [{"a": 1}]
    listed = cli("db", "query", "--views", "--json").json("db-views")
    assert [view["name"] for view in listed["views"]] == [view.name for view in VIEWS]
    assert "user_satisfaction" in cli("db", "query", "--views").out
    assert cli("db", "query", "--db", db).code == 2


def test_a_file_that_is_none_and_a_history_that_is_not_there(cli: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("no history, but a text that is longer than the head of a file of SQLite" * 4)
    assert "Traceback" not in cli("db", "query", "SELECT 1", "--db", other).err
    assert cli("db", "query", "SELECT 1", "--db", other).code != 0
