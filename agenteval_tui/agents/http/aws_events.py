"""The events of an answer of Amazon Bedrock that streams: binary, each with its headers and its data.

Source: Amazon's `application/vnd.amazon.eventstream`. An event is its length, the length of its headers, a checksum of
both, the headers, the data, and a checksum of all; numbers are big-endian, of four bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator

from agenteval_tui.agents.http.sse import ServerEvent

AWS_EVENTS = "application/vnd.amazon.eventstream"
_AROUND = 16  # bytes of an event beside headers and data
_TEXT, _BYTES = 7, 6
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value, by its type; texts and bytes have their length before them."""


def events_in(data: bytes) -> Iterator[ServerEvent]:
    """The whole events in an answer's bytes; nothing after the first that is none. An exception that the server sends
    is an event `error`, and data in `bytes` (of the model's own API) are the event."""
    at = 0
    while at + _AROUND <= len(data):
        size, head = struct.unpack_from(">II", data, at)
        if not _AROUND + head <= size <= len(data) - at:
            return
        headers = _headers(data[at + 12 : at + 12 + head])
        text = data[at + 12 + head : at + size - 4].decode("utf-8", "replace")
        at += size
        if (problem := headers.get(":exception-type") or headers.get(":error-code")) is not None:
            # In the words of the Messages API, which the readers of replies know.
            message = headers.get(":error-message") or _member(text, "message")
            error = {"type": "error", "error": {"type": problem, "message": message or text}}
            yield ServerEvent("error", json.dumps(error))
        elif headers.get(":event-type") == "chunk":
            yield ServerEvent("", _unpacked(_member(text, "bytes")))
        else:
            yield ServerEvent(headers.get(":event-type", ""), text)


def _headers(data: bytes) -> dict[str, str]:
    """Those that are texts."""
    headers, at = dict[str, str](), 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            name, kind = data[at + 1 : end].decode("utf-8", "replace"), data[end]
            at = end + 1
            if kind in (_TEXT, _BYTES):
                (size,) = struct.unpack_from(">H", data, at)
                at += 2
            else:
                size = _SIZES[kind]
            if kind == _TEXT:
                headers[name] = data[at : at + size].decode("utf-8", "replace")
            at += size
    except (IndexError, KeyError, struct.error):
        pass  # of a type that is not known, or cut: what was read counts
    return headers


def _member(text: str, key: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def _unpacked(packed: str) -> str:
    try:
        return base64.b64decode(packed, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
