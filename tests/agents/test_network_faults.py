"""What stands between an agent and its server: wrong ports, certificates, proxies, compression, pages for people.

Each is one sentence with the true cause and a remedy, of every kind of agent that talks over a network.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from certificates import Certificates, make_certificates
from dialects import ALL, CHAT, MODELS, Dialect, Text
from scripted import Answer, ScriptedServer
from strange import port, socks_proxy

from agenteval_tui.agents.base import AgentSetup, Failed
from agenteval_tui.agents.http import errors
from agenteval_tui.agents.http.errors import words_in
from agenteval_tui.agents.http.proxies import proxy_to
from agenteval_tui.agents.models.openai import OpenAIChatAgent
from agenteval_tui.core.errors import AgentevalError

KEY = "sk-very-secret-0123456789"
PASSWORD = "pr0xy-pass"
ELSEWHERE = "http://elsewhere.invalid/v1"
SECURE_ELSEWHERE = "https://elsewhere.invalid/v1"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
             "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # fmt: skip

every = pytest.mark.parametrize("dialect", ALL, ids=[one.name for one in ALL])
models = pytest.mark.parametrize("dialect", MODELS, ids=[one.name for one in MODELS])


@pytest.fixture(autouse=True)
def _no_network_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    pytest.importorskip("cryptography")
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def closed_port() -> Any:
    with socket.socket() as taken:  # bound and never listening: the port is surely closed
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


async def failure(run_agent: Any, url: str, dialect: Dialect = CHAT) -> Failed:
    """How one run against this address fails: in one line that has no secret in it."""
    ran = await run_agent(dialect.config(url, api_key_env="MY_KEY"), env={"MY_KEY": KEY})
    failed = ran.events[-1]
    assert isinstance(failed, Failed), failed
    said = failed.error.message + failed.error.fix
    assert "\n" not in said
    assert KEY not in said
    assert PASSWORD not in said
    assert failed.error.fix
    return failed


async def fails_with(run_agent: Any, answer: Answer, dialect: Dialect = CHAT) -> Failed:
    async with ScriptedServer(lambda _: answer) as server:
        return await failure(run_agent, server.url, dialect)


# Ports that speak something else.

SPEAKERS = {
    "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", True, "SSH"),
    "ssh, asked first": (b"SSH-2.0-dropbear\r\n", False, "SSH"),
    "smtp": (b"220 mail.example ESMTP Postfix\r\n", True, "SMTP"),
    "smtp in several lines": (b"220-mail.example\r\n220 ready\r\n", True, "220-mail.example"),
    "smtp that refuses": (b"554 SMTP synchronization error\r\n", False, "554 SMTP"),
    "ftp": (b"220 (vsFTPd 3.0.5)\r\n", True, "FTP"),
    "imap": (b"* OK IMAP4rev1 ready\r\n", True, "IMAP4rev1 ready"),
    "pop3": (b"+OK ready\r\n", True, "+OK ready"),
    "redis": (b"-ERR unknown command 'POST'\r\n", False, "-ERR unknown command 'POST'"),
    "mysql": (b"\x4a\x00\x00\x00\x0a8.0.36\x00", True, "on this port"),
    "vnc": (b"RFB 003.008\n", True, "RFB 003.008"),
    "h2": (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", False, "on this port"),
    "unknown": (b"hello there\r\n", False, "'hello there'"),
}


@pytest.mark.parametrize("name", SPEAKERS)
async def test_a_port_that_speaks_something_else_is_named(run_agent: Any, name: str) -> None:
    answer, first, what = SPEAKERS[name]
    async with port(answer, first=first) as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1")
    assert what in failed.error.message
    assert "does not speak HTTP" in failed.error.message
    assert f"127.0.0.1:{number}" in failed.error.message
    assert "port" in failed.error.fix
    assert (failed.error.kind, failed.retry) == ("connection", False)


@every
async def test_every_kind_names_ssh(run_agent: Any, dialect: Dialect) -> None:
    async with port(b"SSH-2.0-OpenSSH_9.6\r\n", first=True) as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1", dialect)
    assert "SSH" in failed.error.message


PLAIN_TO_TLS = {
    "an alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "nginx": b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html><head><title>400 "
    b"The plain HTTP request was sent to HTTPS port</title></head><body><h1>400 Bad Request</h1></body></html>",
    "Go": b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
    "Apache": b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nReason: You're speaking plain HTTP to an "
    b"SSL-enabled server port.",
}


@pytest.mark.parametrize("name", PLAIN_TO_TLS)
async def test_plain_http_to_a_tls_port(run_agent: Any, name: str) -> None:
    async with port(PLAIN_TO_TLS[name]) as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1")
    assert "TLS" in failed.error.message
    assert "https://" in failed.error.fix


@every
async def test_plain_http_to_a_real_tls_server(run_agent: Any, dialect: Dialect, certificates: Certificates) -> None:
    async with port(b"", tls=certificates.sides["good"]) as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1", dialect)
    assert "https://" in failed.error.fix


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", b"220 mail ESMTP\r\n"])
async def test_tls_to_a_plain_port(run_agent: Any, answer: bytes) -> None:
    async with port(answer, first=True) as number:
        failed = await failure(run_agent, f"https://127.0.0.1:{number}/v1")
    assert "does not speak TLS" in failed.error.message
    assert "http://" in failed.error.fix
    assert "certificate" not in failed.error.message


async def test_a_server_that_hangs_up_at_once_did_not_answer(run_agent: Any) -> None:
    async with port(b"") as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1")
    assert "without an answer" in failed.error.message
    assert failed.retry


# Certificates.

WRONG = {
    "self_signed": "self-signed",
    "expired": "has expired",
    "early": "is not valid yet",
    "other_host": "made for another host",
    "good": "an authority that is not trusted here",
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_wrong_with_a_certificate(
    run_agent: Any, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name != "good":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    async with port(b"", tls=certificates.sides[name]) as number:
        failed = await failure(run_agent, f"https://127.0.0.1:{number}/v1")
    assert WRONG[name] in failed.error.message
    assert "agenteval docs network" in failed.error.fix
    assert ("SSL_CERT_FILE" in failed.error.fix) == (name in ("self_signed", "good"))
    assert (failed.error.kind, failed.retry) == ("connection", False)


OK_REPLY = (
    b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"choices": '
    b'[{"message": {"content": "hello"}, "finish_reason": "stop"}]}'
)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
@pytest.mark.parametrize("name", ["good", "self_signed"])
async def test_an_authority_of_ones_own_is_named_by_a_variable(
    run_agent: Any, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    file = certificates.authority if name == "good" else certificates.self_signed
    monkeypatch.setenv(variable, str(file))
    async with port(OK_REPLY, tls=certificates.sides[name]) as number:
        ran = await run_agent(CHAT.config(f"https://127.0.0.1:{number}/v1"))
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "hello")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
@pytest.mark.parametrize("what", ["missing", "no certificates", "empty", "a folder", "a name that is too long"])
async def test_a_variable_that_names_no_certificates_is_one_sentence(
    run_agent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, what: str
) -> None:
    file = tmp_path / ("x" * 400 if what.endswith("long") else "ca.pem")
    if what in ("no certificates", "empty"):
        file.write_text("hello" if what == "no certificates" else "")
    if what == "a folder":
        if variable != "SSL_CERT_FILE":
            return  # these may name one
        file.mkdir()
    monkeypatch.setenv(variable, str(file))
    failed = await failure(run_agent, "https://127.0.0.1:9/v1")
    assert variable in failed.error.message
    assert str(file)[:200] in failed.error.message
    assert variable in failed.error.fix
    agent = OpenAIChatAgent(AgentSetup("a", CHAT.config("https://127.0.0.1:9/v1"), tmp_path))
    report = await agent.check()
    assert (report.ok, report.message, report.fix) == (False, failed.error.message, failed.error.fix)
    # Who does not use TLS does not need them.
    plain = await failure(run_agent, "http://127.0.0.1:9/v1")
    assert variable not in plain.error.message


# Proxies.


def through(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)


@every
@pytest.mark.parametrize("url", [ELSEWHERE, SECURE_ELSEWHERE])
async def test_a_dead_proxy_is_blamed_itself(
    run_agent: Any, dialect: Dialect, url: str, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    variable = "HTTPS_PROXY" if url.startswith("https") else "HTTP_PROXY"
    through(monkeypatch, variable, f"http://me:{PASSWORD}@127.0.0.1:{closed_port}")
    failed = await failure(run_agent, url, dialect)
    assert f"http://127.0.0.1:{closed_port}" in failed.error.message
    assert variable in failed.error.message
    assert variable in failed.error.fix
    assert "NO_PROXY" in failed.error.fix
    assert "elsewhere" not in failed.error.message
    assert "me:" not in failed.error.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "wants a name and a password"),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "does not lead to"),
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "does not lead to"),
        (b"SSH-2.0-x\r\n", "SSH"),
    ],
)
async def test_a_proxy_that_refuses_a_tunnel(
    run_agent: Any, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str
) -> None:
    async with port(answer) as number:
        through(monkeypatch, "https_proxy", f"http://me:{PASSWORD}@127.0.0.1:{number}")
        failed = await failure(run_agent, SECURE_ELSEWHERE)
    assert words in failed.error.message
    assert f"127.0.0.1:{number}" in failed.error.message
    assert "https_proxy" in failed.error.message
    assert failed.error.kind == "connection"


@pytest.mark.parametrize(("status", "words"), [(407, "wants a name and a password"), (502, "through the proxy")])
async def test_a_proxy_that_answers_in_the_server_s_place(
    run_agent: Any, monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    async with ScriptedServer(lambda _: Answer(status, "<html><title>Squid</title></html>", "text/html")) as proxy:
        through(monkeypatch, "ALL_PROXY", f"127.0.0.1:{proxy.port}")
        failed = await failure(run_agent, ELSEWHERE)
    assert words in failed.error.message
    assert "ALL_PROXY" in failed.error.message


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "SOCKS5"])
async def test_a_socks_proxy_is_used(run_agent: Any, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    asked: list[bytes] = []
    async with (
        ScriptedServer(lambda _: CHAT.stream(Text(["by socks"]))) as server,
        socks_proxy(server.port, asked) as n,
    ):
        through(monkeypatch, "ALL_PROXY", f"{scheme}://127.0.0.1:{n}")
        ran = await run_agent(CHAT.config(ELSEWHERE))
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "by socks")
    assert asked == [b"elsewhere.invalid"]


@every
@pytest.mark.parametrize("url", [ELSEWHERE, SECURE_ELSEWHERE])
async def test_without_the_extra_a_socks_proxy_names_ours(
    run_agent: Any, dialect: Dialect, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(monkeypatch, "ALL_PROXY", f"socks5://me:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "socksio", None)
    failed = await failure(run_agent, url, dialect)
    assert "ALL_PROXY" in failed.error.message
    assert "agenteval-tui[socks]" in failed.error.fix
    assert "httpx" not in failed.error.message + failed.error.fix


@pytest.mark.parametrize("value", ["socks4://h:1", "ftp://h:1", "http://h:port", "http://", "http://[::1", "://"])
async def test_a_proxy_s_address_that_is_none(run_agent: Any, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    through(monkeypatch, "HTTP_PROXY", value)
    failed = await failure(run_agent, ELSEWHERE)
    assert "HTTP_PROXY" in failed.error.message
    assert "agenteval docs network" in failed.error.fix


@pytest.mark.parametrize(
    ("url", "no_proxy", "direct"),
    [
        ("http://a.example/v1", "", False),
        ("http://a.example/v1", "*", True),
        ("http://a.example/v1", "b.example, a.example", True),
        ("http://a.example/v1", "b.example a.example", True),
        ("http://A.Example/v1", "a.example", True),
        ("http://a.example./v1", "a.example", True),
        ("http://x.a.example/v1", "a.example", True),
        ("http://x.a.example/v1", ".a.example", True),
        ("http://x.a.example/v1", "*.a.example", True),
        ("http://a.example/v1", ".a.example", True),
        ("http://ba.example/v1", "a.example", False),
        ("http://a.example.evil/v1", "a.example", False),
        ("http://a.example:8000/v1", "a.example:8000", True),
        ("http://a.example:8001/v1", "a.example:8000", False),
        ("https://a.example/v1", "a.example:443", True),
        ("http://a.example/v1", "a.example:80", True),
        ("http://10.1.2.3/v1", "10.0.0.0/8", True),
        ("http://11.1.2.3/v1", "10.0.0.0/8", False),
        ("http://10.1.2.3/v1", "10.1.2.3", True),
        ("http://10.1.2.3:81/v1", "10.1.2.3:81", True),
        ("http://[fd00::7]/v1", "fd00::/8", True),
        ("http://[fd00::7]:81/v1", "[fd00::7]:81", True),
        ("http://[fd00::7]/v1", "fd00::7", True),
        ("http://a.example/v1", "http://a.example", True),
        ("http://a.example/v1", ",, ,", False),
        ("http://127.0.0.1:81/v1", "", True),
        ("http://localhost:81/v1", "", True),
        ("http://[::1]:81/v1", "", True),
    ],
)
def test_no_proxy(monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str, direct: bool) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    proxy = proxy_to(url)
    assert (proxy is None) == direct
    assert proxy is None or proxy.named == "the proxy http://proxy.example:3128 (from ALL_PROXY)"


def test_the_scheme_s_own_proxy_comes_before_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://all.example")
    monkeypatch.setenv("https_proxy", f"http://me:{PASSWORD}@secure.example:1")
    assert [proxy_to(url).variable for url in (ELSEWHERE, SECURE_ELSEWHERE)] == [  # type: ignore[union-attr]
        "ALL_PROXY",
        "https_proxy",
    ]
    monkeypatch.setenv("ALL_PROXY", "socks4://all.example")
    with pytest.raises(AgentevalError, match="ALL_PROXY"):
        proxy_to(ELSEWHERE)


# Refusals.

REFUSALS: list[tuple[int, Any, str]] = [
    (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, "auth"),
    (401, {}, "auth"),
    (401, {"error": {"message": "You have insufficient permissions. Missing scopes: model.request"}}, "permission"),
    (403, {"error": {"message": "Incorrect API key provided: sk-1"}}, "auth"),
    (403, {"error": "The token is expired"}, "auth"),
    (403, {"detail": "Invalid or missing API key"}, "auth"),
    (403, {}, "permission"),
    (403, {"error": {"type": "permission_error", "message": "Your API key does not have permission"}}, "permission"),
    (403, {"error": {"message": "Project p does not have access to m", "code": "model_not_found"}}, "permission"),
    (403, {"error": {"status": "PERMISSION_DENIED", "message": "caller lacks aiplatform.predict"}}, "permission"),
    (403, {"error": {"code": "unsupported_country_region_territory", "message": "Country, region, or territory not "
                     "supported", "type": "request_forbidden"}}, "region"),
    (403, {"error": {"message": "This service is not available in your country."}}, "region"),
    (403, "<html><title>Access denied</title><body>The owner of this website has banned the country or region your IP "
          "address is in</body></html>", "region"),
    (400, {"error": {"status": "FAILED_PRECONDITION", "message": "User location is not supported for the API use."}},
     "region"),
    (400, {"error": {"message": "API key not valid. Please pass a valid API key.",
                     "details": [{"reason": "API_KEY_INVALID"}]}}, "auth"),
    (451, {}, "region"),
    (400, {"error": {"message": "the token limit is wrong"}}, "bad_request"),
    (400, {"error": {"message": "unknown field: region"}}, "bad_request"),
    (402, {"error": {"message": "Insufficient Balance"}}, "bad_request"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS)
async def test_why_a_request_was_refused(run_agent: Any, status: int, body: Any, kind: str) -> None:
    answer = Answer(status, body if isinstance(body, str) else json.dumps(body))
    failed = await fails_with(run_agent, answer)
    assert (failed.error.kind, failed.retry) == (kind, False), failed.error
    assert str(status) in failed.error.message
    assert ("set the environment variable MY_KEY" in failed.error.fix) == (kind == "auth")
    assert ("country or region" in failed.error.message) == (kind == "region")
    assert "<" not in failed.error.message


@every
@pytest.mark.parametrize(("status", "body", "kind"), [REFUSALS[0], REFUSALS[6], REFUSALS[10]])
async def test_every_kind_tells_refusals_apart(
    run_agent: Any, dialect: Dialect, status: int, body: Any, kind: str
) -> None:
    failed = await fails_with(run_agent, Answer(status, json.dumps(body)), dialect)
    assert failed.error.kind == kind


async def test_a_check_says_what_a_run_says(run_agent: Any, tmp_path: Path) -> None:
    answer = Answer(403, json.dumps(REFUSALS[10][1]))
    async with ScriptedServer(lambda _: answer) as server:
        failed = await failure(run_agent, server.url)
        config = CHAT.config(server.url, api_key_env="MY_KEY")
        report = await OpenAIChatAgent(AgentSetup("a", config, tmp_path, {"MY_KEY": KEY})).check()
    assert (report.ok, report.message, report.fix) == (False, failed.error.message, failed.error.fix)


# How long to wait.


def _as_header(given: str | timedelta) -> str:
    return given if isinstance(given, str) else format_datetime(datetime.now(UTC) + given, usegmt=True)


@pytest.mark.parametrize(
    ("given", "seconds", "words"),
    [
        ("86400", 86400.0, "86400 s (24 h)"),
        ("604800", 604800.0, "(7 days)"),
        ("3601", 3601.0, "3601 s (60 min)"),
        (timedelta(hours=30), 108_000.0, "h)"),
        (timedelta(days=400), 400 * 86_400.0, "(400 days)"),
        ("5", 5.0, ""),
        ("-5", None, ""),
        ("1e300", 1e9, "days)"),
    ],
)
async def test_a_wait_is_told_as_the_server_asks(
    run_agent: Any, given: str | timedelta, seconds: float | None, words: str
) -> None:
    for status in (429, 503):
        failed = await fails_with(run_agent, Answer(status, "{}", headers={"retry-after": _as_header(given)}))
        assert failed.retry_after_s == (seconds if seconds is None else pytest.approx(seconds, abs=600))
        assert words in failed.error.fix


# Errors in a reply that calls itself good.

SAID: dict[str, Any] = {
    "an object": {"error": {"message": "out of cheese"}},
    "a text": {"error": "out of cheese"},
    "true and a message": {"error": True, "message": "out of cheese"},
    "a list": {"errors": [{"message": "out of cheese"}]},
    "nested": {"error": {"error": {"message": "out of cheese"}}},
    "a status": {"status": "error", "message": "out of cheese"},
    "vLLM": {"object": "error", "message": "out of cheese", "type": "BadRequestError", "code": 400},
    "success": {"success": False, "message": "out of cheese"},
}


@pytest.mark.sweep("name")
@every
@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("streamed", [False, True])
async def test_an_error_in_a_good_reply(run_agent: Any, dialect: Dialect, name: str, streamed: bool) -> None:
    text = json.dumps(SAID[name])
    answer = Answer(200, f"event: error\ndata: {text}\n\n", "text/event-stream") if streamed else Answer(200, text)
    failed = await fails_with(run_agent, answer, dialect)
    assert "answered with an error: out of cheese" in failed.error.message


@every
async def test_an_error_event_that_is_a_text(run_agent: Any, dialect: Dialect) -> None:
    answer = Answer(200, "event: error\ndata: out of cheese\n\n", "text/event-stream")
    failed = await fails_with(run_agent, answer, dialect)
    assert "answered with an error: out of cheese" in failed.error.message


async def test_an_endpoint_may_answer_with_an_object_that_has_an_error_in_it(run_agent: Any) -> None:
    body = {"error": None, "answer": "fine", "status": "ok"}
    async with ScriptedServer(lambda _: Answer(200, json.dumps(body))) as server:
        ran = await run_agent({"kind": "http", "url": server.url})
        other = await run_agent({"kind": "http", "url": server.url, "answer": "answer"})
    assert ran.transcript.error is None
    assert (other.transcript.error, other.transcript.final_output) == (None, "fine")


# Bodies that are not what their headers say.


def _raw(headers: Mapping[str, str], body: bytes, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", "connection: close"]
    return "\r\n".join([*lines, *(f"{key}: {value}" for key, value in headers.items()), "", ""]).encode() + body


GOOD = json.dumps({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}).encode()
BODIES: dict[str, tuple[bytes, str, str]] = {
    "gzip that is none": (_raw({"content-encoding": "gzip"}, b"not gzip"), "can't be read", "compression"),
    "deflate that is none": (_raw({"content-encoding": "deflate"}, b"\xff\xffnot"), "can't be read", "compression"),
    "brotli": (_raw({"content-encoding": "br"}, b"\x0b\x02\x80"), "compressed with br", "compression"),
    # httpx reads zstd where the package zstandard is, and names the encoding where it is not.
    "zstd": (
        _raw({"content-encoding": "zstd"}, b"\x28\xb5\x2f\xfd"),
        "does not decompress" if find_spec("zstandard") else "compressed with zstd",
        "compression",
    ),
    "unheard of": (_raw({"content-encoding": "snappy"}, GOOD), "compressed with snappy", "compression"),
    "half a gzip": (
        _raw({"content-encoding": "gzip"}, gzip.compress(GOOD * 50)[:40]), "", ""
    ),
    "too short": (_raw({"content-length": "500"}, GOOD), "in the middle of the answer", "try again"),
    "too long": (_raw({"content-length": "30"}, GOOD), "stops in the middle of its JSON", "content-length"),
    "no number": (_raw({"content-length": "many"}, GOOD), "broken HTTP", "server"),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 9\r\n\r\nhello", "broken HTTP", "server"
    ),
    "no status": (b"HTTP/1.1 abc\r\n\r\n", "broken HTTP", "server"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_not_what_its_headers_say(run_agent: Any, name: str) -> None:
    answer, words, fix = BODIES[name]
    async with port(answer) as number:
        failed = await failure(run_agent, f"http://127.0.0.1:{number}/v1")
    assert words in failed.error.message
    assert fix in failed.error.fix


@pytest.mark.parametrize(
    ("name", "packed"), [("gzip", gzip.compress(GOOD)), ("deflate", zlib.compress(GOOD))], ids=["gzip", "deflate"]
)
async def test_what_is_compressed_well_is_read(run_agent: Any, name: str, packed: bytes) -> None:
    async with port(_raw({"content-encoding": name}, packed)) as number:
        ran = await run_agent(CHAT.config(f"http://127.0.0.1:{number}/v1"))
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "hello")


# Pages for people.

PAGE = (
    "<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title><style>h1 {color: red}</style></head>"
    "<body><h1>Bad Gateway &amp; more</h1><script>alert(1)</script><p>nginx</p></body></html>"
)


@every
@pytest.mark.parametrize("status", [200, 400, 403, 404, 502])
async def test_a_page_is_never_shown_raw(run_agent: Any, dialect: Dialect, status: int) -> None:
    failed = await fails_with(run_agent, Answer(status, PAGE, "text/html"), dialect)
    assert "502 Bad Gateway" in failed.error.message
    assert not any(sign in failed.error.message for sign in ("<", "color", "alert", "&amp;"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (PAGE, "502 Bad Gateway: Bad Gateway & more"),
        ("<html><head><title>Log in</title></head><body><h1>Log in</h1></body></html>", "Log in"),
        ("<html><body><p>Just <b>text</b></p><script>x</script></body></html>", "Just text"),
        ("  <!-- c --> <HTML><h2>Down</h2></HTML>", "Down"),
        ("<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
         "AccessDenied Access Denied"),
        ('{"error": {"message": "<html><title>Nested</title></html>"}}', "Nested"),
        ("<html></html>", "a page without any text"),
        ("<html><title>cut o", "cut o"),
        ("<b>", "<b>"),
        ("a < b and c > d", "a < b and c > d"),
        ('{"title": "Bad", "detail": "no such thing"}', "no such thing"),
        ('{"fault": {"faultstring": "x"}}', '{"faultstring": "x"}'),
        ('event: error\ndata: {"message": "a \u2028b"}\n\n', "a b"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_words_in_a_body(body: str, words: str) -> None:
    assert words_in(body) == words


def test_a_hostile_page_takes_no_time_worth_mentioning() -> None:
    for body in ("<" * 200_000, "<html>" + "<div>" * 100_000, "<title>" * 50_000, "<!--" * 100_000, "<a " * 100_000):
        said = errors.from_status(errors.ErrorMapper("http://h"), 500, {}, body[:64_000])
        assert len(said.error.message) < 1000
