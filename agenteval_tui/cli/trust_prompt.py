"""Asking whether programs of a suite's folder may run, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from agenteval_tui.agents.permission import NotTrustedError, Permission, TrustRequirement
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.prompts import can_ask, choose
from agenteval_tui.core.display import one_line
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.trust import Trust

_LISTED = 12  # programs of one folder


def plan_with_permission(invocation: Invocation, plan: Plan) -> Plan:
    """The plan with its permission, which the user may give at the terminal. Raises `NotTrustedError` if a folder is
    not trusted and there is no terminal, or the answer is no.
    """

    try:
        return replace(plan, permission=check_trust(plan))
    except NotTrustedError as refused:
        if not trust_answer(invocation, refused):
            raise
        plan = replace(plan, trust=True)
        return replace(plan, permission=check_trust(plan))


def text_with_permission(plan: Plan) -> Plan:
    """The plan of a suite on standard input, with its permission: a folder's trust does not cover a suite that is not
    in a folder, and there is no terminal to ask. Raises `NotTrustedError`."""

    try:
        return replace(plan, permission=check_trust(plan, foreign=True))
    except NotTrustedError as refused:
        raise NotTrustedError(refused.needs, "a suite on standard input has no folder to trust") from None


def ask_permission(invocation: Invocation, check: Callable[[bool], Permission]) -> Permission:
    """What `check(False)` gives, or `check(True)` if the user at the terminal agrees. Raises `NotTrustedError` if a
    folder is not trusted and there is no terminal, or the answer is no.
    """
    try:
        return check(False)
    except NotTrustedError as refused:
        if not trust_answer(invocation, refused):
            raise
        return check(True)


def trust_answer(invocation: Invocation, refused: NotTrustedError) -> bool:
    """Whether the user at the terminal allows it to run; False without a terminal."""
    return can_ask(invocation) and _ask(invocation, refused.needs)


def _ask(invocation: Invocation, needs: Sequence[TrustRequirement]) -> bool:
    """Whether they may run; folders that are trusted from now on are remembered."""

    err = invocation.err
    trust = Trust.load()
    for need in needs:
        err.line(("This needs your trust, from ", "warn"), (str(need.folder), "bold"))
        reason = trust.why_not(need.folder, need.files)
        err.line((f"({one_line(reason)})", "dim"))
        for what in need.what[:_LISTED]:
            err.line("  ", one_line(what, 300))
        if len(need.what) > _LISTED:
            err.line(f"  and {len(need.what) - _LISTED} more")
    many = "these folders" if len(needs) > 1 else "this folder"
    answer = choose(
        invocation,
        f"Allow it once, trust {many} from now on (until a file in it changes), or no?",
        ("once", "trust", "No"),
    )
    if answer == "trust":
        for need in needs:
            trust.trust(need.folder, need.files)
    return answer in ("once", "trust")
