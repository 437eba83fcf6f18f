"""Messages that are too large for the language server are passed over; the next ones are read."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pygls.io_ import StdinAsyncReader, run_async

    from agenteval_tui.extensions.lsp.language_server import Requests

NEXT = b'{"jsonrpc": "2.0", "id": 1, "method": "next"}'
HEADER = b"Content-Length: %d\r\n\r\n" % len(NEXT)


@pytest.fixture(scope="module", autouse=True)
def what_takes_long_to_import() -> None:
    """In the worker that runs these tests, and not in each that collects them."""
    from pygls.io_ import StdinAsyncReader, run_async

    from agenteval_tui.extensions.lsp.language_server import Requests

    for one in (StdinAsyncReader, run_async, Requests):
        globals()[one.__name__] = one


class Protocol:
    def __init__(self) -> None:
        self.messages: list[object] = []

    def structure_message(self, value: object) -> object:
        return value

    def handle_message(self, message: object) -> None:
        self.messages.append(message)


async def taken(sent: bytes) -> list[object]:
    from threading import Event

    protocol = Protocol()
    await run_async(Event(), StdinAsyncReader(Requests(io.BytesIO(sent))), protocol)  # type: ignore[arg-type]
    return protocol.messages


@pytest.mark.parametrize("length", [b"64000001", b"9" * 20, b"9" * 4000, b"9" * 5000, b"9" * 20000])
@pytest.mark.parametrize("more", [b"", b"Content-Type: x\r\n"])
@pytest.mark.parametrize("body", [b"", b"{}", b"{}\n", b'"' + b"a" * 8185, b"x" * 100_000])
async def test_a_length_that_is_too_large_does_not_end_the_server(length: bytes, more: bytes, body: bytes) -> None:
    sent = b"Content-Length: " + length + b"\r\n" + more + b"\r\n" + body + HEADER + NEXT
    assert await taken(HEADER + NEXT + sent + HEADER + NEXT) == [json.loads(NEXT)] * 3


async def test_the_end_may_come_at_any_place() -> None:
    sent = b"Content-Length: 99999999999\r\n\r\n{}" + HEADER + NEXT
    for end in range(len(sent)):
        assert await taken(sent[:end]) in ([], [json.loads(NEXT)]) or end > len(sent) - len(NEXT)
