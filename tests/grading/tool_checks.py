"""Transcripts of tool calls, and what a `ToolCheck` says of them."""

from __future__ import annotations

from typing import Any

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult, Evidence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript


def calls(*made: tuple[str, Any]) -> Transcript:
    """An answer that makes these calls: (name, arguments)."""
    tool_calls = tuple(ToolCall(f"c{n}", name, arguments, message=0) for n, (name, arguments) in enumerate(made))
    return Transcript((Message("assistant", "", tool_calls=tuple(range(len(made)))),), tool_calls)


def check(transcript: Transcript, /, **metric: Any) -> CriterionResult:
    """The result of a metric with these properties, the same without explanation."""
    spec = CriterionSpec("it", "ToolResponse", {"metrics": [{"type": "ToolCheck", **metric}]})
    result = compile_criterion(spec).check(transcript)
    quick = compile_criterion(spec).check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


def evidence(result: CriterionResult, condition: str) -> Evidence:
    """The first evidence of that condition."""
    return next(one for metric in result.metrics for one in metric.evidence if one.condition == condition)
