"""The options that select runs by test, tag and agent. Each may be repeated, and a shell completes its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agenteval_tui.cli import completed_values

F = TypeVar("F", bound=Callable[..., Any])


def selected_tests(description: str = "Only this test; may be repeated.") -> Callable[[F], F]:
    """`--test ID`, as `tests`."""
    return click.option(
        "--test", "tests", multiple=True, metavar="ID", help=description, shell_complete=completed_values.tests
    )


def selected_tags(function: F) -> F:
    """`--tag T`, as `tags`."""
    return click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="T",
        help="Only tests with this tag; if repeated, with all these tags.",
        shell_complete=completed_values.tags,
    )(function)


def selected_agents(description: str = "Only runs of this agent; may be repeated.") -> Callable[[F], F]:
    """`--agent A`, as `agents`."""
    return click.option(
        "--agent", "agents", multiple=True, metavar="A", help=description, shell_complete=completed_values.agents
    )
