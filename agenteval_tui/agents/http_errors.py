"""What went wrong with a server, in one sentence with a remedy. Keys never stand in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from agenteval_tui.agents.interface import Failed
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

_LONGEST = 400  # characters of a server's own words that are passed on
_LONGEST_WAIT_S = 3600.0
_CAUSES = 10  # exceptions behind an exception that are looked at


@dataclass(frozen=True, slots=True)
class Server:
    """What an error may say of the server: its address, the name of the key's variable, and what it must not say.

    `option` is the agent's option that holds the address; `usual` what that usually looks like.
    """

    url: str
    key_env: str = ""
    secrets: TranscriptRedactor = NOTHING
    option: str = "base_url"
    usual: str = " (it usually ends with /v1)"

    def clean(self, text: str) -> str:
        """`text` without the secrets."""
        return self.secrets.text(text)

    def failed(
        self, kind: str, said: str, mend: str = "", *, retry: bool = False, retry_after_s: float | None = None
    ) -> Failed:
        """The failure, with the secrets taken out of it."""
        return Failed(RunError(kind, self.clean(said), self.clean(mend)), retry, retry_after_s)


def from_status(server: Server, status: int, headers: Mapping[str, str], body: str) -> Failed:
    """The failure for a reply whose status is not 200."""
    said = message_in(server.clean(body))  # before it is shortened: half a key is a secret too
    words = f": {said}" if said else ""
    if 300 <= status < 400:
        place = headers.get("location", "another place")
        return server.failed(
            "bad_request", f"{server.url} redirects to {place}", f"set `{server.option}` to where it leads"
        )
    kind, retry = _kind_of_status(status, body)
    if kind == "auth":
        return _refused_key(server, status, words)
    wait = retry_after_s(headers) if retry else None
    mend = {
        "rate_limit": "lower `concurrency`, or wait",
        "server": "the server's fault: try again, look at its log",
        "timeout": "try again",
    }.get(kind, "")
    if status == 404:
        mend = f"check `{server.option}`{server.usual}" + (" and `model`" if server.option == "base_url" else "")
    elif kind == "bad_request":
        mend = "check the options of the agent"
        if not retry and status == 429:
            mend = "check the account's quota"
    return server.failed(kind, f"{server.url} answered {status}{words}", mend, retry=retry, retry_after_s=wait)


def from_reply(server: Server, error: Any) -> Failed:
    """The failure for an error object that came in a reply with status 200, also in the midst of a stream."""
    body = json.dumps({"error": error}, ensure_ascii=False, default=str)
    said = message_in(server.clean(body)) or "no reason given"
    status = _status_in(error)
    kind, retry = _kind_of_status(status, body)
    if kind == "auth":
        return _refused_key(server, status, f": {said}")
    return server.failed(kind, f"{server.url} answered with an error: {said}", retry=retry)


def from_exception(server: Server, error: Exception) -> Failed:
    """The failure for an exception of httpx."""
    import ssl

    import httpx

    said = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return server.failed(
            "timeout",
            f"no connection to {server.url} in time",
            "is the server there? raise `timeouts.connect`",
            retry=True,
        )
    if isinstance(error, httpx.TimeoutException):
        return server.failed("timeout", f"{server.url} did not take the request in time", retry=True)
    if isinstance(error, httpx.ConnectError):
        if _is_from(error, ssl.SSLCertVerificationError):
            return server.failed(
                "connection", f"the certificate of {server.url} is not trusted: {said}", "mend the certificate"
            )
        return server.failed(
            "connection",
            f"no connection to {server.url}: {_plain(said)}",
            f"is the server running? check `{server.option}`",
            retry=True,
        )
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError | httpx.CloseError):
        return server.failed(
            "connection", f"{server.url} closed the connection in the midst of the answer", "try again", retry=True
        )
    if isinstance(error, httpx.DecodingError):
        return server.failed("protocol", f"the answer of {server.url} can't be decompressed: {said}")
    return server.failed("connection", f"the request to {server.url} failed: {said}", f"check `{server.option}`")


def _is_from(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether an exception of this kind is among those that led to `error`."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None or isinstance(cause, kind):
            return cause is not None
        cause = cause.__cause__ or cause.__context__
    return False


def message_in(body: str) -> str:
    """The server's own words in an error body: the message in it, else the text itself, shortened."""
    if body.startswith("data:"):  # an error as the only event of a stream, with a status of its own
        body = body.partition("\n")[0].removeprefix("data:").strip()
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return _shortened(body)
    for _ in range(4):
        if not isinstance(value, Mapping):
            break
        value = next((value[key] for key in ("error", "message", "detail", "msg") if value.get(key)), "")
    return _shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: `Retry-After` in seconds or as a date, or `retry-after-ms`."""
    in_ms = _positive(headers.get("retry-after-ms"))
    if in_ms is not None:
        return min(in_ms / 1000, _LONGEST_WAIT_S)
    given = headers.get("retry-after")
    if given is None:
        return None
    seconds = _positive(given)
    if seconds is None:
        try:
            seconds = max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return None
    return min(seconds, _LONGEST_WAIT_S)


def _kind_of_status(status: int, body: str) -> tuple[str, bool]:
    """(kind of error, whether another attempt may help)."""
    if status in (401, 403):
        return "auth", False
    if status == 408:
        return "timeout", True
    if status == 409:
        return "server", True
    if status == 429:
        # Out of money is no matter of waiting.
        return ("bad_request", False) if "insufficient_quota" in body else ("rate_limit", True)
    return ("server", True) if status >= 500 else ("bad_request", False)


def _status_in(error: Any) -> int:
    """The status that an error object stands for."""
    if not isinstance(error, Mapping):
        return 400
    for key in ("status_code", "status", "code"):
        value = error.get(key)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    codes = " ".join(str(error.get(key, "")) for key in ("type", "code"))
    return next((status for sign, status in _STATUSES if sign in codes), 400)


# What stands in an error's `type` or `code`, and the status that it would have had.
_STATUSES: Iterable[tuple[str, int]] = (
    ("rate_limit", 429),
    ("authentication", 401),
    ("permission", 403),
    ("api_key", 401),
    ("server_error", 500),
    ("api_error", 500),
    ("overloaded", 529),
    ("timeout_error", 504),
)


def _refused_key(server: Server, status: int, words: str) -> Failed:
    said = f"{server.url} refused the key ({status}){words}"
    if server.key_env:
        return server.failed("auth", said, f"set the environment variable {server.key_env} to a key that it takes")
    return server.failed("auth", said, "name the environment variable that holds the key with `api_key_env`")


def _plain(said: str) -> str:
    for sign, words in _SIGNS:
        if sign in said:
            return words
    return said


_SIGNS: Iterable[tuple[str, str]] = (
    ("Connection refused", "nobody listens there"),
    ("All connection attempts failed", "nobody listens there"),
    ("Name or service not known", "there is no such host"),
    ("nodename nor servname", "there is no such host"),
    ("No address associated", "there is no such host"),
    ("Temporary failure in name resolution", "the host's name can't be looked up"),
)


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
