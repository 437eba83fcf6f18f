"""Images and files in messages: what each API is sent, and what is kept of those that a model answers with."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from dialects import ANTHROPIC, CHAT, RESPONSES, Dialect, Text
from scripted import Answer, ScriptedServer, stream_of

from agenteval_tui.core.attachment_files import keep, kept
from agenteval_tui.transcripts.model import Attachment, Message

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
PDF = b"%PDF-1.7 pages"
CSV = b"a,b\n1,2\n"
DATA = {name: base64.b64encode(data).decode() for name, data in (("png", PNG), ("pdf", PDF), ("csv", CSV))}
GEMINI = Dialect("gemini")


def attachment(data: bytes, media_type: str, name: str, mark: str) -> Attachment:
    return Attachment(media_type, len(data), keep(data), name, "", "", mark)


def question() -> tuple[Message, ...]:
    image = attachment(PNG, "image/png", "folder/cat.png", "[image: a cat]")
    pdf = attachment(PDF, "application/pdf", "report.pdf", "[file: report.pdf]")
    linked = Attachment("image/jpeg", url="https://example.com/dog.jpg", mark="[image: dog.jpg]")
    content = "What is this?\n[image: a cat]\nAnd this?\n[file: report.pdf]\n[image: dog.jpg]"
    return (Message("user", content, attachments=(image, pdf, linked)),)


async def ask(run_agent: Any, dialect: Dialect, answer: Answer | None, **request: Any) -> tuple[Any, list[Any]]:
    if dialect is GEMINI:
        done = {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}
        answer = answer or stream_of(done, done=False)
    async with ScriptedServer(lambda _: answer or dialect.stream(Text(["ok"]))) as server:
        config = {"kind": "gemini", "base_url": server.url, "model": "m"}
        ran = await run_agent(config if dialect is GEMINI else dialect.config(server.url), **request)
    return ran, server.requests


SENT: list[tuple[Dialect, list[Any]]] = [
    (CHAT, [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA['png']}"}},
        {"type": "text", "text": "And this?"},
        {"type": "file", "file": {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{DATA['pdf']}"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/dog.jpg"}},
    ]),
    (RESPONSES, [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA['png']}"},
        {"type": "input_text", "text": "And this?"},
        {"type": "input_file", "filename": "report.pdf", "file_data": f"data:application/pdf;base64,{DATA['pdf']}"},
        {"type": "input_image", "image_url": "https://example.com/dog.jpg"},
    ]),
    (ANTHROPIC, [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA["png"]}},
        {"type": "text", "text": "And this?"},
        {"type": "document", "title": "report.pdf",
         "source": {"type": "base64", "media_type": "application/pdf", "data": DATA["pdf"]}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/dog.jpg"}},
    ]),
    (GEMINI, [
        {"text": "What is this?"},
        {"inlineData": {"mimeType": "image/png", "data": DATA["png"]}},
        {"text": "And this?"},
        {"inlineData": {"mimeType": "application/pdf", "data": DATA["pdf"]}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.com/dog.jpg"}},
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "parts"), SENT, ids=[one.name for one, _ in SENT])
async def test_each_api_is_sent_its_own_form(run_agent: Any, dialect: Dialect, parts: list[Any]) -> None:
    ran, (sent,) = await ask(run_agent, dialect, None, messages=question())
    assert ran.transcript.error is None
    body = sent.json
    listed = body.get("messages") or body.get("input") or body.get("contents")
    assert listed[0].get("content", listed[0].get("parts")) == parts
    assert ran.transcript.messages[0] == question()[0]


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES, ANTHROPIC, GEMINI], ids=lambda one: one.name)
async def test_bytes_that_are_gone_are_said(run_agent: Any, dialect: Dialect) -> None:
    gone = Attachment("image/png", 3, "0" * 64, "cat.png", mark="[image: cat.png]")
    ran, sent = await ask(
        run_agent, dialect, None, messages=(Message("user", "[image: cat.png]", attachments=(gone,)),)
    )
    assert sent == []
    assert ran.transcript.error.kind == "bad_request"
    assert ran.transcript.error.message == "the bytes of cat.png are not on this machine"


async def test_what_an_api_has_no_form_for_is_refused(run_agent: Any) -> None:
    linked = Attachment("application/pdf", url="https://example.com/a.pdf", mark="[file: a.pdf]")
    message = Message("user", "[file: a.pdf]", attachments=(linked,))
    ran, _ = await ask(run_agent, CHAT, None, messages=(message,))
    assert "Chat Completions takes no application/pdf by its URL" in ran.transcript.error.message
    film = attachment(b"film", "video/mp4", "a.mp4", "[file: a.mp4]")
    ran, _ = await ask(run_agent, ANTHROPIC, None, messages=(Message("user", "[file: a.mp4]", attachments=(film,)),))
    assert "the Messages API takes no video/mp4: a.mp4" in ran.transcript.error.message
    vague = Attachment("image/*", url="https://example.com/a", mark="[image: a]")
    ran, _ = await ask(run_agent, GEMINI, None, messages=(Message("user", "[image: a]", attachments=(vague,)),))
    assert "media_type" in ran.transcript.error.fix


async def test_a_text_file_is_a_document_of_the_messages_api(run_agent: Any) -> None:
    table = attachment(CSV, "text/csv", "t.csv", "[file: t.csv]")
    _, (sent,) = await ask(
        run_agent, ANTHROPIC, None, messages=(Message("user", "[file: t.csv]", attachments=(table,)),)
    )
    (part,) = sent.json["messages"][0]["content"]
    assert part["source"] == {"type": "text", "media_type": "text/plain", "data": "a,b\n1,2\n"}


IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA['png']}"}}
ANSWERS: list[tuple[Dialect, Answer]] = [
    (CHAT, stream_of({"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "delta": {
        "content": "here", "images": [IMAGE],
    }}]})),
    (CHAT, Answer(body=json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": [
        {"type": "text", "text": "here"},
        IMAGE,
    ]}}]}))),
    (RESPONSES, Answer(body=json.dumps({"status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "here"}]},
        {"type": "image_generation_call", "id": "i", "result": DATA["png"], "output_format": "png"},
    ]}))),
    (GEMINI, stream_of({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"text": "here"}, {"inlineData": {"mimeType": "image/png", "data": DATA["png"]}}]}}]}, done=False)),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "answer"), ANSWERS, ids=["images", "parts", "responses", "gemini"])
async def test_an_image_in_an_answer_is_kept_by_its_hash(run_agent: Any, dialect: Dialect, answer: Answer) -> None:
    ran, _ = await ask(run_agent, dialect, answer)
    assert (ran.transcript.error, ran.transcript.notes) == (None, ())
    last = ran.transcript.messages[-1]
    (found,) = last.attachments
    # The Responses API makes an image by a call of its own, between the text and the image.
    text = found.mark if dialect is RESPONSES else f"here\n{found.mark}"
    assert last.content == ran.transcript.final_output == text
    assert (found.media_type, found.size, found.sha256) == ("image/png", len(PNG), hashlib.sha256(PNG).hexdigest())
    assert kept(found.sha256) == PNG


async def test_an_image_without_bytes_is_a_warning(run_agent: Any) -> None:
    parts = [{"text": "here"}, {"inlineData": {"mimeType": "image/png", "data": "no base64!"}}]
    answer = stream_of({"candidates": [{"finishReason": "STOP", "content": {"parts": parts}}]}, done=False)
    ran, _ = await ask(run_agent, GEMINI, answer)
    assert [(note.code, note.what) for note in ran.transcript.notes] == [("unread", "image")]
    assert ran.transcript.messages[-1].attachments == ()
