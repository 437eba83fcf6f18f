"""An execution in words: in a list, with its runs, and at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from trend_made import NOON, filled

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.timespan import IN_FUTURE
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import AroundProblem
from agenteval_tui.views import terminal
from agenteval_tui.views.execution import (
    NotObserved,
    end_text,
    ended_view,
    ends_text,
    execution_line,
    execution_view,
    next_view,
    rate_view,
    run_head,
    run_lines,
    took_ms,
)
from agenteval_tui.views.model import View, plain


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with filled(tmp_path_factory.mktemp("ended") / "history.db") as made:
        yield made


@pytest.fixture
def row(store: Store) -> ExecutionRow:
    return replace(store.execution("EXECUTION-09"), started_ms=NOON, finished_ms=NOON + 2_100)


@pytest.fixture
def runs(store: Store, row: ExecutionRow) -> list[RunRow]:
    return list(store.runs_of_execution(row.id))


def printed(view: View) -> list[str]:
    return [plain(line) for line in terminal.lines(view)]


def test_how_runs_ended_is_said_the_same_everywhere(row: ExecutionRow, runs: list[RunRow]) -> None:
    whole = replace(row, runs=30, passed=9, failed=2, errors=1, needs_review=3, skipped=4, cancelled=5)
    said = "9 passed, 2 failed, 1 in error, 3 to be reviewed, 4 not needed, 5 cancelled, 6 not run"
    assert plain(ends_text(whole)) == said
    assert f"  {said} of 30  in 2.1 s" in plain(execution_line(whole))
    assert f"{said} of 30 runs" in printed(execution_view(whole, runs))
    assert f"{said} of 30 runs" in printed(ended_view(whole, runs))
    assert plain(ends_text(replace(whole, status="running"))).endswith("6 not run yet")
    nothing = replace(row, runs=2, passed=0, failed=0, errors=0, skipped=2)
    assert plain(ends_text(replace(nothing, kind="import"))) == "2 not graded"
    assert plain(ends_text(replace(nothing, runs=0, skipped=0))) == "nothing ran"


def test_an_execution_in_a_list(row: ExecutionRow) -> None:
    line = plain(execution_line(row))
    assert line.startswith(f"{short_id(row.id)}  2026-11-21 ")
    assert line.endswith(" of 9  in 2.1 s")
    odd = replace(row, status="stopped", started_ms=4_000_000_000_000, finished_ms=None, project="",
                  options={"scheduler": "tcp://far:8786", "notes": ["a", "b"]})  # fmt: skip
    assert plain(execution_line(odd, with_project=True)).endswith(
        f" of 9  on tcp://far:8786  stopped  {IN_FUTURE}  2 notes  project not known"
    )
    assert took_ms(row) == 2_100
    assert took_ms(replace(row, kind="import")) is None, "reading a file took that long, not what is in it"


def test_a_run_in_a_list_says_why_or_what_it_answered(runs: list[RunRow]) -> None:
    passed = replace(
        runs[0], status="passed", why="", output_head="It comes\non Friday", duration_ms=1_400.0, variation="v2"
    )
    assert shown(passed) == f"✓ {passed.id}  {'orders [v2]':<36}   1    1.4 s  It comes on Friday"
    failed = replace(passed, status="failed", why="says: no", variation="", test_id="x" * 50, duration_ms=None)
    (line,) = run_lines([replace(failed, suite_key="shop.yaml")], with_suite=True)
    assert plain(line) == f"✗ {failed.id}  {'x' * 35}…   1           says: no  shop.yaml"
    assert shown(replace(failed, status="queued", why=""))[0] == "·"
    assert "orders #2 " in shown(replace(passed, variation="", row=2, row_key=""))
    assert shown(replace(failed, status="error", why="", error_message="the server is gone")).endswith("server is gone")


def shown(run: RunRow) -> str:
    return plain(run_lines([run])[0])


def test_runs_in_a_list_show_what_differs_between_their_reasons(runs: list[RunRow]) -> None:
    begins = "the database has another state than the one that the right actions lead to, which is why it failed: "
    reasons = [begins + end for end in ("book_reservation was not made", "cancel_reservation was made", "x" * 200)]
    failed = [replace(runs[0], status="failed", why=why) for why in (*reasons, reasons[0], "short", begins)]
    first, second, third, same, short, shortest = (plain(line) for line in run_lines(failed))
    assert first.endswith("book_reservation was not made")
    assert second.endswith("cancel_reservation was made")
    assert same == first
    assert short.endswith("  short")
    assert len({first, second, third, shortest}) == 4
    assert max(len(line) - line.index("the database") for line in (first, second, third, shortest)) <= 100


def test_a_run_over_its_transcript(runs: list[RunRow]) -> None:
    run = replace(runs[0], started_ms=NOON, duration_ms=1_400.0, checks_not_made=2)
    head, about = printed(run_head(run))
    assert head == f"{run.test_name}  {run.id}"
    assert about.startswith(f"{run.status}, Shop / orders, repetition 1, agent demo, 2026-11-21 ")
    assert about.endswith(", 1.4 s  2 checks could not run")


def test_an_execution_with_its_runs(row: ExecutionRow, runs: list[RunRow]) -> None:
    told = replace(row, message="a limit", options={"notes": ["left out: 2 images"]})
    lines = printed(execution_view(told, runs))
    assert lines[0] == f"{row.title}  {row.id}"
    assert lines[1].endswith(f", run, {row.status}, agents {row.agents}")
    assert lines[2:4] == ["a limit", "note left out: 2 images"]
    assert len(lines) == 4 + len(runs) + 1


def test_the_last_lines_of_an_execution(row: ExecutionRow, runs: list[RunRow]) -> None:
    overall = execution_stats(runs).overall
    lines = printed(rate_view(replace(row, skipped=2), overall, retries=1))
    assert lines[0].startswith("pass rate ")
    assert " of 6 runs; 3 in error  (too few for an interval)" in lines[0]
    assert lines[1:] == ["early stop: 2 runs saved, their tests were decided", "1 attempt failed and was retried"]
    stopped = replace(row, status="stopped", message="")
    assert printed(rate_view(stopped, replace(overall, pass_rate=None))) == ["stopped: no reason given"]
    # Of 21 runs 12 passed: the mean over tests that ran 3 times and twice is another figure.
    (line, *_) = printed(rate_view(row, replace(overall, pass_rate=2 / 3, n=21, passed=12, errors=0)))
    assert line.startswith("pass rate 67 % by test, 57 % of 21 runs")
    # A run that waits for a person, and one that never started, are no errors.
    waits = replace(row, runs=6, passed=2, failed=1, errors=0, needs_review=1, skipped=0, cancelled=0)
    (line, *_) = printed(rate_view(waits, replace(overall, errors=0)))
    assert "; 1 to be reviewed, 2 not run  (too few" in line
    assert end_text(waits, 0.5, 0).endswith(
        "(2 passed, 1 failed, 0 in error, 1 to be reviewed, 2 not run, 50 % passed)"
    )
    assert printed(next_view(stopped)) == [
        f"agenteval resume {short_id(row.id)} --max-... runs what is missing, with a higher limit",
        f"execution {row.id}  (agenteval show {short_id(row.id)})",
    ]
    assert len(printed(next_view(row))) == 1


def test_the_same_error_of_many_runs_is_said_once(row: ExecutionRow, runs: list[RunRow]) -> None:
    lines = printed(ended_view(row, runs, [(f"error {n}\x1b[31m", 2_000 - n) for n in range(7)]))
    assert lines[0].startswith("2,000 runs in error: error 0")
    assert "\x1b" not in lines[0]
    assert lines[5] == "and 2 other errors"
    around = [(AroundProblem("after", f"hook {n}", f"hook {n} failed"), 2) for n in range(6)]
    unseen = [NotObserved(f"reason {n}", ["Tone"], 3) for n in range(7)]
    lines = printed(ended_view(row, runs, (), unseen, around))
    assert [lines[place] for place in (4, 5, 10, 11)] == [
        "not checked in 3 runs: Tone: reason 4",
        "and 2 other reasons",
        "in 2 runs: hook 4 failed",
        "and 1 other problem",
    ]
