"""The tree of repetitions, the fork that says most about the outcome, and the sentences about it."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.analysis.divergence import (
    BranchPoint,
    Compared,
    Trajectory,
    Tree,
    acts_of,
    compared_in,
    first_change,
    first_divergence,
    tree_of,
)
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool
from agenteval_tui.views.divergence import fork_text, run_text, step_change_text


def done(*steps: str | tuple[str, Any], error: str = "") -> Transcript:
    """Texts are answers, pairs are calls."""
    messages: list[Message] = [Message("user", "please")]
    calls: list[ToolCall] = []
    for step in steps:
        if isinstance(step, str):
            messages.append(Message("assistant", step))
        else:
            messages.append(Message("assistant", "Let me see.", tool_calls=(len(calls),)))
            calls.append(ToolCall(f"id {random.random()}", step[0], step[1], "ok", started_ms=random.random()))
    return Transcript(tuple(messages), tuple(calls), error=RunError(error, "x") if error else None)


def tree(*runs: tuple[bool, Transcript], **options: Any) -> Tree:
    return tree_of(
        Trajectory(f"r{n}", passed, acts_of(one, Compared(**options))) for n, (passed, one) in enumerate(runs)
    )


def fork_of(*runs: tuple[bool, Transcript], **options: Any) -> BranchPoint:
    found = first_divergence(tree(*runs, **options))
    assert found is not None
    return found


FIND, DOCS = ("find", {"q": "x"}), ("search_docs", {"q": "x"})


def test_the_fork_is_said_with_counts() -> None:
    good, bad = done(FIND, DOCS, "Yes."), done(FIND, "No idea.")
    fork = fork_of((True, good), (False, bad), (True, good), (False, bad), (True, good))
    assert fork_text(fork) == "step 2: 3 of 5 call search_docs (3/3 pass), 2 answer at once (0/2 pass)"
    assert run_text(fork, "r1") == (
        "passing runs call search_docs at step 2 (3 of 3 pass); this run answered at once (0 of 2 pass)"
    )
    assert run_text(fork, "r0") == (
        "failing runs answer at once at step 2 (0 of 2 pass); this run called search_docs (3 of 3 pass)"
    )
    assert fork.representatives() == ("r0", "r3")


def test_ids_times_and_the_order_and_case_of_words_and_keys_are_no_steps() -> None:
    one = done(("find", {"a": 1, "b": 2}), "All  done\n")
    other = done(("find", {"b": 2, "a": 1}), "ALL done")
    assert acts_of(one) != ()
    assert [act.key for act in acts_of(one)] == [act.key for act in acts_of(other)]


def test_arguments_count_unless_they_are_ignored() -> None:
    runs = [(True, done(("find", {"q": "x", "at": n}), "a")) for n in range(3)]
    runs += [(False, done(("find", {"q": "y", "at": n}), "a")) for n in range(3, 6)]
    assert len(tree(*runs).root.branches) == 6
    assert len(tree(*runs, arguments=False).root.branches) == 1
    fork = fork_of(*runs, ignored=frozenset({"at"}))
    assert fork_text(fork) == 'step 1: 3 of 6 call find with q="x" (3/3 pass), 3 call find with q="y" (0/3 pass)'


def test_long_texts_are_told_from_where_they_differ() -> None:
    head = "SELECT name, city, revenue FROM customers WHERE active AND country = "
    fork = fork_of((True, done(head + "'Österreich' ORDER BY name")), (False, done(head + "'AT' ORDER BY name")))
    assert "AND country = 'Österreich'" in fork_text(fork)
    assert "AND country = 'AT'" in fork_text(fork)


def test_runs_that_all_went_their_own_way_explain_nothing() -> None:
    runs = [(n % 2 == 0, done(f"answer number {n}")) for n in range(6)]
    assert first_divergence(tree(*runs)) is None


def test_the_clearest_fork_wins_over_an_earlier_one_and_the_earlier_of_two_equals() -> None:
    runs = []
    for first in ("a", "b"):
        for n in range(6):
            good = n % 2 == 0
            runs.append((good, done((first, None), ("right" if good else "wrong", None), "x")))
    fork = fork_of(*runs)
    assert fork.step == 2
    assert fork.branches[0].act.name in ("right", "wrong")
    chain = [(n < 3, done(("look", None), ("go" if n < 3 else "stay", None), ("x" if n < 3 else "y", None), "z"))
             for n in range(6)]  # fmt: skip
    assert fork_of(*chain).step == 2


def test_all_passed_or_the_same_steps_have_no_fork() -> None:
    assert first_divergence(tree()) is None
    assert first_divergence(tree((True, done("a")), (True, done("b")))) is None
    assert first_divergence(tree((True, done("a")), (False, done("a")))) is None


def test_a_run_that_ends_earlier_than_others_is_a_branch() -> None:
    fork = fork_of(
        (True, done("a", "b")), (True, done("a", "b")), (False, done("a")), (False, done("a"))
    )  # fmt: skip
    assert fork_text(fork) == "step 2: 2 of 4 answer (2/2 pass), 2 stop there (0/2 pass)"
    assert run_text(fork, "r2").endswith("this run stopped there (0 of 2 pass)")
    broken = fork_of((True, done(FIND, "b")), (False, done(FIND, error="timeout")))
    assert "1 ends in an error (timeout) (0/1 pass)" in fork_text(broken)
    silent = fork_of((True, done(FIND, "b")), (False, done(FIND)))
    assert "1 stops there" in fork_text(silent)


def test_many_branches_are_named_in_part() -> None:
    runs = [(True, done(("good", None), "x"))] * 20
    runs += [(False, done((f"bad{n}", None), "x")) for n in range(5)]
    assert fork_text(fork_of(*runs)) == (
        "step 1: 20 of 25 call good (20/20 pass), 1 calls bad0 (0/1 pass), 1 calls bad1 (0/1 pass),"
        " 3 go 3 other ways (0/3 pass)"
    )


steps = st.lists(st.one_of(st.sampled_from(["yes", "no"]), st.tuples(st.sampled_from("ab"), st.none())), max_size=4)


@given(st.lists(st.tuples(st.booleans(), steps), max_size=12))
def test_every_run_is_counted_once_at_every_step(runs: list[tuple[bool, list[Any]]]) -> None:
    made = tree(*((passed, done(*taken)) for passed, taken in runs))
    assert (made.root.passed, made.root.failed) == (sum(p for p, _ in runs), sum(not p for p, _ in runs))
    for node in [made.root, *made.nodes()]:
        assert sorted(node.runs) == sorted(set(node.runs))
        assert node.passed == sum(made.ways[run].passed for run in node.runs)
        if node.branches:
            assert sorted(run for one in node.branches for run in one.runs) == sorted(node.runs)
            assert len({one.act.key for one in node.branches}) == len(node.branches)
    for run, way in made.ways.items():
        assert [node.act.key for node in made.follow(run)] == [act.key for act in way.acts]
    fork = first_divergence(made)
    if fork is not None:
        assert len(fork.branches) > 1
        assert 0 < fork.gain <= 1
        assert fork_text(fork)
        assert all(run_text(fork, run) for run in fork.node.runs)


def test_a_thousand_repetitions_that_part_late() -> None:
    alike = acts_of(done(*(("step", {"n": n}) for n in range(50)), "bye"))[:-1]
    ends = {good: acts_of(done(("right" if good else "wrong", None), "bye")) for good in (True, False)}
    fork = first_divergence(tree_of(Trajectory(f"r{n}", n % 3 == 0, (*alike, *ends[n % 3 == 0])) for n in range(1_000)))
    assert fork is not None
    assert fork.step == 51
    assert [(branch.passed, branch.failed) for branch in fork.branches] == [(0, 666), (334, 0)]


def asked(said: str, *contexts: list[str], tools: tuple[str, ...] = ("find",), system: str = "S") -> Transcript:
    """A run that asks with these contexts; each answer but the last is alike."""
    messages = [{"role": "user", "content": contexts[0][0]}]
    requests = []
    for number, context in enumerate(contexts, 1):
        answer = said if number == len(contexts) else f"answer {number}"
        told = tuple([{"role": "user", "content": text} for text in context])
        offered = tuple([OfferedTool(name) for name in tools])
        requests.append(ModelRequest(number, 1, "m", system, told, offered, answer=len(messages)))
        messages.append({"role": "assistant", "content": answer})
    return replace(from_openai_messages(messages), requests=ModelRequests.of(requests))


GROWS, SHRINKS = (["a"], ["a", "b"], ["a", "b", "c"]), (["a"], ["a", "b"], ["b", "c"])


def parted(*runs: tuple[bool, Transcript]) -> str:
    compared = compared_in([one for _, one in runs])
    fork = first_divergence(
        tree_of(Trajectory(f"r{n}", passed, acts_of(one, compared)) for n, (passed, one) in enumerate(runs))
    )
    return "" if fork is None else fork_text(fork)


def test_runs_part_where_a_request_lacks_what_those_of_others_have() -> None:
    runs = [(True, asked(f"good {n}", *GROWS)) for n in range(3)]
    runs += [(False, asked(f"bad {n}", *SHRINKS)) for n in range(3)]
    assert parted(*runs).startswith("step 3: 3 of 6 ask with another context (1 message dropped) (0/3 pass)")
    without = [(passed, replace(one, requests=None)) for passed, one in runs]
    assert "context" not in parted(*without)
    assert "context" not in parted(*runs, without[0])  # of one of them nothing is known


def test_runs_part_where_their_first_requests_differ() -> None:
    runs = [(True, asked("good", ["a"], tools=("find", "pay"))) for _ in range(3)]
    runs += [(False, asked("bad", ["a"])) for _ in range(3)]
    said = "step 1: 3 of 6 start with find and pay and a system prompt of 1 character (3/3 pass), 3 start with find"
    assert parted(*runs).startswith(said)


def told(passed: bool, result: str, answer: str) -> tuple[bool, Transcript]:
    run = done(FIND, answer)
    return passed, replace(run, tool_calls=(replace(run.tool_calls[0], result=result),))


def test_runs_part_where_a_tool_gives_another_result() -> None:
    runs = [told(True, "ann@example.org", f"Mail to Ann, {n}") for n in range(3)]
    runs += [told(False, "Error: 'mail'", f"I could not, {n}") for n in range(2)]
    said = 'step 2: 3 of 5 get "ann@example.org" from find (3/3 pass), 2 get "Error: \'mail\'" from find (0/2 pass)'
    assert parted(*runs) == said
    change = first_change(runs[0][1], runs[4][1])
    assert step_change_text(change).startswith('step 2: it got "ann@example.org" from find, now it gets "Error: ')


def test_results_that_differ_each_time_part_nothing() -> None:
    runs = [told(n < 3, f"at {n} o'clock", "good" if n < 3 else "bad") for n in range(6)]
    assert parted(*runs).startswith("step 2: 3 of 6 answer")


def test_a_prompt_that_is_new_each_time_parts_nothing() -> None:
    words = ("one", "two", "three", "four", "five", "six")
    runs = [(n < 3, asked("good" if n < 3 else "bad", ["a"], system=f"Today is {words[n]}")) for n in range(6)]
    assert parted(*runs).startswith("step 1: 3 of 6 answer")
    dated = [(n < 3, asked("good" if n < 3 else "bad", ["a"], system=f"It is 2026-01-0{n}")) for n in range(6)]
    assert parted(*dated).startswith("step 1: 3 of 6 answer")
