"""A simulated user: an agent of the suite asks and answers, until it has what it wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import (
    SIMULATED_USER,
    STOP,
    AgentEvent,
    AgentRequest,
    Done,
    Failed,
    PromptSent,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.analysis.costs import execution_costs
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.estimate import estimate
from agenteval_tui.runs.events import TurnStarted
from agenteval_tui.runs.fork.edits import fork
from agenteval_tui.runs.fork.plan import Question, execution_plan, fork_plan, source_of
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.plan.preview import PlannedUser, preview_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.runs.simulated_user import GREETING
from agenteval_tui.transcripts.model import Message, RunError, Transcript, Usage

Execute = Callable[..., Any]

TALK = """
name: Talks
agent: bot
agents:
  bot: {kind: scripted}
  customer: {kind: scripted, who: customer}
tests:
  - id: talk
    user:
      agent: customer
      persona: in a hurry
      goal: cancel order {{number}}
      knows: {order: "{{number}}", name: Ada}
      max_turns: 4
    variables: {number: W1}
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "answer"}]}'
"""


def said_by(*said: str) -> Callable[[AgentRequest], AsyncIterator[AgentEvent]]:
    """Both agents: the customer says these one after the other, the tested agent calls a tool and answers."""

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if SIMULATED_USER in request.context:
            text = said[min(request.turn, len(said)) - 1]
            yield TextDelta(text)
            yield UsageReported(Usage(100, 10, cost=0.5))
            yield Done("stop", "customer-1")
            return
        if not any(message.role == "system" for message in request.messages):
            yield PromptSent((Message("system", "be nice"), *request.messages))
        yield ToolCallStarted(0, "call_1", "look_up")
        yield TurnEnded()
        yield ToolCallFinished(0, "found")
        yield TextDelta(f"answer to {request.messages[-1].content}")
        yield UsageReported(Usage(7, 1, cost=0.25))
        yield Done("stop", "m")

    return script


THREE = said_by("hello", "it is W1", f"thanks {STOP} and more")


def asked(scripts: Any, *, user: bool) -> list[AgentRequest]:
    return [request for request in scripts.requests if (SIMULATED_USER in request.context) is user]


def only_run(one: Any) -> Any:
    one.store.flush()
    (row,) = one.store.runs_of_execution(one.engine.plan.execution_id)
    return row, one.store.transcript(row.id)


async def test_the_user_sees_the_conversation_from_its_side_and_is_counted_apart(
    execution: Execute, scripts: Any
) -> None:
    scripts.script = THREE
    one = execution(TALK)
    await one.run()
    row, transcript = only_run(one)
    assert row.status == "passed"
    said = [(message.role, message.content, message.simulated) for message in transcript.messages]
    assert said == [
        ("system", "be nice", False), ("user", "hello", True), ("assistant", "", False), ("tool", "found", False),
        ("assistant", "answer to hello", False), ("user", "it is W1", True), ("assistant", "", False),
        ("tool", "found", False), ("assistant", "answer to it is W1", False), ("user", "thanks", True),
    ]  # fmt: skip
    assert transcript.final_output == "answer to it is W1"  # and not what follows the user's last words
    # Roles are swapped, and there are no tools, no calls, no prompts of the agent's.
    first, second, third = asked(scripts, user=True)
    assert [(m.role, m.content) for m in third.messages[1:]] == [
        ("user", GREETING), ("assistant", "hello"), ("user", "answer to hello"), ("assistant", "it is W1"),
        ("user", "answer to it is W1"),
    ]  # fmt: skip
    assert not third.tool_calls
    told = first.messages[0].content
    assert all(word in told for word in ("in a hurry", "cancel order W1", "- order: W1", "- name: Ada", STOP))
    brief = second.context[SIMULATED_USER]
    assert (brief["goal"], brief["knows"], brief["turn"]) == ("cancel order W1", {"order": "W1", "name": "Ada"}, 2)
    assert (first.seed, first.run) == (one.engine.plan.runs[0].seed, f"{row.id}-user")
    # The agent saw an ordinary conversation.
    assert [request.turn for request in asked(scripts, user=False)] == [1, 2]
    assert [(event.turn, event.text, event.simulated) for event in one.of(TurnStarted)] == [
        (1, "hello", True), (2, "it is W1", True)]  # fmt: skip
    assert [part.simulated for part in one.view.runs[row.id].parts if part.kind == "user"] == [True, True]
    # Apart: the agent's figures in the run and the execution, the user's beside them.
    assert (row.input_tokens, row.cost) == (14, 0.5)
    assert transcript.user_usage == Usage(300, 30, cost=1.5)
    assert transcript.timing.setup.keys() == {"simulated user"}
    costs = execution_costs(one.store, row.execution_id)
    assert (costs.agents.cost, costs.judges.count, costs.users.count, costs.users.cost) == (0.5, 0, 3, 1.5)
    assert ([user.name for user in costs.by_user], costs.cost, costs.tokens) == (["customer"], 2.0, 346)
    assert one.store.replies(row.id) == ()  # none of a judge
    assert one.store.judge_usage(row.execution_id)[0] == 0
    progress = one.view.progress
    assert (progress.cost, progress.user_tokens, progress.user_cost, progress.total_cost) == (0.5, 330, 1.5, 2.0)


async def test_the_same_conversation_is_not_asked_again(execution: Execute, scripts: Any) -> None:
    scripts.script = THREE
    first = execution(TALK)
    await first.run()
    before = only_run(first)[1]
    scripts.requests.clear()
    again = execution(TALK)
    await again.run()
    row, transcript = only_run(again)
    assert not asked(scripts, user=True)
    assert [m.content for m in transcript.messages] == [m.content for m in before.messages]
    assert transcript.user_usage == Usage()
    assert execution_costs(again.store, row.execution_id).users.count == 0
    # Another seed is another conversation, and so are another brief and another agent.
    for changed, seed in ((TALK, 7), (TALK.replace("hurry", "rage"), 0), (TALK.replace("who: cust", "who: a cust"), 0)):
        scripts.requests.clear()
        await execution(changed, seed=seed).run()
        assert len(asked(scripts, user=True)) == 3


async def test_both_arms_of_a_comparison_hear_the_same_opening(execution: Execute, scripts: Any) -> None:
    scripts.script = THREE
    one = execution(TALK.replace("  bot: {kind: scripted}", "  bot: {kind: scripted}\n  bat: {kind: scripted, v: 2}"),
                    ab=("bot", "bat"))  # fmt: skip
    await one.run()
    assert [request.turn for request in asked(scripts, user=True)] == [1, 2, 3]
    assert execution_costs(one.store, one.engine.plan.execution_id).users.cost == 1.5
    assert one.view.progress.user_cost == 1.5


async def test_an_attempt_that_fails_does_not_ask_the_user_again(execution: Execute, scripts: Any) -> None:
    failed = [Failed(RunError("connection", "lost"), retry=True)]

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if SIMULATED_USER not in request.context and request.turn == 2 and failed:
            yield failed.pop()
            return
        async for event in THREE(request):
            yield event

    scripts.script = script
    one = execution(TALK)
    await one.run()
    row, transcript = only_run(one)
    assert (row.status, row.attempts) == ("passed", 2)
    assert len(asked(scripts, user=True)) == 3
    assert transcript.user_usage.cost == 1.5


async def test_it_speaks_at_most_max_turns_times_after_what_is_written(execution: Execute, scripts: Any) -> None:
    scripts.script = said_by("more")
    one = execution(
        TALK.replace("    user:\n", "    turns: [first, second]\n    user:\n").replace("_turns: 4", "_turns: 2")
    )
    await one.run()
    row, transcript = only_run(one)
    users = [(message.content, message.simulated) for message in transcript.messages if message.role == "user"]
    assert users == [("first", False), ("second", False), ("more", True), ("more", True)]
    assert [note.description for note in transcript.notes] == [
        "the simulated user did not end the conversation: it reached max_turns (2)"
    ]
    assert row.status == "passed"
    assert row.prompt_head == "first"


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("", "user_silent", "the simulated user (customer) said nothing"),
        (STOP, "user_silent", "the simulated user (customer) ended the conversation before its first message"),
    ],
)
async def test_a_silent_user_is_to_blame_and_not_the_agent(
    execution: Execute, scripts: Any, said: str, code: str, words: str
) -> None:
    scripts.script = said_by(said)
    one = execution(TALK)
    await one.run()
    row, transcript = only_run(one)
    assert (row.status, row.error_kind, transcript.error.code, transcript.error.message) == (
        "error",
        "user",
        code,
        words,
    )
    assert not asked(scripts, user=False)


async def test_a_broken_user_is_to_blame_and_what_was_said_is_kept(execution: Execute, scripts: Any) -> None:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        if SIMULATED_USER in request.context and request.turn == 2:
            yield UsageReported(Usage(5, 0, cost=0.1))
            yield Failed(RunError("auth", "the key was refused", "set it", "key_refused"), retry=False)
            return
        async for event in THREE(request):
            yield event

    scripts.script = script
    one = execution(TALK)
    await one.run()
    row, transcript = only_run(one)
    error = transcript.error
    assert (row.status, error.kind, error.code, error.fields) == (
        "error",
        "user",
        "user_failed",
        {"why": "key_refused"},
    )
    assert error.message == "the simulated user (customer) did not answer: the key was refused"
    assert [message.content for message in transcript.messages][-1] == "answer to hello"
    assert transcript.user_usage.cost == pytest.approx(0.6)
    # The next time the opening is known, and the rest is asked.
    scripts.script = THREE
    scripts.requests.clear()
    again = resume_plan(one.store, row.execution_id, errors=True).plan
    assert again.runs[0].user == one.engine.plan.runs[0].user
    await type(one.engine)(again, one.store, lambda event: None).run()
    assert [request.turn for request in asked(scripts, user=True)] == [2, 3]
    one.store.flush()
    assert one.store.run(row.id).status == "passed"
    assert execution_costs(one.store, row.execution_id).users.cost == pytest.approx(1.6)


async def test_a_user_that_raises_and_one_that_is_too_slow(execution: Execute, scripts: Any) -> None:
    async def raises(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        raise ValueError("no")
        yield

    scripts.script = raises
    one = execution(TALK)
    await one.run()
    assert "customer) did not answer: the agent raised ValueError: no" in only_run(one)[1].error.message

    async def stalls(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await asyncio.sleep(60)
        yield Done()

    scripts.script = stalls
    one = execution(TALK.replace("in a hurry", "slow"), timeout=0.05)
    await one.run()
    error = only_run(one)[1].error
    assert (error.kind, error.code) == ("user", "user_timeout")
    assert "the simulated user (customer) had not answered when the run's time of 0.05 s was over" in error.message


async def test_a_recording_plays_the_user(execution: Execute, scripts: Any, tmp_path: Path) -> None:
    scripts.script = THREE
    (tmp_path / "talk.jsonl").write_text(
        '{"test": "talk", "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "x"},'
        ' {"role": "user", "content": "two"}, {"role": "assistant", "content": "y"}]}\n'
    )
    one = execution(TALK.replace("{kind: scripted, who: customer}", "{kind: replay, file: talk.jsonl}"))
    await one.run()
    row, transcript = only_run(one)
    assert row.status == "passed"
    assert [m.content for m in transcript.messages if m.role == "user"] == ["one", "two"]
    assert not asked(scripts, user=True)


async def test_a_recorded_agent_needs_no_user(execution: Execute, scripts: Any, tmp_path: Path) -> None:
    scripts.script = THREE
    (tmp_path / "talk.jsonl").write_text(
        '{"test": "talk", "messages": [{"role": "user", "content": "one"},'
        ' {"role": "assistant", "content": "answer"}]}\n'
    )
    one = execution(TALK.replace("bot: {kind: scripted}", "bot: {kind: replay, file: talk.jsonl}"))
    await one.run()
    assert (only_run(one)[0].status, scripts.requests) == ("passed", [])


async def test_an_answer_of_the_history_stands_for_the_whole_conversation(execution: Execute, scripts: Any) -> None:
    scripts.script = THREE
    await execution(TALK).run()
    scripts.requests.clear()
    one = execution(TALK, cache="all")
    await one.run()
    row, transcript = only_run(one)
    assert (scripts.requests, row.cached, transcript.user_usage.cost) == ([], True, 1.5)
    assert execution_costs(one.store, row.execution_id).cost is None
    # Another user makes another conversation.
    await execution(TALK.replace("hurry", "rage"), cache="all").run()
    assert len(asked(scripts, user=False)) == 2


async def test_a_limit_on_cost_counts_the_user(execution: Execute, scripts: Any) -> None:
    scripts.script = THREE
    one = execution(TALK.replace("  - id: talk", "  - id: talk\n    repeat: 5"), max_cost=3.0, concurrency=1)
    ended = await one.run()
    assert ended.status == "stopped"
    assert "the limit of $3.00 was reached after 1 of 5 runs" in ended.message


async def test_what_a_plan_says_of_users(execution: Execute, scripts: Any, store: Any) -> None:
    scripts.script = THREE
    one = execution(TALK.replace("  - id: talk", "  - id: talk\n    repeat: 3"))
    plan = one.engine.plan
    assert plan.runs[0].timeout_s == 4 * 60  # for each time that it may speak, where nobody said more
    assert preview_plan(plan, None).users == (PlannedUser("customer", 3, 4),)
    assert (estimate(plan, None).users.asked, estimate(plan, None).users.cost) == (3, None)
    await one.run()
    store.flush()
    takes = estimate(plan, store)
    assert (takes.cost.expected, takes.users.cost.expected, takes.users.questions.expected) == (1.5, 4.5, 9)
    assert (takes.judges.asked, takes.judges.cost, takes.whole_cost) == (0, None, 6.0)


def test_a_user_that_nobody_plays_is_refused_before_anything_runs(suite: Any) -> None:
    with pytest.raises(AgentevalError, match=r"the simulated user: .*nobody"):
        make_plan([suite(TALK.replace("agent: customer", "agent: nobody"))], PlanOptions(), user_agents={})


def test_a_transcript_keeps_who_was_simulated() -> None:
    from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
    from agenteval_tui.transcripts.codec import from_json, to_json

    messages = (Message("user", "hi", simulated=True), Message("assistant", "hello"), Message("user", "x", name="Ada"))
    for made in (Transcript(messages), Transcript(messages, user_usage=Usage(3, cost=0.5))):
        assert unpack_transcript(pack_transcript(made)[1]) == made
        assert from_json(to_json(made)).user_usage == made.user_usage
        assert from_json(to_json(made)).messages == messages
    assert "simulated" not in str(to_json(Transcript(messages[1:])))


async def test_in_a_fork_the_user_speaks_anew(execution: Execute, scripts: Any) -> None:
    scripts.script = THREE
    one = execution(TALK)
    await one.run()
    row, transcript = only_run(one)
    conversation = fork(transcript, 4)
    assert [(m.role, m.simulated) for m in conversation.messages][-2:] == [("assistant", False), ("user", True)]
    assert conversation.turns == ()
    source = source_of(one.store, row)
    runs = fork_plan(one.store, source, [Question(conversation, 4)], 1).runs
    scripts.requests.clear()
    await type(one.engine)(execution_plan(source, runs), one.store, lambda event: None).run()
    # It has spoken twice before: the third message is its goodbye.
    assert [request.turn for request in asked(scripts, user=True)] == [3]
    assert [message.content for message in one.store.transcript(runs[0].ref.run).messages][-2:] == [
        "answer to it is W1", "thanks"]  # fmt: skip
