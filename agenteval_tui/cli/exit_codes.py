"""What the command line ends with, from how the runs ended."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.analysis.statistics import reaches
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError

PASSED = 0
FAILED = 1
INTERRUPTED = 130


def exit_code(
    counts: Mapping[str, int],
    pass_rate: float | None = None,
    fail_under: float | None = None,
    *,
    status: str = "finished",
    gate_missed: bool = False,
) -> int:
    """The exit code for this many runs of each outcome.

    Without a gate: 1 when a run failed (or waits for a person), else 3 when one ended in an error, else 0. With the
    gate `fail_under` (0..1): 1 when `pass_rate` (over the decided runs; None: there is none) is below it, else 3
    when there were errors, which the rate leaves out, else 0. 1 in any case when the gate of a test was missed
    (`gate_missed`); runs that the gate of their test excuses are not in `counts`.

    An execution whose `status` is "stopped" (a limit of cost, tokens or time was reached) never gives 0 or 3, but 1:
    the limit is a gate of the user's own, and what was asked for was not shown. 3 would say that agents or the machine
    failed; what runs jobs takes that for a reason to try again, and would spend the money twice. One that was
    "cancelled", by whomever, was interrupted: 130.
    """
    if status == "cancelled":
        return INTERRUPTED
    errors = counts.get("error", 0) > 0
    if fail_under is None:
        failed = counts.get("failed", 0) + counts.get("needs_review", 0) > 0
    else:
        failed = pass_rate is not None and not reaches(pass_rate, fail_under)
        errors = errors or pass_rate is None
    failed = failed or gate_missed
    if status == "stopped":
        return FAILED
    return FAILED if failed else INFRASTRUCTURE if errors else PASSED


def read_rate(text: str, where: str = "--fail-under") -> float:
    """A rate as people write it: `0.8`, `80%`. Raises `AgentevalError`."""
    number = text.strip().removesuffix("%")
    try:
        rate = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise AgentevalError(f"{text!r} is not a number from 0 to 1", where=where, fix="write 0.8 or 80%")
    return rate


def read_seconds(text: str, where: str) -> float:
    """A time as people write it, in seconds: `90`, `90s`, `15m`, `1.5h`. Raises `AgentevalError`."""
    folded = text.strip().casefold()
    unit = {"s": 1, "m": 60, "h": 3600}.get(folded[-1:])
    try:
        seconds = float(folded[:-1] if unit else folded) * (unit or 1)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise AgentevalError(f"{text!r} is not a duration", where=where, fix="write seconds, or 90s, 15m, 1.5h")
    return seconds
