"""The options of recording a program, and of running it on a recording."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import Options, limits


class ProxyOptions(Options, frozen=True, kw_only=True):
    """The proxy between a program and its servers. `max_cost`: judges included; 0: no server is asked."""

    port: Annotated[int, limits("The port of the proxy.", "N", ge=0, le=65_535)] = 0
    max_cost: (
        Annotated[float, limits("Stop asking servers and judges once this much is spent.", "USD", ge=0)] | None
    ) = None
    pace: Annotated[
        float, limits("How fast recorded answers come: 0 is at once, 1 is as fast as recorded.", "N", ge=0)
    ] = 0.0
