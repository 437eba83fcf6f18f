"""How much work a Python agent's conversation takes, as it becomes longer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from agenteval_tui.agents.process.python_conversation import Conversation

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
    conversation, count = Conversation([{"role": "user", "content": "all rows"}]), 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    told: list[object] = []
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for number in range(length):
            for piece in pieces(number):
                piece(conversation)
                told += conversation.news()
    finally:
        sys.settrace(before)
    told += conversation.news(end=True)
    assert sum(isinstance(event, dict) and event["type"] == "tool_call" for event in told) == length
    return count


@pytest.mark.parametrize("pieces", [calls_as_events, calls_in_messages, calls_one_by_one])
def test_each_call_of_a_long_run_takes_as_much_work_as_the_first_ones(
    pieces: Callable[[int], Iterator[Piece]],
) -> None:
    assert steps(pieces, 200) < 3 * steps(pieces, 100)
