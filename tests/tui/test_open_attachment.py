"""Images and files in Inspect: shown as what they are; opened under a name of ours, and only what they really are."""

from __future__ import annotations

import hashlib
import stat

import pytest

from agenteval_tui.core import directories
from agenteval_tui.core.attachment_files import keep
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import Attachment, Message, ToolCall, Transcript
from agenteval_tui.tui.external_programs import copy_to_open, opener
from agenteval_tui.tui.presenters.transcript import TranscriptDocument
from agenteval_tui.tui.presenters.transcript_blocks import blocks_of
from agenteval_tui.views.attachment import attachment_text

PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 33_900


def attachment(data: bytes, media_type: str, name: str = "x", url: str = "") -> Attachment:
    return Attachment(media_type, len(data), hashlib.sha256(data).hexdigest(), name, url=url)


@pytest.mark.parametrize(
    ("data", "media_type", "ending"),
    [
        (PNG, "image/png", ".png"),
        (PNG, "text/html", ".png"),  # what the bytes are counts
        (b"%PDF-1.7", "application/x-sh", ".pdf"),
        (b"#!/bin/sh\nrm -rf /", "text/plain", ".txt"),
        (b'{"a": 1}', "application/json", ".txt"),
    ],
)
def test_a_copy_has_a_name_of_ours(data: bytes, media_type: str, ending: str) -> None:
    keep(data)
    one = attachment(data, media_type, "../../../etc/cron.d/x.desktop")
    path = copy_to_open(one)
    assert path == directories.cache_dir() / "opened" / f"{one.sha256[:16]}{ending}"
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert copy_to_open(one) == path


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"<script>", "text/html"),
        (b"#!/bin/sh", "application/x-sh"),
        (b"MZ\0\1", "text/plain"),
        (b"\xff\xfe\0", "text/plain"),
        (b"x", ""),
        (b"<svg/>", "image/svg+xml"),
        (b"not a png", "image/png"),
    ],
)
def test_nothing_else_is_opened(data: bytes, media_type: str) -> None:
    keep(data)
    with pytest.raises(AgentevalError, match="agenteval does not open files of this type") as error:
        copy_to_open(attachment(data, media_type))
    assert "images, PDFs and plain text" in error.value.fix


def test_what_is_not_here_is_said() -> None:
    with pytest.raises(AgentevalError, match="not stored on this machine"):
        copy_to_open(attachment(b"never kept", "image/png"))
    with pytest.raises(AgentevalError, match="only its address is stored, not its content") as error:
        copy_to_open(Attachment("image/png", url="https://example.com/a.png"))
    assert error.value.where == "https://example.com/a.png"
    assert opener({}, "linux") is None


def test_each_is_a_line_below_its_message() -> None:
    image = Attachment("image/png", 34_000, "ab12cd34" * 8, "cat\x1b[31m.png", "a cat\non a mat")
    linked = Attachment("", url="https://example.com/a.pdf")
    assert attachment_text(linked) == "[file] https://example.com/a.pdf"
    said = attachment_text(image)
    assert said.startswith("[image/png 34 KB sha256 ab12cd34…] cat")
    assert said.endswith(".png: a cat on a mat")
    assert "\x1b" not in said
    transcript = Transcript(
        (
            Message("user", "look", attachments=(image, linked)),
            Message("assistant", "", tool_calls=(0,)),
            Message("tool", "shot", tool_call=0, attachments=(image,)),
        ),
        (ToolCall("a", "screenshot", {}, "shot", message=1),),
    )
    keys = [block.key for _, block in blocks_of(transcript)]
    assert keys == [
        *(("message", 0), ("attachment", 0), ("attachment", 1), ("call", 0), ("result", 0), ("attachment", 2))
    ]
    assert [block.key for _, block in blocks_of(transcript, 2)] == [("attachment", 2)]
    document = TranscriptDocument(transcript, width=100)
    shown = ["".join(text for text, _ in document.line(row)) for row in range(document.height)]
    assert sum("[image/png 34 KB sha256 ab12cd34…]" in line for line in shown) == 2
