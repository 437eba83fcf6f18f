"""Options of the command line: their types, those made of the records that declare them (`core.options`), and those
that select runs by test, tag and agent. The latter may be repeated, and a shell completes their values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.options import Options, options_of
from agenteval_tui.core.timespan import moment_from

F = TypeVar("F", bound=Callable[..., Any])


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


def declared(kind: type[Options], name: str, *flags: str, **more: Any) -> Callable[[F], F]:
    """The option of a command for an option of a record; the function gets it by the record's name. `flags`: where it
    is not `--name`. `more` goes to click, such as a help of its own."""
    option = options_of(kind)[name]
    parameters: dict[str, Any] = {"help": option.help}
    if option.type is bool:
        parameters["is_flag"] = True
    else:
        parameters |= {
            "metavar": option.unit or None,
            "default": option.default,
            "show_default": option.type in (int, float) and bool(option.default),
        }
        if option.type is int:
            bounds = option.least, option.most
            parameters["type"] = int if bounds == (None, None) else click.IntRange(*bounds)
        elif option.type is float:
            parameters["type"] = FiniteNumber(option.least, option.most, min_open=option.above)
    return click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, **parameters | more)


who_option = click.option("--who", default="", help="Your name (default: AGENTEVAL_WHO, else your account).")
"""`--who`, as `who`."""


def selected_tests(description: str = "Only this test; may be repeated.") -> Callable[[F], F]:
    """`--test ID`, as `tests`."""
    return click.option(
        "--test", "tests", multiple=True, metavar="ID", help=description, shell_complete=shell_completion.tests
    )


def selected_tags(function: F) -> F:
    """`--tag T`, as `tags`."""
    return click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="T",
        help="Only tests with this tag; if repeated, with all these tags.",
        shell_complete=shell_completion.tags,
    )(function)


def selected_agents(description: str = "Only runs of this agent; may be repeated.") -> Callable[[F], F]:
    """`--agent A`, as `agents`."""
    return click.option(
        "--agent", "agents", multiple=True, metavar="A", help=description, shell_complete=shell_completion.agents
    )
