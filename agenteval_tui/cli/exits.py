"""What the command line ends with, from how the runs ended."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.text.problems import INFRASTRUCTURE, AgentevalError

PASSED = 0
FAILED = 1


def exit_code(counts: Mapping[str, int], pass_rate: float | None = None, fail_under: float | None = None) -> int:
    """The exit code for so many runs of each outcome.

    Without a gate: 1 when a run failed (or waits for a person), else 3 when one ended in an error, else 0. With the
    gate `fail_under` (0..1): 1 when `pass_rate` (over the decided runs; None: there is none) is below it, else 3
    when there were errors, which the rate leaves out, else 0.
    """
    errors = counts.get("error", 0) > 0
    if fail_under is None:
        failed = counts.get("failed", 0) + counts.get("needs_review", 0) > 0
    else:
        failed = pass_rate is not None and pass_rate < fail_under - 1e-12
        errors = errors or pass_rate is None
    return FAILED if failed else INFRASTRUCTURE if errors else PASSED


def read_rate(text: str) -> float:
    """A rate as people write it: `0.8`, `80%`. Raises `AgentevalError`."""
    number = text.strip().removesuffix("%")
    try:
        rate = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise AgentevalError(f"{text!r} is no pass rate", where="--fail-under", mend="write 0.8 or 80%")
    return rate
