"""The options of `shrink`."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import limits
from agenteval_tui.runs.fork.options import ContinuationOptions


class ShrinkOptions(ContinuationOptions, frozen=True, kw_only=True):
    """What a small case must keep, and how often it must fail."""

    at: (
        Annotated[
            int,
            limits(
                "The last message the agent gets, a number in `agenteval show RUN` (default: the one before the step "
                "to blame).",
                "STEP",
                ge=1,
            ),
        ]
        | None
    ) = None
    criterion: Annotated[str, limits("The criterion that must fail (default: the first that failed).", "NAME")] = ""
    rate: Annotated[
        float, limits("How often it must fail for the cause to count as the same failure.", "RATE", ge=0.3, le=1)
    ] = 0.8
    keep_calls: Annotated[
        bool,
        limits(
            "Keep all calls, and shorten only the text in them and in their results: the agent may repeat a removed "
            "call."
        ),
    ] = False
    keep_tools: Annotated[bool, limits("Keep the list of tools.")] = False


DEFAULTS = ShrinkOptions()
