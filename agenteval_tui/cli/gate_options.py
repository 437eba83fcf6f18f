"""The options that measure an execution: by its pass rate, by those of its tests, against the baseline of its tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import Struct

from agenteval_tui.cli.exit_codes import read_rate
from agenteval_tui.core.errors import AgentevalError

F = TypeVar("F", bound=Callable[..., Any])

FAIL_UNDER_OPTION = click.option(
    "--fail-under", metavar="RATE",
    help="Exit code 1 only when the pass rate is below this (0.8 or 80%), or a test misses its gate.",
)  # fmt: skip
FAIL_UNDER_TEST_OPTION = click.option(
    "--fail-under-test", metavar="RATE",
    help="The gate of every test without one in its suite: exit code 1 when fewer of its runs pass.",
)  # fmt: skip


def gate_options(function: F) -> F:
    """`--baseline --no-regressions --max-drop --set-baseline`."""
    options = (
        click.option("--baseline", is_flag=True, help="Print the whole comparison with the baseline at the end."),
        click.option(
            "--no-regressions", is_flag=True, help="Exit code 1 only when a test passes less often than in its "
                                                   "baseline."
        ),
        click.option(
            "--max-drop", metavar="RATE",
            help="Exit code 1 only when the pass rate fell by more than this since the baseline (0.05 or 5%).",
        ),
        click.option(
            "--set-baseline", is_flag=True, help="If the exit code is 0, make this execution the baseline of its tests."
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


class BaselineOptions(Struct, frozen=True):
    """The baseline options: `whole` prints the whole comparison, two options are gates, and `set_it` sets the baseline
    on success."""

    whole: bool = False
    no_regressions: bool = False
    max_drop: float | None = None
    set_it: bool = False

    @classmethod
    def taken(cls, options: dict[str, Any]) -> BaselineOptions:
        """Takes the baseline options out of a command's options. Raises `AgentevalError`."""
        drop = options.pop("max_drop")
        return cls(
            options.pop("baseline"),
            options.pop("no_regressions"),
            read_rate(drop, "--max-drop") if drop is not None else None,
            options.pop("set_baseline"),
        )

    @property
    def gated(self) -> bool:
        """Whether the exit code depends on the baseline."""
        return self.no_regressions or self.max_drop is not None

    @property
    def first(self) -> str:
        """The first option that was given; "" for none."""
        given = (
            ("--no-regressions", self.no_regressions),
            ("--max-drop", self.max_drop is not None),
            ("--set-baseline", self.set_it),
            ("--baseline", self.whole),
        )
        return next((name for name, there in given if there), "")

    def check_detached(self) -> None:
        """Raise `AgentevalError` where something was asked for that `--detach` can't do."""
        if self.first:
            raise AgentevalError(
                f"--detach exits before there is anything for {self.first}",
                mend=f"give {self.first} to `agenteval attach`, or leave out --detach",
            )
