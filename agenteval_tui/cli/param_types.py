"""A moment in the future as a value of an option."""

from __future__ import annotations

import click

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.timespan import moment_from


class Until(click.ParamType):  # type: ignore[type-arg]
    """Milliseconds since 1970, written as `14d`, `2w`, `12h`, or a day (2026-12-24)."""

    name = "WHEN"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return moment_from(str(value), now_ms())
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
