"""The history: what goes in comes out, in the order that is promised."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.history.rows import ExecutionRecord, PlannedRun, RunEnded, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript, Usage


def test_a_run_comes_back(tmp_path: Path) -> None:
    with Store.open(tmp_path / "deep" / "history.db") as store:
        record = ExecutionRecord("EXECUTION1", "title", "run", "suite.yaml", ("/a",), 5)
        planned = [
            PlannedRun(f"RUN{n:05}", "EXECUTION1", n, "/a", "suite", f"t{n % 3}", "Test", prompt="Wie viele Kunden?")
            for n in range(7)
        ]
        store.begin_execution(record, planned).result()
        store.run_started("RUN00000", 1, 6).result()
        transcript = Transcript(
            (
                Message("user", "Wie viele Kunden?"),
                Message("assistant", "", tool_calls=(0,)),
                Message("assistant", "Zwölf."),
            ),
            (ToolCall("c1", "get_order", {"order_id": "#W123"}, "ok", message=1),),
            usage=Usage(10, 5, cost=0.1),
            final_output="Zwölf.",
        )
        store.run_ended(RunEnded("RUN00000", "passed", 1.0, 6, 12.5, 1, transcript)).result()
        assert store.transcript("RUN00000") == transcript
        assert store.run("00000").status == "passed"
        for words in ("zwolf", "kunden", "get_order", "#w123", '"wie viele"', "w12"):
            assert list(store.run_ids(RunFilter(text=words))) == [1], words
        assert store.run_ids().tolist() == [7, 6, 5, 4, 3, 2, 1]
        store.end_execution("EXECUTION1", "cancelled").result()
        assert store.execution("last").cancelled == 6
