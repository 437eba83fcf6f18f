"""Which of two counts, and what does not count at all, while runs are made: labels, refusals, waits, what is sent."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, Prepared, Preparing, TextDelta
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.budget import Spending
from agenteval_tui.runs.chat_session import _answers
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.events import (
    Event,
    Graded,
    Planned,
    Progress,
    RunRef,
    RunStarted,
    TextStreamed,
    ToolStarted,
)
from agenteval_tui.runs.execution_state import ExecutionTotals
from agenteval_tui.runs.live_socket import MOST_CHARACTERS, MOST_EVENTS, Outbox
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.model import StopRule
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.retries import MAX_BACK_OFF_S, Retries
from agenteval_tui.runs.stored_judgments import label_reply, sole_of_specs
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript, Usage

# Labels

REVIEW = CriterionSpec("kind", "TextResponse", {"metrics": [{"type": "Review"}]})
OWN = Label("r", None, "kind", who="own", at_ms=1, passed=True)
OTHER = Label("r", None, "polite", who="other", at_ms=2, passed=False)
WHOLE = Label("r", None, who="whole", at_ms=3, passed=False)
NEWER = Label("r", None, "kind", who="newer", at_ms=4, passed=False)
OLD_VERSION = Label("r", None, "kind", who="old version", at_ms=5, passed=False, criterion_hash="another")
THIS_VERSION = Label("r", None, "kind", who="this version", at_ms=6, passed=True, criterion_hash=REVIEW.hash)
NOBODY_KNOWS = Label("r", None, who="nobody knows", at_ms=7, passed=False, criterion_hash=REVIEW.hash)


@pytest.mark.parametrize(
    ("labels", "sole", "who"),
    [
        ([], "kind", None),
        ([OTHER], "kind", None),
        ([OWN, OTHER], "kind", "own"),
        ([OTHER, OWN], "kind", "own"),
        ([OWN, NEWER], "kind", "newer"),
        ([OWN, WHOLE], "kind", "own"),
        ([WHOLE], "kind", "whole"),
        ([WHOLE], "polite", None),
        ([WHOLE], "", None),
        ([OWN, OLD_VERSION], "kind", "own"),
        ([OLD_VERSION], "kind", None),
        ([WHOLE, OLD_VERSION], "kind", "whole"),
        ([OWN, THIS_VERSION], "kind", "this version"),
        ([NOBODY_KNOWS], "kind", None),
        ([OWN, NOBODY_KNOWS], "kind", "own"),
    ],
)
def test_which_label_answers_for_a_criterion(labels: list[Label], sole: str, who: str | None) -> None:
    person = RemoteRequest("person", "kind", {"question": "Is it kind?"})
    reply = label_reply(REVIEW, person, labels, sole)
    assert (reply and json.loads(reply.raw)["who"]) == who


def test_a_judge_that_may_keep_silent_takes_what_was_said_of_the_output_for_an_older_version() -> None:
    judged = RemoteRequest("labels", "kind", {"judge": "cheap"})
    reply = label_reply(REVIEW, judged, [OLD_VERSION], "kind")
    assert reply is not None


def test_a_label_of_the_run_speaks_for_the_only_criterion_that_decides() -> None:
    warning = CriterionSpec("short", "TextResponse", {}, severity="warning")
    second = CriterionSpec("polite", "TextResponse", {})
    assert sole_of_specs([warning, REVIEW]) == "kind"
    assert sole_of_specs([REVIEW, second]) == ""
    assert sole_of_specs([warning]) == ""


# Refusals and waits

BUSY = Failed(RunError("rate_limit", "429"), retry=True)
LOST = Failed(RunError("connection", "lost"), retry=True, retry_after_s=0.0)


class Clock:
    """The steady clock of a run, as a test sets it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("agenteval_tui.runs.attempt.time", made)
    return made


class Ends:
    """An agent that ends so, one after the other, and then answers."""

    def __init__(self, *ends: Failed) -> None:
        self.ends, self.asked = list(ends), 0

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        self.asked += 1
        if self.ends:
            yield self.ends.pop(0)
            return
        yield TextDelta("hello")
        yield Done()


@pytest.fixture
def ask(suite: Callable[[], LoadedSuite], clock: Clock, scripts: Any) -> Callable[..., RunAttempts]:
    """A run that may take 30 seconds."""

    def made(agent: Ends, attempts: int = 3, base_s: float = 0.0) -> RunAttempts:
        plan = make_plan([suite()], PlanOptions(timeout=30.0), user_agents={}).runs[0]
        request = AgentRequest((Message("user", "hi"),), {}, {}, "hello", 1, 1)
        return RunAttempts(
            plan,
            agent,
            request,
            Retries(attempts, base_s),
            lambda kind, /, *values, **fields: kind(0, *values, **fields),
        )  # type: ignore[arg-type]

    return made


async def test_waiting_in_the_line_moves_the_deadline(ask: Callable[..., RunAttempts], clock: Clock) -> None:
    agent = Ends(BUSY, LOST)
    run = ask(agent)
    await run.ask()
    assert run.refused is BUSY
    clock.now += 5
    run.park()
    clock.now += 100  # more than the run may take
    await run.ask()
    assert run.transcript().error is None, "there was time for another attempt after the line"
    assert agent.asked == 3
    run.finish()
    assert run.duration_ms == 5_000
    assert run.deadline == 1_000 + 30 + 100


class Starts:
    """Needs a time to start (with `said`, it says before that it does), and then one second to answer."""

    def __init__(self, clock: Clock, took_s: float, said: bool, fails: bool = False) -> None:
        self.clock = clock
        self.took_s = took_s
        self.said = said
        self.fails = fails
        self.deadline = lambda: 0.0
        self.deadlines: list[float] = []

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if self.said:
            yield Preparing()
        self.clock.now += self.took_s
        self.deadlines.append(self.deadline())
        if self.fails:
            yield Failed(RunError("program", "no"))
            return
        yield Prepared("start", self.took_s * 1000)
        self.deadlines.append(self.deadline())
        self.clock.now += 1
        yield TextDelta("hello")
        yield Done()


@pytest.mark.parametrize("said", [False, True])
async def test_a_start_is_not_in_the_time_of_a_run(ask: Callable[..., RunAttempts], clock: Clock, said: bool) -> None:
    agent = Starts(clock, 12, said)
    run = ask(agent)
    agent.deadline = lambda: run.deadline
    await run.ask()
    run.finish()
    assert run.duration_ms == 1_000
    # While something starts that has a limit of its own, the run's time-out does not pass.
    assert agent.deadlines == [math.inf if said else 1_030, 1_042]


async def test_a_start_that_fails_is_not_in_the_time_of_a_run(ask: Callable[..., RunAttempts], clock: Clock) -> None:
    agent = Starts(clock, 50, said=True, fails=True)
    run = ask(agent)
    agent.deadline = lambda: run.deadline
    await run.ask()
    run.finish()
    assert run.duration_ms == 0
    assert run.deadline == 1_080


async def test_standing_in_the_line_is_not_in_the_time_of_a_run_that_ends_there(
    ask: Callable[..., RunAttempts], clock: Clock
) -> None:
    run = ask(Ends(BUSY))
    await run.ask()
    clock.now += 2
    run.park()
    clock.now += 60
    run.finish()
    assert run.duration_ms == 2_000


async def test_a_refusal_is_no_attempt(ask: Callable[..., RunAttempts]) -> None:
    agent = Ends(BUSY, BUSY, LOST)
    run = ask(agent, attempts=2)
    for _ in range(3):
        await run.ask()
        run.park()
    assert agent.asked == 4
    assert run.transcript().final_output == "hello"


async def test_only_so_many_attempts(ask: Callable[..., RunAttempts]) -> None:
    agent = Ends(LOST, LOST, LOST)
    run = ask(agent, attempts=2)
    await run.ask()
    assert agent.asked == 2
    assert run.transcript().error == LOST.error


async def test_who_allows_one_attempt_sees_the_refusal(ask: Callable[..., RunAttempts]) -> None:
    run = ask(Ends(BUSY), attempts=1)
    await run.ask()
    assert run.refused is None
    assert run.transcript().error == BUSY.error


@pytest.mark.parametrize(
    ("asks_s", "asked", "said"), [(29.0, 2, ""), (30.0, 1, "it asks to wait 30 s"), (31.0, 1, "31")]
)
async def test_a_wait_that_is_longer_than_the_run_may_take_ends_it(
    ask: Callable[..., RunAttempts], monkeypatch: pytest.MonkeyPatch, asks_s: float, asked: int, said: str
) -> None:
    async def at_once(seconds: float) -> None:
        return None

    monkeypatch.setattr("agenteval_tui.runs.attempt.asyncio.sleep", at_once)
    agent = Ends(Failed(RunError("server", "503"), retry=True, retry_after_s=asks_s))
    run = ask(agent)
    await run.ask()
    assert agent.asked == asked
    error = run.transcript().error
    assert said in (error.message if error else "")


def test_what_a_server_asks_for_is_the_least_and_the_back_off_has_an_end() -> None:
    retries = Retries(3, 1.0)
    for attempt in (1, 2, 3, 50):
        back_off = min(2.0 ** (attempt - 1), MAX_BACK_OFF_S)
        assert back_off / 2 <= retries.wait_s(attempt, None) <= back_off
        assert 40 <= retries.wait_s(attempt, 40.0) <= 40 + back_off / 10
    assert 0 <= retries.wait_s(1, -5.0) <= 0.1


def test_an_answer_that_was_known_costs_nothing_and_a_cancelled_run_says_nothing_of_the_pace() -> None:
    def ended(**more: Any) -> Any:
        ref = SimpleNamespace(agent="bot")
        return SimpleNamespace(
            plan=SimpleNamespace(ref=ref),
            at_most=0.0,
            uncounted=False,
            **{"cached": False, "spent": Usage(10, 5, cost=0.5), "duration_ms": 100, "user": None, **more},
        )

    totals = ExecutionTotals()
    totals.add(ended(cached=True), "passed")
    assert (totals.paid, totals.used(Usage()).tokens, totals.used(Usage()).cost) == (0, 0, 0.0)
    totals.add(ended(), "cancelled")
    assert (totals.paid, totals.used(Usage()).tokens, totals.pace.eta_s(1, [], 1)) == (1, 15, None)
    totals.add(ended(spent=Usage(1, 1)), "passed")
    assert totals.unpriced == {"bot"}
    assert totals.pace.eta_s(1, [], 1) == 0.1
    assert totals.used(Usage(2, 2, cost=1.0)) == Spending(1.5, 21)


@pytest.mark.parametrize("status", ["error", "needs_review", "cancelled", "skipped"])
def test_only_verdicts_stop_repetitions(status: str) -> None:
    group = Repetitions(StopRule(threshold=0.5, alpha=0.05), planned=40)
    assert [group.add(status) for _ in range(40)] == [False] * 40
    assert (group.judged, group.passed, group.answer) == (0, 0, "open")


def test_repetitions_are_decided_once() -> None:
    group = Repetitions(StopRule(threshold=0.5, alpha=0.05), planned=40)
    decided = [group.add("passed") for _ in range(40)]
    assert decided.count(True) == 1
    assert (group.answer, group.wanted, group.judged) == ("above", 0, 40)


# What is sent to a watcher


def outbox(*runs: str) -> tuple[ExecutionView, Outbox]:
    view = ExecutionView()
    refs = tuple(RunRef(run, "t", "T", "", 0, 1, "bot") for run in runs)
    view.apply(Planned(1, "e1", "title", refs, 2, 1000))
    for run in runs:
        view.apply(RunStarted(2, run, 1, 5))
    return view, Outbox(view.snapshot)


def texts(events: list[Event]) -> list[Any]:
    return [one.text if isinstance(one, TextStreamed) else type(one).__name__ for one in events]


def test_text_behind_a_state_stays_behind_it() -> None:
    view, box = outbox("r1")
    box.take()
    box.watch("r1", view.shown("r1"))
    box.add(TextStreamed(3, "r1", "one"))
    box.watch("r1", view.shown("r1"))  # the state of now, which has "one" in it
    box.add(TextStreamed(4, "r1", "two"))
    assert texts(box.take()) == ["RunShown", "one", "RunShown", "two"]


def test_text_behind_another_event_of_its_run_is_not_put_before_it() -> None:
    _, box = outbox("r1", "r2")
    box.take()
    for event in (
        TextStreamed(3, "r1", "a"), TextStreamed(4, "r2", "x"), RunStarted(5, "r1", 2, 6), TextStreamed(6, "r1", "b"),
        TextStreamed(7, "r2", "y"), TextStreamed(8, "r1", "c"),
    ):  # fmt: skip
        box.add(event)
    assert texts(box.take()) == ["a", "xy", "RunStarted", "bc"]


def test_text_behind_a_tool_of_its_run_is_not_put_before_it() -> None:
    _, box = outbox("r1", "r2")
    box.take()
    for event in (
        TextStreamed(3, "r1", "a"), TextStreamed(4, "r2", "x"), ToolStarted(5, "r1", 0, "get"),
        TextStreamed(6, "r1", "b"), TextStreamed(7, "r2", "y"),
    ):  # fmt: skip
        box.add(event)
    assert texts(box.take()) == ["a", "xy", "ToolStarted", "b"]


def test_who_watched_one_run_and_then_all_begins_with_a_snapshot() -> None:
    view, box = outbox("r1", "r2")
    box.take()
    box.watch("r1", view.shown("r1"))
    box.add(TextStreamed(3, "r1", "one"))
    box.watch("", None)
    assert texts(box.take()) == ["Snapshot"]
    box.add(TextStreamed(4, "r2", "two"))
    assert texts(box.take()) == ["two"]
    assert not box
    box.watch("unknown", None)  # nothing is known of it yet
    assert box.take() == []


def test_text_that_a_snapshot_tells_is_not_kept_and_what_follows_is() -> None:
    _, box = outbox("r1")
    box.add(TextStreamed(3, "r1", "in the snapshot"))
    assert texts(box.take()) == ["Snapshot"]
    box.add(TextStreamed(4, "r1", "behind it"))
    assert texts(box.take()) == ["behind it"]


def test_who_watches_one_run_hears_no_text_of_others_but_how_they_end() -> None:
    view, box = outbox("r1", "r2")
    box.take()
    box.watch("r1", view.shown("r1"))
    box.add(TextStreamed(3, "r2", "not watched"))
    box.add(Graded(4, "r2", "passed", 1.0, (), 1.0))
    assert texts(box.take()) == ["RunShown", "Graded"]


def test_only_the_newest_figures_wait() -> None:
    def figures(number: int) -> Progress:
        return Progress(number, 9, 9, 0, number, 0, 0, 0, 0, 0.0, None, 0, 0, None, 1, False)

    _, box = outbox("r1")
    box.take()
    for number in (3, 4, 5):
        box.add(figures(number))
    assert box.take() == [figures(5)]


def test_an_outbox_keeps_so_much_and_not_one_more() -> None:
    _, box = outbox("r1")
    box.take()
    for number in range(MOST_EVENTS):
        box.add(Graded(number, "r1", "passed", 1.0, (), 1.0))
    assert len(box.take()) == MOST_EVENTS
    for number in range(MOST_EVENTS + 1):
        box.add(Graded(number, "r1", "passed", 1.0, (), 1.0))
    assert texts(box.take()) == ["Snapshot"]
    for _ in range(2):  # what was taken counts no more
        box.add(TextStreamed(3, "r1", "x" * MOST_CHARACTERS))
        assert texts(box.take()) == ["x" * MOST_CHARACTERS]
    box.add(TextStreamed(4, "r1", "x" * (MOST_CHARACTERS + 1)))
    assert texts(box.take()) == ["Snapshot"]


# A recording that is asked in the chat


def test_of_a_recording_its_answers_are_taken_and_not_what_it_was_asked() -> None:
    calls = (ToolCall("c0", "get", {}, "ok", message=2), ToolCall("c1", "put", {}, "ok"))
    asked = (Message("system", "s"), Message("user", "u"))
    answers = (Message("assistant", "", tool_calls=(0,)), Message("assistant", "done"))
    found = _answers(Transcript((*asked, *answers), calls, final_output="done"))
    assert (found.messages, [one.message for one in found.tool_calls], found.final_output) == (
        answers,
        [0, None],
        "done",
    )
    assert _answers(Transcript(asked, final_output="x")).messages == ()
