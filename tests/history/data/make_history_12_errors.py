"""Makes `history-12-errors.db.gz`: runs whose agents did not finish, and decisions about them, as commit 5965f95 wrote
them, when their causes were made of sentences.

Run in a worktree of that commit: `python make_history_12_errors.py history-12-errors.db.gz`. The tests import `asked`:
what the same servers do is told by the program of today.
"""

from __future__ import annotations

import errno
import gzip
import socket
import sqlite3
import ssl
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx

from agenteval_tui.agents.http.chunk_coalescing import NoAnswerBytesError, NotHttpError
from agenteval_tui.agents.http.errors import (
    ErrorMapper,
    broken_stream,
    from_exception,
    from_reply,
    from_status,
    undecodable_answer,
)
from agenteval_tui.agents.http.proxies import Proxy
from agenteval_tui.grading.causes import signatures
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Context, Decision, decide
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, RunError, Transcript

SUITE = "/suites/errors.suite.yaml"
DIRECT = ErrorMapper("https://api.example.com/v1")
PLAIN = ErrorMapper("http://127.0.0.1:8080/v1", "SOME_API_KEY")
THROUGH = ErrorMapper(
    "http://api.example.com/v1", proxy=Proxy("http://p:3128", "http://proxy.example:3128", "HTTP_PROXY")
)


def behind(outer: Exception, cause: BaseException) -> Exception:
    """`outer` as it is raised from `cause`."""
    outer.__cause__ = cause
    return outer


def certificate(code: int, message: str) -> Exception:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return behind(httpx.ConnectError(message), error)


def tls(reason: str) -> Exception:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return behind(httpx.ConnectError(reason), error)


def status(number: int, body: str = "", server: ErrorMapper = DIRECT, **headers: str) -> RunError:
    return from_status(server, number, headers, body).error


def raised(error: Exception, server: ErrorMapper = DIRECT) -> RunError:
    return from_exception(server, error).error


LONG = "the model is overloaded and asks you to come back when fewer people want something of it, " * 3
asked: dict[str, Callable[[], RunError]] = {
    "redirect": lambda: status(302, location="https://elsewhere.example/v1?x=1"),
    "redirect nowhere": lambda: status(301),
    "500": lambda: status(500),
    "503 words": lambda: status(503, '{"error": {"message": "overloaded, request req_abc123def456"}}'),
    "503 long": lambda: status(503, f'{{"error": {{"message": "{LONG}"}}}}'),
    "503 proxy": lambda: status(503, server=THROUGH),
    "404": lambda: status(404, server=PLAIN),
    "404 words": lambda: status(404, '{"error": "no model 7"}'),
    "408": lambda: status(408),
    "429": lambda: status(429, **{"retry-after": "90"}),
    "429 quota": lambda: status(429, '{"error": {"code": "insufficient_quota", "message": "You have no money"}}'),
    "407": lambda: status(407),
    "407 proxy": lambda: status(407, server=THROUGH),
    "401": lambda: status(401),
    "401 named": lambda: status(401, server=PLAIN),
    "401 words": lambda: status(401, '{"error": {"message": "Incorrect API key provided: ***"}}', PLAIN),
    "403": lambda: status(403, '{"error": {"code": "permission_denied"}}'),
    "451": lambda: status(451),
    "region": lambda: status(403, '{"error": {"code": "unsupported_country", "message": "Country not supported"}}'),
    "http to tls": lambda: status(400, "Client sent an HTTP request to an HTTPS server.", PLAIN),
    "reply": lambda: from_reply(DIRECT, {"message": "the engine is down", "code": 503}).error,
    "reply nothing": lambda: from_reply(DIRECT, {}).error,
    "refused": lambda: raised(behind(httpx.ConnectError("all failed"), ConnectionRefusedError(111, "refused"))),
    "refused port": lambda: raised(behind(httpx.ConnectError("x"), ConnectionRefusedError(111, "refused")), PLAIN),
    "no host": lambda: raised(behind(httpx.ConnectError("x"), socket.gaierror(socket.EAI_NONAME, "unknown"))),
    "no lookup": lambda: raised(behind(httpx.ConnectError("x"), socket.gaierror(socket.EAI_AGAIN, "again"))),
    "no route": lambda: raised(behind(httpx.ConnectError("x"), OSError(errno.EHOSTUNREACH, "no route"))),
    "closed": lambda: raised(behind(httpx.ConnectError("x"), ConnectionResetError(104, "reset"))),
    "other": lambda: raised(httpx.ConnectError("[Errno 99] something else 17")),
    "dead proxy": lambda: raised(behind(httpx.ConnectError("x"), ConnectionRefusedError(111, "refused")), THROUGH),
    "slow proxy": lambda: raised(httpx.ConnectTimeout("x"), THROUGH),
    "other proxy": lambda: raised(httpx.ConnectError("something else 17"), THROUGH),
    "connect timeout": lambda: raised(httpx.ConnectTimeout("x")),
    "write timeout": lambda: raised(httpx.WriteTimeout("x")),
    "silent": lambda: raised(behind(httpx.RemoteProtocolError("x"), NoAnswerBytesError(False))),
    "silent proxy": lambda: raised(behind(httpx.RemoteProtocolError("x"), NoAnswerBytesError(False)), THROUGH),
    "silent tunnel": lambda: raised(behind(httpx.RemoteProtocolError("x"), NoAnswerBytesError(True)), THROUGH),
    "broken http": lambda: raised(httpx.RemoteProtocolError("illegal header line: bytearray(b'x')")),
    "cut off": lambda: raised(httpx.ReadError("x")),
    "broken off": lambda: broken_stream(DIRECT).error,
    "packed": lambda: undecodable_answer(DIRECT, "it does not decompress (Error -3 while decompressing)").error,
    "address": lambda: raised(httpx.UnsupportedProtocol("Request URL has an unsupported protocol 'ftp://'.")),
    "else": lambda: raised(httpx.TransportError("who knows 12")),
    "ssh": lambda: raised(behind(httpx.ReadError("x"), NotHttpError(b"SSH-2.0-OpenSSH_9.6", False))),
    "ssh proxy": lambda: raised(behind(httpx.ReadError("x"), NotHttpError(b"SSH-2.0-OpenSSH_9.6", True)), THROUGH),
    "tls by http": lambda: raised(behind(httpx.ReadError("x"), NotHttpError(b"\x15\x03\x01", False)), PLAIN),
    "no tls": lambda: raised(tls("WRONG_VERSION_NUMBER")),
    "handshake": lambda: raised(tls("SSLV3_ALERT_HANDSHAKE_FAILURE")),
    "expired": lambda: raised(certificate(10, "certificate has expired")),
    "not yet": lambda: raised(certificate(9, "not yet")),
    "other host": lambda: raised(certificate(62, "hostname mismatch")),
    "self-signed": lambda: raised(certificate(18, "self signed")),
    "authority": lambda: raised(certificate(20, "unable to get local issuer certificate")),
    "not trusted": lambda: raised(certificate(23, "certificate revoked")),
    "proxy error": lambda: raised(httpx.ProxyError("502 Bad Gateway"), THROUGH),
}
"""What a server does, and what that is told as."""

SAID: dict[str, tuple[str, str]] = {
    "key": ("auth", "the environment variable OPENAI_API_KEY is not set"),
    "embedding": ("protocol", "https://api.example.com/v1 sent no embedding"),
    "object": ("protocol", "https://api.example.com/v1/embeddings sent no JSON object"),
    "too long": ("protocol", "https://api.example.com/v1: the reply is longer than 10 MB"),
    "no answer": ("timeout", "https://api.example.com/v1 sent no answer within 30.1 s"),
    "fell silent": ("timeout", "http://127.0.0.1:8080/v1 fell silent for 30 s in the middle of its answer"),
    "no prompt": ("bad_request", "the conversation has no user message"),
    "steps": ("max_steps", "the model still called tools after 25 requests"),
    "no reason": ("agent", "the agent gave no reason"),
    "not done": ("protocol", "the agent stopped without saying that it was done"),
    "not done chat": ("protocol", "the agent stopped without an answer and without saying that it was done"),
    "run": ("timeout", "the run did not end within 2.5 s"),
    "length": ("length", "the answer was cut by max_tokens (finish reason: MAX_TOKENS)"),
    "filter": ("content_filter", "the answer was stopped by a content filter (finish reason: content_filter)"),
    "worker": ("worker_lost", "worker tcp://127.0.0.1:4321 was lost while it ran this"),
    "its worker": ("worker_lost", "its worker was lost while it ran this"),
    "scheduler": ("cluster", "the connection to the scheduler tcp://127.0.0.1:8786 was lost"),
    "own": ("agent", "out of paper in tray 4"),
    "own kind": ("warehouse", "the run did not end within 2.5 s"),
    "program": ("program", "./agent.sh ended with exit code 3: Traceback: boom at 0x7f00deadbeef"),
    "raised": ("exception", "the agent raised ValueError: 17 is no order"),
}
"""The same of what is said elsewhere: kind and sentence."""


def main(target: Path) -> None:
    errors = {name: make() for name, make in asked.items()} | {n: RunError(*one) for n, one in SAID.items()}
    spec = CriterionSpec("c", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "x"}]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        with Store.open(path) as store:
            runs = [
                PlannedRun(
                    f"ERROR-{name.replace(' ', '-')}", "ERRORS", place,
                    suite_key=SUITE, suite_name="Errors", test_id=name.replace(" ", "-"), test_name=name,
                    agent="demo", prompt="Hi", criteria=(spec.hash,), specs=(spec_to_dict(spec),),
                )
                for place, name in enumerate(errors)
            ]  # fmt: skip
            record = ExecutionRecord("ERRORS", title="e", kind="run", source="c", suite_keys=(SUITE,), started_ms=1)
            store.begin_execution(record, runs)
            for run in runs:
                transcript = Transcript(messages=(Message("user", "Hi"),), error=errors[run.test_name])
                verdict = grade(transcript, (spec,))
                # One whose test has no criteria: nothing but its transcript says why.
                results = () if run.test_name == "raised" else verdict.results
                store.run_ended(
                    RunEnded(run.id, "error", None, 2, 1.0, 1, transcript, results, why=transcript.error.message)
                ).result()
            store.end_execution("ERRORS", "finished").result()
            said = {}
            for name, one in errors.items():
                told = (one.kind, one.message)
                said[signatures("error", grade(Transcript(), (spec,)).results, told)[0]] = name
            for place, (cause, name) in enumerate(said.items()):
                decide(store, Decision(cause, "ignore", f"about {name}", "kim", 1_000 + place, None, Context()))
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
        connection.close()
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
