"""Images and files among the parts of a message, in the dialects of APIs and libraries; and a message as its parts.

Read are Chat Completions (`image_url`, `file`, `input_audio`), the Responses API (`input_image`, `input_file`),
Anthropic (`image`, `document`), Gemini (`inlineData`, `fileData`), LangChain, Vercel's AI SDK, pydantic-ai and
OpenTelemetry. Nothing is fetched or written: of bytes the size and the hash are kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from agenteval_tui.transcripts.model import Attachment

_LONGEST = 500  # characters of a name, 8 times as many of an address
_FILES = frozenset(
    (
        "image",
        "image_url",
        "input_image",
        "output_image",
        "image-url",
        "file",
        "input_file",
        "document",
        "document-url",
        "media",
        "blob",
        "uri",
        "binary",
        "audio",
        "input_audio",
        "audio-url",
        "video",
        "video_url",
        "video-url",
    )
)
_URLS = ("url", "fileUri", "file_uri", "file_url", "image_url", "uri", "image")
_DATA = ("data", "file_data", "bytes", "image", "base64", "content")
_TYPES = ("media_type", "mediaType", "mime_type", "mimeType", "image_mimetype", "document_mimetype")
_NAMES = ("filename", "file_name", "name", "title", "displayName")
_INNER = ("image_url", "source", "inlineData", "inline_data", "fileData", "file_data", "file", "input_audio", "audio")
_GEMINI = ("inlineData", "inline_data", "fileData", "file_data")
_ROUGHLY = {"image": "image/*", "audio": "audio/*", "video": "video/*"}


def attachments_in(content: object) -> tuple[Attachment, ...]:
    """The images and files in a message's list of parts, each with the mark that `codec.content_text` gives it."""
    if not isinstance(content, list | tuple):
        return ()
    return tuple(attachment for part in content if (attachment := attachment_of(part)) is not None)


def attachment_of(part: object, mark: str = "") -> Attachment | None:
    """The image or file that a part is; None for any other part. `mark`: what the text has in its place."""
    return attachment_and_bytes(part, mark)[0]


def attachment_and_bytes(part: object, mark: str = "") -> tuple[Attachment | None, bytes | None]:
    """The same, with the bytes if they are in the part."""
    if not isinstance(part, Mapping) or isinstance(part.get("text"), str):
        return None, None
    kind = part.get("type") if isinstance(part.get("type"), str) else part.get("kind")
    if kind not in _FILES and not any(key in part for key in _GEMINI):
        return None, None
    holders = [part, *(inner for key in _INNER if isinstance(inner := part.get(key), Mapping))]
    url, data = _place(holders)
    if not url and data is None:
        return None, None
    media_type = _first(holders, _TYPES)
    if url.startswith("data:"):
        header, _, encoded = url[5:].partition(",")
        media_type = media_type or header.removesuffix(";base64").partition(";")[0]
        data, url = encoded if header.endswith(";base64") else None, ""
    raw = data.encode() if isinstance(data, str) and holders[-1].get("type") == "text" else _decoded(data)
    if raw is None and not url:
        return None, None
    attachment = Attachment(
        media_type=(media_type or next((rough for word, rough in _ROUGHLY.items() if word in str(kind)), ""))[
            :_LONGEST
        ],
        size=None if raw is None else len(raw),
        sha256="" if raw is None else hashlib.sha256(raw).hexdigest(),
        name=_first(holders, _NAMES)[:_LONGEST],
        url=url[: 8 * _LONGEST],
        mark=mark or f"[{part.get('type', 'part')}]",
    )
    return attachment, raw


def attachment_fields(content: object) -> list[dict[str, Any]]:
    """The same as plain data, for a message of which only JSON is kept."""
    return [to_builtins(attachment) for attachment in attachments_in(content)]


def text_and_attachments(text: str, attachments: Sequence[Attachment]) -> list[str | Attachment]:
    """A message's content as parts in their order: texts, and attachments in the places of their marks. One without a
    mark in the text comes last; empty texts are left out."""
    parts: list[str | Attachment] = []
    last: list[str | Attachment] = []
    at = 0
    for attachment in attachments:
        place = text.find(attachment.mark, at) if attachment.mark else -1
        if place < 0:
            last.append(attachment)
            continue
        parts += [text[at:place].removesuffix("\n"), attachment]
        at = place + len(attachment.mark)
        if text.startswith("\n", at):
            at += 1
    return [part for part in (*parts, text[at:], *last) if part != ""]


def _place(holders: Sequence[Mapping[str, Any]]) -> tuple[str, Any]:
    """(the address, the bytes in base64): one of both, or neither."""
    for holder in holders:
        for key in _URLS:
            value = holder.get(key)
            if isinstance(value, str) and value.startswith(("http://", "https://", "data:", "gs://")):
                return value, None
    for holder in holders:
        for key in _DATA:
            value = holder.get(key)
            if isinstance(value, bytes) or (isinstance(value, str) and value):
                return (value, None) if isinstance(value, str) and value.startswith("data:") else ("", value)
    return "", None


def _first(holders: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    return next(
        (value for holder in holders for key in names if isinstance(value := holder.get(key), str) and value), ""
    )


def _decoded(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        try:
            return base64.b64decode(data + "=" * (-len(data) % 4), altchars="-_", validate=True)  # of addresses
        except (binascii.Error, ValueError):
            return None
