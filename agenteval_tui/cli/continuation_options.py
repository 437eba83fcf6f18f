"""The options that `fork`, `blame` and `shrink` share: what continuing a stored run may cost, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import Struct

from agenteval_tui.cli.declared_options import declared
from agenteval_tui.runs.fork.options import ContinuationOptions

F = TypeVar("F", bound=Callable[..., Any])


class Asking(Struct, frozen=True):
    """How the command asks: `price` prints the price only, `sure` asks no question before it spends that, `as_json`
    prints one document."""

    price: bool
    sure: bool
    as_json: bool

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Asking:
        """Takes these options out of a command's options."""
        return cls(*(options.pop(name) for name in cls.__struct_fields__))


def continuation_options(kind: type[ContinuationOptions], *, document: str) -> Callable[[F], F]:
    """`--max-cost --concurrency --trust`, as `kind` declares them, and those of `Asking`. `document`: what the JSON
    document holds."""
    options = (
        *(declared(kind, name) for name in ("max_cost", "concurrency", "trust")),
        click.option("--price", is_flag=True, help="Print what it would cost, without asking the agent."),
        click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask before it spends that."),
        click.option("--json", "as_json", is_flag=True, help=f"Print one JSON document: {document}."),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
