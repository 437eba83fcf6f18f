"""What judges said, and people's labels: kept with the run, once, and gone with it."""

from __future__ import annotations

import sqlite3

import pytest
from history_made import ended, planned, record

from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import Label, TakeBackLabel
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store

RUN = "EXECUTION-1-RUN-{:05}"


def reply(
    text: str = '{"score": 1}', answerer: str = "judge-a", prompt: str = "Is it \ud800 right?", **more: object
) -> StoredReply:
    request = RemoteRequest("chat", "judge", {"messages": [{"role": "user", "content": prompt}], "vote": 1})
    values: dict[str, object] = {"model": "m", "input_tokens": 100, "output_tokens": 10, "cost": 0.25, "at_ms": 5_000}
    return StoredReply(request, answerer, Reply(text, **{**values, **more}))  # type: ignore[arg-type]


def test_replies_come_back_as_they_were(filled: Store) -> None:
    first, second = reply("Nice \x1b[31m"), reply(error="no connection", prompt="other")
    filled.keep_replies(RUN.format(0), [first, second]).result()
    assert filled.replies(RUN.format(0)) == (first, second)
    assert filled.replies(RUN.format(1)) == ()
    assert filled.replies(RUN.format(0))[0].request.hash == first.request.hash


def test_a_reply_that_several_runs_rest_on_is_stored_once(filled: Store) -> None:
    filled.keep_replies(RUN.format(0), [reply()])
    filled.keep_replies(RUN.format(1), [reply()])
    filled.keep_replies(RUN.format(1), [reply()]).result()
    number, usage = filled.judge_usage("EXECUTION-1")
    assert (number, usage.input_tokens, usage.output_tokens, usage.cost) == (1, 100, 10, 0.25)
    assert set(filled.replies_of([RUN.format(n) for n in range(3)])) == {RUN.format(0), RUN.format(1)}
    with sqlite3.connect(filled.path) as connection:
        assert connection.execute("SELECT count(*) FROM judge_replies").fetchone() == (1,)


def test_known_replies_are_of_the_same_answerer_and_no_errors(filled: Store) -> None:
    one = reply()
    filled.keep_replies(RUN.format(0), [one, reply(error="gone", at_ms=6_000)]).result()
    assert filled.known_reply(one.request.hash, "judge-a") == one
    assert filled.known_reply(one.request.hash, "judge-b") is None
    assert filled.known_reply("0" * 32, "judge-a") is None
    newer = reply('{"score": 0}', at_ms=9_000)
    filled.keep_replies(RUN.format(1), [newer]).result()
    assert filled.known_reply(one.request.hash, "judge-a") == newer


def test_what_is_deleted_takes_its_replies_and_labels_along(filled: Store) -> None:
    filled.begin_execution(record("EXECUTION-2"), [planned(0, "EXECUTION-2")])
    filled.keep_replies(RUN.format(0), [reply(), reply(prompt="only here")])
    filled.keep_replies("EXECUTION-2-RUN-00000", [reply()])
    filled.label(RUN.format(0), 2)
    filled.delete_execution("EXECUTION-1").result()
    assert filled.labels() == []
    assert len(filled.replies("EXECUTION-2-RUN-00000")) == 1
    with sqlite3.connect(filled.path) as connection:
        assert connection.execute("SELECT count(*) FROM judge_replies").fetchone() == (1,)


def test_a_run_that_ends_anew_keeps_its_replies(filled: Store) -> None:
    filled.keep_replies(RUN.format(0), [reply()])
    filled.run_ended(ended(0, passed=False)).result()
    assert filled.replies(RUN.format(0)) == (reply(),)


def test_labels(filled: Store) -> None:
    filled.label(RUN.format(0), 2, criterion_hash="hash-a", comment="rude", who="kim")
    filled.label(RUN.format(1), 5).result()
    first, second = filled.labels()
    assert (first.run_id, first.rating, first.criterion_hash, first.comment, first.who) == (
        RUN.format(0),
        2,
        "hash-a",
        "rude",
        "kim",
    )
    assert first.at_ms > 0
    assert filled.labels([RUN.format(1)]) == [second]
    assert isinstance(second, Label)
    assert second.criterion_hash == ""


def test_a_label_says_passed_or_failed_and_can_be_taken_back(filled: Store) -> None:
    rated = filled.label(RUN.format(0), 5).result()
    both = filled.label(RUN.format(0), 5, passed=False, comment="right, but rude").result()
    alone = filled.label(RUN.format(1), passed=True).result()
    found = {label.id: label for label in filled.labels()}
    assert [found[one].good for one in (rated, both, alone)] == [True, False, True]
    assert [found[one].verdict_text for one in (rated, both, alone)] == ["5 of 5", "failed, 5 of 5", "passed"]
    assert Label("r", 3).good is False
    with pytest.raises(HistoryError, match="passed or failed"):
        filled.label(RUN.format(0), comment="nothing said").result()
    assert filled.write(TakeBackLabel(both)).result() is True
    assert filled.write(TakeBackLabel(both)).result() is False
    assert [label.id for label in filled.labels()] == [rated, alone]


@pytest.mark.parametrize(
    ("run", "rating", "criterion"),
    [("nobody", 3, ""), (RUN.format(0), 0, ""), (RUN.format(0), 6, ""), (RUN.format(0), 3, "x")],
)
def test_labels_that_fit_nothing_are_refused(filled: Store, run: str, rating: int, criterion: str) -> None:
    with pytest.raises(HistoryError):
        filled.label(run, rating, criterion_hash=criterion).result()
    assert filled.labels() == []
