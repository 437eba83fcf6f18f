"""Whose turn it is, and how long it will take."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.runs.around.plan import Surroundings
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.execution_state import ENOUGH, EtaEstimator
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import RunPlan, StopRule
from agenteval_tui.runs.run_queue import WaitingRuns, exclusive_of


def run_of(number: int, agent: str) -> RunPlan:
    ref = RunRef(f"r{number}", "t", "T", "", 0, number, agent)
    plan = AgentPlan(agent, {}, Path(), agent)
    return RunPlan(ref, "k", "s", plan, (), {}, (), {}, 1.0, None, (), 0)


@given(st.lists(st.sampled_from("abc"), max_size=20), st.data())
def test_every_run_comes_once_in_order_within_the_limits(agents: list[str], data: st.DataObject) -> None:
    runs = [run_of(number, agent) for number, agent in enumerate(agents)]
    limits = {"a": 1, "b": 2}
    waiting = WaitingRuns(runs, limits)
    busy: list[RunPlan] = []
    seen: list[int] = []
    while len(waiting) or busy:
        ready = waiting.ready()
        taken = waiting.take()
        assert (taken is not None) == (ready > 0)
        if taken is not None:
            busy.append(taken)
            seen.append(taken.ref.repetition)
            for agent, limit in limits.items():
                assert sum(run.ref.agent == agent for run in busy) <= limit
            others = [run.ref.repetition for run in runs if run.ref.agent == taken.ref.agent]
            assert [number for number in seen if number in others] == others[: sum(n in others for n in seen)]
        if busy and (taken is None or data.draw(st.booleans())):
            waiting.release(busy.pop(data.draw(st.integers(0, len(busy) - 1))))
        if len(waiting) and data.draw(st.integers(0, 9)) == 0:
            left = [run.ref.run for run in runs if run.ref.repetition not in seen]
            gone = waiting.remove(data.draw(st.sampled_from(left)))
            assert gone is not None
            assert waiting.remove(gone.ref.run) is None
            seen.append(gone.ref.repetition)
            runs = [run for run in runs if run is not gone]
            seen.remove(gone.ref.repetition)
    assert sorted(seen) == [run.ref.repetition for run in runs]


@given(st.lists(st.sampled_from(["", "db", "port"]), max_size=20), st.booleans(), st.data())
def test_what_only_one_run_may_use_has_one_user(names: list[str], early: bool, data: st.DataObject) -> None:
    """Also with two agents, repetitions that are fed, runs that are cancelled or refused, and hooks beside runs."""
    runs = [
        replace(run_of(number, "xy"[number % 2]), around=Surroundings("/", exclusive=name) if name else None)
        for number, name in enumerate(names)
    ]
    group = Repetitions(StopRule(0.05, 0.8), len(runs))
    waiting = WaitingRuns(runs, {"x": 3}, {run.ref.run: group for run in runs} if early else {}, clock=lambda: 0.0)
    busy: list[RunPlan] = []
    held: list[str] = []
    done: set[str] = set()
    while len(waiting) or busy or held:
        taken = waiting.take()
        if taken is not None:
            busy.append(taken)
        used = [exclusive_of(run) for run in busy if exclusive_of(run)] + held
        assert len(used) == len(set(used))
        assert taken is not None or busy or held or not len(waiting), "nothing is in the way, and nothing begins"
        what = data.draw(st.sampled_from(["go on", "end", "refuse", "cancel", "hold", "free"]))
        if busy and (what == "end" or taken is None):
            run = busy.pop(data.draw(st.integers(0, len(busy) - 1)))
            done.add(run.ref.run)
            waiting.release(run)
            if early:
                group.add("passed")
        elif busy and what == "refuse":
            waiting.put_back(busy.pop(), alone=data.draw(st.booleans()))
        elif what == "cancel" and len(waiting):
            there = {run.ref.run for run in busy} | done
            gone = waiting.remove(data.draw(st.sampled_from([r.ref.run for r in runs if r.ref.run not in there])))
            assert gone is not None
            done.add(gone.ref.run)
        elif what == "hold" and len(held) < 1 and "db" not in used and len(waiting):
            held.append("db")
            waiting.hold("db")
        elif held:
            waiting.free(held.pop())
    assert done == {run.ref.run for run in runs}


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=30), st.data())
def test_repetitions_are_fed_as_needed_also_when_some_are_put_back(tests: list[str], data: st.DataObject) -> None:
    runs = [run_of(number, "x") for number in range(len(tests))]
    groups = {name: Repetitions(StopRule(0.05, 0.8), tests.count(name)) for name in "ab"}
    belongs = {run.ref.run: groups[name] for run, name in zip(runs, tests, strict=True) if name == "a"}
    waiting = WaitingRuns(runs, {"x": 5}, belongs, clock=lambda: 0.0)
    busy: list[RunPlan] = []
    ended: list[str] = []
    while len(waiting) or busy:
        ready = waiting.ready()
        run = waiting.take()
        assert (run is not None) == (ready > 0)
        if run is not None:
            busy.append(run)
            if run.ref.run in belongs:  # of those that were begun earlier more may be on their way
                assert sum(one.ref.run in belongs for one in busy) <= max(groups["a"].wanted, groups["a"].begun)
        if not busy:
            break
        if run is None or data.draw(st.booleans()):
            one = busy.pop(data.draw(st.integers(0, len(busy) - 1)))
            if data.draw(st.integers(0, 3)) == 3:
                waiting.put_back(one)
                first = waiting.take()
                assert first is not None
                busy.append(first)
                continue
            group = belongs.get(one.ref.run)
            if group is not None and group.add(data.draw(st.sampled_from(["passed", "failed", "error"]))):
                gone = waiting.take_unneeded(group)
                ended += [run.ref.run for run in gone]
                assert all(run.ref.run in belongs for run in gone)
            waiting.release(one)
            ended.append(one.ref.run)
    assert sorted(ended) == sorted(run.ref.run for run in runs)


def test_an_agent_is_held_back_and_its_limit_cut() -> None:
    now = 0.0
    waiting = WaitingRuns([run_of(number, "ab"[number % 2]) for number in range(6)], {"a": 3}, clock=lambda: now)
    waiting.throttle("a", 1, 5.0)
    assert [run.agent.hash for run in (waiting.take(), waiting.take(), waiting.take()) if run] == ["b", "b", "b"]
    assert (waiting.take(), waiting.ready()) == (None, 0)
    now = 5.0
    assert waiting.ready() == 1
    first = waiting.take()
    assert first is not None
    assert (waiting.in_flight("a"), waiting.take()) == (1, None)
    waiting.throttle("a", None, 0.0)
    assert waiting.ready() == 2


def test_what_is_cleared_comes_back_in_order() -> None:
    runs = [run_of(number, "ab"[number % 2]) for number in range(6)]
    waiting = WaitingRuns(runs, {})
    assert waiting.take() is runs[0]
    assert waiting.clear() == runs[1:]
    assert (len(waiting), waiting.ready(), waiting.take()) == (0, 0, None)


def test_an_eta_comes_from_lengths_first_and_from_the_rate_later() -> None:
    pace = EtaEstimator()
    assert pace.eta_s(10, [], 2) is None
    assert pace.eta_s(0, [], 2) == 0
    pace.ended(4.0)
    assert pace.eta_s(10, [1.0, 9.0], 2) == (10 * 4 + 3 + 0) / 2
    pace.sample(0.0, 0)
    pace.sample(10.0, ENOUGH)
    assert pace.rate == ENOUGH / 10
    assert pace.eta_s(10, [], 2) == 10 / pace.rate
    pace.forget()
    assert (pace.rate, pace.eta_s(10, [], 2)) == (0, 20)
    pace.ended(14.0)  # a tenth of the way to what came last
    assert pace.eta_s(10, [], 2) == 25


def test_what_is_put_back_goes_to_the_end_rests_and_waits_until_it_is_alone() -> None:
    now = 0.0
    runs = [run_of(number, "a") for number in range(4)]
    waiting = WaitingRuns(runs, {}, clock=lambda: now)
    first, second = waiting.take(), waiting.take()
    assert first is runs[0]
    assert second is runs[1]
    waiting.put_back(first)
    waiting.put_back(second, rest_s=5.0, alone=True)
    assert waiting.ready() == 3
    taken = [waiting.take() for _ in range(4)]
    assert taken == [runs[2], runs[3], runs[0], None]
    assert (waiting.ready(), len(waiting)) == (0, 1)
    now = 5.0
    assert (waiting.ready(), waiting.take()) == (0, None), "the others are on their way"
    for run in (runs[2], runs[3], runs[0]):
        waiting.release(run)
    assert waiting.ready() == 1
    assert waiting.take() is runs[1]


def test_what_rests_can_be_taken_away() -> None:
    waiting = WaitingRuns([run_of(0, "a"), run_of(1, "a")], {}, clock=lambda: 0.0)
    first = waiting.take()
    assert first is not None
    waiting.put_back(first, rest_s=5.0, alone=True)
    assert waiting.remove(first.ref.run) is first
    assert (waiting.ready(), len(waiting)) == (1, 1)


def test_what_was_refused_asks_together_and_is_refused_alone_when_all_of_it_is() -> None:
    now = 0.0
    runs = [run_of(number, "a") for number in range(4)]
    waiting = WaitingRuns(runs, {}, clock=lambda: now)
    taken = [waiting.take() for _ in range(4)]
    assert waiting.refused(runs[0]) == (), "others are on their way that were never refused"
    for run in runs[:3]:
        waiting.put_back(run, alone=True)
    assert (waiting.ready(), waiting.take()) == (0, None)
    waiting.release(runs[3])
    waiting.throttle("a", 1, 0.0)
    assert waiting.ready() == 3, "the limit is for those that the server may serve"
    taken = [waiting.take() for _ in range(4)]
    assert taken == [*runs[:3], None]
    assert waiting.refused(runs[0]) == ()
    waiting.put_back(runs[0], rest_s=5.0, alone=True)
    assert waiting.take() is None
    assert waiting.refused(runs[2]) == ()
    waiting.put_back(runs[2], alone=True)
    assert waiting.take() is None, "the round has been heard of"
    assert waiting.refused(runs[1]) == tuple(run.ref.run for run in (runs[0], runs[2], runs[1]))
    waiting.release(runs[1])
    waiting.wake(runs[0])
    assert waiting.ready() == 2


def test_where_one_is_served_the_others_are_asked_one_by_one() -> None:
    runs = [run_of(number, "a") for number in range(3)]
    waiting = WaitingRuns(runs, {}, clock=lambda: 0.0)
    for run in [waiting.take() for _ in range(3)]:
        assert run is not None
        waiting.put_back(run, alone=True)
    assert [waiting.take() for _ in range(3)] == runs
    assert waiting.refused(runs[0]) == ()
    waiting.put_back(runs[0], alone=True)
    waiting.release(runs[1])
    assert waiting.refused(runs[2]) == (), "it may have been in its way"
    waiting.put_back(runs[2], alone=True)
    assert (waiting.take(), waiting.take()) == (runs[0], None)
    assert waiting.refused(runs[0]) == (runs[0].ref.run,)
