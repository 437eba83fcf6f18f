"""The options of listening for traces."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import Options, limits


class ListeningOptions(Options, frozen=True, kw_only=True):
    """Where traces come to, when one is complete (seconds), and when it ends (`most` None: when somebody stops it)."""

    port: Annotated[int, limits("The port; 0 for any free one.", "N", ge=0, le=65_535)] = 4318
    most: Annotated[int, limits("End after N runs (default: on Ctrl-C).", "N", ge=1)] | None = None
    quiet_after: Annotated[
        float,
        limits(
            "A trace with its first span is complete after this time without new spans.", "SECONDS", ge=0.1, le=3600
        ),
    ] = 2.0
    patience: Annotated[
        float,
        limits(
            "A trace without its first span is stored as it is after this time without new spans.",
            "SECONDS",
            ge=0.1,
            le=86_400,
        ),
    ] = 60.0
