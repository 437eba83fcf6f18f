"""`--notify`: a web hook is told how a run ended; that it can't be told is said, and fails nothing."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.notify import notify
from agenteval_tui.cli.output import Output
from agenteval_tui.core.directories import config_dir
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.history.records import ExecutionRow


@pytest.fixture
def hook() -> Iterator[tuple[str, list[Any], list[int]]]:
    """The address of a web hook, what it was told, and the status that it answers with."""
    told: list[Any] = []
    status = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(
                (self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            )
            self.send_response(status[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hooks/secret-path", told, status
    server.shutdown()
    server.server_close()


def test_a_web_hook_is_told_how_it_ended(cli: Any, suite: Path, hook: tuple[str, list[Any], list[int]]) -> None:
    address, told, status = hook
    done = cli("run", suite, "--notify", address, "--json", "-")
    ((kind, document),) = told
    assert (kind, document["exit_code"], done.code) == ("application/json", 1, 1)
    Draft202012Validator(schema("notification")).validate(document)
    assert document["text"] == "Orders: did not pass (1 passed, 1 failed, 0 in error, 50 % passed)"
    assert document["execution"] == json.loads(done.out)["execution"]
    status[0] = 500
    failed = cli("run", suite, "--notify", address, "--fail-under", "0.5")
    assert failed.code == 0
    assert "127.0.0.1 could not be notified: it answered 500" in failed.err
    assert "secret-path" not in failed.out + failed.err + done.err
    nobody = cli("run", suite, "--notify", "http://127.0.0.1:9/x", "--fail-under", "0.5")
    assert nobody.code == 0
    assert "127.0.0.1 could not be notified: ConnectError" in nobody.err


def test_addresses_are_judged_before_anything_runs(cli: Any, suite: Path) -> None:
    for address in ("hooks.example.com", "ftp://example.com/x", "http://[", "https://"):
        refused = cli("run", suite, "--notify", address)
        assert (refused.code, "--notify takes an address" in refused.err) == (2, True)
    far = cli("run", suite, "--notify", "https://hooks.example.com/secret-path")
    assert far.code == 2
    assert "this needs your trust: tells hooks.example.com how the execution ended" in far.err
    assert "secret-path" not in far.err
    assert cli("run", suite, "--notify", "https://x.example", "--detach").code == 2
    assert cli("history").out.count("Orders") == 0


def test_who_attaches_to_an_execution_in_the_background_is_notified_too(
    cli: Any, suite: Path, hook: tuple[str, list[Any], list[int]]
) -> None:
    address, told, _ = hook
    suite.write_text(suite.read_text("utf-8").replace("pace: 0", "pace: 2"), "utf-8")
    assert cli("run", suite, "--test", "good", "--detach").code == 0
    watched = cli("attach", "--notify", address)
    assert watched.code == 0, watched.err
    assert [document["text"] for _, document in told] == [
        "Orders: Says where it is: passed (1 passed, 0 failed, 0 in error, 100 % passed)"
    ]
    assert cli("attach", "--notify", "https://hooks.example.com/x").code == 2


class Terminal(io.StringIO):
    """A terminal that keeps what it gets."""

    def isatty(self) -> bool:
        return True


def ended(took_s: float) -> ExecutionRow:
    finished_ms = 1_000 + int(took_s * 1000)
    return ExecutionRow(
        1, "E", "Orders", "run", "", "finished", 1_000, finished_ms, "", 3, 1, 1, 1, 0, 0, 0, 0, 0, None, "", ""
    )


def told(stream: io.StringIO, took_s: float, code: int = 0, *, quiet: bool = False, **env: str) -> str:
    invocation = Invocation(lambda start: 0, quiet=quiet, err=Output(stream, env))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMUX", "STY", "CI", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "AGENTEVAL_NOTIFY"):
            patch.delenv(name, raising=False)
        for name, value in env.items():
            patch.setenv(name, value)
        notify(invocation, None, ended(took_s), 0.5, code)
    return stream.getvalue()


def test_a_long_run_that_ended_is_told_to_the_terminal_and_to_nothing_else() -> None:
    said = "\x1b]9;agenteval: Orders: passed (1 passed, 1 failed, 1 in error, 50 % passed)\x1b\\"
    assert told(Terminal(), 31, TERM="xterm", TERM_PROGRAM="iTerm.app") == said
    assert told(Terminal(), 31, TERM="xterm") == "\a"
    assert told(Terminal(), 29, TERM="xterm") == ""  # somebody waited for it
    assert told(Terminal(), 31, 130, TERM="xterm") == ""  # and ended it
    assert told(Terminal(), 31, TERM="xterm", AGENTEVAL_NOTIFY="off") == ""
    assert told(Terminal(), 31, TERM="xterm", CI="true") == ""
    assert told(Terminal(), 31, TERM="dumb") == ""
    assert told(Terminal(), 31, quiet=True, TERM="xterm") == ""
    assert told(io.StringIO(), 31, TERM="xterm") == ""  # a pipe
    assert "AGENTEVAL_NOTIFY is 'loud'" in told(Terminal(), 31, TERM="xterm", AGENTEVAL_NOTIFY="loud")
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "notify.yaml").write_text("after: 100\n", "utf-8")
    assert told(Terminal(), 99, TERM="xterm") == ""
    (config_dir() / "notify.yaml").write_text("after: 2\nterminal: osc777\n", "utf-8")
    assert told(Terminal(), 3, TERM="xterm").startswith("\x1b]777;notify;agenteval;Orders: passed")


def test_doctor_says_how_ends_are_told(cli: Any) -> None:
    def said() -> tuple[str, str]:
        (found,) = [one for one in json.loads(cli("doctor", "--json").out)["checks"] if one["name"] == "notifications"]
        return found["state"], found["message"]

    assert said() == ("ok", "none here (the output is not a terminal)")
    config_dir().mkdir(parents=True, exist_ok=True)
    settings = config_dir() / "notify.yaml"
    settings.write_text("webhook: https://hooks.example.com/secret\n", "utf-8")
    assert said()[1].endswith("; the app posts to hooks.example.com")
    settings.write_text("webhook: ftp://hooks.example.com\n", "utf-8")
    assert said()[0] == "error"
    settings.write_text("terminal: loud\n", "utf-8")
    state, message = said()
    assert (state, "terminal must be auto" in message) == ("error", True)
