"""Secrets are taken out of events, in whatever pieces they come."""

from __future__ import annotations

import pytest

from agenteval_tui.agents.base import (
    AgentEvent,
    Done,
    Failed,
    ModelAsked,
    PromptSent,
    ReasoningDelta,
    Recorded,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.transcripts.model import Message, RunError, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor

KEY = "sk-0123456789-abcdef"


def cleaned(*events: AgentEvent, secrets: tuple[str, ...] = (KEY,)) -> list[AgentEvent]:
    redactor = EventRedactor(TranscriptRedactor(secrets))
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


def test_prompts_and_recordings() -> None:
    said = (Message("user", f"use {KEY}"),)
    made = cleaned(PromptSent(said), Recorded(Transcript(messages=said, final_output=KEY)))
    assert made == [
        PromptSent((Message("user", "use ***"),)),
        Recorded(Transcript(messages=(Message("user", "use ***"),), final_output="***")),
    ]


def test_requests_of_models() -> None:
    message = {"role": "user", "content": f"my key is {KEY}"}
    asked = ModelAsked([message], {**message, "role": "assistant"}, {"user": KEY}, error=f"no {KEY}")
    made = cleaned(TextDelta(f"a {KEY[:7]}"), asked, TextDelta(f"{KEY[7:]} b"), TurnEnded(), ModelAsked())
    said = "".join(event.text for event in made if isinstance(event, TextDelta))
    assert (KEY in said, KEY[:7] in said, KEY in str(made)) == (False, False, False)
    assert [event.messages for event in made if isinstance(event, ModelAsked)][1] is None


@pytest.mark.parametrize("word", ["none", "lm-studio", "EMPTY", "password", "not-needed", "whatever"])
def test_a_word_that_stands_for_a_key_is_no_secret(word: str) -> None:
    for config in ({"kind": "openai", "api_key_env": "K"}, {"kind": "http", "headers": {"x-api-key": word}}):
        assert cleaned(TextDelta(f"say {word}"), secrets=secrets_of(config, {"K": word})) == [TextDelta(f"say {word}")]
