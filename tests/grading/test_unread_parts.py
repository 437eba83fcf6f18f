"""A message of which nothing could be read is not checked: never passed, never failed."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.codec import from_json
from agenteval_tui.transcripts.model import Note, Transcript
from agenteval_tui.transcripts.observed import observes

PART = {"type": "hologram", "data": "secret"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
NOT_SECRET = {"metrics": [{"type": "TextMatch", "not_contains_any": ["secret"]}]}


def checked(transcript: Transcript, prototype: str = "TextResponse", negate: bool = False, **config: Any) -> Any:
    return compile_criterion(CriterionSpec("c", prototype, {**NOT_SECRET, **config}, negate=negate)).check(transcript)


def answered(*parts: Any) -> Transcript:
    return from_json([{"role": "user", "content": "?"}, {"role": "assistant", "content": list(parts)}])


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("prototype", ["TextResponse", "JsonResponse"])
@pytest.mark.parametrize("parts", [(PART,), (PART, {"data": 1})])
def test_a_message_of_unknown_parts_is_not_checked(parts: Any, prototype: str, negate: bool) -> None:
    transcript = answered(*parts)
    # What is unknown may have been a call, too.
    assert {note.code for note in transcript.notes} == {"unread", "unread_calls"}
    assert [note.code for note in transcript.notes].count("unread") == len(parts)
    result = checked(transcript, prototype, negate)
    assert result.outcome is Outcome.ERROR
    assert "hologram" in criterion_sentence(result)


def test_what_could_be_read_beside_it_is_checked() -> None:
    assert checked(answered(PART, {"type": "text", "text": "fine"})).outcome is Outcome.PASSED
    assert checked(answered({"type": "text", "text": "a secret"}, PART)).outcome is Outcome.FAILED


def test_images_are_known_parts() -> None:
    transcript = answered(IMAGE)
    assert transcript.notes == ()
    assert checked(transcript).outcome is Outcome.PASSED


def test_an_unread_message_before_the_answer_is_no_obstacle() -> None:
    messages = [{"role": "user", "content": [PART]}, {"role": "assistant", "content": "fine"}]
    assert checked(from_json(messages)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "hologram", "data": "secret"}],
        [{"type": "tool_use", "id": "a", "name": "f", "input": {}}, {"type": "hologram", "data": "secret"}],
        [{"type": "reasoning", "text": "hm"}, {"type": "hologram", "data": "secret"}],
    ],
)
def test_importers_of_parts_say_the_same(content: list[Any]) -> None:
    for key in ("content", "parts"):
        transcript = transcript_of([{"role": "user", "content": "?"}, {"role": "assistant", key: content}])
        assert checked(transcript).outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("what", "seen"),
    [("object", False), ("my.agent.Event", False), ("toolOfTomorrow", False), ("tool_v2", False),
     ("image", True), ("Image", True), ("audio", True),
     ("which of several calls of a step failed", True)],
)  # fmt: skip
def test_a_piece_that_nobody_can_read_may_have_been_a_call(what: str, seen: bool) -> None:
    transcript = Transcript(notes=(Note("unread", what),))
    assert ("tool_calls" in observes(transcript)) is seen
    forbidden = {"metrics": [{"type": "ToolCheck", "tool_call_forbidden": True}]}
    result = compile_criterion(CriterionSpec("c", "ToolResponse", forbidden)).check(transcript)
    assert result.outcome is (Outcome.PASSED if seen else Outcome.ERROR)
