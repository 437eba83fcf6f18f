"""What went wrong with a server: one sentence with the true cause, and how to fix it. It never contains a key."""

from __future__ import annotations

import errno
import json
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Any, TypeVar

import httpx
from msgspec import Struct

from agenteval_tui.agents.base import Failed
from agenteval_tui.agents.http.chunk_coalescing import NoAnswerBytesError, NotHttpError
from agenteval_tui.agents.http.connection_pool import named_source
from agenteval_tui.agents.http.proxies import PAGE, Proxy
from agenteval_tui.agents.http.sse import LINE_END
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.core.numbers import spoken_seconds
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.transcripts.model import ErrorCode, RunError
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

Cause = TypeVar("Cause", bound=BaseException)
_LONGEST_WAIT_S = 1e9  # a longer text is not a time
_NOTED_WAIT_S = 60.0  # a remedy names waits from here on
_CAUSES = 20  # exceptions behind an exception that are looked at
# Why there is no connection: the code that a failure carries, and what is said of it.
_NO_CONNECTION = {
    "lookup_failed": "the host's name can't be looked up",
    "unknown_host": "there is no such host",
    "refused": "nothing listens there",
    "no_route": "no network leads there",
    "closed": "the connection was closed at once",
    # These two are said of proxies only: of a server itself, `from_exception` says more.
    "no_answer": "it does not answer",
    "closed_without_answer": "it closed the connection without an answer",
}
# OpenSSL's X509_V_ERR_..., which ssl gives as `verify_code`.
_EXPIRED, _NOT_YET, _SELF_SIGNED = 10, 9, 18
_UNKNOWN_AUTHORITY = (2, 19, 20, 21)
_CERTIFICATES = {
    _EXPIRED: "expired",
    _NOT_YET: "not_yet_valid",
    _SELF_SIGNED: "self_signed",
    **dict.fromkeys(_UNKNOWN_AUTHORITY, "unknown_authority"),
}
_OTHER_HOST = (62, 64)
# What OpenSSL calls bytes that are no TLS at all. Which of these it is depends on the bytes that a plain server sends,
# and on the version of OpenSSL.
_NO_TLS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
    "UNEXPECTED_MESSAGE",
    "BAD_RECORD_TYPE",
    "NO_PROTOCOLS_AVAILABLE",
    "UNEXPECTED_RECORD",
)
_WANTS_CERTIFICATE = ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE")
_STATUS_LINE = re.compile(r"\s*(\d{3})\b")
_TLS = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")
"""The beginning of a record of TLS."""
_HTTP_TO_TLS = re.compile(
    r"plain HTTP request was sent to HTTPS|HTTP request to an HTTPS|speaking plain HTTP to an SSL|"
    r"requires TLS|combination of host and port requires TLS",
    re.IGNORECASE,
)
# Servers name the cause of a refusal by a code or only in words, each in its own way: parts of codes are looked for
# first, as they mean one thing, then phrases.
_REFUSED = ("auth", "permission", "region")
_REGION_CODES = (
    "unsupported_country",
    "unsupported_region",
    "country",
    "geo_block",
    "geoblock",
    "unsupported_location",
)
_KEY_CODES = (
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "invalid_authentication",
    "unauthenticated",
    "incorrect_api_key",
    "invalid_token",
    "expired_token",
    "missing_api_key",
    "no_api_key",
)
_SCOPE_CODES = ("insufficient_permission", "missing_scope", "insufficient_scope", "permission_denied")
_PLACE = r"(?:countr(?:y|ies)|regions?|territor(?:y|ies)|locations?|geograph\w*)"
_NOT_HERE = (
    r"(?:not (?:supported|available|allowed|permitted|served)|n[o']t available|unsupported|unavailable|blocked|banned|"
    r"restricted|forbidden|denied|prohibited)"
)
_BY_PLACE = re.compile(rf"\b{_PLACE}\b[^.]{{0,80}}\b{_NOT_HERE}|\b{_NOT_HERE}\b[^.]{{0,80}}\b{_PLACE}\b", re.IGNORECASE)
_KEY = r"(?:api[ _-]?keys?|(?:access |auth\w* |bearer )?tokens?|credentials?|keys?)"
_WRONG = r"(?:invalid|incorrect|wrong|bad|expired|revoked|missing|unknown|malformed|unrecogni[sz]ed|disabled|no valid)"
_BAD_KEY = re.compile(
    rf"\b{_WRONG}\W+(?:\w+\W+){{0,2}}{_KEY}\b|"
    rf"\b{_KEY}\b\W+(?:\w+\W+){{0,3}}(?:{_WRONG}|not (?:valid|found|provided|set))\b",
    re.IGNORECASE,
)
_BAD_SCOPE = re.compile(r"insufficient permission|missing scope|do(?:es)? not have (?:the )?permission", re.IGNORECASE)
# An error's `type` or `code`, and the status that it would have had: an error in the middle of a stream comes with 200.
_STATUSES: Iterable[tuple[str, int]] = (
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("too_many_requests", 429),
    ("authentication", 401),
    ("unauthenticated", 401),
    ("permission", 403),
    ("unsupported_country", 403),
    ("api_key", 401),
    ("server_error", 500),
    ("internalservererror", 500),
    ("api_error", 500),
    ("overloaded", 529),
    ("unavailable", 503),
    ("timeout_error", 504),
)
_LONGEST = 400  # characters of a server's own words that are passed on
_DEEPEST = 6
_MOST_OF_PAGE = 64_000  # characters of a page that are parsed
_MARKUP = re.compile(
    r"\s*(?:<!--.*?-->\s*|<\?xml[^>]*\?>\s*)*<(?:!doctype|html|head|body|title|center|h[1-6]|p|div)\b", re.I | re.S
)
_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>.*</\1\s*>\s*$", re.S)
_WORDS = (
    "error",
    "errors",
    "message",
    "detail",
    "error_message",
    "error_description",
    "msg",
    "reason",
    "title",
    "fault",
)
_CODES = ("code", "type", "status", "error", "reason", "error_code", "object")
# What an object may have that is an error and no answer (`is_only_an_error`).
_BESIDE = {
    *_WORDS,
    *_CODES,
    "ok",
    "success",
    "status_code",
    "statusCode",
    "timestamp",
    "path",
    "request_id",
    "requestId",
    "trace_id",
    "traceId",
    "id",
    "param",
    "details",
    "help",
    "documentation_url",
}
_NO_TEXT = "a page without any text"
_UNSEEN = {"script", "style", "noscript", "template", "svg"}


class ErrorMapper(Struct, frozen=True):
    """What an error may say about the server: its address and the name of the key's variable; and what it must not say.

    `option` is the agent's option that holds the address; `usual` what that usually looks like. `proxy`: the proxy in
    between.
    """

    url: str
    key_env: str = ""
    secrets: TranscriptRedactor = NOTHING
    option: str = "base_url"
    usual: str = " (it usually ends with /v1)"
    proxy: Proxy | None = None

    @property
    def secure(self) -> bool:
        """Whether it is spoken to with TLS."""
        return self.url.startswith("https:")

    def clean(self, text: str) -> str:
        """`text` without the secrets."""
        return self.secrets.text(text)

    def failed(
        self,
        kind: str,
        code: ErrorCode,
        message: str,
        fix: str = "",
        words: str = "",
        *,
        retry: bool = False,
        retry_after_s: float | None = None,
        **fields: Any,
    ) -> Failed:
        """The failure, without secrets. `words`: the server's own, behind our sentence."""
        # A sentence that is ours alone says nothing that code and fields don't: equal errors are known by these.
        if words:
            retries: Any = {"retry": retry, "retry_after_s": retry_after_s}
            return self.told(kind, f"{message}{words}", fix, code, **retries, **fields)
        return Failed(RunError(kind, self.clean(message), self.clean(fix), code, fields), retry, retry_after_s)

    def told(
        self,
        kind: str,
        message: str,
        fix: str = "",
        code: ErrorCode = ErrorCode.TOLD,
        *,
        retry: bool = False,
        retry_after_s: float | None = None,
        **fields: Any,
    ) -> Failed:
        """The same where the sentence quotes the server or a library."""
        error = RunError.told(kind, self.clean(message), self.clean(fix), code, **fields)
        return Failed(error, retry, retry_after_s)


def from_status(server: ErrorMapper, status: int, headers: Mapping[str, str], body: str) -> Failed:
    """The failure for a reply whose status is not 200."""
    if 300 <= status < 400:
        place = headers.get("location", "another place")
        return server.failed(
            "bad_request",
            ErrorCode.REDIRECT,
            f"{server.url} redirects to {place}",
            f"set `{server.option}` to the address that it redirects to",
        )
    body = server.clean(body)  # before it is shortened: half a key is a secret too
    page = _Page(body) if is_markup(body) else None
    reason = words_in(body) if page is None else on_one_line(page.summary, _LONGEST)
    words = f": {reason}" if reason else ""
    if status == 407:
        return _proxy_wants_a_password(server)
    if status == 400 and not server.secure and _HTTP_TO_TLS.search(body):
        return _http_to_tls(server, words)
    # A page may name the country or the key below its title, where the sentence has no room for it.
    kind, retry = _kind_of_status(status, body, reason if page is None else page.whole)
    # OpenAI's and Anthropic's clients obey it, whatever the status is.
    retry = {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower(), retry)
    if kind in _REFUSED:
        return _refused(server, kind, status, words, page=page is not None)
    wait = retry_after_s(headers) if retry else None
    through = f" through {server.proxy.named}" if server.proxy is not None and status in (502, 503, 504) else ""
    fix = _remedy(server, kind, status, wait)
    if through:
        fix = f"the server or the proxy failed: {fix}; {PAGE}"
    reason = f"{server.url} answered {status}{through}"
    return server.failed(kind, ErrorCode.STATUS, reason, fix, words, retry=retry, retry_after_s=wait, status=status)


def from_reply(server: ErrorMapper, error: Any) -> Failed:
    """The failure for an error object in a reply with status 200, also in the middle of a stream."""
    is_whole = isinstance(error, Mapping) and "error" in error
    body = server.clean(json.dumps(error if is_whole else {"error": error}, ensure_ascii=False, default=str))
    reason = words_in(body) or "no reason given"
    status = _status_in(error)
    kind, retry = _kind_of_status(status, body, reason)
    if kind in _REFUSED:
        return _refused(server, kind, status, f": {reason}")
    fix = _remedy(server, kind, status, None)
    return server.told(kind, f"{server.url} answered with an error: {reason}", fix, retry=retry)


def from_exception(server: ErrorMapper, error: Exception) -> Failed:
    """The failure for an exception of httpx."""
    reason = " ".join((str(error) or type(error).__name__).split())
    # In this order: the cause that says most first. TLS before connections, since a failed handshake is a
    # `ConnectError`, too.
    strange = _behind(error, NotHttpError)
    if strange is not None:
        return _not_http(server, strange)
    certificate = _behind(error, ssl.SSLCertVerificationError)
    if certificate is not None:
        return _not_trusted(server, certificate)
    tls = _behind(error, ssl.SSLError)
    if tls is not None and (isinstance(error, httpx.ConnectError) or tls.reason in _WANTS_CERTIFICATE):
        return _broken_tls(server, tls)
    if isinstance(error, httpx.ProxyError):
        return _proxy_refused(server, error)
    if isinstance(error, httpx.ConnectTimeout):
        if server.proxy is not None:
            return _dead_proxy(server, "no_answer", kind="timeout")
        return server.failed(
            "timeout",
            ErrorCode.CONNECT_TIMEOUT,
            f"no connection to {server.url} in time",
            f"check `{server.option}` and any firewall or proxy in between, or raise `timeouts.connect`",
            retry=True,
        )
    if isinstance(error, httpx.TimeoutException):
        return server.failed(
            "timeout",
            ErrorCode.REQUEST_TIMEOUT,
            f"{server.url} did not take the request in time",
            "raise `timeouts.silence`",
            retry=True,
        )
    if isinstance(error, httpx.ConnectError):
        why = _why_no_connection(error)
        if server.proxy is not None:
            return _dead_proxy(server, why, reason)
        fix = f"is the server running? check `{server.option}`"
        if not why:
            return server.told("connection", f"no connection to {server.url}: {reason}", fix, retry=True)
        reason = f"no connection to {server.url}: {_NO_CONNECTION[why]}"
        return server.failed("connection", ErrorCode.NO_CONNECTION, reason, fix, retry=True, why=why)
    silent = _behind(error, NoAnswerBytesError)
    if silent is not None and silent.tunnel and server.proxy is not None:
        return _dead_proxy(server, "closed_without_answer")
    if silent is not None:
        through = f" through {server.proxy.named}" if server.proxy is not None else ""
        more = "" if server.secure else ", and use https:// if the port speaks TLS"
        return server.failed(
            "connection",
            ErrorCode.CLOSED_WITHOUT_ANSWER,
            f"{server.url} closed the connection without an answer{through}",
            f"try again; if it happens again, check the port in `{server.option}`{more}",
            retry=True,
        )
    if isinstance(error, httpx.RemoteProtocolError) and _is_broken(error):
        return server.told(
            "protocol",
            f"{server.url} answered in broken HTTP: {on_one_line(reason, 200)}",
            "fix the server or the proxy in between: its headers or its body violate HTTP",
        )
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError | httpx.CloseError):
        return broken_stream(server)
    if isinstance(error, httpx.DecodingError):
        return undecodable_answer(server, f"it does not decompress ({reason})")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        fix = f"check `{server.option}`"
        return server.told("bad_request", f"{server.url} is not an address: {reason}", fix)
    return server.told("connection", f"the request to {server.url} failed: {reason}", f"check `{server.option}`")


def broken_stream(server: ErrorMapper) -> Failed:
    """The failure for a stream that ended before its answer did."""
    return server.failed(
        "connection",
        ErrorCode.CUT_OFF,
        f"{server.url} closed the connection in the middle of the answer",
        "try again; if it happens again, check the server's log, proxies and time limits",
        retry=True,
    )


def undecodable_answer(server: ErrorMapper, why: str) -> Failed:
    """The failure for an answer whose compression can't be undone. None was asked for."""
    return server.told(
        "protocol",
        f"the answer of {server.url} can't be read: {why}",
        "turn off compression in the server or the proxy in between; agenteval did not ask for it",
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: `Retry-After` in seconds or as a date, or `retry-after-ms`."""
    in_ms = _positive(headers.get("retry-after-ms"))
    if in_ms is not None:
        return min(in_ms / 1000, _LONGEST_WAIT_S)
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _positive(value)
    if seconds is None:
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return None
    return min(seconds, _LONGEST_WAIT_S)


def _behind(error: BaseException, kind: type[Cause]) -> Cause | None:
    """The exception of this kind among those that led to `error`."""
    # A list, because an exception may define its own equality and have no hash.
    visited: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting and len(visited) < _CAUSES:
        current = waiting.pop()
        if isinstance(current, kind):
            return current
        if current in visited:
            continue
        visited.append(current)
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        waiting.extend(cause for cause in (current.__context__, current.__cause__) if cause is not None)
    return None


def _why_no_connection(error: Exception) -> str:
    """A key of `_NO_CONNECTION`; "" where the exception says more than we know."""
    lookup = _behind(error, socket.gaierror)
    if lookup is not None:
        # The name server did not answer; whether there is such a host is not known.
        unsure = lookup.errno == socket.EAI_AGAIN
        return "lookup_failed" if unsure else "unknown_host"
    if _behind(error, ConnectionRefusedError) is not None:
        return "refused"
    of_system = _behind(error, OSError)
    if of_system is not None and of_system.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "no_route"
    if _behind(error, ConnectionError) is not None:
        return "closed"
    return ""


def _dead_proxy(server: ErrorMapper, why: str, reason: str = "", kind: str = "connection") -> Failed:
    """`why`: a key of `_NO_CONNECTION`, or "" where only the library's words say it."""
    proxy = server.proxy
    assert proxy is not None
    fix = f"check {proxy.variable}, or name the server's host in NO_PROXY; {PAGE}"
    if not why:
        return server.told(kind, f"no connection to {proxy.named}: {reason}", fix, retry=True)
    reason = f"no connection to {proxy.named}: {_NO_CONNECTION[why]}"
    return server.failed(kind, ErrorCode.PROXY_UNREACHABLE, reason, fix, retry=True, why=why)


def _proxy_wants_a_password(server: ErrorMapper) -> Failed:
    if server.proxy is None:
        return server.failed(
            "connection",
            ErrorCode.PROXY_PASSWORD,
            f"{server.url} answered 407: it is a proxy, and wants a name and a password",
            f"check `{server.option}`; {PAGE}",
        )
    return server.failed(
        "connection",
        ErrorCode.PROXY_PASSWORD,
        f"{server.proxy.named} wants a name and a password (407)",
        f"write them into {server.proxy.variable}, like http://name:password@proxy.example:3128; {PAGE}",
    )


def _proxy_refused(server: ErrorMapper, error: httpx.ProxyError) -> Failed:
    """The proxy answered, and did not lead to the server."""
    reason = " ".join(str(error).split())
    if server.proxy is None:
        return server.told("connection", f"a proxy does not lead to {server.url}: {reason}", PAGE)
    match = _STATUS_LINE.match(str(error))
    status = int(match[1]) if match is not None else 0
    if status == 407:
        return _proxy_wants_a_password(server)
    return server.told(
        "connection",
        f"{server.proxy.named} does not lead to {server.url}: {on_one_line(reason, 200) or 'no reason given'}",
        f"check that it may reach that host, or name the host in NO_PROXY; {PAGE}",
        # The proxy failed itself; other answers are its rules.
        retry=status == 0 or status >= 500,
    )


def _not_http(server: ErrorMapper, error: NotHttpError) -> Failed:
    text = on_one_line(server.clean(error.head.decode("utf-8", "replace")), 60)
    words = f": it sent {text!r}" if text.isprintable() and "\ufffd" not in text else ""
    if server.proxy is not None and (error.tunnel or not server.secure):
        message = f"{server.proxy.named} does not speak HTTP"
        fix = f"check the port in {server.proxy.variable}; {PAGE}"
        return server.failed("connection", ErrorCode.NOT_HTTP, message, fix, words)
    # A server that wants TLS answers our plain request with an alert of TLS.
    if _TLS.match(error.head):
        return _http_to_tls(server, "")
    message, fix = f"{server.url} does not speak HTTP on this port", f"check the port in `{server.option}`"
    return server.failed("connection", ErrorCode.NOT_HTTP, message, fix, words)


def _http_to_tls(server: ErrorMapper, words: str) -> Failed:
    message = f"{server.url} expects TLS on this port, and was asked in plain HTTP"
    return server.failed("connection", ErrorCode.TLS_EXPECTED, message, f"write https:// in `{server.option}`", words)


def _broken_tls(server: ErrorMapper, error: ssl.SSLError) -> Failed:
    closed = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    reason = "the connection was closed" if closed else (error.reason or "").replace("_", " ").lower()
    if error.reason in _NO_TLS:
        return server.failed(
            "connection",
            ErrorCode.NO_TLS,
            f"{server.url} does not speak TLS on this port",
            f"check the port in `{server.option}`; write http:// if the server speaks plain HTTP",
        )
    wants = error.reason in _WANTS_CERTIFICATE
    fix = "check which TLS versions and host names the server accepts"
    if wants:
        fix = "the server asks for a client certificate, which agenteval does not send"
    why = f": {reason}" if reason else ""
    if closed:
        fix = f"try again; check the port in `{server.option}`"
    message = f"the TLS handshake with {server.url} failed{why}"
    return server.told("connection", message, f"{fix}; {PAGE}", retry=closed)


def _not_trusted(server: ErrorMapper, error: ssl.SSLCertVerificationError) -> Failed:
    message = f"the certificate of {server.url} "
    code = error.verify_code
    variable, place = named_source()
    if code in (_EXPIRED, _NOT_YET):
        message += "has expired" if code == _EXPIRED else "is not valid yet"
        fix, why = f"renew it at the server, or set this machine's clock; {PAGE}", _CERTIFICATES[code]
        return server.failed("connection", ErrorCode.CERTIFICATE, message, fix, why=why)
    if code in _OTHER_HOST:
        message += "was made for another host"
        fix = f"write the host that it was made for into `{server.option}`, or renew it; {PAGE}"
        return server.failed("connection", ErrorCode.CERTIFICATE, message, fix, why="other_host")
    if code == _SELF_SIGNED:
        message += "is self-signed, and not trusted here"
    elif code in _UNKNOWN_AUTHORITY:
        message += "was signed by an authority that is not trusted here"
    else:
        message += f"is not trusted: {error.verify_message}"
    what = "it" if code == _SELF_SIGNED else "the authority's certificate"
    fix = f"write {what} into a PEM file, and its path into SSL_CERT_FILE; {PAGE}"
    if variable:
        fix = f"add {what} to {place[:200]}, which {variable} names; {PAGE}"
    if code in _CERTIFICATES:
        return server.failed("connection", ErrorCode.CERTIFICATE, message, fix, why=_CERTIFICATES[code])
    return server.told("connection", message, fix, ErrorCode.CERTIFICATE, why="untrusted")


def _is_broken(error: Exception) -> bool:
    """Whether the parser found the answer wrong, and not only its end missing."""
    text = str(error)
    return "closed connection" not in text and "disconnected" not in text


def _refusal(status: int, body: str, text: str) -> str:
    """Why a request was refused (401, 403, 451, some 400): "auth", "permission", "region"; "" where it says none."""
    codes = frozenset(_codes(parsed_json(body)))

    def one_of(signs: Iterable[str]) -> bool:
        return any(sign in code for code in codes for sign in signs)

    # A key that is refused by its place looks like a wrong key: first what names the place.
    if one_of(_REGION_CODES) or (status != 401 and _BY_PLACE.search(text)):
        return "region" if status in (400, 401, 403, 451) else ""
    if one_of(_KEY_CODES) and not _BAD_SCOPE.search(text):
        return "auth"
    # Other texts of a 400 are about the request.
    if status == 400:
        return ""
    if one_of(_SCOPE_CODES) or _BAD_SCOPE.search(text):
        return "permission"
    if status == 403:
        return "auth" if _BAD_KEY.search(text) else "permission"
    return "region" if status == 451 else "auth"


def _refused(server: ErrorMapper, kind: str, status: int, words: str, *, page: bool = False) -> Failed:
    named = server.key_env
    if kind == "region":
        return server.failed(
            kind,
            ErrorCode.REGION,
            f"{server.url} does not serve the country or region that the request comes from ({status})",
            "the key is not the problem: use a proxy in a region that the server serves, or another server; " + PAGE,
            words,
        )
    if kind == "permission":
        message = f"{server.url} refused the request ({status}): no permission"
        if page:
            fix = f"a page answered, not an API: check `{server.option}`; a firewall or proxy may block this machine"
        elif named:
            fix = f"the server did not call the key in {named} wrong: give it access to this model or project"
        else:
            fix = "if the server needs a key, name its environment variable in `api_key_env`; if not, ask for access"
        return server.failed(kind, ErrorCode.NO_PERMISSION, message, fix, words)
    if named:
        message = f"{server.url} refused the key ({status})"
        fix = f"set the environment variable {named} to a key that it accepts"
    else:
        message = f"{server.url} refused the key, or wants one ({status})"
        fix = "name the environment variable that holds the key in `api_key_env`"
    return server.failed("auth", ErrorCode.KEY_REFUSED, message, fix, words)


def _kind_of_status(status: int, body: str, text: str) -> tuple[str, bool]:
    """(kind of error, whether another attempt may help). `text`: what the body says in words."""
    if status in (400, 401, 403, 451):
        return _refusal(status, body, text) or "bad_request", False
    if status == 408:
        return "timeout", True
    if status in (409, 425):  # 425: sent too early in a TLS connection
        return "server", True
    if status == 429:
        # Waiting does not help when the money is used up.
        return ("bad_request", False) if "insufficient_quota" in body else ("rate_limit", True)
    return ("server", True) if status >= 500 else ("bad_request", False)


def _remedy(server: ErrorMapper, kind: str, status: int, wait_s: float | None) -> str:
    if kind == "rate_limit":
        if wait_s is not None and wait_s >= _NOTED_WAIT_S:
            return f"wait {spoken_seconds(wait_s)}, as the server asks, or raise the limit at the provider"
        return "lower `concurrency`, or wait"
    if kind == "server":
        delay = f" in {spoken_seconds(wait_s)}" if wait_s is not None and wait_s >= _NOTED_WAIT_S else ""
        return f"the server failed: try again{delay}, and look at its log"
    if kind == "timeout":
        return "try again"
    if status in (404, 405):
        return f"check `{server.option}`{server.usual}" + (" and `model`" if server.option == "base_url" else "")
    if status in (402, 429):
        return "check the account's quota"
    if status == 413:
        return "the server does not accept such a large request: shorten the prompt or the tools"
    return "check the options of the agent"


def _status_in(error: Any) -> int:
    """The status that corresponds to an error object."""
    if not isinstance(error, Mapping):
        return 400
    for key in ("status_code", "statusCode", "status", "code"):
        value = error.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:4])
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    codes = " ".join(str(error.get(key, "")) for key in ("type", "code", "status")).lower()
    return next((status for sign, status in _STATUSES if sign in codes), 400)


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


# What a server says of an error in the body of its reply: its own words, and the codes in it


def words_in(body: str) -> str:
    """The server's own words in an error's body: the message in its JSON, the title of its page, else its text."""
    if body.startswith(("data:", "event:")):  # an error as the only event of a stream, with a status of its own
        lines = [line for line in LINE_END.split(body) if line.startswith("data:")]
        body = lines[0].removeprefix("data:").strip() if lines else body
    value = parsed_json(body)
    if value is None:
        value = body
    for _ in range(_DEEPEST):
        # Of several errors, the first is the cause of the others.
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, Mapping):
            break
        value = next((value[key] for key in _WORDS if _says(value.get(key))), _left_of(value))
    # Proxies in front of an API put the page of the server behind them into their JSON.
    if isinstance(value, str) and is_markup(value):
        value = words_of_page(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return on_one_line(text, _LONGEST)


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object that was sent as a reply says of itself that it is an error."""
    signs = (value.get("object"), value.get("type"), value.get("status"))
    if any(sign in ("error", "failed", "failure") for sign in signs if isinstance(sign, str)):
        return True
    if value.get("success") is False or value.get("ok") is False:
        return True
    return any(_says(value.get(key)) or value.get(key) is True for key in ("error", "errors", "fault"))


def is_only_an_error(value: Mapping[str, Any]) -> bool:
    """Whether an object says that it is an error and holds nothing that could be an answer."""
    return is_error(value) and set(value) <= _BESIDE


def error_in(value: Mapping[str, Any]) -> object:
    """The error in such an object: what says most."""
    return next((value[key] for key in ("error", "errors", "fault") if _says(value.get(key))), value)


def is_markup(text: str) -> bool:
    """Whether a text is a page of HTML, or XML."""
    start = text[:20_000]
    return _MARKUP.match(start) is not None or (start.lstrip()[:1] == "<" and _XML.match(start) is not None)


def words_of_page(text: str) -> str:
    """A page as one line: its title and its first heading, else the text that a reader would see."""
    return _Page(text).summary


def _says(value: object) -> bool:
    return isinstance(value, str | Mapping | list) and bool(value)


def _left_of(value: Mapping[str, Any]) -> str:
    """An object without words that are known: itself, if there is anything in it."""
    return json.dumps(value, ensure_ascii=False, default=str) if value and list(value) != ["error"] else ""


def _codes(value: object, depth: int = 0) -> Iterator[str]:
    """The codes in an error's body (`code`, `type`, `status`, ...), in small letters."""
    # A reply is a stranger's: it may be nested as deep as JSON can be.
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value[:20]:
            yield from _codes(item, depth + 1)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in _CODES and isinstance(item, str | int) and not isinstance(item, bool):
                yield str(item)[:200].lower()
            elif isinstance(item, Mapping | list):
                yield from _codes(item, depth + 1)


class _Page(HTMLParser):
    """Gathers a page's title, its first heading and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.heading: list[str] = []
        self.text: list[str] = []
        self._in = ""
        self._unseen = ""
        self.feed(text[:_MOST_OF_PAGE])
        self.close()

    @property
    def whole(self) -> str:
        """All that a reader would see, as one line."""
        return " ".join("".join([*self.title, " ", *self.text]).split())

    @property
    def summary(self) -> str:
        """The title and the first heading as one line, else the text."""
        title, heading = (" ".join("".join(pieces).split()) for pieces in (self.title, self.heading))
        # Many pages repeat the heading in their title.
        repeats = heading.casefold() in title.casefold()
        return (title if repeats else f"{title}: {heading}" if title else heading) or self.whole or _NO_TEXT

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        # HTML has no elements inside a script: what looks like one is its code.
        if self._unseen:
            return
        if tag in _UNSEEN:
            self._unseen = tag
        elif (tag == "title" and not self.title) or (tag in ("h1", "h2") and not self.heading):
            self._in = tag
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._unseen:
            self._unseen = ""
        if tag == self._in:
            self._in = ""
        self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if self._in:
            (self.title if self._in == "title" else self.heading).append(data)
        if self._in != "title":
            self.text.append(data)
