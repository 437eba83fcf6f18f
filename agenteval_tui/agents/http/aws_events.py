"""The events of an answer of Amazon Bedrock that streams: binary, each with its headers and its data.

Source: Amazon's `application/vnd.amazon.eventstream`. An event is its length, the length of its headers, a checksum of
both, the headers, the data, and a checksum of all; numbers are big-endian, of four bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.core.json_values import json_object

AWS_EVENTS = "application/vnd.amazon.eventstream"
_AROUND = 16  # bytes of an event beside headers and data
_TEXT, _BYTES = 7, 6
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value, by its type; texts and bytes have their length before them."""


class AwsEvent(Struct, frozen=True):
    """An event as it is sent, without lengths and checksums."""

    head: bytes
    data: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Its headers, as far as they are texts."""
        return _headers(self.head)

    @property
    def is_chunk(self) -> bool:
        """Whether its data hold, in base64, an event of the model's own API."""
        return self.headers.get(":event-type") == "chunk"

    @property
    def text(self) -> str:
        """Its data."""
        text = self.data.decode("utf-8", "replace")
        return _unpacked(_member(text, "bytes")) if self.is_chunk else text

    def with_text(self, text: str) -> AwsEvent:
        """The event with other data."""
        if not self.is_chunk:
            return replace(self, data=text.encode("utf-8", "replace"))
        packed = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
        return replace(self, data=json.dumps({"bytes": packed}).encode("ascii"))


def read_events(data: bytes) -> Iterator[AwsEvent]:
    """The whole events in an answer's bytes; nothing after the first that is none."""
    at = 0
    # The checksums are not looked at: what came over TLS is what was sent, and a cut event is told by its length.
    while at + _AROUND <= len(data):
        size, head = struct.unpack_from(">II", data, at)
        if not _AROUND + head <= size <= len(data) - at:
            return
        yield AwsEvent(data[at + 12 : at + 12 + head], data[at + 12 + head : at + size - 4])
        at += size


def write_events(events: Iterable[AwsEvent]) -> bytes:
    """The bytes of events."""
    pieces = []
    for event in events:
        lengths = struct.pack(">II", _AROUND + len(event.head) + len(event.data), len(event.head))
        whole = lengths + struct.pack(">I", zlib.crc32(lengths)) + event.head + event.data
        pieces.append(whole + struct.pack(">I", zlib.crc32(whole)))
    return b"".join(pieces)


def events_in(data: bytes) -> Iterator[ServerEvent]:
    """What the events say. An exception that the server sends is an event `error`, in the words of the Messages API,
    which the readers of replies know."""
    for event in read_events(data):
        headers, text = event.headers, event.text
        if (problem := headers.get(":exception-type") or headers.get(":error-code")) is not None:
            message = headers.get(":error-message") or _member(text, "message")
            error = {"type": "error", "error": {"type": problem, "message": message or text}}
            yield ServerEvent("error", json.dumps(error))
        else:
            yield ServerEvent("" if event.is_chunk else headers.get(":event-type", ""), text)


def _headers(data: bytes) -> dict[str, str]:
    headers, at = dict[str, str](), 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            # The length of the name in one byte, the name, the type of the value in one byte, the value.
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
    value = json_object(text)
    member = None if value is None else value.get(key)
    return member if isinstance(member, str) else ""


def _unpacked(packed: str) -> str:
    try:
        return base64.b64decode(packed, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
