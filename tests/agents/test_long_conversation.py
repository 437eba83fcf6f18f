"""How much work a conversation takes, as it becomes longer: a Python agent's, and one that is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agenteval_tui.agents.process.python_conversation import Conversation
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from tests.work import lines_run

Piece = Callable[[Conversation], object]


def calls_as_events(number: int) -> Iterator[Piece]:
    call = {"type": "tool_call", "id": f"c{number}", "name": "find", "arguments": {}}
    result = {"type": "tool_result", "id": f"c{number}", "result": f"row {number}"}
    yield lambda conversation: conversation.event(call)
    yield lambda conversation: conversation.event(result)


def calls_in_messages(number: int) -> Iterator[Piece]:
    call: Any = {"id": f"c{number}", "name": "find", "arguments": "{}"}
    asks: Any = {"role": "assistant", "text": "", "reasoning": "", "calls": [call], "id": f"m{number}"}
    answers: Any = {"role": "tool", "call_id": call["id"], "name": "find", "text": f"row {number}", "error": False}
    yield lambda conversation: conversation.one(asks)
    yield lambda conversation: conversation.one(answers)


def calls_one_by_one(number: int) -> Iterator[Piece]:
    call: Any = {"id": f"c{number}", "name": "find", "arguments": "{}"}
    yield lambda conversation: conversation.call(f"m{number}", call)


def steps(pieces: Callable[[int], Iterator[Piece]], length: int) -> int:
    """How many lines run for so many calls."""
    conversation, told = Conversation([{"role": "user", "content": "all rows"}]), list[object]()

    def work() -> None:
        for number in range(length):
            for piece in pieces(number):
                piece(conversation)
                told.extend(conversation.news())

    count = lines_run(work)
    told += conversation.news(end=True)
    assert sum(isinstance(event, dict) and event["type"] == "tool_call" for event in told) == length
    return count


@pytest.mark.parametrize("pieces", [calls_as_events, calls_in_messages, calls_one_by_one])
def test_each_call_of_a_long_run_takes_as_much_work_as_the_first_ones(
    pieces: Callable[[int], Iterator[Piece]],
) -> None:
    assert steps(pieces, 200) < 3 * steps(pieces, 100)


def recorded(length: int) -> list[Exchange]:
    """A request with so many calls, whose results are the same text."""
    function = {"name": "delete", "arguments": "{}"}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in range(length)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    asked = [{"role": "user", "content": "Delete all"}, {"role": "assistant", "tool_calls": calls}, *results]
    question = Question("POST", "openai/v1/chat/completions", {}, {"model": "m", "messages": asked})
    said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]}
    return [Exchange(question, Answer(200, "application/json", said, (5,)), started_ms=0, ended_ms=10)]


def test_results_that_are_the_same_text_take_no_more_work_the_more_there_are() -> None:
    short, long = (lines_run(lambda length=length: transcript_of(recorded(length))) for length in (400, 800))
    assert long < 2.5 * short
