"""Secrets are taken out by value, also where they come in pieces."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.events import ReasoningStreamed, TextStreamed
from agenteval_tui.runs.secrets import secrets_of
from agenteval_tui.runs.stream import Stream
from agenteval_tui.runs.withheld import NOTHING, Withheld
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

SECRET = "aab1aab2"


@given(
    st.lists(st.sampled_from(["a", "b", "1", "2", "aab", "aab1aa", SECRET, "-"]), max_size=20),
    st.sets(st.integers(0, 20)),
)
def test_a_secret_never_streams_however_it_is_cut(pieces: list[str], flushes: set[int]) -> None:
    told: list[str] = []
    stream = Stream("r", lambda kind, run, text: told.append(text), Withheld([SECRET]))
    for number, piece in enumerate(pieces):
        stream.text(piece)
        if number in flushes:
            stream.flush()
    stream.end()
    said = "".join(told)
    assert SECRET not in said
    assert said == "".join(pieces).replace(SECRET, "***")


def test_what_is_kept_back_comes_before_another_kind() -> None:
    told: list[tuple[Any, str]] = []
    stream = Stream("r", lambda kind, run, text: told.append((kind, text)), Withheld([SECRET]))
    stream.text("so aab1")
    stream.flush()
    assert told == [(TextStreamed, "so ")]
    from agenteval_tui.agents.interface import ReasoningDelta

    stream.other(ReasoningDelta("hm"))
    stream.end()
    assert told[1:] == [(TextStreamed, "aab1"), (ReasoningStreamed, "hm")]


def test_no_part_of_a_transcript_holds_one() -> None:
    said = f"x {SECRET} y"
    transcript = Transcript(
        messages=(Message("user", said, reasoning=said, tool_call_id=said, name=said),),
        tool_calls=(ToolCall(said, said, {said: [said, 1]}, said),),
        model=said, finish_reason=said, final_output=said, error=RunError("k", said, said),
    )  # fmt: skip
    assert SECRET not in str(to_json(Withheld([SECRET]).transcript(transcript)))
    clean = Transcript(messages=(Message("user", "hello"),))
    assert Withheld([SECRET]).transcript(clean) is clean
    assert not NOTHING


def test_which_texts_are_secret() -> None:
    env = {"MY_KEY": "sk-123456789", "URL": "http://example.org/v1", "PLACE": "s3cret-place", "SHORT_KEY": "abc",
           "WORD_TOKEN": "lm-studio", "PLAIN_KEY": "password"}  # fmt: skip
    written = {
        "kind": "openai", "base_url": "${URL}", "api_key_env": "MY_KEY",
        "headers": {"authorization": "Bearer ${PLACE}", "x-api-key": "wr1tten-here"}, "note": "${SHORT_KEY}",
        "judge": {"api_key_env": "PLAIN_KEY"},
    }  # fmt: skip
    assert secrets_of(written, written, env) == {"sk-123456789", "s3cret-place", "wr1tten-here"}
    assert secrets_of({"kind": "demo"}, {"kind": "demo"}, env) == frozenset()
