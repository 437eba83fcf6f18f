"""Listening for traces from Python."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

import agenteval_tui as agenteval
from agenteval_tui.extensions.otel.listener import loss_notes
from agenteval_tui.history.store import Store

pytest.importorskip("opentelemetry.proto")

SAYS_YES = {
    "name": "Says yes",
    "prototype_class": "TextResponse",
    "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "yes"}]},
}


def span(trace: int, **attributes: str) -> dict[str, Any]:
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{trace:016x}",
        "name": "chat m",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000000900000000",
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()],
    }


def answered(trace: int, said: str) -> dict[str, Any]:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "p"}
    asked = '[{"role": "user", "parts": [{"type": "text", "content": "Is it there?"}]}]'
    told = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": said}]}])
    return span(trace, **chat, **{"gen_ai.input.messages": asked, "gen_ai.output.messages": told})


def send(endpoint: str, *spans: dict[str, Any]) -> None:
    body = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    httpx.post(f"{endpoint}/v1/traces", json=body).raise_for_status()


def test_what_is_sent_inside_the_block_is_stored_and_graded(tmp_path: Path) -> None:
    db = tmp_path / "h.db"
    with agenteval.listen([SAYS_YES], db=db, title="of a test") as traces:
        assert traces.endpoint.startswith("http://127.0.0.1:")
        with pytest.raises(agenteval.AgentevalError, match="to the end yet"):
            _ = traces.execution
        send(traces.endpoint, answered(1, "yes"), answered(2, "no"))
        send(traces.endpoint, span(3, name="nothing of a model"))
        assert httpx.post(f"{traces.endpoint}/v1/traces", content=b"nonsense").status_code >= 400
    assert sorted((run.status, run.transcript.final_output) for run in traces.execution) == [
        ("failed", "no"),
        ("passed", "yes"),
    ]
    assert any("could not be read" in note for note in traces.notes), traces.notes
    assert any("left out" in note for note in traces.notes), traces.notes
    (stored,) = agenteval.History(db).executions()
    assert stored.id == traces.execution.id
    with Store.open(db) as store:
        assert store.execution(stored.id).title == "of a test"


def test_nothing_may_come(tmp_path: Path) -> None:
    with agenteval.listen(db=tmp_path / "h.db") as traces:
        pass
    assert (len(traces.execution), traces.notes) == (0, ())
    with pytest.raises(agenteval.AgentevalError, match="call `listen` again"), traces:
        pass


def test_what_lets_a_trace_wait_is_named_as_the_reader_writes_it() -> None:
    assert loss_notes({}, 2, 0, "") == ("2 spans came too late and were left out; increase --quiet-after",)
    (note,) = loss_notes({}, 1, 0, "", option="quiet_after")
    assert note == "1 span came too late and was left out; increase quiet_after"


def test_what_came_before_an_error_of_the_block_is_stored(tmp_path: Path) -> None:
    def fails(traces: agenteval.Listening) -> None:
        with traces:
            send(traces.endpoint, answered(1, "yes"))
            raise ZeroDivisionError

    traces = agenteval.listen(db=tmp_path / "h.db")
    with pytest.raises(ZeroDivisionError):
        fails(traces)
    assert [run.transcript.final_output for run in traces.execution] == ["yes"]


def test_a_port_in_use_is_said_when_the_block_begins(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(agenteval.AgentevalError, match=str(port)),
            agenteval.listen(port=port, db=tmp_path / "h.db"),
        ):
            raise AssertionError("it has no port")
