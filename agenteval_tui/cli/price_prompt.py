"""Asking whether what will be asked of agents may cost what it costs, before anyone is asked."""

from __future__ import annotations

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.prompts import can_ask, confirm
from agenteval_tui.core.errors import AgentevalError


def agree_to_price(
    invocation: Invocation, words: str, cost: float | None, *, max_cost: float | None, sure: bool, shown: bool = True
) -> bool:
    """Show the price (`words`), and give whether it may be paid; False: the user said no.

    `cost`: US dollars (None: not known). What is free needs no answer, and neither does what `sure` (--yes) or a limit
    (`max_cost`) allows. Raises `AgentevalError` where there is no terminal to ask in. `shown` false: the price is not
    printed, for a document on stdout.
    """
    if shown and not invocation.quiet:
        invocation.out.line((words, "dim"))
    if sure or cost == 0 or max_cost is not None:
        return True
    if not can_ask(invocation):
        raise AgentevalError(
            f"this costs something, and there is no terminal to ask in: {words}",
            mend="give --yes, or a limit: --max-cost USD",
        )
    return confirm(invocation, "Continue?")
