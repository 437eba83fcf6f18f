"""Asking whether code of a suite's repository may run, and secrets may be sent, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from agenteval_tui.agents.permission import NotTrustedError, TrustRequirement
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.prompts import can_ask, choose
from agenteval_tui.core.display import one_line
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.trust import Trust, kind_of

T = TypeVar("T")
_LISTED = 30  # programs and secrets of one repository


def plan_with_permission(invocation: Invocation, plan: Plan) -> Plan:
    """The plan with its permission, which the user may give at the terminal. Raises `NotTrustedError` if a folder is
    not trusted and there is no terminal, or the answer is no.
    """

    def permitted(allowed: bool) -> Plan:
        trusted = replace(plan, trust=plan.trust or allowed)
        return replace(trusted, permission=check_trust(trusted))

    return ask_permission(invocation, permitted)


def text_with_permission(plan: Plan) -> Plan:
    """The plan of a suite on standard input, with its permission: a folder's trust does not cover a suite that is not
    in a folder, and there is no terminal to ask. Raises `NotTrustedError`."""
    try:
        return replace(plan, permission=check_trust(plan, foreign=True))
    except NotTrustedError as refused:
        raise NotTrustedError(refused.needs, "a suite on standard input has no folder to trust") from None


def ask_permission(invocation: Invocation, attempt: Callable[[bool], T]) -> T:
    """What `attempt(False)` gives, or `attempt(True)` if the user at the terminal agrees. Raises `NotTrustedError` if a
    folder is not trusted and there is no terminal, or the answer is no.
    """
    try:
        return attempt(False)
    except NotTrustedError as refused:
        if not (can_ask(invocation) and _agrees(invocation, refused.needs)):
            raise
        return attempt(True)


def _agrees(invocation: Invocation, needs: Sequence[TrustRequirement]) -> bool:
    """Whether it may be; what is trusted and agreed from now on is remembered."""
    err = invocation.err
    trust = Trust.load()
    for need in needs:
        err.line(("This needs your trust, from ", "warn"), (one_line(str(need.folder)), "bold"))
        err.line((f"({one_line(trust.why_not(need.folder, need.sends))})", "dim"))
        for what in need.what[:_LISTED]:
            err.line("  ", one_line(what, 400))
        if len(need.what) > _LISTED:
            err.line(f"  and {len(need.what) - _LISTED} more")
    answer = choose(invocation, _question(needs), ("once", "trust", "No"))
    if answer == "trust":
        for need in needs:
            trust.trust(need.folder, need.sends)
    return answer in ("once", "trust")


def _question(needs: Sequence[TrustRequirement]) -> str:
    if all(need.trusted for need in needs):
        return "Allow it once, trust this address with it from now on, or no?"
    kinds = {kind_of(need.folder) for need in needs}
    what = f"this {kinds.pop()}" if len(needs) == 1 else "all of these"
    return f"Allow it once, trust {what} from now on (it is asked only once), or no?"
