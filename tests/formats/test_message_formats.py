"""Messages that are made of parts, and messages that can't be read: nothing comes in empty that says something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.importers.message_formats import transcript_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ARGS = {"city": "Rome"}
CALL = ("get_weather", ARGS, '{"temp": 21}', "ok")

Given = list[dict[str, Any]]


def ui(*parts: dict[str, Any], **more: Any) -> Given:
    asked = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "weather?"}]}
    return [asked, {"id": "m2", "role": "assistant", "parts": list(parts), **more}]


TEXT = {"type": "text", "text": "21 degrees"}
DONE = {"toolCallId": "c1", "state": "output-available", "input": ARGS, "output": {"temp": 21}}
OLD = {"toolCallId": "c1", "toolName": "get_weather", "state": "result", "args": ARGS, "result": {"temp": 21}}

# What each says: the question, one call with its result, the answer.
SHAPES: dict[str, Given] = {
    "otel": [
        {"role": "user", "parts": [{"type": "text", "content": "weather?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGS}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"temp": 21}}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "21 degrees"}], "finish_reason": "stop"},
    ],
    "vercel ui": ui({"type": "step-start"}, {"type": "tool-get_weather", **DONE}, {"type": "step-start"}, TEXT),
    "vercel ui without steps": ui({"type": "tool-get_weather", **DONE}, TEXT),
    "vercel ui, dynamic": ui({"type": "dynamic-tool", "toolName": "get_weather", **DONE}, TEXT),
    "vercel ui 4": ui({"type": "tool-invocation", "toolInvocation": OLD}, TEXT, content="21 degrees"),
    "vercel ui 4, parts and invocations": ui(
        {"type": "tool-invocation", "toolInvocation": OLD}, TEXT, toolInvocations=[OLD], content="21 degrees"
    ),
    "vercel model": [
        {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "get_weather", "input": ARGS}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "get_weather",
                                      "output": {"type": "json", "value": {"temp": 21}}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "21 degrees"}]},
    ],
    "vercel model 4": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "get_weather", "args": ARGS}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "get_weather", "result": {"temp": 21}}]},
        {"role": "assistant", "content": "21 degrees"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "weather?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": ARGS}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"temp": 21}}}]},
        {"role": "model", "parts": [{"text": "21 degrees"}]},
    ],
    "gemini in snake case": [
        {"role": "user", "parts": [{"text": "weather?"}]},
        {"role": "model", "parts": [{"function_call": {"name": "get_weather", "args": ARGS}}]},
        {"role": "user", "parts": [{"function_response": {"name": "get_weather", "response": {"temp": 21}}}]},
        {"role": "model", "parts": [{"text": "21 degrees"}]},
    ],
    "one part after another": [
        {"role": "user", "parts": ["weather?"]},
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "get_weather", "input": ARGS},
            {"type": "tool-result", "toolCallId": "c1", "toolName": "get_weather", "output": {"temp": 21}},
            {"type": "text", "text": "21 degrees"}]},
    ],
}  # fmt: skip


PNG = "iVBORw0KGgo="
LINK = "https://example.com/cat.png"
DATA = {"url": f"data:image/png;base64,{PNG}"}
INLINE = ("image/png", 8, "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6", "")
PICTURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "chat": ({"type": "image_url", "image_url": DATA}, INLINE),
    "chat, by URL": ({"type": "image_url", "image_url": {"url": LINK}}, ("image/*", None, "", LINK)),
    "chat, a file": ({"type": "file", "file": {"filename": "a.png", "file_data": DATA["url"]}}, INLINE),
    "responses": ({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}, INLINE),
    "anthropic": ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, INLINE),
    "anthropic, by URL": ({"type": "image", "source": {"type": "url", "url": LINK}}, ("image/*", None, "", LINK)),
    "langchain": ({"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}, INLINE),
    "vercel": ({"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"}, INLINE),
    "vercel, an image": ({"type": "image", "image": PNG, "mediaType": "image/png"}, INLINE),
    "otel": ({"type": "blob", "mime_type": "image/png", "content": PNG}, INLINE),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PICTURES))
def test_a_picture_is_known_by_what_it_is(imported, name: str) -> None:
    part, expected = PICTURES[name]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, part]},
        {"role": "assistant", "content": "ok"},
    ]
    report, ((_, transcript),) = imported(json.dumps({"messages": messages, "id": "q"}), "f.json")
    (found,) = transcript.messages[0].attachments
    assert (found.media_type, found.size, found.sha256, found.url) == expected
    assert transcript.messages[0].content == f"look\n{found.mark}"
    assert any("the bytes stay in the file" in note for note in report.notes) is bool(found.sha256)


def test_a_picture_of_gemini_is_known_by_what_it_is(imported) -> None:
    parts = [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]
    contents = [{"role": "user", "parts": parts}, {"role": "model", "parts": [{"text": "ok"}]}]
    _, ((_, transcript),) = imported(json.dumps({"contents": contents}), "f.json")
    (found,) = transcript.messages[0].attachments
    assert (found.media_type, found.size, found.sha256, found.url) == INLINE


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "abcd", "data": PNG},
        {"type": "custom", "content": "abcd"},
        {"type": "image"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no base64!"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": 3},
        {"type": ["image"], "data": PNG},
    ],
)
def test_what_is_no_picture_is_none(imported, part: Any) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, part]},
        {"role": "assistant", "content": "ok"},
    ]
    _, ((_, transcript),) = imported(json.dumps({"messages": messages, "id": "q"}), "f.json")
    assert transcript.messages[0].attachments == ()


def test_attachments_of_a_foreign_file_are_not_ours(imported) -> None:
    hostile = [{"media_type": "image/png", "sha256": "0" * 64, "name": "../../x"}]
    messages = [{"role": "user", "content": "look", "attachments": hostile}, {"role": "assistant", "content": "ok"}]
    _, ((_, transcript),) = imported(json.dumps({"messages": messages, "id": "q"}), "f.json")
    assert transcript.messages[0].attachments == ()


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("form", ["list", "object", "lines"])
def test_the_same_conversation_in_parts(imported, name: str, form: str) -> None:
    messages = SHAPES[name]
    given: Any = messages if form == "list" else {"messages": messages, "id": "q"}
    given = "\n".join(map(json.dumps, messages)) if form == "lines" else json.dumps(given)
    report, ((row, transcript),) = imported(given, "f.jsonl" if form == "lines" else "f.json")
    assert [(one.role, one.content) for one in transcript.messages] == [
        ("user", "weather?"), ("assistant", ""), ("tool", '{"temp": 21}'), ("assistant", "21 degrees"),
    ]  # fmt: skip
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == CALL
    assert row.prompt_head == "weather?"
    assert not any("nothing that can be read" in note for note in report.notes)


@pytest.mark.parametrize(
    ("part", "status", "result"),
    [
        ({"type": "tool-f", "toolCallId": "c", "state": "output-error", "errorText": "broke"}, "error", "broke"),
        ({"type": "tool-f", "toolCallId": "c", "state": "input-available", "input": {}}, "pending", None),
        (
            {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c", "state": "output-denied"},
            "error",
            "output-denied",
        ),
        ({"type": "tool-f", "toolCallId": "c", "state": "output-available", "output": None}, "ok", ""),
        ({"type": "tool-f", "toolCallId": "c", "state": "output-available", "output": "x"}, "ok", "x"),
    ],
)
def test_how_a_call_of_the_ai_sdk_ended(part: dict[str, Any], status: str, result: str | None) -> None:
    (call,) = transcript_of(ui(part)).tool_calls
    assert (call.name, call.status, call.result) == ("f", status, result)


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ({"type": "text", "value": "x"}, "ok", "x"),
        ({"type": "error-text", "value": "x"}, "error", "x"),
        ({"type": "error-json", "value": {"a": 1}}, "error", '{"a": 1}'),
        ({"type": "content", "value": [{"type": "text", "text": "x"}]}, "ok", "x"),
    ],
)
def test_what_a_tool_gave_in_a_model_message(output: dict[str, Any], status: str, text: str) -> None:
    messages = [dict(one) for one in SHAPES["vercel model"]]
    messages[2] = {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": output}]}
    (call,) = transcript_of(messages).tool_calls
    assert (call.status, call.result) == (status, text)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "assistant", "text": "hello"}, "hello"),  # beeai
        ({"role": "assistant", "content": None, "refusal": "I can't."}, "I can't."),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}, "I can't."),
        ({"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "spoken"}}, "spoken"),
        ({"role": "assistant", "content": {"text": "in an object"}}, '{"text": "in an object"}'),
        ({"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}, "ab"),
    ],
)
def test_texts_wherever_they_stand(imported, message: dict[str, Any], said: str) -> None:
    asked = {"role": "user", "content": "q"}
    _, ((_, transcript),) = imported([asked, message])
    assert (transcript.messages[1].role, transcript.final_output) == ("assistant", said)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "body": "hidden"},
        {"role": "assistant", "content": "", "payload": {"deep": ["hidden"]}},
        {"role": "assistant", "content": [], "answer": "hidden"},
        {"role": "assistant", "parts": [], "answer": "hidden"},
        {"role": "assistant"},
    ],
)
def test_a_message_with_nothing_readable_is_a_note_with_its_keys(imported, message: dict[str, Any]) -> None:
    answer = {"role": "assistant", "content": "a"}
    report, ((_, transcript),) = imported([{"role": "user", "content": "q"}, message, answer])
    keys = ", ".join(f"`{key}`" for key in message)
    note = f"message 2 has nothing that can be read (its keys: {keys})"
    assert report.notes[0] == f"run 1 (conversation 1): {note}"
    assert note in transcript.log
    assert transcript.messages[1].content.startswith("[nothing readable; keys: role")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "usage": {"output_tokens": 0}, "id": "x"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}}]},
        {"role": "assistant", "parts": [{"type": "text", "text": ""}]},
    ],
)
def test_an_empty_message_is_an_empty_message(imported, message: dict[str, Any]) -> None:
    report, ((_, transcript),) = imported([{"role": "user", "content": "q"}, message])
    assert (transcript.messages[1].content, report.notes) == ("", ())


def test_calls_that_cant_be_read_and_custom_calls(imported) -> None:
    calls = [
        {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
        {"id": "c2", "type": "function", "function": {"arguments": "{}"}},
        {"id": "c3", "toolName": "f", "args": {"a": 1}},
    ]
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    report, ((_, transcript),) = imported(messages)
    assert [call.name for call in transcript.tool_calls] == ["shell", "[unreadable]", "f"]
    assert transcript.tool_calls[0].arguments == "ls -l"
    assert any("a tool call has no name" in note for note in report.notes)


def test_files_in_the_words_of_the_conventions(imported) -> None:
    otel = SHAPES["otel"]
    instructions = [{"type": "text", "content": "Be short."}]
    one = {"gen_ai.system_instructions": instructions, "gen_ai.input.messages": otel[:3],
           "gen_ai.output.messages": otel[3:]}  # fmt: skip
    for given in (one, {"input_messages": otel[:3], "output_messages": otel[3:], "system_instructions": instructions}):
        _, ((_, transcript),) = imported(given, f"{len(given)}{next(iter(given))}.json")
        assert [message.role for message in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
        assert transcript.messages[0].content == "Be short."


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "shapes").is_dir(), reason="recordings beside the project are not here")
@pytest.mark.parametrize("name", ["vercel_ui_messages", "vercel_model_messages", "gemini_contents"])
def test_published_shapes(imported, name: str) -> None:
    _, ((_, transcript),) = imported(SHARED / "shapes" / f"{name}.json")
    assert [(call.name, call.result) for call in transcript.tool_calls] == [("getWeather", '{"temp": 21}')]
    assert all(message.content or message.tool_calls for message in transcript.messages)


@pytest.mark.parametrize("opening", ["<think>", ""])
def test_thinking_between_tags_at_an_answers_beginning_is_reasoning(opening: str) -> None:
    answer = f"{opening}Is it 4?</think>\n\nYes: </think> is a tag."
    transcript = transcript_of([{"role": "user", "content": "</think>?"}, {"role": "assistant", "content": answer}])
    question, message = transcript.messages
    assert (message.reasoning, message.content) == ("Is it 4?", "Yes: </think> is a tag.")
    assert question.content == "</think>?"
