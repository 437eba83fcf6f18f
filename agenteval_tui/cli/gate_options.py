"""The options that measure an execution: by its pass rate, by those of its tests, against the baseline of its tests."""

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct

from agenteval_tui.analysis.regression_gate import GateOptions
from agenteval_tui.cli.exit_codes import read_rate
from agenteval_tui.cli.invocation import option_group
from agenteval_tui.core.errors import AgentevalError

FAIL_UNDER_OPTION = click.option(
    "--fail-under",
    metavar="RATE",
    help="Exit code 1 only when the pass rate is below this (0.8 or 80%), or a test misses its gate.",
)
FAIL_UNDER_TEST_OPTION = click.option(
    "--fail-under-test",
    metavar="RATE",
    help="The gate of every test without one in its suite: exit code 1 when fewer of its runs pass.",
)


gate_options = option_group(
    (
        click.option("--baseline", is_flag=True, help="Print the whole comparison with the baseline at the end."),
        click.option(
            "--no-regressions",
            is_flag=True,
            help="Exit code 1 only when a test, a row or the whole regressed since the baseline.",
        ),
        click.option(
            "--max-drop",
            metavar="RATE",
            help="Exit code 1 only when the pass rate fell by more than this since the baseline (0.05 or 5%).",
        ),
        click.option(
            "--no-missing",
            is_flag=True,
            help="Exit code 1 when a test or row with a verdict in the baseline has none now.",
        ),
        click.option(
            "--no-new-failures",
            is_flag=True,
            help="Exit code 1 when a test or row fails that the baseline doesn't have.",
        ),
        click.option(
            "--set-baseline",
            is_flag=True,
            help="If the exit code is 0, make this execution the baseline of the tests that did not get worse.",
        ),
    )
)
"""`--baseline --no-regressions --max-drop --no-missing --no-new-failures --set-baseline`."""


class BaselineOptions(Struct, frozen=True):
    """The baseline options: `whole` prints the whole comparison, `gates` must be reached, and `set_it` sets the
    baseline on success."""

    whole: bool = False
    gates: GateOptions = GateOptions()
    set_it: bool = False

    @classmethod
    def taken(cls, options: dict[str, Any]) -> BaselineOptions:
        """Takes the baseline options out of a command's options. Raises `AgentevalError`."""
        drop = options.pop("max_drop")
        return cls(
            options.pop("baseline"),
            GateOptions(
                options.pop("no_regressions"),
                read_rate(drop, "--max-drop") if drop is not None else None,
                options.pop("no_missing"),
                options.pop("no_new_failures"),
            ),
            options.pop("set_baseline"),
        )

    @property
    def gated(self) -> bool:
        """Whether the exit code depends on the baseline."""
        return bool(self.gates)

    @property
    def first(self) -> str:
        """The first option that was given; "" for none."""
        flags = (
            ("--no-regressions", self.gates.no_regressions),
            ("--max-drop", self.gates.max_drop is not None),
            ("--no-missing", self.gates.no_missing),
            ("--no-new-failures", self.gates.no_new_failures),
            ("--set-baseline", self.set_it),
            ("--baseline", self.whole),
        )
        return next((name for name, there in flags if there), "")

    def check_detached(self) -> None:
        """Raise `AgentevalError` where something was asked for that `--detach` can't do."""
        if self.first:
            raise AgentevalError(
                f"--detach exits before there is anything for {self.first}",
                fix=f"give {self.first} to `agenteval attach`, or leave out --detach",
            )
