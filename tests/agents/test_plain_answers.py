"""Data of a project's own that has the keys of a framework or a protocol is an answer like any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.agents.process.protocol import EventReader
from agenteval_tui.agents.process.python_answers import Reader
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.model import Message, Transcript


def transcript_of(pieces: list[Any], *, streamed: bool = False) -> Transcript:
    """What is recorded of an agent that gives these pieces."""
    reader, events, recorder = (
        Reader([{"role": "user", "content": "q"}]),
        EventReader(),
        Recorder([Message("user", "q")]),
    )
    for news in (*(reader.take(piece, streamed) for piece in pieces), reader.end()):
        for event in json.loads(json.dumps(list(news))):
            for read in events.read(event):
                recorder.apply(read)
    return recorder.stored()


@pytest.mark.parametrize(
    ("piece", "answer"),
    [
        ({"answer": "A", "choices": ["A", "B"]}, "A"),
        ({"answer": "A", "choices": [{"id": 1, "label": "red"}]}, "A"),
        ({"question": "Which?", "choices": ["A", "B"]}, '{"question": "Which?", "choices": ["A", "B"]}'),
        ({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}, "hi"),
        ({"answer": "A", "tool_calls": 2}, "A"),
        ({"role": "assistant", "content": "A", "tool_calls": 2}, "A"),
        ([{"name": "Bulbasaur", "type": ["grass", "poison"]}], '[{"name": "Bulbasaur", "type": ["grass", "poison"]}]'),
    ],
)
def test_an_answer_with_the_keys_of_something_else(piece: object, answer: str) -> None:
    transcript = transcript_of([piece])
    assert transcript.tool_calls == ()
    assert transcript.final_output == answer


def test_pieces_whose_keys_are_numbers() -> None:
    assert transcript_of([{1: "x"}, {2: "y"}], streamed=True).final_output == '{"1": "x", "2": "y"}'
