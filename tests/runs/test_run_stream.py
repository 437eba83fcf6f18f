"""What streams of a run: secrets are taken out by value, also where they come in pieces."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.base import ReasoningDelta, ToolArgumentsDelta, ToolCallStarted, TurnEnded
from agenteval_tui.runs.events import ReasoningStreamed, TextStreamed
from agenteval_tui.runs.run_stream import Stream
from agenteval_tui.transcripts.redact import TranscriptRedactor

SECRET = "aab1aab2"


@given(
    st.lists(st.sampled_from(["a", "b", "1", "2", "aab", "aab1aa", SECRET, "-"]), max_size=20),
    st.sets(st.integers(0, 20)),
)
def test_a_secret_never_streams_however_it_is_cut(pieces: list[str], flushes: set[int]) -> None:
    told: list[str] = []
    stream = Stream("r", lambda kind, run, text: told.append(text), TranscriptRedactor([SECRET]))
    for number, piece in enumerate(pieces):
        stream.text(piece)
        if number in flushes:
            stream.flush()
    stream.end()
    said = "".join(told)
    assert SECRET not in said
    redactor = TranscriptRedactor([SECRET])
    assert said == redactor.cut("".join(pieces).replace(SECRET, "***"))


def test_what_is_kept_back_comes_before_another_kind() -> None:
    told: list[tuple[Any, str]] = []
    stream = Stream("r", lambda kind, run, text: told.append((kind, text)), TranscriptRedactor([SECRET]))
    stream.text("so aab1")
    stream.flush()
    assert told == [(TextStreamed, "so ")]
    stream.other(ReasoningDelta("hm"))
    stream.end()
    assert told[1:] == [(TextStreamed, "aab1"), (ReasoningStreamed, "hm")]


def test_text_before_the_end_of_a_call_stands_before_its_arguments() -> None:
    told: list[tuple[str, Any]] = []
    stream = Stream("r", lambda kind, run, *values: told.append((kind.__name__, values[-1])), TranscriptRedactor([]))
    stream.other(ToolCallStarted(0, "c0", "search"))
    stream.other(ToolArgumentsDelta(0, '{"q": 1}'))
    stream.text("I look it up.")
    stream.other(TurnEnded())
    stream.other(TurnEnded())  # told once
    assert told == [("ToolStarted", "search"), ("TextStreamed", "I look it up."), ("ToolArguments", '{"q": 1}')]
