"""Gathering the chunks of a connection: the HTTP parser must find the same responses in what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import h11
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.http import chunk_coalescing
from agenteval_tui.agents.http.chunk_coalescing import Gatherer, GatheringTransport

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(pieces: Sequence[bytes], end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces if one) + end


def parsed(pieces: Sequence[bytes]) -> tuple[bytes, list[tuple[bytes, bytes]], str]:
    """What h11 makes of a response: its body, its trailers, and how it ended."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    body, trailers = bytearray(), []
    try:
        for piece in [*pieces, b""]:
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    trailers = list(event.headers)
                    return bytes(body), trailers, "whole"
                elif event is h11.NEED_DATA:
                    break
    except h11.RemoteProtocolError:
        return bytes(body), trailers, "broken"
    return bytes(body), trailers, "cut"


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    at = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(at)]


def gathered_of(pieces: Sequence[bytes]) -> list[bytes]:
    one = Gatherer()
    one.asked()
    return [out for piece in pieces if (out := one.feed(piece))]


bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=12)
cuts = st.lists(st.integers(0, 800), max_size=25)


@given(bodies, cuts, st.sampled_from([b"0\r\n\r\n", b"0\r\nX-Sum: 1\r\n\r\n", b"", b"zz\r\n", b"5\r\nab"]))
def test_however_the_network_cuts_it_the_parser_finds_the_same(
    pieces: list[bytes], places: list[int], end: bytes
) -> None:
    network = cut(HEAD + chunked(pieces, end), places)
    assert parsed(gathered_of(network)) == parsed(network)


@given(st.binary(max_size=300), cuts)
def test_what_is_no_chunked_response_stays_byte_for_byte(data: bytes, places: list[int]) -> None:
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data
    assert b"".join(gathered_of(cut(plain, places))) == plain


@given(st.binary(max_size=200), cuts)
def test_a_broken_body_loses_no_byte_that_the_parser_would_have_judged(data: bytes, places: list[int]) -> None:
    network = cut(HEAD + data, places)
    assert parsed(gathered_of(network)) == parsed(network)


def test_many_small_chunks_become_one() -> None:
    out = gathered_of([HEAD, chunked([b"a"] * 50, end=b""), chunked([b"b"] * 50)])
    assert [piece.count(b"\r\n") for piece in out[1:]] == [2, 4], "a chunk, then a chunk and the end"


def test_the_next_response_of_a_connection_is_read_anew() -> None:
    one = Gatherer()
    first = HEAD + chunked([b"x", b"y"])
    one.asked()
    assert one.feed(first).endswith(b"2\r\nxy\r\n0\r\n\r\n")
    assert not one.streaming
    one.asked()
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert one.feed(interim + HEAD) == interim + HEAD
    assert one.streaming
    assert one.feed(chunked([b"p", b"q"])) == b"2\r\npq\r\n0\r\n\r\n"


async def test_httpx_speaks_over_connections_that_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when httpx or httpcore keep their connections otherwise: then streams are slow again."""
    fed: list[int] = []
    feed = Gatherer.feed
    monkeypatch.setattr(Gatherer, "feed", lambda self, data: (fed.append(len(data)), feed(self, data))[1])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunked([b"one ", b"two"]))
        await writer.drain()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with httpx.AsyncClient(transport=GatheringTransport()) as client:
            got = await client.get(f"http://127.0.0.1:{port}/")
    assert got.text == "one two"
    assert fed
    assert chunk_coalescing._Stream.open == 0
