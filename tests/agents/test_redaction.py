"""Secrets are taken out of events, in whatever pieces they come."""

from __future__ import annotations

import pytest

from agenteval_tui.agents.interface import (
    AgentEvent,
    Done,
    Failed,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.agents.redaction import Redactor, secrets_of
from agenteval_tui.transcripts.model import RunError

KEY = "sk-0123456789-abcdef"


def cleaned(*events: AgentEvent, secrets: tuple[str, ...] = (KEY,)) -> list[AgentEvent]:
    redactor = Redactor(secrets)
    return [clean for event in events for clean in redactor.clean(event)]


@pytest.mark.parametrize("size", range(1, len(KEY) + 5))
def test_any_cut_into_pieces(size: int) -> None:
    text = f"a {KEY[:7]} b {KEY}{KEY} c s"
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    made = cleaned(*pieces, TurnEnded())
    said = "".join(event.text for event in made if isinstance(event, TextDelta))
    assert said == f"a {KEY[:7]} b ****** c s"
    assert isinstance(made[-1], TurnEnded)


def test_text_thinking_and_the_arguments_of_each_call_are_apart() -> None:
    made = cleaned(
        TextDelta(KEY[:5]),
        ReasoningDelta(KEY[5:]),
        ToolCallStarted(0, KEY, f"f{KEY}"),
        ToolArgumentsDelta(0, KEY[:5]),
        ToolArgumentsDelta(1, KEY[5:]),
        ToolArgumentsDelta(0, KEY[5:]),
        ToolCallFinished(0, f"got {KEY}"),
        Failed(RunError("auth", KEY, KEY)),
        Done(KEY, KEY),
    )
    assert KEY not in repr(made)
    assert TextDelta(KEY[:5]) in made
    assert ReasoningDelta(KEY[5:]) in made
    assert ToolArgumentsDelta(0, "***") in made
    assert ToolArgumentsDelta(1, KEY[5:]) in made
    assert ToolCallFinished(0, "got ***") in made


@pytest.mark.parametrize("word", ["none", "lm-studio", "EMPTY", "password"])
def test_a_word_that_stands_for_a_key_is_no_secret(word: str) -> None:
    assert cleaned(TextDelta(f"say {word}"), secrets=(word,)) == [TextDelta(f"say {word}")]


def test_what_is_secret() -> None:
    found = secrets_of(
        "the-key",
        {"Authorization": "Bearer abc", "accept": "json", "X-Api-Key": "def"},
        {"token": "ghi/1", "api-version": "7"},
        "https://user:pa%20ss@host/",
        {"body": [{"deep": "x SECRETVALUE y"}], "url": "http://h/PUBLICVALUE"},
        {"MY_SECRET": "SECRETVALUE", "MY_PLACE": "PUBLICVALUE", "OTHER_KEY": "nowhere-in-it"},
    )
    assert set(found) == {
        *("the-key", "Bearer abc", "Bearer%20abc", "abc", "def", "ghi/1", "ghi%2F1"),
        *("pa%20ss", "pa ss", "pa%2520ss", "SECRETVALUE"),
    }
    assert list(found) == sorted(found, key=len, reverse=True)
