"""The exact requests of a recording: of every protocol, each with the agent that asked."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.transcripts.request_changes import changes_since, difference

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
SYSTEM = "You sell socks."


def exchange(path: str, body: dict[str, Any], answer: Any = None, *, at: float = 0.0, status: int = 200) -> Exchange:
    return Exchange(Question("POST", path, {}, body), Answer(status, "application/json", answer), "", at, at + 5)


CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Any?"}],
    "tools": [{"type": "function", "function": {"name": "find", "description": "finds", "parameters": SCHEMA}}],
    "temperature": 0,
    "stream": True,
}
BODIES = {
    "openai/v1/chat/completions": CHAT,
    "openai/v1/responses": {
        "model": "m", "instructions": SYSTEM, "input": [{"role": "user", "content": "Any?"}], "temperature": 0,
        "tools": [{"type": "function", "name": "find", "description": "finds", "parameters": SCHEMA}],
    },
    "anthropic/v1/messages": {
        "model": "m", "system": SYSTEM, "messages": [{"role": "user", "content": "Any?"}], "temperature": 0,
        "tools": [{"name": "find", "description": "finds", "input_schema": SCHEMA}],
    },
    "gemini/v1beta/models/m:generateContent": {
        "systemInstruction": {"parts": [{"text": SYSTEM}]}, "contents": [{"role": "user", "parts": [{"text": "Any?"}]}],
        "tools": [{"functionDeclarations": [{"name": "find", "description": "finds", "parameters": SCHEMA}]}],
        "temperature": 0,
    },
}  # fmt: skip


def model_requests(recording: list[Exchange]) -> tuple[ModelRequest, ...]:
    requests = transcript_of(recording).requests
    return () if requests is None else requests.all


@pytest.mark.parametrize("path", BODIES)
def test_every_protocol_gives_the_same_request(path: str) -> None:
    (request,) = model_requests([exchange(path, BODIES[path])])
    assert (request.number, request.line, request.model, request.system) == (1, 1, "m", SYSTEM)
    assert [(one["role"], one["content"]) for one in request.messages] == [("user", "Any?")]
    assert [(one.name, one.description, one.parameters) for one in request.tools] == [("find", "finds", SCHEMA)]
    assert request.parameters == {"temperature": 0}
    assert request.previous == ""


@pytest.mark.parametrize("path", BODIES)
def test_an_empty_list_of_tools_has_none(path: str) -> None:
    tools = [{"functionDeclarations": []}] if path.startswith("gemini") else []
    (request,) = model_requests([exchange(path, {**BODIES[path], "tools": tools})])
    assert request.tools == ()


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("openai/v1/responses", {"prompt": {"id": "pmpt_1", "version": "2"}}),
        ("gemini/v1beta/models/m:generateContent", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
    ],
)
def test_what_is_another_protocols_message_is_a_parameter(path: str, parameters: dict[str, Any]) -> None:
    (request,) = model_requests([exchange(path, {**BODIES[path], **parameters})])
    assert request.parameters == {"temperature": 0, **parameters}


def test_what_is_no_question_to_a_model_is_left_out() -> None:
    models = Exchange(Question("GET", "openai/v1/models"), Answer(200, "application/json", {"data": []}))
    broken = exchange("openai/v1/chat/completions", {"messages": 3})
    assert model_requests([models, broken]) == ()


def test_a_conversation_that_the_server_keeps_is_said() -> None:
    for more in ({"previous_response_id": "resp_1"}, {"conversation": "resp_1"}, {"conversation": {"id": "resp_1"}}):
        (request,) = model_requests([exchange("openai/v1/responses", {"model": "m", "input": "and now?", **more})])
        assert request.previous == "resp_1"


def chat(
    messages: list[dict[str, Any]], at: float, *, system: str = SYSTEM, said: str = "Yes.", took: float = 5
) -> Exchange:
    body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages]}
    answer = {"model": "m", "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
    made = exchange("openai/v1/chat/completions", body, answer, at=at)
    return Exchange(made.question, made.answer, "", at, at + took)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


YES = {"role": "assistant", "content": "Yes."}


def test_a_request_is_compared_with_the_one_before_of_the_same_agent() -> None:
    first, other = [user("one")], [user("Give it a title")]
    recording = [
        chat(first, 0),
        chat(other, 10, system="You name things."),
        chat([*first, YES, user("two")], 20),
        chat([*first, YES, user("two"), YES, user("three")], 30),
        chat([user("Summary."), user("three"), YES, user("four")], 40),
        chat([user("What did I ask first?")], 50),
    ]
    known = transcript_of(list(reversed(recording))).requests
    assert known is not None
    requests = known.all
    assert [request.line for request in requests] == [1, 2, 1, 1, 1, 1]
    before = [known.before(request.number) for request in requests]
    assert [one.number if one is not None else None for one in before] == [None, None, 1, 3, 4, 5]
    kinds = [
        [change.kind for change in difference(one, request).changes]
        for one, request in zip(before, requests, strict=True)
        if one is not None
    ]
    assert kinds == [["added"], ["added"], ["replaced", "added"], ["restarted"]]


def test_agents_that_ask_at_the_same_time_with_equal_prompts_are_told_apart() -> None:
    recording = [chat([user("a")], 0, took=20), chat([user("b")], 5, took=20), chat([user("a"), YES, user("c")], 30)]
    assert [request.line for request in model_requests(recording)] == [1, 2, 1]


def test_an_answer_that_failed_says_why() -> None:
    failed = exchange("openai/v1/chat/completions", CHAT, {"error": {"message": "busy"}}, status=503)
    assert "busy" in model_requests([failed])[0].error


def test_each_request_names_the_answer_that_it_led_to() -> None:
    first = [user("one")]
    recording = [
        chat(first, 0, said="One it is, then."),
        chat([user("title?")], 10, system="You name things.", said="A title"),
        chat([*first, {"role": "assistant", "content": "One it is, then."}, user("two")], 20, said="Two it is, then."),
    ]
    transcript = transcript_of(recording)
    assert transcript.requests is not None
    answers = [request.answer for request in transcript.requests.all]
    assert [transcript.messages[place].content for place in answers if place is not None] == [
        "One it is, then.", "A title", "Two it is, then.",
    ]  # fmt: skip
    second = transcript.requests.for_answer(answers[2] or 0)
    assert second is not None
    assert second.number == 3
    assert transcript.requests.for_answer(0) is None


def test_an_answer_that_was_not_used_is_no_answer() -> None:
    again = [chat([user("one")], 0, said="Not this answer."), chat([user("one")], 10, said="But this one here.")]
    transcript = transcript_of(again)
    assert transcript.requests is not None
    assert [request.answer for request in transcript.requests.all] == [None, 2]


def test_each_request_has_the_tokens_that_its_answer_tells() -> None:
    counted = exchange("openai/v1/chat/completions", CHAT, {
        "choices": [{"message": {"role": "assistant", "content": "yes"}}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 64}},
    })  # fmt: skip
    transcript = transcript_of([counted, exchange("anthropic/v1/messages", BODIES["anthropic/v1/messages"], at=20)])
    for read in (transcript, from_json(to_json(transcript)), unpack_transcript(pack_transcript(transcript)[1])):
        assert read.requests is not None
        assert [(one.input_tokens, one.cached_tokens) for one in read.requests.all] == [(90, 64), (None, None)]


def test_requests_are_stored_once_and_read_back() -> None:
    messages, recording = [user("question 0 " + "x" * 500)], []
    for number in range(60):
        said = f"answer {number} " + "y" * 500
        recording.append(chat(list(messages), number * 10.0, said=said))
        messages += [{"role": "assistant", "content": said}, user(f"question {number + 1}")]
    transcript = transcript_of(recording)
    data = to_json(transcript)
    assert from_json(data) == transcript
    assert len(data["requests"]["messages"]) == 119
    stretches = [one["messages"] for one in data["requests"]["requests"]]
    assert stretches == [((0, 2 * number + 1),) for number in range(60)]
    assert len(str(data["requests"])) < 2.5 * len(str(data["messages"]))


def test_a_reference_to_nothing_is_an_error() -> None:
    data = to_json(transcript_of([chat([user("one")], 0)]))
    for name, value in (("system", 1), ("tools", 7), ("parameters", 2), ("messages", [[0, 9]])):
        broken = {
            **data,
            "requests": {**data["requests"], "requests": [{**data["requests"]["requests"][0], name: value}]},
        }
        with pytest.raises(AgentevalError, match="can't be read"):
            from_json(broken)


def test_requests_have_no_secrets() -> None:
    secret = "s3cr3t-value-of-a-key"
    body = {
        **CHAT,
        "messages": [{"role": "system", "content": f"use {secret}"}, user(f"it is {secret}")],
        "user_key": secret,
    }
    transcript = transcript_of(
        [exchange("openai/v1/chat/completions", body, {"error": {"message": secret}}, status=401)]
    )
    assert secret in str(to_json(transcript)["requests"])
    redacted = TranscriptRedactor([secret]).transcript(transcript)
    assert secret not in str(to_json(redacted))
    assert redacted.requests is not None
    assert redacted.requests.all[0].messages[0]["content"] == "it is ***"


messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.sampled_from("abcd")})


@given(
    st.lists(st.tuples(st.lists(messages, max_size=6), st.sampled_from(["", "s", "t"]), st.integers(1, 3)), max_size=8)
)
def test_any_requests_come_out_of_the_tables_as_they_went_in(given_requests: list[tuple[Any, str, int]]) -> None:
    requests = tuple(
        ModelRequest(number, line, "m", system, tuple(asked), (), {"n": number % 2})
        for number, (asked, system, line) in enumerate(given_requests, 1)
    )
    tables = ModelRequests.of(requests)
    assert tables.is_complete
    assert tables.all == requests


def image(letter: str) -> str:
    return base64.b64encode(letter.encode() * 40).decode()


PICTURES: dict[str, tuple[Any, str]] = {
    "openai/v1/chat/completions": (
        lambda data: {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look"},
                        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
                    ],
                }
            ]
        },
        "[image_url]",
    ),
    "openai/v1/responses": (
        lambda data: {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Look"},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
                    ],
                }
            ]
        },
        "[input_image]",
    ),
    "anthropic/v1/messages": (
        lambda data: {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
                    ],
                }
            ]
        },
        "[image]",
    ),
    "gemini/v1beta/models/m:generateContent": (
        lambda data: {
            "contents": [
                {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": data}}]}
            ]
        },
        "[inlineData]",
    ),
}


@pytest.mark.parametrize("path", PICTURES)
def test_an_image_of_a_request_is_known_by_its_bytes(path: str) -> None:
    body, mark = PICTURES[path]
    transcript = transcript_of([exchange(path, {"model": "m", **body(image("a"))})])
    (attachment,) = transcript.messages[0].attachments
    assert (attachment.media_type, attachment.size, attachment.mark) == ("image/png", 40, mark)
    assert attachment.mark in transcript.messages[0].content
    assert transcript.requests is not None
    assert from_json(to_json(transcript)) == transcript
    (told,) = transcript.requests.messages
    assert told["attachments"][0]["sha256"] == attachment.sha256


def seen(text: str, letter: str) -> dict[str, Any]:
    url = {"url": f"data:image/png;base64,{image(letter)}"}
    return {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]}


def test_the_same_question_about_another_image_is_another_question() -> None:
    recording = [chat([seen("Which animal?", "a")], 0, said="A cat."), chat([seen("Which animal?", "b")], 10)]
    transcript = transcript_of(recording)
    assert [message.content for message in transcript.messages if message.role == "assistant"] == ["A cat.", "Yes."]


def test_another_image_in_a_message_is_a_change() -> None:
    first = [seen("Which animal?", "a"), {"role": "assistant", "content": "I see a black cat."}]
    changed = [seen("Which animal?", "b"), {"role": "assistant", "content": "I see a black cat."}]
    transcript = transcript_of([chat(first[:1], 0, said="I see a black cat."), chat([*changed, user("Sure?")], 10)])
    assert transcript.requests is not None
    made = changes_since(transcript.requests, 2)
    assert made is not None
    (change, added) = made.changes
    assert (change.kind, added.kind) == ("changed", "added")
    assert change.was.startswith("[image_url] image/png ")
    assert change.was != change.now
