"""The state of a watcher: the same however the events came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs import live_socket
from agenteval_tui.runs import live_view as views
from agenteval_tui.runs.events import (
    AgentFinished,
    AttemptFailed,
    Ended,
    Event,
    Graded,
    Planned,
    Progress,
    ReasoningStreamed,
    RunPreparing,
    RunRef,
    RunStarted,
    Snapshot,
    TextStreamed,
    Throttled,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UsageCounted,
    decode_event,
    encode,
)
from agenteval_tui.runs.live_socket import Outbox
from agenteval_tui.runs.live_view import ExecutionView

RUNS = ["r1", "r2", "r3"]
PLANNED = Planned(1, "e1", "title", tuple(RunRef(run, "t", "T", "", 0, 1, "bot") for run in RUNS), 2, 1000)

runs = st.sampled_from([*RUNS, "unknown"])
texts = st.text(alphabet="ab\n", min_size=1, max_size=6)
keys = st.integers(0, 2)
numbers = st.none() | st.integers(0, 9)

# Each draws what comes behind `seq`; orders that make no sense are among them.
MAKERS: dict[type[Event], tuple[st.SearchStrategy[object], ...]] = {
    RunStarted: (runs, st.integers(1, 3), st.integers(0, 9)),
    RunPreparing: (runs, st.none() | st.floats(0, 9)),
    TextStreamed: (runs, texts),
    ReasoningStreamed: (runs, texts),
    ToolStarted: (runs, keys, texts),
    ToolArguments: (runs, keys, texts),
    ToolFinished: (runs, keys, texts, st.booleans()),
    UsageCounted: (runs, numbers, numbers, st.none() | st.floats(0, 1)),
    TurnStarted: (runs, st.integers(2, 4), texts),
    Throttled: (st.sampled_from(["bot", "other"]), st.integers(1, 3), st.just(3), st.floats(0, 9)),
    AttemptFailed: (runs, st.integers(1, 3), texts, st.floats(0, 1), texts, texts),
    AgentFinished: (runs, st.floats(0, 9), texts, texts, st.booleans()),
    Graded: (runs, st.sampled_from(["passed", "failed", "error", "cancelled", "skipped", "needs_review"]),
             st.none() | st.floats(0, 1), st.just((("c", "why"),)), st.floats(0, 9)),
    Progress: (*(st.integers(0, 3),) * 8, st.floats(0, 9), st.none(), st.integers(0, 9), st.integers(0, 9),
               st.none(), st.integers(1, 9), st.booleans()),
}  # fmt: skip


@st.composite
def executions(draw: st.DrawFn) -> list[Event]:
    """The events of an execution, numbered without gaps."""
    events: list[Event] = [PLANNED]
    streaming = st.sampled_from(
        [TextStreamed, ReasoningStreamed, ToolStarted, ToolArguments, ToolFinished, TurnStarted]
    )
    kinds = st.one_of(streaming, st.sampled_from(list(MAKERS)))
    for kind in draw(st.lists(kinds, max_size=40)):
        events.append(kind(len(events) + 1, *(draw(one) for one in MAKERS[kind])))
    if draw(st.booleans()):
        events.append(Ended(len(events) + 1, "finished", ""))
    return events


def view_after(events: list[Event]) -> ExecutionView:
    view = ExecutionView()
    for event in events:
        view.apply(event)
    return view


def state(view: ExecutionView) -> tuple[object, ...]:
    """Everything that a screen could ask for."""
    counts = {status: number for status, number in view.counts.items() if number}
    return (view.seq, view.planned, view.runs, counts, view.ended_runs, view.failures, view.progress, view.ended,
            view.throttled)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> object:
    """Limits so small that the random executions reach them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "TEXT_TAIL", 8)
        patch.setattr(views, "PARTS", 4)
        patch.setattr(views, "RECENT", 1)
        patch.setattr(live_socket, "MOST_EVENTS", 12)
        yield


@given(executions(), st.integers(1, 60))
def test_a_snapshot_and_the_rest_give_the_same_as_everything(events: list[Event], cut: int) -> None:
    snapshot = decode_event(encode(view_after(events[:cut]).snapshot()))
    assert state(view_after([snapshot, *events[cut:]])) == state(view_after(events))


@given(executions(), st.sets(st.integers(0, 60)), st.integers(1, 60))
def test_a_watcher_that_reads_when_it_likes_gets_the_same(events: list[Event], reads: set[int], joins: int) -> None:
    truth, seen = ExecutionView(), ExecutionView()
    box: Outbox | None = None
    for number, event in enumerate(events):
        truth.apply(event)
        if box is not None:
            box.add(event)
        elif number >= joins or number == len(events) - 1:
            box = Outbox(truth.snapshot)
        if box is not None and number in reads:
            for one in box.take():
                seen.apply(one)
    assert box is not None
    for one in box.take():
        seen.apply(one)
    assert state(seen)[1:] == state(truth)[1:]


@given(executions(), st.integers(1, 60), st.sampled_from(RUNS))
def test_who_watches_one_run_sees_all_of_it(events: list[Event], begins: int, watched: str) -> None:
    truth, seen = view_after(events[:1]), ExecutionView()
    box = Outbox(truth.snapshot)
    for one in box.take():
        seen.apply(one)
    for number, event in enumerate(events[1:], 1):
        if number == begins:
            box.watch(watched, truth.shown(watched))
        truth.apply(event)
        box.add(event)
        if number % 7 == 0:
            for one in box.take():
                seen.apply(one)
    box.watch(watched, truth.shown(watched))
    for one in box.take():
        seen.apply(one)
    assert seen.runs[watched] == truth.runs[watched]
    assert {run: seen.runs[run].status for run in RUNS} == {run: truth.runs[run].status for run in RUNS}


def started(run: str = "r1") -> list[Event]:
    return [PLANNED, RunStarted(2, run, 1, 5)]


def test_what_streams_stays_in_order() -> None:
    view = view_after([
        *started(), ReasoningStreamed(3, "r1", "hm"), TextStreamed(4, "r1", "I "), TextStreamed(5, "r1", "look"),
        ToolStarted(6, "r1", 0, "get"), ToolArguments(7, "r1", 0, "{}"), ToolFinished(8, "r1", 0, "no", True),
        TextStreamed(9, "r1", "done"),
    ])  # fmt: skip
    run = view.runs["r1"]
    assert [(part.kind, part.text or part.name) for part in run.parts] == [
        ("reasoning", "hm"), ("text", "I look"), ("tool", "get"), ("text", "done")]  # fmt: skip
    assert (run.tools[0].arguments, run.tools[0].result, run.tools[0].error) == ("{}", "no", True)
    assert view.count("running") == 1
    assert view.in_flight() == [run]


def test_a_later_turn_stands_between_the_answers_and_a_skipped_run_is_no_failure() -> None:
    view = view_after([
        *started(), TextStreamed(3, "r1", "I am"), TurnStarted(4, "r1", 2, "and you?"), TextStreamed(5, "r1", "so so"),
        Throttled(6, "bot", 2, 8, 1.5), AgentFinished(7, "r1", 1.0, "it broke", "fix it", True),
        Graded(8, "r2", "skipped", None, (), 0.0),
    ])  # fmt: skip
    run = view.runs["r1"]
    assert [(part.kind, part.text) for part in run.parts] == [("text", "I am"), ("user", "and you?"), ("text", "so so")]
    assert (run.error, run.fix, run.cached, run.text) == ("it broke", "fix it", True, "I am\n\nso so")
    assert (view.throttled["bot"].limit, view.failures, view.ended_runs) == (2, [], ["r2"])
    view.apply(Throttled(9, "bot", 8, 8))
    assert view.throttled == {}


def test_a_new_attempt_begins_anew_and_keeps_why() -> None:
    view = view_after([
        *started(), TextStreamed(3, "r1", "half"), AttemptFailed(4, "r1", 1, "cut off", 2.0), RunStarted(5, "r1", 2, 9)
    ])  # fmt: skip
    run = view.runs["r1"]
    assert (run.text, run.attempt, run.retries, run.retry_in_s, run.started_ms) == ("", 2, ("cut off",), None, 5)


def test_what_is_prepared_is_not_the_time_of_the_run() -> None:
    view = view_after([*started(), RunPreparing(3, "r1")])
    assert view.runs["r1"].preparing
    view.apply(RunPreparing(4, "r1", 2500.4))
    assert (view.runs["r1"].preparing, view.runs["r1"].started_ms) == (False, 2505)


def test_a_late_event_takes_no_outcome_away() -> None:
    graded = Graded(3, "r1", "failed", 0.5, (("c", "why"),), 12.0)
    view = view_after([*started(), graded, RunStarted(4, "r1", 2, 9), Graded(5, "r1", "passed", 1.0, (), 1.0)])
    assert (view.runs["r1"].status, view.ended_runs, view.failures) == ("failed", ["r1"], ["r1"])
    assert view.apply(graded) == "r1"


def test_memory_is_bounded() -> None:
    view = view_after(started())
    for number in range(200):
        view.apply(TextStreamed(3, "r1", "x" * 10))
        view.apply(ToolStarted(3, "r1", number, "t"))
    run = view.runs["r1"]
    assert len(run.parts) == views.PARTS
    assert run.dropped == 400 - views.PARTS
    assert all(len(part.text) <= views.TEXT_TAIL for part in run.parts)


def test_an_outbox_is_bounded_and_catches_up_with_a_snapshot() -> None:
    truth = view_after(started())
    box = Outbox(truth.snapshot)
    box.take()
    for seq in range(3, 100):
        event = TextStreamed(seq, RUNS[seq % 3], "x")
        truth.apply(event)
        box.add(event)
    merged = box.take()
    assert len(merged) == 3  # one text for each run
    for seq in range(100, 200):
        box.add(ToolStarted(seq, "r1", seq, "t"))
    assert [type(event) for event in box.take()] == [Snapshot]
    assert not box


def test_only_the_newest_figures_wait() -> None:
    view = view_after(started())
    box = Outbox(view.snapshot)
    box.take()

    def figures(seq: int) -> Progress:
        return Progress(seq, 3, 1, 1, seq, 0, 0, 0, 0, 1.0, None, 0, 0, None, 2, False)

    for seq in range(3, 9):
        box.add(figures(seq))
    assert box.take() == [figures(8)]


def test_a_view_whose_process_died_has_nothing_that_runs() -> None:
    view = ExecutionView()
    refs = tuple(RunRef(f"r{n}", "t", "t", "", 0, n, "a") for n in range(1, 4))
    view.apply(Planned(1, "e", "title", refs, 2, 0))
    for number, run in ((2, "r1"), (3, "r2")):
        view.apply(RunStarted(number, run, 1, 0))
    view.apply(Graded(4, "r1", "passed", 1.0, (), 5.0))
    view.lose()
    assert (view.lost, view.eta_s, view.in_flight(), view.done) == (True, None, [], 1)
    assert view.count("queued") == 2
    assert view.runs["r1"].status == "passed"
    ended = Ended(5, "finished", "", 1)
    view.apply(ended)
    view.lose()
    assert not view.lost
