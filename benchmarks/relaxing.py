"""How long a person waits for the smallest relaxations of a failing criterion, and for mutations of a test's runs."""

from __future__ import annotations

import statistics
import time
from typing import Any

from agenteval_tui.extensions.audit.mutations import mutations
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from benchmarks.regrade import transcripts
from benchmarks.table import Row

TEXT: dict[str, Any] = {"type": "TextMatch", "contains_all": ["order", "Refund", "sent today", "curd"]}
TOOLS: dict[str, Any] = {
    "type": "ToolCheck",
    "tools": [{"name": "get_order", "max_calls": 2, "arguments": {"order_id": "#w0"}}, {"name": "refund_order"}],
}
CASES: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    ("one text in upper case", [{"type": "TextMatch", "contains": "the REFUND"}]),
    ("three of four texts missing", [TEXT]),
    ("too many calls, wrong arguments, a tool missing", [TOOLS]),
    ("both at once", [TEXT, TOOLS]),
)


def run(quick: bool = False) -> list[Row]:
    """Medians over a few rounds."""
    (transcript,) = transcripts(1)
    rounds = 5 if quick else 30
    rows = []
    for name, metrics in CASES:
        spec = CriterionSpec("it", "TextResponse", {"metrics": metrics})
        assert compile_criterion(spec).check(transcript).outcome is Outcome.FAILED
        found = relaxations(spec, transcript)
        took = []
        for _ in range(rounds):
            began = time.perf_counter()
            relaxations(spec, transcript)
            took.append((time.perf_counter() - began) * 1e3)
        middle = statistics.median(took)
        measured = f"{middle:.1f} ms ({len(found)} proposals)"
        rows.append(Row(f"smallest relaxations: {name}", measured, "", None))
    return [*rows, _mutations(40)]


def _mutations(runs: int) -> Row:
    spec = CriterionSpec("it", "TextResponse", {"metrics": [TEXT, TOOLS]})
    checker = compile_criterion(spec)
    began = time.perf_counter()
    tried = 0
    for transcript in transcripts(runs):
        for mutant in mutations(transcript):
            checker.check(mutant.transcript, explain=False)
            tried += 1
    took = (time.perf_counter() - began) * 1e3
    return Row(f"audit: {runs} runs, {tried} mutations, one criterion", f"{took:.0f} ms", "", None)
