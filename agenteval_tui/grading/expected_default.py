"""The expected value of a criterion, where a metric compares with it unless its config says otherwise."""

from __future__ import annotations

from agenteval_tui.grading.context import Context
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.spec import json_like


def expected_text(given: str | None, context: Context) -> str | None:
    """`given`, else the criterion's expected value as text; None when there is neither."""
    if given is not None or context.expected_value is None:
        return given
    return text_of(json_like(context.expected_value))
