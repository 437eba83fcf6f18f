"""What `fork`, `blame` and `shrink` share: the options of what continuing a stored run may cost, and what is asked
at the terminal before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct

from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, allow_one_of, option_group
from agenteval_tui.cli.prompts import can_ask, confirm
from agenteval_tui.cli.trust_prompt import ask_permission
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import Question, execution_plan
from agenteval_tui.views.fork import gone_tools_text

F = TypeVar("F", bound=Callable[..., Any])


class Asking(Struct, frozen=True):
    """How the command asks: `price` prints the price only, `sure` asks no question before it spends that, `as_json`
    prints one document."""

    price: bool
    sure: bool
    as_json: bool

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Asking:
        """Takes these options out of a command's options. Raises `AgentevalError` if they contradict each other."""
        allow_one_of("price", "as_json")  # the document has no price
        return cls(*(options.pop(name) for name in cls.__struct_fields__))


def continuation_options(kind: type[ContinuationOptions], *, document: str) -> Callable[[F], F]:
    """`--max-cost --concurrency --trust`, as `kind` declares them, and those of `Asking`. `document`: what the JSON
    document holds."""
    return option_group(
        (
            *(declared(kind, name) for name in ("max_cost", "concurrency", "trust")),
            click.option("--price", is_flag=True, help="Print what it would cost, without asking the agent."),
            click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask before it spends that."),
            click.option("--json", "as_json", is_flag=True, help=f"Print one JSON document: {document}."),
        )
    )


def permit_oracle(invocation: Invocation, oracle: Oracle, questions: Sequence[Question]) -> None:
    """Ask where the agent of these questions needs the user's trust; the oracle has it then. Says which tools of the
    run are gone. Raises `NotTrustedError` if there is no terminal, or the answer is no."""
    planned = oracle.plan(questions, 1).runs

    def check(allowed: bool) -> None:
        oracle.trust = oracle.trust or allowed
        execution_plan(oracle.source, planned, trust=oracle.trust)

    ask_permission(invocation, check)
    if planned and (sentence := gone_tools_text(*oracle.gone_tools(questions[0].conversation))):
        invocation.note(sentence)


def agree_to_price(
    invocation: Invocation,
    words: str,
    cost: float | None,
    asking: Asking,
    max_cost: float | None,
    *,
    shown: bool = True,
) -> bool:
    """Show the price (`words`), and give whether it may be paid; False: the user said no.

    `cost`: US dollars (None: not known). What is free needs no answer, and neither does what --yes or a limit
    (`max_cost`) allows. Raises `AgentevalError` where there is no terminal to ask in. The price is not printed beside a
    JSON document, and not where `shown` is false.
    """
    if shown and not asking.as_json and not invocation.quiet:
        invocation.out.line((words, "dim"))
    if asking.sure or cost == 0 or max_cost is not None:
        return True
    if not can_ask(invocation):
        raise AgentevalError(
            f"this costs money, and there is no terminal to ask in: {words}",
            fix="give --yes, or a limit: --max-cost USD",
        )
    return confirm(invocation, "Continue?")
