"""Grading stored runs again, as on every keystroke in the config editor, and 2,000 stored samples."""

from __future__ import annotations

import statistics
import time

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from benchmarks.table import Row

CONFIG = """{
  // what a person edits
  "metrics": [
    {"type": "TextMatch", "contains_all": ["order", "refund"], "not_contains_any": ["sorry"]},
    {"type": "TextMatch", "name": "start", "starts_with_any": ["The", "Your"]},
    {"type": "TextMatch", "name": "case", "contains_ignore_case": "REFUND"},
    {"type": "TextMatch", "name": "end", "ends_with": "."},
    {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": {"$regex": "^#W"}}}]}
  ]
}"""


def transcripts(number: int) -> list[Transcript]:
    """Transcripts of ten messages with three tool calls, all different."""
    made = []
    for index in range(number):
        text = f"Your order #W{index} has been found. " + "The refund of 12.50 is on its way to your card. " * 8
        messages: list[Message] = []
        calls: list[ToolCall] = []
        for turn in range(3):
            messages.append(Message("user", f"Where is my refund for #W{index}, turn {turn}?"))
            messages.append(Message("assistant", "", tool_calls=(turn,)))
            messages.append(Message("tool", '{"status": "shipped"}', tool_call=turn))
            calls.append(ToolCall(f"c{turn}", "get_order", {"order_id": f"#W{index}"}, "ok", message=len(messages) - 2))
        messages.append(Message("assistant", text))
        made.append(Transcript(tuple(messages), tuple(calls), final_output=text))
    return made


def keystroke(pool: list[Transcript], edits: int) -> list[float]:
    """The seconds from an edited config to the verdicts of all runs. Every edit is new, so nothing is cached."""
    took = []
    for edit in range(edits):
        text = CONFIG.replace("refund", f"refund{edit}" if edit % 2 else f"refun{'d' * (edit % 3 + 1)}")
        text = text.replace("what a person edits", f"edit {edit}")
        began = time.perf_counter()
        diagnose(text, "TextResponse")
        checker = compile_criterion(CriterionSpec("bench", "TextResponse", text))
        checker.check(pool[0])
        for transcript in pool:
            checker.check(transcript, explain=False)
        took.append(time.perf_counter() - began)
    return took


def run(quick: bool = False) -> list[Row]:
    """Medians over edits."""
    pool = transcripts(2000)
    edits = 5 if quick else 31
    key = statistics.median(keystroke(pool[:200], edits))
    large = statistics.median(keystroke(pool, edits))
    thousand = statistics.median(keystroke(pool[:1000], edits))
    return [
        Row("keystroke to verdicts of 200 runs, 5 metrics", f"{key * 1000:.1f} ms", "< 8 ms", key < 0.008),
        Row("keystroke to verdicts of 2,000 runs, 5 metrics", f"{large * 1000:.0f} ms", "< 60 ms", large < 0.06),
        Row("re-grade 1,000 transcripts x 5 metrics", f"{thousand * 1000:.0f} ms", "< 100 ms", thousand < 0.1),
    ]
