"""The small HTTP server behind the proxy and the receiver of traces: clients that send what it does not take."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from agenteval_tui.agents.http.loopback_server import LoopbackServer, ServedRequest, ServerConnection

LARGEST = 1_000_000
MORE = 40_000_000
"""More than the buffers of a connection hold: a client that sends it can't end before it is read."""


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    async def answer(client: ServerConnection, request: ServedRequest) -> None:
        await client.answer(200, str(len(request.body)).encode(), "text/plain")

    loop = asyncio.new_event_loop()
    made = LoopbackServer(answer, LARGEST)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(made.start("127.0.0.1", 0), loop).result()
    yield made
    asyncio.run_coroutine_threadsafe(made.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_client_that_sends_too_much_reads_why(server: LoopbackServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(server.address, data=b"x" * MORE, timeout=250)
    assert told.value.code == 413
    assert told.value.read() == b"agenteval: a request may have 1 MB\n"
    told.value.close()
    with urllib.request.urlopen(server.address, data=b"x" * LARGEST, timeout=250) as read:
        assert read.read() == b"1000000"


def test_a_client_that_sends_no_http_reads_why(server: LoopbackServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=250) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n" + b"x" * MORE)
        client.shutdown(socket.SHUT_WR)
        assert b"this is not HTTP that can be read" in b"".join(iter(lambda: client.recv(65536), b""))
