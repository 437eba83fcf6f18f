"""The options that `fork`, `blame` and `shrink` share: what continuing a stored run may cost, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agenteval_tui.cli.finite_number import FiniteNumber

F = TypeVar("F", bound=Callable[..., Any])
MAX_COST = "Stop when agents and judges have cost this much"


def continuation_options(*, document: str, max_cost: str = f"{MAX_COST}.") -> Callable[[F], F]:
    """`--max-cost --concurrency --trust --price --yes --json`; the function gets the last two as `sure` and `as_json`.

    `document`: what the JSON document holds. `max_cost`: the help of the limit, where it means more.
    """
    options = (
        click.option("--max-cost", type=FiniteNumber(0, min_open=True), metavar="USD", help=max_cost),
        click.option(
            "--concurrency", type=click.IntRange(1), metavar="N", help="How many continuations at the same time."
        ),
        click.option("--trust", is_flag=True, help="Let programs and Python functions in the suite's folder run."),
        click.option("--price", is_flag=True, help="Print what it would cost, without asking the agent."),
        click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask before it spends that."),
        click.option("--json", "as_json", is_flag=True, help=f"Print one JSON document: {document}."),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
