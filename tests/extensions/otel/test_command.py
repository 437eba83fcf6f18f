"""`agenteval listen`: what it prints of traces that arrive, and what `ps`, `pause` and `cancel` say of it."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from terminal import Terminal

from agenteval_tui.extensions.otel.receiver import Receiver
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import load_suite
from tests.cli.conftest import CommandLine, validator

SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "00f067aa0ba902b7",
    "name": "chat m",
    "startTimeUnixNano": "1790000000000000000",
    "endTimeUnixNano": "1790000000900000000",
    "attributes": [
        {"key": "gen_ai.prompt.0.role", "value": {"stringValue": "user"}},
        {"key": "gen_ai.prompt.0.content", "value": {"stringValue": "Where is \x1b[31mit?"}},
        {"key": "gen_ai.completion.0.content", "value": {"stringValue": "On its way."}},
    ],
}


def send_when_it_listens(monkeypatch: pytest.MonkeyPatch, *bodies: dict[str, Any]) -> None:
    start = Receiver.start

    async def started(receiver: Receiver, *given: Any) -> None:
        await start(receiver, *given)

        def send() -> None:
            for body in bodies:
                httpx.post(f"{receiver.address}/v1/traces", json=body)

        threading.Thread(target=send).start()

    monkeypatch.setattr(Receiver, "start", started)


def body(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_each_run_is_a_line(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    send_when_it_listens(monkeypatch, {"resourceSpans": []}, body({"traceId": "a", "spanId": "b"}), body(SPAN))
    db = tmp_path / "h.db"
    criteria = tmp_path / "c.yaml"
    criteria.write_text(
        "name: Greets\nprototype_class: TextResponse\n"
        "config_uxon: {metrics: [{type: TextMatch, contains_any: [Hello]}]}\n"
    )
    said = cli("--db", db, "listen", "--port", 0, "--runs", 1, "--quiet-after", 0.1, "--criteria", criteria)
    assert said.code == 0
    line, why = said.out.splitlines()
    assert "traces: Where is" in line
    assert "\x1b[31m" not in said.out
    assert "2 messages" in line
    assert "Greets" in why
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" in said.err
    assert "1 trace left out: no span of it is about a model" in said.err
    assert "1 run stored" in said.err
    with Store.open(db) as store:
        (row,) = store.executions()
    assert (row.kind, row.status, row.failed) == ("import", "finished", 1)


def test_a_trace_becomes_a_test(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    send_when_it_listens(monkeypatch, body(SPAN))
    suite = tmp_path / "heard.suite.yaml"
    said = cli("--db", tmp_path / "h.db", "listen", "--port", 0, "--runs", 1, "--quiet-after", 0.1,
               "--save-test", suite)  # fmt: skip
    assert said.code == 0
    assert f"of {suite}, from 1 run" in said.err
    loaded = load_suite(suite)
    assert loaded.suite is not None
    (test,) = loaded.suite.tests
    assert str(test.prompt).startswith("Where is ")
    assert test.criteria


def test_each_run_is_a_document(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    send_when_it_listens(monkeypatch, body(SPAN))
    said = cli("--db", tmp_path / "h.db", "listen", "--port", 0, "--runs", 1, "--quiet-after", 0.1, "--json", "-q")
    document = json.loads(said.out)
    validator("listen").validate(document)
    assert (document["messages"], document["status"], document["trace"]) == (2, "skipped", SPAN["traceId"])
    assert not said.err


def test_a_port_in_use_and_missing_criteria_are_one_sentence(cli: CommandLine, tmp_path: Path) -> None:
    assert "no such file" in cli("listen", "--criteria", tmp_path / "none.yaml").err
    assert cli("listen", "--port", 70000).code == 2


def test_what_came_is_stored_when_the_terminal_closes(tmp_path: Path) -> None:
    """A trace that is not complete yet, too: its program was told that it arrived."""
    db = tmp_path / "h.db"
    words = [sys.executable, "-m", "agenteval_tui", "--db", str(db), "listen", "--port", "0", "--patience", "3600"]
    terminal = Terminal(words)
    terminal.wait_for("Ctrl-C ends it")
    address = re.search(r"http://127\.0\.0\.1:\d+", terminal.text)
    assert address is not None
    httpx.post(f"{address.group()}/v1/traces", json=body({**SPAN, "parentSpanId": "00f067aa0ba902b8"}))
    os.close(terminal.fd)  # the kernel sends SIGHUP to the session
    while terminal.exit_code() is None:
        time.sleep(0.01)
    with Store.open_to_look(db) as store:
        (execution,) = store.executions()
        assert (execution.runs, execution.ended, execution.status) == (1, 1, "finished")
