"""Types of options: a number in a range, and a moment in the future."""

from __future__ import annotations

import math
from typing import Any

import click

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.timespan import moment_from


class FiniteNumber(click.FloatRange):
    """A number in a range. `nan` and `inf` are not numbers here: no cost is above a limit of `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails as click's ranges do."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number


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
