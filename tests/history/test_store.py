"""The history: what goes in comes out, in the order that is promised."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from history_made import SUITE, ended, planned, record, results, transcript
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.outcomes import Outcome
from agenteval_tui.core.timespan import in_future
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.records import CriterionSummary, PlannedRun, RunEnded, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import RunError, Transcript


def filled(store: Store, number: int = 6, execution: str = "EXECUTION-1") -> None:
    """An execution of three tests, every third run failed."""
    store.begin_execution(record(execution), [planned(n, execution) for n in range(number)])
    for n in range(number):
        store.run_started(f"{execution}-RUN-{n:05}", 1, 1_500)
        store.run_ended(ended(n, execution, passed=n % 3 != 0))
    store.end_execution(execution, "finished").result()


def test_an_execution_goes_through_its_states(store: Store) -> None:
    runs = [planned(n, variables={"name": "Ünal"}, tags=("smoke",)) for n in range(3)]
    store.begin_execution(record(options={"repeat": 3}), runs).result()
    row = store.execution("last")
    assert (row.status, row.runs, row.ended, row.options, row.suites) == ("running", 3, 0, {"repeat": 3}, "Support")
    assert [run.status for run in store.runs_of_execution("EXECUTION-1")] == ["queued"] * 3
    assert store.transcript(runs[0].id) == Transcript()
    assert store.results(runs[0].id) == ()

    store.run_started(runs[1].id, 2, 1_234).result()
    run = store.run(runs[1].id)
    assert (run.status, run.attempts, run.started_ms, run.variables) == ("running", 2, 1_234, {"name": "Ünal"})
    assert (run.tags, run.criteria, run.prompt_head) == (("smoke",), ("hash-a", "hash-b"), "Where is my order?")

    store.run_ended(ended(1, passed=False)).result()
    run = store.run(runs[1].id)
    assert (run.status, run.score, run.why) == ("failed", 0.5, "looks it up: the word is missing")
    assert (run.input_tokens, run.output_tokens, run.cost) == (100, 20, 0.5)
    assert store.transcript(runs[1].id) == transcript("It is on its way, number 1.")
    assert store.results(runs[1].id) == results(False)
    assert store.criterion("hash-b") == {"name": "looks it up"}
    assert store.criterion("unknown") is None

    store.end_execution("EXECUTION-1", "cancelled", "by hand").result()
    row = store.execution("EXECUTION-1")
    assert (row.status, row.message, row.failed, row.cancelled, row.ended) == ("cancelled", "by hand", 1, 2, 3)
    assert [one.status for one in store.runs_of_execution("EXECUTION-1")] == ["cancelled", "failed", "cancelled"]


def test_an_error_is_kept_with_its_class(store: Store) -> None:
    store.begin_execution(record(), [planned(0)])
    broken = replace(transcript(), error=RunError("timeout", "no answer within 30 s", "raise `timeout`"))
    store.run_ended(replace(ended(0), status="error", score=None, transcript=broken, results=())).result()
    run = store.run("EXECUTION-1-RUN-00000")
    assert (run.status, run.score, run.error_kind, run.error_message) == (
        "error",
        None,
        "timeout",
        "no answer within 30 s",
    )
    assert store.transcript(run.id) == broken
    assert store.execution("last").errors == 1


def test_lists_are_newest_first_and_paged_by_key(store: Store) -> None:
    for number in range(5):
        filled(store, 2, f"EXECUTION-{number}")
    first = store.executions(limit=2)
    assert [row.id for row in first] == ["EXECUTION-4", "EXECUTION-3"]
    second = store.executions(limit=2, before=first[-1].rowid)
    assert [row.id for row in second] == ["EXECUTION-2", "EXECUTION-1"]
    ids = store.run_ids()
    assert isinstance(ids, array)
    assert list(ids) == sorted(ids, reverse=True)
    assert [row.rowid for row in store.run_rows(ids[3:7])] == list(ids[3:7])
    assert store.run_rows([ids[0], 10_000]) == store.run_rows(ids[:1])
    assert [row.id for row in store.execution_rows(store.execution_ids())] == [
        f"EXECUTION-{n}" for n in (4, 3, 2, 1, 0)
    ]


def test_runs_of_an_execution_come_in_plan_order(store: Store) -> None:
    store.begin_execution(record(), [planned(n) for n in (4, 2, 0, 1, 3)]).result()
    assert [run.position for run in store.runs_of_execution("EXECUTION-1")] == [0, 1, 2, 3, 4]
    assert store.runs_of_execution("no such") == []


@pytest.mark.parametrize(
    ("wanted", "positions"),
    [
        (RunFilter(), {0, 1, 2, 3, 4, 5}),
        (RunFilter(outcomes=("failed",)), {0, 3}),
        (RunFilter(outcomes=("failed", "error")), {0, 3}),
        (RunFilter(outcomes=("error",)), set()),
        (RunFilter(test_id="test-1"), {1, 4}),
        (RunFilter(suite_key=SUITE, test_id="test-1", outcomes=("passed",)), {1, 4}),
        (RunFilter(suite_key="/other"), set()),
        (RunFilter(agent="demo"), {0, 1, 2, 3, 4, 5}),
        (RunFilter(agent="other"), set()),
        (RunFilter(execution_id="EXECUTION-1"), {0, 1, 2, 3, 4, 5}),
        (RunFilter(execution_id="EXECUTION-2"), set()),
        (RunFilter(kind="run"), {0, 1, 2, 3, 4, 5}),
        (RunFilter(kind="import"), set()),
        (RunFilter(text="number 4"), {4}),
        (RunFilter(text="way", outcomes=("failed",)), {0, 3}),
        (RunFilter(text="nowhere"), set()),
        (RunFilter(text="..."), set()),
    ],
)
def test_filters(store: Store, wanted: RunFilter, positions: set[int]) -> None:
    filled(store)
    assert {row.position for row in store.run_rows(store.run_ids(wanted))} == positions
    assert [row.id for row in store.execution_rows(store.execution_ids(wanted))] == ["EXECUTION-1"] * bool(positions)


def test_steps_are_the_tool_calls_of_what_has_ended(store: Store) -> None:
    store.begin_execution(record(), [planned(n) for n in range(3)])
    store.run_ended(ended(0))
    store.run_ended(replace(ended(1), transcript=Transcript(final_output="no tools"))).result()
    assert store.steps_of_execution("EXECUTION-1") == {planned(0).id: 1, planned(1).id: 0}
    assert store.steps_of_execution("another") == {}


def test_names_are_found_by_start_and_end(store: Store) -> None:
    filled(store, 2, "01JAAAAAAA")
    filled(store, 2, "01JBBBBBBB")
    assert store.execution("01JA").id == "01JAAAAAAA"
    assert store.execution("01jb").id == "01JBBBBBBB"
    assert store.execution("BBBBBB").id == "01JBBBBBBB", "by the end, as lists show it"
    assert store.execution("last").id == "01JBBBBBBB"
    assert store.run("01JAAAAAAA-RUN-00001").position == 1
    assert store.run("A-RUN-00001").position == 1
    filled(store, 2, "01JBBBBCCC")
    with pytest.raises(AgentevalError, match="more than one execution"):
        store.execution("01JBBBB")
    for ref in ("01J", "nothing like it", "", "%", "____", "01JAAAAAAA' OR 1=1 --"):
        with pytest.raises(AgentevalError, match="no execution"):
            store.execution(ref)
    with pytest.raises(AgentevalError, match="more than one run"):
        store.run("RUN-00001")
    with pytest.raises(AgentevalError, match="no run"):
        store.transcript("unknown")
    with pytest.raises(AgentevalError, match="no run"):
        store.results("unknown")


def test_transcripts_come_in_the_order_asked_for(store: Store) -> None:
    filled(store, 6)
    store.begin_execution(record("EXECUTION-2"), [planned(0, "EXECUTION-2")]).result()
    asked = ["EXECUTION-1-RUN-00004", "EXECUTION-2-RUN-00000", "EXECUTION-1-RUN-00001"]
    found = list(store.transcripts(asked))
    assert [run for run, _ in found] == [asked[0], asked[2]]
    assert found[0][1] == transcript("It is on its way, number 4.")


def test_a_run_that_ends_again_replaces_its_end(store: Store) -> None:
    filled(store, 3)
    store.run_ended(ended(0, passed=True, answer="a new answer")).result()
    row = store.execution("last")
    assert (row.passed, row.failed, row.input_tokens, row.cost) == (3, 0, 300, 1.5)
    assert store.run("RUN-00000").status == "passed"
    assert len(store.run_ids(RunFilter(text="number 0"))) == 0
    assert len(store.run_ids(RunFilter(text="new answer"))) == 1
    assert store.results("EXECUTION-1-RUN-00000") == results(True)
    assert store.test_summaries(SUITE)["test-0"].total == 1


def test_a_late_start_does_not_take_an_outcome_away(store: Store) -> None:
    filled(store, 1)
    store.run_started("EXECUTION-1-RUN-00000", 9, 99).result()
    assert store.run("RUN-00000").status == "failed"


def test_what_is_equal_is_stored_once(store: Store, path: Path) -> None:
    import sqlite3

    store.begin_execution(record(), [planned(n) for n in range(20)])
    for n in range(20):
        store.run_ended(ended(n, answer="always the same"))
    store.flush()
    with sqlite3.connect(path) as connection:
        stored = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("runs", "transcripts", "plans", "criteria", "tool_calls", "criterion_results", "evidence")
        }
    assert stored == {
        "runs": 20,
        "transcripts": 1,
        "plans": 1,
        "criteria": 2,
        "tool_calls": 1,
        "criterion_results": 40,
        "evidence": 20,
    }


def test_one_bad_operation_takes_no_other_down(store: Store) -> None:
    store.begin_execution(record(), [planned(n) for n in range(3)])
    futures = [
        store.run_ended(ended(0)),
        store.run_ended(ended(77)),
        store.begin_execution(record(), []),
        store.run_ended(replace(ended(1), status="splendid")),
        store.run_ended(replace(ended(1), transcript=replace(transcript(), final_output=object()))),  # type: ignore[arg-type]
        store.end_execution("unknown", "finished"),
        store.run_ended(ended(2)),
    ]
    for future in (futures[1], futures[2], futures[3], futures[4], futures[5]):
        assert isinstance(future.exception(), HistoryError)
    assert futures[0].result() is None
    assert futures[6].result() is None
    row = store.execution("last")
    assert (row.runs, row.passed) == (3, 2)


def test_summaries_look_at_a_window_of_runs(store: Store) -> None:
    filled(store, 90)
    store.begin_execution(record("LATER"), [planned(0, "LATER")])
    store.run_ended(replace(ended(0, "LATER"), status="cancelled"))
    store.run_ended(replace(ended(0, "LATER"), status="cancelled")).result()
    found = store.test_summaries(SUITE)
    assert set(found) == {"test-0", "test-1", "test-2"}
    assert (found["test-0"].n, found["test-0"].passed, found["test-0"].total) == (20, 0, 30)
    assert found["test-1"].recent == ("passed",) * 20
    assert found["test-1"].last_ms == 2_088
    assert found["test-1"].p50_ms == pytest.approx(10 + (31 + 88) / 2)
    assert found["test-1"].cost == 0.5
    assert list(found["test-0"].criteria) == ["polite", "looks it up"]
    assert found["test-0"].criteria["looks it up"] == CriterionSummary(20, 0, "failed")
    assert store.test_summaries("/other") == {}
    assert [row.position for row in store.runs_of_test(SUITE, "test-1", limit=3)] == [88, 85, 82]


def test_a_summary_tells_the_newest_outcome_last(store: Store) -> None:
    store.begin_execution(record(), [planned(n, test_id="t") for n in range(4)])
    for n, passed in ((2, False), (0, True), (1, False), (3, True)):
        store.run_ended(ended(n, passed=passed))
    store.flush()
    found = store.test_summaries(SUITE)["t"]
    assert found.recent == ("passed", "failed", "failed", "passed")
    assert len(found.settings) == 4
    assert len(set(found.settings)) == 1
    assert found.settings[0].startswith(planned(0).agent)
    assert found.criteria["looks it up"] == CriterionSummary(4, 2, "passed")
    assert len(set(found.executions)) == 1


def test_a_criterions_figures_are_of_its_newest_version(store: Store) -> None:
    """What an older version said is not mixed in, whichever was graded more often."""
    for n, version in enumerate(("old", "new", "new")):
        hashes = f"a-{version}", f"b-{version}"
        store.begin_execution(record(f"E-{n}"), [planned(n, f"E-{n}", test_id="t", criteria=hashes)])
        made = ended(n, f"E-{n}", passed=n > 0)
        results = tuple(replace(one, criterion_hash=of) for one, of in zip(made.results, hashes, strict=True))
        store.run_ended(replace(made, results=results, why="it was late" if n == 2 else ""))
    store.flush()
    found = store.test_summaries(SUITE)["t"]
    assert found.criteria["looks it up"] == CriterionSummary(2, 2, "passed")
    assert list(found.criteria) == ["polite", "looks it up"]
    assert found.settings[0] != found.settings[1] == found.settings[2]
    assert len(set(found.executions)) == 3
    assert found.answer == "it was late"
    assert found.recent == ("failed", "passed", "passed")


def test_a_criterions_rate_is_of_the_runs_that_it_decided(store: Store) -> None:
    """Errors are no verdicts, nor is what was skipped because the agent had failed."""
    outcomes = (Outcome.PASSED, Outcome.ERROR, Outcome.PASSED, Outcome.NEEDS_REVIEW, Outcome.FAILED, Outcome.SKIPPED)
    store.begin_execution(record(), [planned(n, test_id="t") for n in range(len(outcomes))])
    for n, outcome in enumerate(outcomes):
        run = ended(n)
        results = tuple(replace(result, outcome=outcome) for result in run.results)
        store.run_ended(replace(run, results=results, status=str(outcome)))
    store.flush()
    assert store.test_summaries(SUITE)["t"].criteria["looks it up"] == CriterionSummary(3, 2, "skipped")


def test_counts_add_everything_up(store: Store) -> None:
    filled(store, 6, "EXECUTION-1")
    filled(store, 3, "EXECUTION-2")
    found = store.counts()
    assert (found.executions, found.runs, found.passed, found.failed, found.tests) == (2, 9, 6, 3, 3)
    assert (found.input_tokens, found.output_tokens, found.cost) == (900, 180, 4.5)


def test_an_import_is_one_execution_and_known_by_its_digest(store: Store) -> None:
    runs = [(planned(n, "IMPORT"), ended(n, "IMPORT")) for n in range(1_234)]
    seen: list[int] = []
    assert store.imported("digest") is None
    number = store.import_runs(
        record("IMPORT", kind="import"), iter(runs), digest="digest", path="file.json", on_progress=seen.append
    )
    assert (number, seen) == (1_234, [500, 1_000, 1_234])
    assert store.imported("digest") == "IMPORT"
    row = store.execution("last")
    assert (row.kind, row.status, row.runs, row.passed) == ("import", "finished", 1_234, 1_234)


def test_an_import_that_breaks_leaves_nothing(store: Store) -> None:
    def runs() -> Iterator[tuple[PlannedRun, RunEnded]]:
        for n in range(700):
            yield planned(n, "IMPORT"), ended(n, "IMPORT")
        raise AgentevalError("line 701 is no JSON")

    filled(store, 2)
    with pytest.raises(AgentevalError, match="line 701"):
        store.import_runs(record("IMPORT", kind="import"), runs(), digest="digest")
    assert store.imported("digest") is None
    assert [row.id for row in store.executions()] == ["EXECUTION-1"]
    assert len(store.run_ids()) == 2
    assert len(store.run_ids(RunFilter(text="way"))) == 2


def test_a_deleted_execution_is_gone_from_everywhere(store: Store) -> None:
    filled(store, 4, "EXECUTION-1")
    filled(store, 4, "EXECUTION-2")
    assert store.delete_execution("EXECUTION-1").result() == 4
    assert store.delete_execution("EXECUTION-1").result() == 0
    assert len(store.run_ids()) == len(store.run_ids(RunFilter(text="way"))) == 4
    assert store.counts().runs == 4
    assert store.test_summaries(SUITE)["test-0"].total == 2
    assert store.transcript("EXECUTION-2-RUN-00001") == transcript("It is on its way, number 1.")
    filled(store, 2, "EXECUTION-3")
    assert list(store.run_ids()) == [10, 9, 8, 7, 6, 5]  # numbers of deleted runs are not used again


def test_a_closed_history_says_so(path: Path) -> None:
    store = Store.open(path)
    filled(store, 1)
    store.close()
    store.close()
    with pytest.raises(HistoryError, match="closed"):
        store.executions()
    with pytest.raises(HistoryError, match="closed"):
        store.end_execution("EXECUTION-1", "finished").result()


def test_closing_under_readers_is_safe(path: Path) -> None:
    import threading

    store = Store.open(path)
    filled(store, 200)
    ends: list[Exception] = []
    began = threading.Barrier(5)

    def read() -> None:
        began.wait()
        try:
            while True:
                assert len(store.run_rows(store.run_ids(RunFilter(text="way")))) == 200
        except HistoryError as error:
            ends.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.wait()
    store.close()
    for thread in threads:
        thread.join()
    assert [str(end).endswith("closed already") for end in ends] == [True] * 4


def test_closing_writes_what_waits(path: Path) -> None:
    store = Store.open(path)
    store.begin_execution(record(), [planned(n) for n in range(300)])
    futures = [store.run_ended(ended(n)) for n in range(300)]
    store.close()
    assert all(future.done() and future.exception() is None for future in futures)
    with Store.open(path) as again:
        assert again.execution("last").passed == 300


def test_a_hundred_thousand_characters_survive(store: Store) -> None:
    store.begin_execution(record(), [planned(0, prompt="ß" * 100_000)])
    big = replace(transcript("ü" * 100_000), model="m" * 10_000)
    store.run_ended(replace(ended(0), transcript=big, why="w" * 5_000)).result()
    run = store.run("EXECUTION-1-RUN-00000")
    assert store.transcript(run.id) == big
    assert (len(run.prompt_head), len(run.output_head), len(run.why)) == (240, 240, 240)


def test_the_last_execution_is_the_one_that_came_last_whatever_the_clocks_say(store: Store) -> None:
    """One execution begun in 2106 was `last` for years, while every list showed today's first."""
    store.begin_execution(replace(record("FUTURE"), started_ms=4_300_000_000_000), []).result()
    store.begin_execution(replace(record("TODAY"), started_ms=1_795_262_400_000), []).result()
    assert store.execution("last").id == "TODAY"
    assert next(one.id for one in store.executions(5)) == "TODAY"
    assert in_future(store.execution("FUTURE").started_ms)
    assert not in_future(1_500_000_000_000)
