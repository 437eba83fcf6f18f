"""The options of `suggest`."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import Options, limits


class SuggestOptions(Options, frozen=True, kw_only=True):
    """Where labels come from, and how many criteria are suggested."""

    from_judge: Annotated[bool, limits("Use a judge's stored verdicts as labels.")] = False
    most: Annotated[int, limits("How many criteria to print.", "N", ge=1, le=20)] = 6
