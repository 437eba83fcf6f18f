"""The proxy that records: what it passes on, what it keeps, and what it refuses."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from scripted import Answer, Handler, Request, ScriptedServer, stream_of

from agenteval_tui.agents.prices import Price, Prices
from agenteval_tui.agents.recording.cassette import Cassette, lines, parse
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer as ExchangeAnswer
from agenteval_tui.agents.recording.exchange import Exchange, Question
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.recording.matching import Matcher
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.core.errors import InfrastructureError

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
ASKED_QUESTION = Question("POST", "openai/v1/chat/completions", {}, ASKED)
SAID = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
CHUNKS = [
    {"model": "m", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": end}]}
    for piece, end in (("h", None), ("i", "stop"))
]


@asynccontextmanager
async def proxied(handler: Handler, session: Session | None = None) -> AsyncIterator[tuple[Session, httpx.AsyncClient]]:
    """A proxy before a scripted server; the client's address is that of the provider openai."""
    session = session or Session()
    async with ScriptedServer(handler) as server:
        root = server.url.removesuffix("/v1")
        proxy = Proxy({"openai": server.url, "anthropic": root, "gemini": root})
        await proxy.start()
        base = proxy.open(session)
        try:
            async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=250) as client:
                yield session, client
        finally:
            await proxy.close()


def text_of(session: Session) -> str:
    return "".join(lines(Cassette(session.exchanges())))


async def test_a_request_goes_on_as_it_is_with_its_key_and_the_answer_comes_back() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return Answer(body=json.dumps(SAID), headers={"x-request-id": "r1"})

    async with proxied(answer) as (session, client):
        reply = await client.post(
            "/openai/v1/chat/completions", json=ASKED, headers={"authorization": "Bearer the-key-of-this-program"}
        )
        assert reply.json() == SAID
        assert reply.headers["x-request-id"] == "r1"
        other = await client.get("/openai/v1/models?limit=3")
        assert other.status_code == 200
    assert [(one.method, one.path) for one in seen] == [("POST", "/v1/chat/completions"), ("GET", "/v1/models?limit=3")]
    assert seen[0].headers["authorization"] == "Bearer the-key-of-this-program"
    assert seen[0].json == ASKED
    assert [one.question.title for one in session.exchanges()] == [
        "POST openai/v1/chat/completions", "GET openai/v1/models"
    ]  # fmt: skip
    assert session.exchanges()[1].question.query == {"limit": "3"}


async def test_a_parameter_that_is_there_twice_makes_another_request() -> None:
    async with proxied(lambda _: Answer(body="{}")) as (session, client):
        for query in ("include=a&include=b", "include=b", "include=a&include=b"):
            await client.get(f"/openai/v1/responses/r1?{query}")
    keys = [Matcher().key(exchange.question) for exchange in session.exchanges()]
    assert keys[0] == keys[2] != keys[1]


async def test_a_stream_goes_on_chunk_by_chunk() -> None:
    """The second chunk is only sent once the program has the first."""
    has_first = asyncio.Event()

    class Slow(ScriptedServer):
        async def _send(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
            head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(head.encode())
            for number, piece in enumerate(answer.pieces):
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
                if number == 0:
                    await asyncio.wait_for(has_first.wait(), 250)
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in CHUNKS]
    session = Session()
    async with Slow(lambda _: Answer(pieces=pieces)) as server:
        proxy = Proxy({"openai": server.url})
        await proxy.start()
        got = []
        async with httpx.AsyncClient(trust_env=False, timeout=250) as client:
            url = f"{proxy.open(session)}/openai/v1/chat/completions"
            async with client.stream("POST", url, json={**ASKED, "stream": True}) as reply:
                async for chunk in reply.aiter_raw():
                    got.append(chunk)
                    if not has_first.is_set():  # who watches sees it grow
                        assert session.news.is_set()
                        seen = transcript_of(session.exchanges())
                        assert [one.content for one in seen.messages] == ["hello", "h"]
                    has_first.set()
        await proxy.close()
    assert got == pieces
    (exchange,) = session.exchanges()
    assert exchange.answer.body == tuple(piece.decode() for piece in pieces)
    assert len(exchange.answer.at_ms) == 2


async def test_a_program_may_ask_the_next_thing_before_the_answer_ends() -> None:
    """The server closes its first answer only once it has the second request."""
    asked_again = asyncio.Event()

    class Late(ScriptedServer):
        async def _send(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
            if len(self.requests) > 1:
                asked_again.set()
                await super()._send(answer, writer)
                return
            await super()._send(replace(answer, cut=True), writer)
            await asyncio.wait_for(asked_again.wait(), 250)
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in CHUNKS]
    stream = Answer(pieces=pieces, content_type="text/event-stream")
    session = Session()
    async with Late(lambda request: stream if request.json.get("stream") else Answer(body=json.dumps(SAID))) as server:
        proxy = Proxy({"openai": server.url})
        await proxy.start()
        url = f"{proxy.open(session)}/openai/v1/chat/completions"
        more = [*ASKED["messages"], {"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]
        got = b""
        async with (
            httpx.AsyncClient(trust_env=False, timeout=250) as client,
            client.stream("POST", url, json={**ASKED, "stream": True}) as reply,
        ):
            async for chunk in reply.aiter_raw():
                got += chunk
                if got == b"".join(pieces):
                    await client.post(url, json={"model": "m", "messages": more})
        await proxy.close()
    transcript = transcript_of(session.exchanges())
    assert transcript.requests is not None
    assert [reference.line for reference in transcript.requests.references] == [1, 1]
    assert [message.content for message in transcript.messages] == ["hello", "hi", "and now?", "hi"]


@pytest.mark.parametrize(
    ("path", "headers", "body"),
    [
        ("/openai/v1/chat/completions", {"authorization": "Bearer planted-Key-0001"}, ASKED),
        ("/anthropic/v1/messages", {"x-api-key": "planted-Key-0001", "cookie": "s=planted-Key-0001"}, ASKED),
        ("/gemini/v1beta/models/m:generateContent?key=planted-Key-0001", {}, {"contents": []}),
        ("/openai/v1/responses", {}, {"tools": [{"type": "mcp", "authorization": "planted-Key-0001"}]}),
        (
            "/openai/v1/chat/completions",
            {"authorization": "Bearer planted-Key-0001"},
            {**ASKED, "messages": [{"role": "user", "content": "my key is planted-Key-0001, says planted-Key-0001"}]},
        ),
        ("/openai/v1/chat/completions", {}, {**ASKED, "user": "sk-proj-planted-Key-0001abcdefghijkl"}),
    ],
)
async def test_no_key_is_kept(path: str, headers: dict[str, str], body: Any) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return Answer(
            401, json.dumps({"error": {"message": "wrong key: planted-Key-0001", "api_key": "planted-Key-0001"}})
        )

    async with proxied(answer) as (session, client):
        session.know(["planted-Key-0001"] if "mcp" in str(body) else [])
        reply = await client.post(path, json=body, headers=headers)
        assert "planted-Key-0001" in reply.text  # the program sees what it would have seen
    asked = f"{seen[0].path} {seen[0].headers} {seen[0].body!r}"
    assert asked.count("planted-Key-0001") >= 1
    kept = text_of(session)
    if "sk-proj" in str(body):  # known by its looks, and the answer's not
        kept = kept.partition('"answer"')[0]
    assert "planted" not in kept


async def test_a_key_in_pieces_of_a_stream_is_not_kept() -> None:
    pieces = [
        {"model": "m", "choices": [{"index": 0, "delta": {"content": piece}}]}
        for piece in ("a pla", "nted-Key", "-0001 b")
    ]

    async with proxied(lambda _: stream_of(*pieces)) as (session, client):
        await client.post("/openai/v1/chat/completions", json=ASKED, headers={"authorization": "planted-Key-0001"})
    (exchange,) = session.exchanges()
    assert "nted-Key" not in text_of(session)
    assert "a *** b" in exchange.answer.body[0]
    assert len(exchange.answer.body) == 4


@pytest.mark.parametrize(
    ("form", "piece_of"),
    [
        ("data: {}\n\n", lambda piece: {"choices": [{"index": 0, "delta": {"content": piece}}]}),
        ("event: m\r\ndata: {}\r\nid: 7\r\n\r\n", lambda piece: {"delta": {"content": piece}, "index": 0}),
        ("data:{}\n: beat\n\n", lambda piece: {"output_index": 0, "delta": piece}),
        ("data: {}\n\n", lambda piece: {"contentBlockIndex": 0, "delta": {"toolUse": {"input": piece}}}),
        ("{}\n", lambda piece: {"message": {"content": piece}}),
    ],
)  # fmt: skip
def test_a_key_in_pieces_is_not_kept_whatever_is_beside_the_data_of_an_event(form: str, piece_of: Any) -> None:
    pieces = ("a pla", "nted-Key", "-0001 b")
    stream = tuple(form.replace("{}", json.dumps(piece_of(piece))) for piece in pieces)
    answer = ExchangeAnswer(200, "text/event-stream", stream)
    clean = KeyRedactor(["planted-Key-0001"]).exchange(Exchange(ASKED_QUESTION, answer)).answer.body
    text = form.replace("{}", json.dumps(piece_of("a *** b")))
    assert clean[0].replace("data: ", "data:") == text.replace("data: ", "data:")
    assert clean[1:] == tuple(
        form.replace("data:{", "data: {").replace("{}", json.dumps(piece_of(""))) for _ in pieces[1:]
    )
    other = KeyRedactor(["another-Key-0001"]).exchange(Exchange(ASKED_QUESTION, answer)).answer.body
    assert other == stream


def test_a_key_in_bytes_is_not_kept() -> None:
    question = Question("POST", "openai/v1/audio/speech", {}, b"\xff planted-Key-0001 \x00")
    exchange = Exchange(question, ExchangeAnswer(200, "audio/mpeg", b"\x89\xff planted-Key-0001"))
    clean = KeyRedactor(["planted-Key-0001"]).exchange(exchange)
    assert (clean.question.body, clean.answer.body) == (b"\xff *** \x00", b"\x89\xff ***")
    assert KeyRedactor(["another-Key-0001"]).exchange(exchange) == exchange


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
async def test_other_names_of_this_machine_are_refused(host: str) -> None:
    async with proxied(lambda _: Answer(body="{}")) as (session, client):
        reply = await client.post("/openai/v1/chat/completions", json=ASKED, headers={"host": host})
        assert reply.status_code == 403
        without = await client.post(f"http://127.0.0.1:{client.base_url.port}/openai/v1/chat/completions", json=ASKED)
        assert without.status_code == 404  # and so is an address without its secret
        assert not session.exchanges()


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\nhost: a b\r\n\r\n", b"POST / HTTP/9\r\n\r\n"])  # fmt: skip  # noqa: E501
async def test_nonsense_gets_an_error_and_does_no_harm(sent: bytes) -> None:
    async with proxied(lambda _: Answer(body=json.dumps(SAID))) as (_, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(sent)
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(), 250)
        assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 505")) or said == b""
        writer.close()
        assert (await client.post("/openai/v1/chat/completions", json=ASKED)).status_code == 200


async def test_a_server_that_is_gone_is_said_in_the_protocols_words() -> None:
    session = Session()
    proxy = Proxy(
        {"openai": "http://127.0.0.1:9/v1", "anthropic": "http://127.0.0.1:9", "gemini": "http://127.0.0.1:9"}
    )
    await proxy.start()
    async with httpx.AsyncClient(base_url=proxy.open(session), trust_env=False) as client:
        for path in ("openai/v1/responses", "anthropic/v1/messages", "gemini/v1beta/models/m:generateContent"):
            reply = await client.post(path, json={})
            assert reply.status_code == 502
            assert "can't reach 127.0.0.1:9" in reply.json()["error"]["message"]
    await proxy.close()
    assert all("can't reach" in one.answer.error for one in session.exchanges())


async def test_a_session_settles_when_each_request_has_its_whole_answer() -> None:
    session = Session()
    await session.settle()
    exchanges = [session.begin(ASKED_QUESTION), session.begin(ASKED_QUESTION)]
    settling = asyncio.create_task(session.settle())
    for exchange in exchanges:
        await asyncio.sleep(0)
        assert not settling.done()
        session.end(exchange)
    await settling


async def test_a_stream_that_breaks_breaks_for_the_program_too_also_from_the_recording() -> None:
    pieces = [f"data: {json.dumps(CHUNKS[0])}\n\n".encode()]
    broken = Answer(pieces=pieces, content_type="text/event-stream", cut=True)
    async with proxied(lambda _: broken) as (session, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/openai/v1/chat/completions", json=ASKED)
    (exchange,) = session.exchanges()
    assert not exchange.answer.whole
    replayed = Session(answers=Playback(parse(text_of(session), "c")))
    async with proxied(lambda _: Answer(500), replayed) as (_, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/openai/v1/chat/completions", json=ASKED)


async def test_a_recording_answers_with_no_server_and_streams_event_by_event() -> None:
    async with proxied(lambda _: stream_of(*CHUNKS)) as (session, client):
        first = await client.post("/openai/v1/chat/completions", json=ASKED)
    replayed = Session(answers=Playback(parse(text_of(session), "c")))
    proxy = Proxy({"openai": "http://127.0.0.1:9/v1"})
    await proxy.start()
    async with httpx.AsyncClient(base_url=proxy.open(replayed), trust_env=False) as client:
        again = await client.post("openai/v1/chat/completions", content=json.dumps(ASKED, indent=3, sort_keys=True))
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["content-type"] == first.headers["content-type"]
        missed = await client.post("openai/v1/chat/completions", json={**ASKED, "messages": []})
        assert missed.status_code == 404
        assert "request 1, which differs: messages[0]" in missed.json()["error"]["message"]
    await proxy.close()
    assert replayed.live_requests == 0
    assert replayed.missed_at == 1


async def test_from_the_first_miss_on_servers_are_asked_within_the_limit() -> None:
    said = {**SAID, "usage": {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}}
    session = Session(
        answers=Playback(Cassette()),
        on_miss="live",
        max_cost=0.5,
        cost=lambda model, usage: 0.3 if model == "m" else None,
    )
    async with proxied(lambda _: Answer(body=json.dumps(said)), session) as (_, client):
        codes = [(await client.post("/openai/v1/chat/completions", json=ASKED)).status_code for _ in range(3)]
    assert codes == [200, 200, 402]
    assert session.spent == pytest.approx(0.6)
    assert len(session.misses) == 1


COUNTED = {**SAID, "usage": {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}}


def limited(max_cost: float) -> Session:
    return Session(max_cost=max_cost, cost=lambda _, usage: 0.3 if usage.total_tokens else None)


@pytest.mark.parametrize("limit", [0.001, 0.02, 0.1, 0.3])
async def test_many_requests_at_once_are_never_over_the_limit_by_more_than_one(limit: float) -> None:
    """Of two models, one ten times as dear as the other; the first request writes into the cache, later ones read."""
    price = {"small": Price(100, 500, 10, 125), "large": Price(1000, 5000, 100, 1250)}
    bill: list[float] = []

    async def answer(request: Request) -> Answer:
        model, number = request.json["model"], len(bill)
        read, written = (0, 900) if number % 5 == 4 else (900, 0)  # the dear ones come late
        plain = {"small": 1, "large": 10}[model]
        bill.append(plain * (100 * 100 + read * 10 + written * 125 + 10 * 500) / 1e6)
        for _ in range(20):
            await asyncio.sleep(0)
        details = {"cached_tokens": read, "cache_write_tokens": written}
        usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "prompt_tokens_details": details}
        return Answer(body=json.dumps({**SAID, "model": model, "usage": usage}))

    prices = Prices(price)
    session = Session(max_cost=limit, cost=prices.cost)
    async with proxied(answer, session) as (_, client):
        asked = [{**ASKED, "model": "large" if number % 3 == 2 else "small"} for number in range(24)]
        replies = await asyncio.gather(*(client.post("/openai/v1/chat/completions", json=one) for one in asked))
    assert [one.status_code for one in replies].count(200) == len(bill)
    assert session.spent == pytest.approx(sum(bill))
    assert sum(bill) <= limit + max(bill)
    assert len(bill) == 24 or sum(bill) >= limit


@pytest.mark.parametrize("limit", [0.05, 0.4, 1.5])
async def test_requests_that_each_cost_more_than_any_before_wait_for_their_share(limit: float) -> None:
    bill: list[float] = []
    at_once, most = 0, 0

    async def answer(request: Request) -> Answer:
        nonlocal at_once, most
        written = min(request.json["max_tokens"], 10 * 2 ** len(bill))
        bill.append((10 * 100 + written * 500) / 1e6)
        at_once += 1
        most = max(most, at_once)
        for _ in range(20):
            await asyncio.sleep(0)
        at_once -= 1
        usage = {"prompt_tokens": 10, "completion_tokens": written, "total_tokens": 10 + written}
        return Answer(body=json.dumps({**SAID, "usage": usage}))

    session = Session(max_cost=limit, cost=Prices({"m": Price(100, 500)}).cost)
    async with proxied(answer, session) as (_, client):
        asked = [{**ASKED, "max_tokens": 800}] * 24
        replies = await asyncio.gather(*(client.post("/openai/v1/chat/completions", json=one) for one in asked))
    assert [one.status_code for one in replies].count(200) == len(bill) < 24
    assert session.spent == pytest.approx(sum(bill))
    assert limit <= sum(bill) <= limit + max(bill)
    assert (most > 1) == (limit > 1), "as many at once as fit: each may cost $0.51"


async def test_an_answer_without_a_count_of_tokens_is_not_taken_for_free() -> None:
    session = limited(10)
    async with proxied(lambda _: stream_of(*CHUNKS), session) as (_, client):
        replies = [await client.post("/openai/v1/chat/completions", json=ASKED) for _ in range(2)]
    assert [one.status_code for one in replies] == [200, 402]
    assert "m answered without a count of tokens" in replies[1].json()["error"]["message"]
    assert (session.uncounted, session.known_cost) == ({"m": 1}, None)


async def test_errors_and_servers_that_are_not_there_cost_nothing() -> None:
    session = limited(10)
    async with proxied(lambda _: Answer(status=500, body="{}"), session) as (_, client):
        assert (await client.post("/openai/v1/chat/completions", json=ASKED)).status_code == 500
        proxy = Proxy({"openai": "http://127.0.0.1:9/v1"})
        await proxy.start()
        reply = await client.post(f"{proxy.open(session)}/openai/v1/chat/completions", json=ASKED)
        await proxy.close()
        assert reply.status_code == 502
    assert (session.uncounted, session.unpriced, session.spent) == ({}, set(), 0.0)


async def test_what_is_no_conversation_costs_what_its_answer_says() -> None:
    session = limited(0.5)
    body = {"model": "m", "data": [], "usage": {"prompt_tokens": 9, "total_tokens": 9}}
    async with proxied(lambda _: Answer(body=json.dumps(body)), session) as (_, client):
        codes = [
            (await client.post("/openai/v1/embeddings", json={"model": "m", "input": "x"})).status_code
            for _ in range(3)
        ]
        await client.get("/openai/v1/models")
    assert (codes, session.spent) == ([200, 200, 402], 0.6)


@pytest.mark.parametrize(
    "path",
    [
        "openai/v1/completions", "openai/v1/embeddings", "openai/v1/images/generations", "openai/v1/images/edits",
        "openai/v1/audio/speech", "openai/v1/audio/transcriptions", "openai/v1/videos", "anthropic/v1/complete",
        "gemini/v1beta/models/m:embedContent", "gemini/v1beta/models/m:batchEmbedContents",
        "gemini/v1beta/models/m:predict", "gemini/v1beta/models/m:predictLongRunning",
    ],
)  # fmt: skip
async def test_what_costs_without_a_count_of_tokens_is_not_taken_for_free(path: str) -> None:
    session = limited(10)
    async with proxied(lambda _: Answer(body="{}"), session) as (_, client):
        codes = [(await client.post(f"/{path}", json={"model": "m"})).status_code for _ in range(2)]
    assert (codes, session.uncounted, session.known_cost) == ([200, 402], {"m": 1}, None)


async def test_what_is_free_needs_no_count_of_tokens() -> None:
    session = limited(10)
    free = ("openai/v1/files", "openai/v1/moderations", "anthropic/v1/messages/count_tokens", "openai/v1/threads")
    async with proxied(lambda _: Answer(body="{}"), session) as (_, client):
        codes = [(await client.post(f"/{path}", json={"model": "m"})).status_code for path in free]
        codes.append((await client.get("/openai/v1/videos")).status_code)
    assert (set(codes), session.uncounted) == ({200}, {})


async def test_a_stream_of_an_older_completion_says_what_it_cost() -> None:
    session = limited(0.5)
    chunks = [
        {"model": "m", "choices": [{"text": "x"}], "usage": None},
        {"model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
    ]
    async with proxied(lambda _: stream_of(*chunks), session) as (_, client):
        codes = [(await client.post("/openai/v1/completions", json={"model": "m"})).status_code for _ in range(3)]
    assert (codes, session.spent, session.uncounted) == ([200, 200, 402], 0.6, {})


async def test_requests_at_the_same_time_stay_within_the_limit() -> None:
    most = now = 0

    async def answer(_: Request) -> Answer:
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(20):  # the others get here, where they may
            await asyncio.sleep(0)
        now -= 1
        return Answer(body=json.dumps(COUNTED))

    session = limited(1.0)
    async with proxied(answer, session) as (_, client):
        asked = [client.post("/openai/v1/chat/completions", json={**ASKED, "seed": n}) for n in range(12)]
        replies = await asyncio.gather(*asked)
    codes = sorted(one.status_code for one in replies)
    assert codes == [200] * 4 + [402] * 8  # the last begins below the limit, as of requests after one another
    assert session.spent == pytest.approx(1.2)
    assert most <= 2


async def test_a_request_waits_for_the_first_answer_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    session, loop = limited(10), asyncio.get_running_loop()
    first, second = (
        session.begin(Question("POST", "openai/v1/chat/completions", body={"model": "m"})) for _ in range(2)
    )
    assert await session.answer(first) is None
    waiting = asyncio.create_task(session.answer(second))
    await asyncio.sleep(0)
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + 3_600)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    said = {"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    first.answered(ExchangeAnswer(200, "application/json", said), live=True)
    session.end(first)
    assert await waiting is None


async def test_packed_answers_are_passed_on_as_they_are_and_read() -> None:
    packed = gzip.compress(json.dumps(SAID).encode())
    answer = Answer(pieces=[packed], headers={"content-encoding": "gzip"})
    async with proxied(lambda _: answer) as (session, client):
        assert (await client.post("/openai/v1/chat/completions", json=ASKED)).json() == SAID
    assert session.exchanges()[0].answer.body == SAID


async def test_a_program_that_goes_away_leaves_an_answer_that_was_not_waited_for() -> None:
    started = asyncio.Event()

    async def never(_: Request) -> Answer:
        started.set()
        await asyncio.sleep(60)
        return Answer()

    async with proxied(never) as (session, client):
        asking = asyncio.create_task(client.post("/openai/v1/chat/completions", json=ASKED))
        await asyncio.wait_for(started.wait(), 250)
        asking.cancel()
    (exchange,) = session.exchanges()
    assert exchange.answer.status == 0
    assert not exchange.answer.whole


async def test_a_port_in_use_is_said() -> None:
    one = Proxy({})
    await one.start()
    with pytest.raises(InfrastructureError, match=r"can't be had: address already in use \(choose another with --port"):
        await Proxy({}).start(one.port)
    await one.close()


async def test_a_request_in_chunks_or_with_100_continue_is_read() -> None:
    async with proxied(lambda request: Answer(body=request.body)) as (session, client):
        port, path = client.base_url.port, client.base_url.path
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {path}openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.readline(), 250)).startswith(b"HTTP/1.1 100")
        writer.write(b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n')
        said = await asyncio.wait_for(reader.read(), 250)
        assert b'{"a":1}' in said
        writer.close()
    assert session.exchanges()[0].question.body == {"a": 1}


async def test_equal_requests_at_the_same_time_get_different_answers() -> None:
    said = [Exchange(ASKED_QUESTION, ExchangeAnswer(200, "application/json", {"n": n})) for n in range(4)]
    session = Session(answers=Playback(Cassette(tuple(said))))
    async with proxied(lambda _: Answer(500), session) as (_, client):
        replies = await asyncio.gather(*(client.post("/openai/v1/chat/completions", json=ASKED) for _ in range(4)))
    assert sorted(one.json()["n"] for one in replies) == [0, 1, 2, 3]


async def test_an_address_that_makes_no_sense_is_an_error_and_no_more() -> None:
    async with proxied(lambda request: Answer(body=json.dumps({"path": request.path}))) as (_, client):
        port, path = client.base_url.port, client.base_url.path
        long = "x" * 70_000
        for target in ("openai/v1/\x80\xff", f"openai/v1/{long}", "openai/v1/[::1", "openai/v1//../../etc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"GET {path}{target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode("latin-1")
            )
            said = await asyncio.wait_for(reader.read(), 250)
            assert said.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4", b"HTTP/1.1 502")), target[:40]
            writer.close()
        assert (await client.post("/openai/v1/chat/completions", json=ASKED)).status_code == 200
