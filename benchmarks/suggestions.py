"""How long a person waits for criteria from examples."""

from __future__ import annotations

import statistics
import time

from agenteval_tui.extensions.suggest.examples import Example, Examples
from agenteval_tui.extensions.suggest.search import suggest
from benchmarks.regrade import transcripts
from benchmarks.table import Row


def run(quick: bool = False) -> list[Row]:
    """How long it takes with 200 runs of a test."""
    rows = []
    for labels in (3, 20, 200):
        given = [
            Example(str(number), one, {}, None if number >= labels else number % 3 != 1)
            for number, one in enumerate(transcripts(200))
        ]
        took = []
        for _ in range(2 if quick else 7):
            began = time.perf_counter()
            suggest(Examples(given))
            took.append((time.perf_counter() - began) * 1e3)
        rows.append(Row(f"criteria from 200 runs, {labels} labelled", f"{statistics.median(took):.0f} ms", "", None))
    return rows
