"""Transcripts without secrets."""

from __future__ import annotations

import json

from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Message, RunError, Step, Timing, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

KEY = "sk-0123456789abcdef"


def full(key: str) -> Transcript:
    """A transcript with `key` in each of its texts."""
    return Transcript(
        messages=(
            Message("user", f"use {key}"),
            Message("assistant", f"is {key}", f"hm {key}", (0,)),
            Message("tool", f"got {key}", tool_call=0, tool_call_id=f"id {key}", name=f"n {key}"),
        ),
        tool_calls=(
            ToolCall(f"id {key}", f"n {key}", {"a": [{"b": key}], key: 5}, f"got {key}", message=1),
            ToolCall("2", "broken", f'{{"k": "{key}', malformed=True),
        ),
        timing=Timing(1.0, 2.0, (Step(f"n {key}", 0.0, 1.0),)),
        usage=Usage(5, 6),
        model=f"m {key}",
        finish_reason=f"f {key}",
        final_output=f"is {key}",
        error=RunError("auth", f"bad {key}", f"not {key}"),
    )


def test_every_text_is_cleaned_and_nothing_else_changes() -> None:
    cleaned = TranscriptRedactor([KEY]).transcript(full(KEY))
    assert cleaned == full("***")
    assert KEY not in json.dumps(to_json(cleaned))


def test_a_transcript_without_secrets_is_the_same_object() -> None:
    transcript = full("harmless")
    assert TranscriptRedactor([KEY]).transcript(transcript) is transcript
    assert TranscriptRedactor([]).transcript(full(KEY)) == full(KEY)


def test_a_secret_in_one_place_is_enough() -> None:
    for transcript in (
        Transcript(error=RunError("x", KEY)),
        Transcript(final_output=KEY),
        Transcript(tool_calls=(ToolCall("1", "f", {"a": KEY}),)),
        Transcript(timing=Timing(steps=(Step(KEY, 0, 0),)), tool_calls=(ToolCall("1", KEY, None),)),
    ):
        assert KEY not in json.dumps(to_json(TranscriptRedactor([KEY]).transcript(transcript)))


def test_no_part_of_a_transcript_holds_one() -> None:
    said = "x aab1aab2 y"
    transcript = Transcript(
        messages=(Message("user", said, reasoning=said, tool_call_id=said, name=said),),
        tool_calls=(ToolCall(said, said, {said: [said, 1]}, said),),
        model=said, finish_reason=said, final_output=said, error=RunError("k", said, said),
    )  # fmt: skip
    redactor = TranscriptRedactor(["aab1aab2"])
    assert "aab1aab2" not in json.dumps(to_json(redactor.transcript(transcript)))
    clean = Transcript(messages=(Message("user", "hello"),), error=RunError("k", "well"))
    assert redactor.transcript(clean) is clean
    assert redactor.error(clean.error or RunError("")) is clean.error
    assert NOTHING.transcript(clean) is clean


def test_in_errors_short_secrets_are_found_as_words() -> None:
    redactor = TranscriptRedactor(["s3cr", "hunter2"])
    error = RunError("k", "login s3cr:hunter2@host was refused; s3crets are none", "fix hunter2")
    assert redactor.error(error) == RunError("k", "login ***:***@host was refused; s3crets are none", "fix ***")
    # Answers are judged as they are: a short word may stand there by chance.
    whole = Transcript(messages=(Message("assistant", "hunter2"),), final_output="hunter2", error=error)
    cleaned = redactor.transcript(whole)
    assert (cleaned.final_output, cleaned.error) == ("hunter2", redactor.error(error))


def test_a_fingerprint_keeps_no_part_of_a_secret() -> None:
    secret = "sk-" + "longsecret" * 12  # a fingerprint cuts it
    error = RunError.told("auth", f"the server answered 401: wrong key: {secret} at http://a/v1")
    cleaned = TranscriptRedactor([secret]).error(error)
    assert "longsecret" not in str(cleaned)
    assert cleaned.fields == RunError.told("auth", "the server answered 401: wrong key: *** at http://a/v1").fields


def test_a_message_with_a_secret_far_down_is_still_a_message() -> None:
    """A recorded program may send anything: what it did is stored all the same."""
    deep: object = "key-0123456789"
    for _ in range(700):
        deep = {"a": deep}
    message = {"role": "user", "content": [{"type": "text", "text": "hi", "more": deep}]}
    requests = ModelRequests.of([ModelRequest(1, 1, messages=(message,), answer=1)])
    transcript = Transcript((Message("user", "hi"), Message("assistant", "hello")), requests=requests)
    cleaned = TranscriptRedactor(["key-0123456789"]).transcript(transcript)
    assert cleaned.requests is not None
    assert cleaned.requests.messages[0]["role"] == "user"
    assert "key-0123456789" not in json.dumps(cleaned.requests.messages)
    assert unpack_transcript(pack_transcript(cleaned)[1]) == cleaned
