"""The tools `blame` and `blame_by_sampling` of `agenteval mcp`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agenteval_tui.core.directories import db_option, history_file
from agenteval_tui.core.options import options_of
from agenteval_tui.extensions.blame.api import blame as blame_run
from agenteval_tui.extensions.blame.sampled_answer import SAMPLES, BlameOptions
from agenteval_tui.views.blame import blame_view
from agenteval_tui.views.terminal import plain_text

_LIMITS = options_of(BlameOptions)["samples"]


def free(db: Path | None) -> Callable[..., str]:
    """The tool that asks no agent, for this history."""

    def blame(
        run: Annotated[
            str, Field(description="A run's id, a test's (its newest failed run), or empty: the newest.")
        ] = "",
    ) -> str:
        """Say which step a run was lost at and whose fault it is, if that is reliably known from the recording. Else
        list what stands out (where a wrong value came from, the first write that nothing expects, the step where
        repetitions part), which may not be the cause, and what sampling would cost. Nobody is asked."""
        blamed = blame_run(run, db=db)
        return plain_text(blame_view(blamed.answers, blamed.transcript, db_option(history_file(db))))

    return blame


def sampling(db: Path | None, max_cost: float | None) -> Callable[..., str]:
    """The tool that asks the run's agent, for this history. A call may cost `max_cost` US dollars (None: any)."""

    def blame_by_sampling(
        run: Annotated[
            str, Field(description="A run's id or a part of it, or a test's id: its newest run that failed.")
        ],
        samples: Annotated[
            int, Field(description="The maximum number of continuations per step.", ge=_LIMITS.least, le=_LIMITS.most)
        ] = SAMPLES,
    ) -> str:
        """Find the step where a failed run was lost by continuing it from some of its steps, and grade what comes of
        it: from which step on does it not pass any more? Ask `blame` first, which is free. It may cost money and time;
        the user set the limit. What was asked before costs nothing."""
        return str(blame_run(run, samples=samples, max_cost=max_cost, db=db))

    return blame_by_sampling
