"""The config editor's work on a keystroke: diagnostics, completions, and the description at the cursor."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from agenteval_tui.grading.config.completion import complete_config, hover_config
from agenteval_tui.grading.config.diagnostics import diagnose
from benchmarks.regrade import CONFIG
from benchmarks.table import Row

LARGE = CONFIG.replace('"metrics": [', '"metrics": [\n' + '    {"type": "TextMatch", "contains": "order"},\n' * 40)


class Seen:
    """A hundred tools, and answers of a thousand words."""

    def tools(self) -> Sequence[str]:
        """Names of tools."""
        return [f"tool_{number}" for number in range(100)]

    def arguments(self, tool: str) -> Sequence[str]:
        """Names of arguments."""
        return [f"argument_{number}" for number in range(10)]

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        """Values."""
        return [f"#W{number}" for number in range(10)]

    def texts(self) -> Sequence[str]:
        """Pieces of answers."""
        return [f"the order number {number} is on its way" for number in range(200)]


def milliseconds(text: str, ask: Callable[[str, int], object], places: int) -> list[float]:
    """How long an answer takes at many places of the text. Every second time, the text ends at the place."""
    took = []
    for place in range(places):
        offset = len(text) * place // places
        given = text if place % 2 else text[:offset]
        began = time.perf_counter()
        ask(given, offset)
        took.append((time.perf_counter() - began) * 1e3)
    return took


def run(quick: bool = False) -> list[Row]:
    """Medians over many places of a text."""
    seen = Seen()
    places = 40 if quick else 400
    asked: list[tuple[str, float, Callable[[str, int], object]]] = [
        ("completion", 5, lambda text, offset: complete_config(text, offset, "TextResponse", seen)),
        ("hover", 5, lambda text, offset: hover_config(text, offset, "TextResponse")),
        ("diagnostics", 0, lambda text, offset: diagnose(text, "TextResponse")),
    ]
    rows = []
    for name, text in (("a config of 5 metrics", CONFIG), ("a config of 45 metrics", LARGE)):
        for what, due, ask in asked:
            milliseconds(text, ask, 10)
            took = sorted(milliseconds(text, ask, places))
            middle, high = statistics.median(took), took[len(took) * 95 // 100]
            wanted = due if text is CONFIG else 0
            measured = f"{middle:.1f} ms (95 % under {high:.1f})"
            reached = middle < wanted if wanted else None
            rows.append(Row(f"{what} in {name}", measured, f"< {wanted:g} ms" if wanted else "", reached))
    return rows
