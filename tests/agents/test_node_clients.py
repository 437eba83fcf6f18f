"""Each client for Node that stands on `http` and `https` is recorded, and sees what it would see without a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import npm_clients
import pytest
from certificates import make_certificates
from scripted import Answer, Request, ScriptedServer
from test_auto_capture import captured_of, paths_of
from test_capture import KEY, model, run

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import ASKED_PAST

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

BODY = "{model: 'm', messages: [{role: 'user', content: 'Where is it?'}]}"
HEADERS = "{'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}`}"
READ = """
import http, { request } from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { PassThrough, Readable } from 'node:stream';
const url = process.env.SHOP_MODEL + '/chat/completions?version=1';
const body = JSON.stringify(BODY);
const headers = HEADERS;
const { hostname, port, pathname, search } = new URL(url);
const PATH = pathname + search;
const options = { hostname, port, path: PATH, method: 'POST', headers };
function told(reply, address) {
  const { content, tool_calls } = reply.choices[0].message;
  console.log(content ?? tool_calls[0].function.name, address);
}
function read(response) {
  let text = '';
  response.on('data', (piece) => (text += piece)).on('end', () => told(JSON.parse(text), response.req.path));
}
""".replace("BODY", BODY).replace("HEADERS", HEADERS)
CODES = {
    "http: options": "request(options, read).end(body)",
    "http: address": "http.request(url, { method: 'post', headers }, read).end(body)",
    "http: pieces": """
        const asked = http.request(new URL(url), { method: 'POST' });
        asked.on('response', read).on('error', console.log).setTimeout(60_000);
        for (const [name, value] of Object.entries(headers)) asked.setHeader(name, value);
        asked.flushHeaders();
        asked.write(body.slice(0, 9), () => asked.end(Buffer.from(body.slice(9))));
    """,
    "axios": """
        const axios = (await import('axios')).default;
        const reply = await axios.post(url, JSON.parse(body), { headers });
        told(reply.data, new URL(reply.request.res.responseUrl).pathname + '?version=1');
    """,
    "node-fetch-2": """
        const reply = await (await import('node-fetch-2')).default(url, { method: 'POST', headers, body });
        told(await reply.json(), reply.url.slice(url.indexOf(pathname)));
    """,
    "node-fetch-3": """
        const reply = await (await import('node-fetch-3')).default(url, { method: 'POST', headers, body });
        told(await reply.json(), reply.url.slice(url.indexOf(pathname)));
    """,
    "got": """
        const reply = await (await import('got')).got.post(url, { headers, json: JSON.parse(body) });
        told(JSON.parse(reply.body), reply.url.slice(url.indexOf(pathname)));
    """,
    "superagent": """
        const reply = await (await import('superagent')).default.post(url).set(headers).send(body);
        told(reply.body, pathname + search);
    """,
    "undici: request": """
        const { request: ask } = await import('undici');
        const reply = await ask(url, { method: 'POST', headers: Object.entries(headers).flat(), body });
        told(await reply.body.json(), pathname + search);
    """,
    "undici: request, required": """
        const undici = createRequire(import.meta.url)('undici');
        const reply = await undici.request(new URL(url), { method: 'POST', headers, body: Buffer.from(body) });
        told(await reply.body.json(), pathname + search);
    """,
    "undici: fetch": """
        const undici = await import('undici');
        const reply = await undici.fetch(url, { method: 'POST', headers: new undici.Headers(headers), body });
        told(await reply.json(), reply.url.slice(url.indexOf(pathname)));
    """,
    "undici: stream": """
        const undici = await import('undici');
        const asked = { method: 'POST', headers, body };
        await undici.stream(url, asked, () => new PassThrough().on('data', (text) => told(JSON.parse(text), PATH)));
    """,
    "undici: pipeline": """
        const undici = await import('undici');
        const pipeline = undici.pipeline(url, { method: 'POST', headers }, (reply) => reply.body);
        pipeline.on('data', (text) => told(JSON.parse(text), PATH)).end(body);
    """,
    "undici: a client of its own": """
        const client = new (await import('undici')).Client(new URL(url).origin);
        const reply = await client.request({ path: pathname, query: { version: 1 }, method: 'POST', headers, body });
        told(await reply.body.json(), PATH);
        await client.close();
    """,
    "undici: a pool of its own, a body in pieces": """
        const pool = new (await import('undici')).Pool(new URL(url).origin, { connections: 1 });
        const pieces = Readable.from([body.slice(0, 9), body.slice(9)]);
        const reply = await pool.request({ path: PATH, method: 'POST', headers, body: pieces });
        told(await reply.body.json(), PATH);
        await pool.close();
    """,
    "undici: an agent that tries again": """
        const { Agent, RetryAgent } = await import('undici');
        const agent = new RetryAgent(new Agent({ keepAliveTimeout: 10 }));
        const { origin } = new URL(url);
        const reply = await agent.request({ origin, path: PATH, method: 'POST', headers, body });
        told(await reply.body.json(), PATH);
    """,
    "http: fetch of bytes": """
        const reply = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) });
        told(await reply.json(), PATH);
    """,
    "http: fetch of a stream": """
        const pieces = Readable.toWeb(Readable.from([Buffer.from(body)]));
        const reply = await fetch(url, { method: 'POST', headers, body: pieces, duplex: 'half' });
        told(await reply.json(), PATH);
    """,
    "openai-4": """
        const OpenAI = (await import('openai-4')).default;
        const client = new OpenAI({ baseURL: process.env.SHOP_MODEL, defaultQuery: { version: 1 } });
        told(await client.chat.completions.create(JSON.parse(body)), pathname + search);
    """,
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(model) as running:
        yield running


def program(folder: Path, code: str, packages: bool = False) -> dict[str, Any]:
    """A program for Node; `packages`: with those of npm."""
    if packages:
        try:
            (folder / "node_modules").symlink_to(npm_clients.installed() / "node_modules")
        except npm_clients.NotAvailable as reason:
            pytest.skip(str(reason))
    (folder / "agent.mjs").write_text(READ + code, "utf-8")
    return {"kind": "command", "command": ["node", "agent.mjs"], "output": "text", "capture": "auto"}


def environment(url: str, **more: str) -> dict[str, str]:
    return {"SHOP_MODEL": url, "OPENAI_API_KEY": KEY, "PATH": os.environ["PATH"], **more}


@pytest.mark.sweep
@pytest.mark.parametrize("client", CODES)
async def test_each_client_is_recorded_and_sees_its_own_address(
    server: ScriptedServer, tmp_path: Path, client: str
) -> None:
    config = program(tmp_path, CODES[client], not client.startswith("http:"))
    transcript, events = await run(config, tmp_path, environment(server.url), "Where is it?")
    printed = "".join(event.text for event in events if hasattr(event, "text"))
    assert (transcript.error, printed) == (None, "get_order /v1/chat/completions?version=1")
    assert paths_of(events) == ["openai/v1/chat/completions"]
    assert KEY not in str(captured_of(events))
    assert [call.name for call in transcript.tool_calls] == ["get_order"]
    (asked,) = server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["host"] == server.url.split("/")[2]
    assert not [name for name in asked.headers if "agenteval" in name]


@pytest.mark.sweep
@pytest.mark.parametrize("client", CODES)
async def test_each_client_asks_a_server_that_only_it_trusts_by_itself(tmp_path: Path, client: str) -> None:
    """A proxy that does not trust the certificate reaches nothing: the client asks, once, with its whole body."""
    certificates = make_certificates(tmp_path)
    bodies = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"chunked" in head:
            bodies.append((await reader.readuntil(b"\r\n0\r\n\r\n")).split(b"\r\n")[1:-3:2])
        else:
            bodies.append([await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))])
        answer = b'{"choices":[{"message":{"role":"assistant","content":"hi"}}]}'
        kind = b"content-type: application/json\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (kind, len(answer), answer))
        writer.close()

    context = certificates.sides["self_signed"]
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        env = environment(
            f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
            NODE_EXTRA_CA_CERTS=str(certificates.self_signed),
        )
        code = (
            CODES[client].replace("http.request", "https.request").replace("request(options", "https.request(options")
        )
        config = program(tmp_path, code, not client.startswith("http:"))
        transcript, events = await run(config, tmp_path, env, "Where is it?")
    assert (transcript.error, transcript.final_output) == (None, "hi /v1/chat/completions?version=1")
    assert captured_of(events) is None
    assert len(asked_past(transcript)) == 1
    assert [b'"Where is it?"' in b"".join(pieces) for pieces in bodies] == [True]


ERRORS = """
const asked = http.request(url, { method: 'POST', headers });
for (const name of ['abort', 'close', 'error', 'finish', 'response', 'socket', 'timeout'])
  asked.on(name, (about) => console.log(name, about?.code ?? '', about?.port ?? ''));
asked.on('response', (response) => response.on('error', (error) => console.log('body', error.code)).resume());
"""


@pytest.mark.parametrize("capture", ["none", "auto"])
async def test_a_server_that_is_not_there_fails_as_without_a_proxy(tmp_path: Path, capture: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        config = {**program(tmp_path, ERRORS + "asked.end(body)"), "capture": capture}
        transcript, events = await run(config, tmp_path, environment(f"http://127.0.0.1:{port}/v1"), "hi")
    names = [line.split()[0] for line in transcript.final_output.splitlines()]
    assert [name for name in names if name not in ("socket", "finish")] == ["error", "close"]
    assert f"error ECONNREFUSED {port}\n" in transcript.final_output
    assert captured_of(events) is None


@pytest.mark.parametrize("capture", ["none", "auto"])
@pytest.mark.parametrize("before_end", [True, False])
async def test_a_request_that_the_program_ends_is_over(
    server: ScriptedServer, tmp_path: Path, capture: str, before_end: bool
) -> None:
    ends = "asked.destroy(); asked.end(body)" if before_end else "asked.end(body); asked.destroy()"
    config = {**program(tmp_path, ERRORS + ends), "capture": capture}
    transcript, events = await run(config, tmp_path, environment(server.url), "hi")
    lines = transcript.final_output.splitlines()
    assert [line.split() for line in lines if not line.startswith(("socket", "finish"))] == [
        ["error", "ECONNRESET"],
        ["close"],
    ]
    assert captured_of(events) is None


OTHERS = {
    "a common path that names no model": """
        const asked = http.request(url.replace('chat/completions', 'responses'), { method: 'POST', headers }, done);
        asked.setHeader('content-length', 9);
        asked.write('{"a":');
        asked.end('"b"}');
    """,
    "a body that is too long": """
        headers['content-length'] = 33_000_000;
        const asked = request(options, done);
        asked.write('x'.repeat(32_500_000));
        asked.end('x'.repeat(500_000));
    """,
    "no body": "request(options, done).end()",
    "a connection of the program's own": """
        const createConnection = () => net.connect(port, hostname);
        request({ ...options, createConnection }, done).end(body);
    """,
    "an agent of the program's own": """
        class Own extends http.Agent {}
        request({ ...options, agent: new Own() }, done).end(body);
    """,
}


@pytest.mark.parametrize("what", OTHERS)
async def test_what_is_left_alone_goes_to_its_server(tmp_path: Path, what: str) -> None:
    code = f"import net from 'node:net';\n{OTHERS[what]}\n"
    code += "function done(response) { response.resume().on('end', () => console.log('done', response.statusCode)); }"
    async with ScriptedServer(lambda request: Answer(body="{}")) as server:
        transcript, events = await run(program(tmp_path, code), tmp_path, environment(server.url), "hi")
    assert (transcript.error, transcript.final_output) == (None, "done 200")
    assert captured_of(events) is None
    assert len(server.requests) == 1
    own = [server.url.split("/")[2]] if what.endswith("the program's own") else []
    assert asked_past(transcript) == own


BODIES = {
    "new URLSearchParams({ a: 'b' })": "application/x-www-form-urlencoded;charset=UTF-8",
    "new Blob(['a'], { type: 'text/csv' })": "text/csv",
    "form": "multipart/form-data; boundary=",
}


@pytest.mark.parametrize(
    ("ask", "body"), [*(("fetch", body) for body in BODIES), *(("request", body) for body in list(BODIES)[1:])]
)
async def test_what_is_sent_besides_texts_keeps_its_type(tmp_path: Path, ask: str, body: str) -> None:
    """A server of another kind has a path as model servers have."""
    code = f"""
        {"import undici from 'undici';" if ask == "request" else ""}
        const form = new {"undici." if ask == "request" else ""}FormData();
        form.append('a', 'b');
        const there = url.replace('chat/completions', 'responses');
        const reply = await {ask if ask == "fetch" else "undici.request"}(there, {{ method: 'POST', body: {body} }});
        console.log('done', reply.status ?? reply.statusCode);
    """
    async with ScriptedServer(lambda request: Answer(body="{}")) as server:
        config = program(tmp_path, code, packages=ask == "request")
        transcript, _ = await run(config, tmp_path, environment(server.url), "hi")
    assert (transcript.error, transcript.final_output) == (None, "done 200")
    (request,) = server.requests
    assert request.headers["content-type"].startswith(BODIES[body])
    assert b"[object" not in request.body


def asked_past(transcript: Transcript) -> list[str]:
    """The servers that the run says to have asked past the proxy."""
    return [note.what for note in transcript.notes if note.code == ASKED_PAST]


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy of the network, for one connection."""

    async def passed(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            to.write(data)
        to.close()

    head = await reader.readuntil(b"\r\n\r\n")
    host, _, port = head.split()[1].decode().partition(":")
    behind, to_server = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(passed(reader, to_server), passed(behind, writer))


DISPATCHERS = {
    "setGlobalDispatcher(new Agent());": True,
    "setGlobalDispatcher(new ProxyAgent(process.env.WAY));": False,
    "dispatcher = new Agent();": True,
    "setGlobalDispatcher(new Agent({ connect: { timeout: 9000 } }));": True,
    # What it does is not known.
    "dispatcher = new Agent({ connect: buildConnector({}) });": False,
    "dispatcher = new (class extends Agent {})();": False,
}


@pytest.mark.parametrize("sets", DISPATCHERS)
async def test_what_fetch_asks_by_a_dispatcher_of_the_program_keeps_its_way(
    server: ScriptedServer, tmp_path: Path, sets: str
) -> None:
    code = (
        f"import {{ Agent, ProxyAgent, buildConnector, setGlobalDispatcher }} from 'undici';\nlet dispatcher;\n{sets}\n"
    )
    code += (
        "const reply = await fetch(url, { method: 'POST', headers, body, dispatcher }); told(await reply.json(), '');"
    )
    config = program(tmp_path, code, packages=True)
    async with await asyncio.start_server(tunnel, "127.0.0.1", 0) as way:
        env = environment(server.url, WAY=f"http://127.0.0.1:{way.sockets[0].getsockname()[1]}")
        transcript, events = await run(config, tmp_path, env, "hi")
    assert transcript.error is None
    assert len(server.requests) == 1
    assert (captured_of(events) is not None) is DISPATCHERS[sets]
    assert asked_past(transcript) == ([] if DISPATCHERS[sets] else [server.url.split("/")[2]])


HTTP2 = """
import http2 from 'node:http2';
const session = http2.connect(ORIGIN, OPTIONS).on('error', () => {});
const asked = session.request({ ':method': 'POST', ':path': PATH, ...headers });
let text = '';
asked.on('response', (head) => console.log(head[':status'], head['content-type']));
asked.on('data', (piece) => (text += piece)).on('end', () => told(JSON.parse(text), asked.sentHeaders[':path']));
asked.on('close', () => (session.close(), typeof server === 'undefined' || server.close()));
asked.write(body.slice(0, 9));
asked.end(body.slice(9));
"""


async def test_what_is_asked_by_http2_is_recorded(tmp_path: Path) -> None:
    code = HTTP2.replace("ORIGIN", "new URL(url).origin").replace("OPTIONS", "{}")
    # Its beginning of HTTP/2 is no request that this server knows.
    async with ScriptedServer(lambda request: model(request) if request.body else Answer(status=400)) as server:
        transcript, events = await run(program(tmp_path, code), tmp_path, environment(server.url), "hi")
    printed = "".join(event.text for event in events if hasattr(event, "text"))
    assert printed == "200 application/json\nget_order /v1/chat/completions?version=1"
    assert paths_of(events) == ["openai/v1/chat/completions"]
    assert (transcript.error, asked_past(transcript)) == (None, [])


async def test_what_http2_asks_of_a_server_that_only_it_trusts_goes_there(tmp_path: Path) -> None:
    serves = """
    import http2_ from 'node:http2';
    import { readFileSync } from 'node:fs';
    const pem = readFileSync(process.env.PEM);
    const server = http2_.createSecureServer({ key: readFileSync(process.env.KEY), cert: pem, allowHTTP1: true });
    server.on('request', (request, response) => {
      let got = '';
      request.on('data', (piece) => (got += piece)).on('end', () => {
        response.setHeader('content-type', request.httpVersion);
        const content = JSON.parse(got).messages[0].content;
        response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] }));
      });
    });
    await new Promise((then) => server.listen(0, '127.0.0.1', then));
    """
    certificates = make_certificates(tmp_path)
    code = serves + HTTP2.replace("ORIGIN", "`https://127.0.0.1:${server.address().port}`").replace(
        "OPTIONS", "{ rejectUnauthorized: false }"
    )
    pem = str(certificates.self_signed)
    env = environment("http://127.0.0.1:9/v1", PEM=pem, KEY=str(certificates.self_signed.with_suffix(".key")))
    transcript, events = await run(program(tmp_path, code), tmp_path, env, "hi")
    assert (transcript.error, transcript.final_output) == (
        None,
        "200 2.0\nWhere is it? /v1/chat/completions?version=1",
    )
    assert captured_of(events) is None
    assert len(asked_past(transcript)) == 1


LOOPS = {
    "promises": """
        import { createInterface } from 'node:readline/promises';
        const asking = createInterface({ input: process.stdin });
        while (true) await answer(await asking.question('You: '));
    """,
    "callbacks": """
        import { createInterface } from 'node:readline';
        const asking = createInterface({ input: process.stdin });
        const next = () => asking.question('You: ', (prompt) => answer(prompt).then(next));
        next();
    """,
    "a caught error": """
        import { createInterface } from 'node:readline/promises';
        const asking = createInterface({ input: process.stdin });
        try {
          while (true) await answer(await asking.question('You: '));
        } catch (error) {
          console.error(error.message);
          process.exit(1);
        }
    """,
}


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_loop_that_ends_for_want_of_a_second_question_has_answered(tmp_path: Path, loop: str) -> None:
    def reply(request: Request) -> Answer:
        message = {"role": "assistant", "content": "It is shipped."}
        return Answer(body=json.dumps({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}))

    answers = """
        async function answer(prompt) {
          const reply = await fetch(url, { method: 'POST', headers, body });
          console.log('Bot:', (await reply.json()).choices[0].message.content);
        }
    """
    more = {"input": "line", "capture": "model", "answer": "model"}
    config = {**program(tmp_path, LOOPS[loop] + answers), **more}
    async with ScriptedServer(reply) as server:
        transcript, _ = await run(config, tmp_path, environment(server.url), "Where is it?")
    assert (transcript.error, transcript.final_output) == (None, "It is shipped.")
    assert [note.code for note in transcript.notes] == ["input_ended"]


def test_a_program_that_nobody_records_keeps_its_modules(tmp_path: Path) -> None:
    """The file does nothing without the address of a proxy."""
    startup = Path(__file__).parents[2] / "agenteval_tui" / "agents" / "process" / "startup" / "node_clients.cjs"
    shows = "console.log(require('http').request.toString(), fetch.toString())"
    usual = subprocess.run(["node", "-e", shows], capture_output=True, text=True, check=True).stdout
    env = {**os.environ, "NODE_OPTIONS": f"--require {startup}"}
    env.pop("AGENTEVAL_PROXY", None)
    assert subprocess.run(["node", "-e", shows], capture_output=True, text=True, check=True, env=env).stdout == usual
