"""What the model saw of a transcript at each answer: planted losses, and recordings without any."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.transcripts.visible_messages import Sight, losses


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def recording(*requests: tuple[list[int], str], messages: int = 8, system: str = "S") -> Transcript:
    """Messages `m1`, `m2`, ... of the user and the assistant in turn behind a system prompt; each request is (the
    messages that it has, its system prompt), and led to the message behind the last of them."""
    texts = [Message("system", system)]
    texts += [Message("user" if number % 2 else "assistant", f"m{number}") for number in range(1, messages + 1)]
    asked = [
        ModelRequest(
            number, 1, "m", prompt, tuple(said(texts[one].role, texts[one].content) for one in has), answer=has[-1] + 1
        )
        for number, (has, prompt) in enumerate(requests, 1)
    ]
    return Transcript(tuple(texts), requests=ModelRequests.of(asked))


def test_messages_that_were_dropped_are_out_of_sight_from_then_on() -> None:
    transcript = recording(([1], "S"), ([1, 2, 3], "S"), ([3, 4, 5], "S"), ([7], "S"))
    sight = Sight(transcript)
    assert [sorted(sight.out_of_sight(number)) for number in range(5)] == [[], [], [], [1, 2], [1, 2, 3, 4, 5, 6]]
    assert [change.kind for _, change in losses(transcript.requests or ModelRequests())] == ["dropped", "restarted"]


def test_the_request_of_a_message_is_that_of_the_next_answer() -> None:
    sight = Sight(recording(([1], "S"), ([1, 2, 3], "S")))
    assert [sight.request_at(message) for message in range(6)] == [1, 1, 1, 2, 2, 0]


def test_another_system_prompt_hides_the_one_before() -> None:
    transcript = recording(([1], "S"), ([1, 2, 3], "Other"))
    assert Sight(transcript).out_of_sight(2) == {0}
    parts = recording(([1], "S\n\nmore"))
    assert Sight(parts).out_of_sight(1) == frozenset()


def test_an_answer_that_is_given_again_and_again_is_out_of_sight_with_its_question() -> None:
    texts = ["one", "ok", "two", "ok", "three", "ok", "four", "ok", "five", "ok"]
    messages = tuple(Message("assistant" if text == "ok" else "user", text) for text in texts)
    for kept, lost in (
        ((2, 3, 4, 5, 6, 7, 8), {0, 1}),
        ((0, 1, 4, 5, 8), {2, 3, 6, 7}),
        ((5, 6, 7, 8), {0, 1, 2, 3, 4}),
    ):
        asked = ModelRequest(1, 1, messages=tuple(said(messages[n].role, texts[n]) for n in kept), answer=9)
        sight = Sight(Transcript(messages, requests=ModelRequests.of([asked])))
        assert sight.out_of_sight(1) == lost
        assert sight.standing(1) == {index: place for place, index in enumerate(kept)}
        assert sight.only_told(1) == {}


def test_where_it_is_not_known_nothing_is_out_of_sight() -> None:
    assert Sight(Transcript((Message("user", "m1"),))).out_of_sight(0) == frozenset()
    kept = ModelRequests.of([ModelRequest(1, 1, messages=(said("user", "m3"),), previous="resp", answer=2)])
    messages = tuple(Message("user", f"m{number}") for number in (1, 2, 3))
    assert Sight(Transcript(messages, requests=kept)).out_of_sight(1) == frozenset()


def test_a_result_that_was_shortened_is_out_of_sight_and_calls_are_known_by_what_they_are() -> None:
    calls = (ToolCall("own", "find", {"q": "a"}, "42 socks and more"),)
    messages = (
        Message("user", "go"), Message("assistant", "I look.", tool_calls=(0,)),
        Message("tool", "42 socks and more", tool_call=0), Message("assistant", "done"),
    )  # fmt: skip
    call = {"id": "other", "function": {"name": "find", "arguments": '{"q": "a"}'}}

    def seen(result: str) -> frozenset[int]:
        asked = (said("user", "go"), {"role": "assistant", "tool_calls": [call]}, said("tool", result))
        requests = ModelRequests.of([ModelRequest(1, 1, messages=asked, answer=3)])
        return Sight(Transcript(messages, calls, requests=requests)).out_of_sight(1)

    assert seen("42 socks and more") == frozenset()
    assert seen("[cut]") == {2}


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 3))
def test_exactly_what_was_left_out_is_out_of_sight(kept: list[bool], more: int) -> None:
    has = [number for number, keep in enumerate(kept, 1) if keep] + [len(kept) + 1]
    transcript = recording((has, "S"), messages=len(kept) + 2 + more)
    assert Sight(transcript).out_of_sight(1) == {number for number, keep in enumerate(kept, 1) if not keep}


@given(st.integers(1, 10))
def test_a_conversation_that_only_grows_loses_nothing(turns: int) -> None:
    transcript = recording(*((list(range(1, 2 * turn)), "S") for turn in range(1, turns + 1)), messages=2 * turns)
    sight = Sight(transcript)
    assert not any(sight.out_of_sight(number) for number in range(1, turns + 1))
    assert not list(losses(transcript.requests or ModelRequests()))
