"""The tool `shrink` of `agenteval mcp`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agenteval_tui.core.options import options_of
from agenteval_tui.extensions.shrink.api import shrink as shrink_run
from agenteval_tui.extensions.shrink.shrink import ShrinkOptions


def tool(db: Path | None, max_cost: float | None) -> Callable[..., str]:
    """The tool, for this history; a call may cost at most `max_cost` US dollars (None: any)."""

    def shrink(
        run: Annotated[
            str, Field(description="A run's id or a part of it, or a test's id: its newest run that failed.")
        ],
        criterion: Annotated[
            str, Field(description="The criterion that must fail; empty: the first that failed.")
        ] = "",
        keep_calls: Annotated[
            bool, Field(description="Keep all calls; shorten only the text in them and in their results.")
        ] = False,
        keep_tools: Annotated[bool, Field(description=options_of(ShrinkOptions)["keep_tools"].help)] = False,
    ) -> str:
        """Find the smallest input with which a failed run's agent still fails for the same cause. It asks the agent 20
        to 200 times, which may cost money and time; the user set the limit. What was asked before costs nothing."""
        return str(
            shrink_run(
                run,
                criterion=criterion,
                keep_calls=keep_calls,
                keep_tools=keep_tools,
                max_cost=max_cost,
                db=db,
            )
        )

    return shrink
