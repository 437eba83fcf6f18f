"""Converts signatures of agents' errors from version 2 to version 3 (`grading.causes.VERSION`).

A signature of version 2 was the error's kind with its sentence, reduced. If the sentence contains foreign text, version
3 has the same signature: the reduced text is now a field of the error. If the sentence was agenteval's own, version 3
has a code with fields instead; this module lists these sentences. Older programs wrote them, so they never change.
"""

from __future__ import annotations

import json
import re
import sqlite3

from agenteval_tui.history.data_migrations import rewrite_signatures, shortened_signature

_PROXY = r"the proxy .+? \(from \w+\)"
_WHYS = {
    "the host's name can't be looked up": "lookup_failed",
    "there is no such host": "unknown_host",
    "nobody listens there": "refused",
    "no network leads there": "no_route",
    "the connection was closed at once": "closed",
    "it does not answer": "no_answer",
    "it closed the connection without an answer": "closed_without_answer",
}
_CERTIFICATES = {
    "has expired": "expired",
    "is not valid yet": "not_yet_valid",
    "was made for another host": "other_host",
    "is self-signed, and not trusted here": "self_signed",
    "was signed by an authority that is not trusted here": "unknown_authority",
}
_ENDINGS = {
    "length": "the answer was cut by max_tokens",
    "content_filter": "the answer was stopped by a content filter",
    "malformed_call": "the model made a tool call that its server could not read",
    "incomplete": "the answer is incomplete",
    "empty": "the answer is empty",
}
# A colon behind an address was taken for a part of it.
# kind, the whole sentence as it was reduced, code, what it is about ("\\1": the group of the sentence).
# Compiled where a history of version 2 is opened: every start would wait for the sixty.
_SENTENCES: tuple[tuple[str, str, str, str], ...] = (
    *(("connection", f"no connection to URL {re.escape(said)}", "no_connection", why)
      for said, why in _WHYS.items()),
    *((kind, f"no connection to {_PROXY}: {re.escape(said)}", "proxy_unreachable", why)
      for said, why in _WHYS.items() for kind in ("connection", "timeout")),
    ("timeout", r"no connection to URL in time", "connect_timeout", ""),
    ("timeout", r"URL did not take the request in time", "request_timeout", ""),
    ("connection", rf"URL closed the connection without an answer(?: through {_PROXY})?",
     "closed_without_answer", ""),
    ("connection", r"URL closed the connection in the midst of the answer", "cut_off", ""),
    ("connection", r"URL answered 407: it is a proxy, and wants a name and a password", "proxy_password", ""),
    ("connection", rf"{_PROXY} wants a name and a password \(N\)", "proxy_password", ""),
    ("connection", rf"{_PROXY} does not speak HTTP: it sent .+", "not_http", ""),
    ("connection", r"URL does not speak HTTP: the port sent .+", "not_http", ""),
    ("connection", r"URL expects TLS on this port, and was asked in plain HTTP", "tls_expected", ""),
    ("connection", r"URL does not speak TLS on this port", "no_tls", ""),
    *(("connection", f"the certificate of URL {re.escape(said)}", "certificate", why)
      for said, why in _CERTIFICATES.items()),
    ("bad_request", r"URL redirects to .+", "redirect", ""),
    *((kind, rf"URL answered ([1-5]\d\d)(?: through {_PROXY})?", "status", r"\1")
      for kind in ("bad_request", "server", "rate_limit", "timeout")),
    ("region", r"URL does not serve the country or region that the request comes from \(N\)", "region", ""),
    ("permission", r"URL refused the request \(N\): no permission", "no_permission", ""),
    ("auth", r"URL refused the key(?:, or wants one)? \(N\)", "key_refused", ""),
    ("auth", r"the environment variable (\S+) is not set", "key_missing", r"\1"),
    ("protocol", r"URL sent no embedding", "no_embedding", ""),
    ("protocol", r"URL sent no JSON object", "not_an_object", ""),
    ("protocol", r"URL the reply is longer than N MB", "too_long", ""),
    ("timeout", r"URL sent no answer within N s", "silence", "first_token"),
    ("timeout", r"URL fell silent for N s in the midst of its answer", "silence", "silence"),
    ("bad_request", r"the conversation has no user message", "no_prompt", ""),
    ("max_steps", r"the model still called tools after N requests", "max_steps", ""),
    ("agent", r"the agent gave no reason", "no_reason", ""),
    ("protocol", r"the agent stopped without (?:an answer and without )?saying that it was done", "not_done", ""),
    ("timeout", r"the run did not end within N s", "run_timeout", ""),
    *((kind, rf"{re.escape(said)} \(finish reason: .+", "ending", kind) for kind, said in _ENDINGS.items()),
    ("worker_lost", r"(?:worker .+|its worker) was lost while it ran this", "worker_lost", ""),
    ("cluster", r"the connection to the scheduler .+ was lost", "scheduler_lost", ""),
)  # fmt: skip


def coded(signature: str) -> str:
    """A signature of version 2 as version 3 makes it; what is none of an agent's error, or stays, as it is."""
    try:
        parts = json.loads(signature)
    except (ValueError, RecursionError):
        return signature
    if not isinstance(parts, list) or len(parts) != 7 or parts[:4] != ["agent", "", "", ""] or parts[5]:
        return signature
    kind, reduced = parts[4], parts[6]
    if not isinstance(kind, str) or not isinstance(reduced, str):
        return signature
    for of, pattern, code, way in _SENTENCES:
        found = re.fullmatch(pattern, reduced) if of == kind else None
        if found is not None:
            return shortened_signature([*parts[:5], code, found.expand(way)])
    return signature


def code_agent_errors(connection: sqlite3.Connection) -> None:
    """Rewrite the causes of runs whose agent did not finish, the decisions about them, and what was taken back."""
    rewrite_signatures(connection, coded)
