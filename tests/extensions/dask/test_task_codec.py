"""What goes between an execution and a worker: tasks and events as data, merged and in order; no library needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentNamed,
    AgentRequest,
    Asks,
    Attached,
    Captured,
    CheckReport,
    Done,
    Failed,
    LogLine,
    ModelAsked,
    Noted,
    Prepared,
    Preparing,
    Printed,
    PromptSent,
    ReasoningDelta,
    Recorded,
    Restarted,
    Seen,
    TextDelta,
    TextWasReasoning,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.extensions.dask.executor import ClusterAgent, Inbox
from agenteval_tui.extensions.dask.task_codec import event_data, read_event, read_task, task_data
from agenteval_tui.extensions.dask.worker import LONGEST, PIECE, STREAMED, EventBuffer
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.transcripts.model import Attachment, Message, Note, RunError, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

CAT = Attachment("image/png", 3, "ab" * 32, "cat.png", "a cat", "", "[image: a cat]")
EVENTS: list[AgentEvent] = [
    PromptSent((Message("system", "Be kind"), Message("assistant", "", tool_calls=(0,)))),
    PromptSent((Message("user", "What is on it?", attachments=(CAT,)),)),
    TextDelta("a\ud800b"),
    ReasoningDelta("hm"),
    ToolCallStarted(0, "c1", "find"),
    ToolArgumentsDelta(0, '{"a": 1}'),
    ToolCallFinished(0, "found", True, 1.5),
    TurnEnded(),
    AgentNamed("billing"),
    UsageReported(Usage(1, 2, None, 3, 0.5)),
    Preparing(),
    Prepared("import", 12.5),
    Restarted(),
    TextWasReasoning("b"),
    Noted(Note("unread", "Thing")),
    Attached(CAT),
    LogLine("a warning"),
    Printed("log", "slow\n", "WARNING", "shop"),
    ModelAsked(
        [{"role": "user", "content": "a"}],
        {"role": "assistant"},
        {"tools": []},
        agent="desk",
        started_ms=1.5,
        duration_ms=2.5,
        unrecorded=["parameters"],
    ),
    Recorded(Transcript((Message("assistant", "yes"),), final_output="yes")),
    Seen(Transcript((Message("assistant", "y"),), final_output="y")),
    Captured(Transcript((Message("assistant", "yes"),), final_output="yes"), ({"agenteval_cassette": 1},)),
    Failed(RunError("busy", "later", "wait"), True, 3.0),
    Done("stop", "m"),
]


def gathered(secrets: tuple[str, ...] = ()) -> tuple[EventBuffer, list[tuple[int, list[Any]]]]:
    sent: list[tuple[int, list[Any]]] = []
    return EventBuffer(lambda first, events: sent.append((first, list(events))), TranscriptRedactor(secrets)), sent


def events_of(made: EventBuffer) -> list[AgentEvent]:
    return [read_event(one) for one in made.events]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_as_it_was(event: AgentEvent) -> None:
    assert read_event(json.loads(json.dumps(event_data(event)))) == event


def test_no_kind_of_event_is_missing() -> None:
    # That a model is asked now is for who can let it wait, and stays on the worker.
    assert {type(event) for event in EVENTS} == set(get_args(AgentEvent)) - {Asks}


@pytest.mark.parametrize("data", [["Unknown", {}], ["TextDelta", {"words": "a"}], ["Failed", 3], 7, [], None])
def test_what_is_no_event_is_refused(data: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_event(data)


def test_a_task_holds_the_request_but_no_expanded_configuration() -> None:
    agent = AgentPlan("bot", {"kind": "http", "headers": {"X-Key": "${KEY}"}}, Path("/suite"), "hash")
    call = ToolCall("c1", "find", {"a": [1]}, "found", message=1)
    request = AgentRequest(
        (Message("user", "Hi"), Message("assistant", "", tool_calls=(0,)), Message("tool", "found", tool_call=0)),
        config={"kind": "http", "headers": {"X-Key": "the-value-of-KEY"}},
        context={"a": {"b": 1}},
        test_id="t",
        repetition=3,
        seed=9,
        tool_calls=(call,),
        run="R1",
        turn=2,
    )
    text = json.dumps(task_data("topic", agent, request, permission_for((), everything=True)))
    assert "the-value-of-KEY" not in text
    task = read_task(json.loads(text))
    assert (task.topic, task.permission.trusted, task.agent.config) == ("topic", True, agent.config)
    assert task.agent.base_dir == Path("/suite")
    same = AgentRequest(request.messages, {}, request.context, "t", 3, 9, (call,), "R1", 2)
    assert task.request == same


def test_texts_become_one_until_they_are_sent() -> None:
    made, sent = gathered()
    for event in (TextDelta("a"), TextDelta("b"), ReasoningDelta("c"), TextDelta("z")):
        made.add(event)
    made.flush()
    made.flush()
    made.add(TextDelta("e"))
    made.add(Done())
    made.flush()
    assert events_of(made) == [TextDelta("ab"), ReasoningDelta("c"), TextDelta("z"), TextDelta("e"), Done()]
    assert [(first, len(events)) for first, events in sent] == [(0, 3), (3, 2)]


def test_a_secret_of_the_worker_is_taken_out_though_it_comes_in_pieces() -> None:
    made, sent = gathered(("sk-12345678",))
    for event in (TextDelta("my sk-12"), ReasoningDelta("the sk-12345678"), TextDelta("345678 it")):
        made.add(event)
        made.flush()
    made.add(ToolCallStarted(0, "c", "find"))
    made.add(ToolArgumentsDelta(0, '"sk-1234'))
    made.flush()
    made.add(ToolCallFinished(0, "sk-12345678"))
    made.add(Failed(RunError("http", "refused sk-12345678")))
    made.flush()
    assert "12345678" not in json.dumps(sent)
    assert events_of(made) == [
        TextDelta("my "),
        ReasoningDelta("the ***"),
        TextDelta("*** it"),
        ToolCallStarted(0, "c", "find"),
        ToolArgumentsDelta(0, '"'),
        ToolArgumentsDelta(0, "***"),  # half of one, and no more of it came
        ToolCallFinished(0, "***"),
        Failed(RunError("http", "refused ***")),
    ]


def test_no_more_is_streamed_than_a_scheduler_should_hold() -> None:
    made, sent = gathered()
    for _ in range(30):
        made.add(TextDelta("x" * 100_000))
        made.flush()
    made.add(Done())
    made.flush()
    sizes = [len(json.dumps(events)) for _, events in sent]
    assert max(sizes) <= PIECE + 100
    assert STREAMED <= sum(sizes) < STREAMED + 200_000
    assert sum(len(one.text) for one in events_of(made) if isinstance(one, TextDelta)) == 3_000_000


def test_an_event_that_is_too_long_ends_the_stream() -> None:
    made, sent = gathered()
    made.add(TextDelta("before"))
    made.add(ToolCallFinished(0, "x" * LONGEST))
    made.add(Done())
    made.flush()
    assert sent == [(0, [event_data(TextDelta("before"))])]
    assert len(made.events) == 3


def said(first: int, *events: AgentEvent, end: bool = False, worker: str = "w1") -> dict[str, Any]:
    return {
        "first": first, "end": end, "worker": worker, "events": json.dumps([event_data(one) for one in events]),
    }  # fmt: skip


def test_messages_in_order_are_the_answer() -> None:
    inbox = Inbox()
    inbox.put(said(0))
    inbox.put(said(0, TextDelta("a")))
    assert inbox.taken() == [TextDelta("a")]
    assert not inbox.closing
    inbox.put(said(1, Done()))
    assert (inbox.closing, inbox.whole) == (True, False)
    inbox.put(said(2, end=True))
    assert (inbox.closing, inbox.whole, inbox.ended) == (True, True, False)
    assert inbox.taken() == [Done()]
    assert inbox.ended


@pytest.mark.parametrize(
    "wrong",
    [
        said(2, TextDelta("c")),  # one was lost
        said(0, TextDelta("a")),  # one came twice
        said(1, TextDelta("b"), worker="w2"),  # another worker began it again
        {**said(1), "events": "[["},
        {**said(1), "events": '[["Unknown", {}]]'},
    ],
)
def test_after_a_message_that_does_not_fit_the_rest_is_left_to_the_result(wrong: dict[str, Any]) -> None:
    inbox = Inbox()
    inbox.put(said(0, TextDelta("a")))
    inbox.put(wrong)
    inbox.put(said(1, TextDelta("b"), end=True))
    assert inbox.taken() == [TextDelta("a")]
    assert (inbox.count, inbox.ended) == (1, False)


def test_a_worker_that_goes_away_after_the_last_word_is_not_missed() -> None:
    inbox = Inbox()
    inbox.put(said(0, Done(), end=True))
    inbox.lose()
    assert not inbox.lost
    inbox.taken()
    assert inbox.ended


def test_nothing_to_withhold_changes_nothing() -> None:
    made = EventBuffer(lambda first, events: None, NOTHING)
    for event in EVENTS:
        made.add(event)
    made.flush()
    assert events_of(made) == EVENTS


async def test_an_agent_of_a_cluster_is_checked_and_closed_on_this_machine() -> None:
    class Here:
        def __init__(self) -> None:
            self.done: list[Any] = []

        async def check(self, thorough: bool = False) -> CheckReport:
            self.done.append(thorough)
            return CheckReport(True, "well")

        async def close(self) -> None:
            self.done.append("closed")

    here = Here()
    agent: Any = ClusterAgent(cast(Any, None), cast(Any, None), cast(Any, here), permission_for(()))
    assert (await agent.check()).message == (await agent.check(True)).message == "well"
    await agent.close()
    assert here.done == [False, True, "closed"]
    nowhere = ClusterAgent(cast(Any, None), cast(Any, None), None, permission_for(()))
    report = await nowhere.check()
    assert not report.ok
    assert "on the workers" in report.message
    await nowhere.close()
