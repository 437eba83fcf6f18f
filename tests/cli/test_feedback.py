"""Feedback on runs: a score under a key. It is kept and shown, and decides no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from failing import make

from agenteval_tui.analysis.agreement import judge_figures
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.feedback import AddFeedback, Feedback, means
from agenteval_tui.history.labels import TakeBackLabel
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.pruning import Pruning, prunable, prune
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation

RUN = "E1-000"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "made.db"
    with Store.open(path) as store:
        make(store, "E1", smoke=["", "text"], mood=["person"])
    return path


def test_it_is_given_shown_and_taken_back(cli: Any, db: Path) -> None:
    status = cli("show", RUN, "--json", "--db", db).json("run")["outcome"]
    given = cli("label", RUN, "--key", "user_satisfaction", "0.8", "--comment", "quick", "--who", "kim", "--db", db)
    assert given.out == f"user_satisfaction 0.80  {RUN}\n"
    assert cli("label", RUN, "--key", "accuracy", "--score", "1", "--who", "kim", "--db", db).code == 0
    document = cli("show", RUN, "--json", "--db", db).json("run")
    assert [(one["key"], one["score"], one["comment"], one["who"]) for one in document["feedback"]] == [
        ("user_satisfaction", 0.8, "quick", "kim"),
        ("accuracy", 1.0, "", "kim"),
    ]
    assert (document["labels"], document["outcome"]) == ([], status)
    assert "feedback user_satisfaction 0.80 by kim: quick" in cli("show", RUN, "--db", db).out
    assert [
        run["run"] for run in cli("history", "--runs", "is:feedback", "--json", "--db", db).json("history-runs")
    ] == [RUN]
    assert cli("history", "--runs", "is:labelled", "--json", "--db", db).json("history-runs") == []
    assert (
        "alex gave no feedback accuracy"
        in cli("label", RUN, "--key", "accuracy", "--remove", "--who", "alex", "--db", db).err
    )
    assert cli("label", RUN, "--key", "accuracy", "--remove", "--who", "kim", "--db", db).code == 0
    assert len(cli("show", RUN, "--json", "--db", db).json("run")["feedback"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0.8",), "--key user_satisfaction 0.8"),
        (("--score", "0.8"), "--score needs --key"),
        (("--key", "x"), "give one score from 0 to 1"),
        (("--key", "x", "1.2"), "give one score from 0 to 1"),
        (("--key", "x", "nan"), "give one score from 0 to 1"),
        (("--key", "x", "passed"), "give one score from 0 to 1"),
        (("--key", "x", "0.5", "--score", "0.6"), "give one score from 0 to 1"),
        (("--key", "a b", "0.5"), "can't be the key of feedback"),
    ],
)
def test_what_is_no_score_is_refused(cli: Any, db: Path, words: tuple[str, ...], said: str) -> None:
    refused = cli("label", RUN, *words, "--db", db)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert cli("history", "is:feedback", "--json", "--db", db).json("history") == []


def test_feedback_is_of_a_run(cli: Any, db: Path) -> None:
    refused = cli("label", f"{RUN}/1", "--key", "x", "0.5", "--db", db)
    assert refused.code == 2
    assert "feedback is of a run, not of a criterion" in refused.err


def test_it_is_no_verdict_for_a_criterion_that_waits_for_a_person(cli: Any, db: Path) -> None:
    assert cli("label", "mood", "--key", "x", "1", "--db", db).code == 0
    assert cli("show", "mood", "--json", "--db", db).json("run")["outcome"] == "needs_review"
    with Store.open(db) as store:
        assert store.labels() == []
        assert judge_figures(store, store.run_rows(store.run_ids())) == []


def test_the_last_score_of_each_person_counts() -> None:
    scores = [
        ("a", 1, "kim", 0.2),
        ("a", 1, "kim", 0.6),
        ("a", 1, "alex", 1.0),
        ("a", 2, "kim", 0.2),
        ("b", 1, "", 0.0),
    ]
    first, second = means(scores)
    assert (first.key, round(first.mean, 6), first.n, first.runs, first.lowest) == ("a", 0.6, 3, 2, 0.2)
    assert (second.key, second.mean, second.n) == ("b", 0.0, 1)


def test_reports_and_exports_have_it(cli: Any, db: Path, tmp_path: Path) -> None:
    for who, score in (("kim", "0.5"), ("alex", "1")):
        cli("label", RUN, "--key", "user_satisfaction", score, "--who", who, "--comment", "<b>", "--db", db)
    files = {kind: tmp_path / f"report.{kind}" for kind in ("md", "html", "junit", "csv")}
    cli("report", "E1", "--db", db, *(word for kind, file in files.items() for word in (f"--{kind}", file)))
    texts = {kind: file.read_text() for kind, file in files.items()}
    assert "| Feedback user\\_satisfaction | 0.75 (2 scores) |" in texts["md"]
    assert "<h2>Feedback</h2>" in texts["html"]
    assert "&lt;b&gt;" in texts["html"]
    assert "<td><b>" not in texts["html"]
    assert "feedback: user_satisfaction 0.50 by kim: &lt;b&gt;" in texts["junit"]
    assert "user_satisfaction 0.50; user_satisfaction 1.00" in texts["csv"]
    cli("export", RUN, tmp_path / "runs.jsonl", "--format", "agenteval", "--db", db)
    exported = json.loads((tmp_path / "runs.jsonl").read_text())
    assert [one["score"] for one in exported["feedback"]] == [0.5, 1.0]


def test_histories_keep_it_and_what_was_taken_back_stays_away(db: Path, tmp_path: Path) -> None:
    with Store.open(db) as store:
        numbers = [store.write(AddFeedback(Feedback(RUN, key, 0.5, who="kim"))).result() for key in ("a", "b")]
    with Store.open(tmp_path / "other.db") as other:
        merge_history(other, db)
        assert [one.key for one in other.feedback()] == ["a", "b"]
        with Store.open(db) as store:
            store.write(TakeBackLabel(numbers[0])).result()
        merge_history(other, db)
        assert [one.key for one in other.feedback()] == ["b"]
        merge_history(other, db)
        assert [one.key for one in other.feedback()] == ["b"]


def test_a_run_with_feedback_is_not_pruned(db: Path) -> None:
    with Store.open(db) as store:
        store.write(AddFeedback(Feedback(RUN, "a", 0.5))).result()
        prune(store, prunable(store, Pruning(keep=0)))
        assert RUN in {row.id for row in store.run_rows(store.run_ids())}


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), True])
def test_the_history_takes_no_other_score(db: Path, score: float) -> None:
    with Store.open(db) as store, pytest.raises(AgentevalError, match="a score is a number from 0 to 1"):
        store.write(AddFeedback(Feedback(RUN, "a", score))).result()


def trends(cli: Any, db: Path, *words: str) -> Any:
    return cli("trends", "--all", "--window", "all", "--db", db, *words)


def test_trends_have_the_mean_and_an_alert_under_a_limit(cli: Any, db: Path) -> None:
    for who, score in (("kim", "0.2"), ("kim", "0.6"), ("alex", "0.8")):
        cli("label", RUN, "--key", "user_satisfaction", score, "--who", who, "--db", db)
    (mean,) = trends(cli, db, "--json").json("trends")["feedback"]
    assert (mean["key"], round(mean["mean"], 6), mean["n"], mean["runs"], mean["lowest"]) == (
        "user_satisfaction", 0.7, 2, 1, 0.6,
    )  # fmt: skip
    for limit, code in (("0.8", 1), ("0.7", 0), ("80%", 1)):
        assert trends(cli, db, "--alert-feedback", f"user_satisfaction={limit}").code == code, limit
    fired = trends(cli, db, "--alert-feedback", "user_satisfaction=0.8")
    assert "ALERT: feedback user_satisfaction 0.70 (2 scores of 1 run) in all time, below 0.8" in fired.out
    document = trends(cli, db, "--alert-feedback", "user_satisfaction=0.8", "--json").json("trends")
    assert document["alerts"]["fired"] is True
    assert document["alerts"]["feedback"][0]["state"] == "alert"
    assert document["alerts"]["groups"] == []


def test_an_alert_without_any_feedback_fires_only_where_that_is_wanted(cli: Any, db: Path) -> None:
    assert trends(cli, db, "--alert-feedback", "other=0.8").code == 0
    assert "no run has feedback other" in trends(cli, db, "--alert-feedback", "other=0.8").out
    assert trends(cli, db, "--alert-feedback", "other=0.8", "--alert-empty").code == 1


def test_feedback_of_a_run_that_was_graded_again_counts_once(cli: Any, db: Path) -> None:
    with Store.open(db) as store:
        store.write(AddFeedback(Feedback(RUN, "a", 0.5, who="kim"))).result()
        store.read(lambda connection: None)
        store.write(_Superseded(RUN)).result()
    (mean,) = trends(cli, db, "--json").json("trends")["feedback"]
    assert (mean["n"], mean["mean"]) == (1, 0.5)


class _Superseded(Operation):
    run: str

    def apply(self, connection: Any, totals: Any) -> None:
        connection.execute("UPDATE runs SET superseded = 1 WHERE uid = ?", (self.run,))


@pytest.mark.parametrize(
    "words", [("--alert-feedback", "x"), ("--alert-feedback", "x=2"), ("--alert-feedback", "a b=0.5")]
)
def test_a_limit_that_is_none_is_refused(cli: Any, db: Path, words: tuple[str, ...]) -> None:
    refused = trends(cli, db, *words)
    assert (refused.code, refused.out) == (2, "")
