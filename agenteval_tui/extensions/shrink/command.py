"""`agenteval shrink`: the smallest input that still fails for the same cause."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.continuation_options import Asking, agree_to_price, continuation_options, permit_oracle
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.extensions.shrink.document import shrunk_document
from agenteval_tui.extensions.shrink.request_program import request_program
from agenteval_tui.extensions.shrink.shrink import Progress, ShrinkOptions, Shrunk
from agenteval_tui.extensions.shrink.stored_run import (
    ShrinkQuestion,
    example,
    price_of,
    question_of,
    save_small_case,
    shrink,
)
from agenteval_tui.extensions.shrink.view import price_text, progress_text, shrunk_view
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.request import request_of


@click.command("shrink")
@click.argument("reference", metavar="RUN", shell_complete=shell_completion.references)
@declared(ShrinkOptions, "at")
@declared(ShrinkOptions, "criterion")
@declared(ShrinkOptions, "rate")
@declared(ShrinkOptions, "keep_calls")
@declared(ShrinkOptions, "keep_tools")
@click.option(
    "--save-test", metavar="ID", help="Afterwards, add the small case to the run's suite, as a test with this id."
)
@click.option(
    "--export",
    type=click.Choice(["python", "curl"]),
    help="Afterwards, print a program that asks the same question without agenteval.",
)
@continuation_options(ShrinkOptions, document="the small case, and how it was found")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **values: Any) -> int:
    """Remove parts of the input of RUN's agent, as long as it still fails for the same cause.

    RUN is the id of a run or a part of it, or a test's id (its newest run that failed). shrink removes messages, calls,
    tools, sentences, JSON values and words. A call and its result are removed together, and a tool that is still called
    stays. At the end, each remaining part has been tried by itself: without it, the failure is gone. Every continuation
    is stored, but does not count in rates, trends, baselines or gates. Stored answers are not asked for again, so the
    same command continues after a crash, Ctrl-C or --max-cost.

    The exit code is 0 if a small case was found (or nothing can be removed), and 1 if the failure did not come back or
    the command was stopped.
    """
    asking, save_test, export = Asking.taken(values), values.pop("save_test"), values.pop("export")
    if export and asking.as_json:
        raise click.UsageError("--export prints a program, and --json a document: give only one")
    options = ShrinkOptions(**values)
    return _find_smallest(invocation, reference, options, asking, save_test=save_test, export=export)


def _find_smallest(
    invocation: Invocation,
    reference: str,
    options: ShrinkOptions,
    asking: Asking,
    *,
    save_test: str | None,
    export: str | None,
) -> int:
    """Shrink a run and print what is left, or the program `export` names ("python", "curl"), and save it as the test
    `save_test`; gives the exit code."""
    with invocation.store() as store:
        row = invocation.references(store).failed_run(reference)
        question = question_of(store, row, options)
        oracle = Oracle(store, row, options, purpose="shrink")
        permit_oracle(invocation, oracle, [example(question)])
        price = price_of(oracle, question, options)
        words, cost = price_text(price), None if price.cost is None else price.cost * price.high
        if asking.price:
            invocation.out.line(words)
            return 0
        if not agree_to_price(invocation, words, cost, asking, options.max_cost, shown=export is None):
            return 0
        shrunk, interrupted = run_to_end(_shrink(invocation, question, oracle, options))
        if asking.as_json:
            spent = oracle.spent if oracle.execution_id else None
            invocation.out.json(
                shrunk_document(question, shrunk, asked=oracle.asked, execution=oracle.execution_id, cost=spent)
            )
        elif export is None:
            invocation.out.view(shrunk_view(shrunk, question.criterion, dimmed=invocation.out.coloured))
        _keep(invocation, question, shrunk, oracle, save_test, export)
        if interrupted:
            return INTERRUPTED
        return 0 if shrunk.ending in ("shrunk", "whole") else 1


async def _shrink(
    invocation: Invocation, question: ShrinkQuestion, oracle: Oracle, options: ShrinkOptions
) -> tuple[Shrunk, bool]:
    def show(progress: Progress) -> None:
        invocation.err.status(progress_text(progress))

    done: list[Shrunk] = []
    errors: list[BaseException] = []
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        try:
            done.append(shrink(question, oracle, options, on_progress=show))
        except BaseException as error:  # raised below
            errors.append(error)
        loop.call_soon_threadsafe(ended.set)

    with handle_interrupt(loop, oracle.stop) as interrupts:
        threading.Thread(target=work, name="shrink", daemon=True).start()
        await ended.wait()
    invocation.err.status("")
    if errors:
        raise errors[0]
    return done[0], interrupts.count > 0


def _keep(
    invocation: Invocation,
    question: ShrinkQuestion,
    shrunk: Shrunk,
    oracle: Oracle,
    save_test: str | None,
    export: str | None,
) -> None:
    if export is not None:
        request = request_of(oracle.source, shrunk.conversation, oracle.permission)
        invocation.out.line(request_program(request, export).removesuffix("\n"))
    if save_test and shrunk.ending in ("shrunk", "stopped"):
        loaded, test_id = save_small_case(question, shrunk, oracle, test_id=save_test)
        invocation.err.line(f"saved as test {test_id} of {loaded.path}")
    elif save_test:
        invocation.note("nothing was saved: there is no smaller case")
