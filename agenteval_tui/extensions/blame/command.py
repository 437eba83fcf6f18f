"""`agenteval blame`: the step where a run was lost."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from agenteval_tui.analysis.blame.free_answer import ReadParts, blame_of
from agenteval_tui.analysis.blame.model import SampledAnswer
from agenteval_tui.analysis.blame.recorded_facts import known_blame, with_sampling
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.continuation_options import Asking, agree_to_price, continuation_options, permit_oracle
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.extensions.blame.document import blame_document
from agenteval_tui.extensions.blame.sampled_answer import SAMPLES, BlameOptions, Sampling, with_price
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.views.blame import blame_view, rate_text
from agenteval_tui.views.fork import price_text


@click.command("blame")
@click.argument("reference", metavar="[RUN]", default="", shell_complete=shell_completion.runs)
@declared(BlameOptions, "samples")
@continuation_options(BlameOptions, document="the four answers and the evidence")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **values: Any) -> int:
    """Find the step where RUN went wrong; without RUN, the newest run that failed.

    It answers four questions, in this order: does it reproduce, could it pass, whose fault is it, and which step was
    it? The answers come from the stored runs: no agent is called, and it costs nothing. RUN is as in `agenteval why`,
    but for a test it is the newest run that failed, even if a newer one passed.

    A step is named only if evidence of its kind was right in at least four of five measured failures. Otherwise blame
    shows what stands out in the run, and what it would cost to find the step by sampling.

    With --samples, the run is continued from some of its steps, to find the step after which it can no longer pass.
    These continuations are stored as forks: they do not count in rates, and nothing is asked twice, not even after
    Ctrl-C.
    """
    asking = Asking.taken(values)
    options = BlameOptions(**values)

    if options.samples is None and options.max_cost is None and not asking.price:
        return _free(invocation, reference, as_json=asking.as_json)
    return _sampled(invocation, reference, options, asking)


def _free(invocation: Invocation, reference: str, *, as_json: bool) -> int:
    """Print the free answer; gives the exit code."""
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).failed_run(reference)
        transcript = store.transcript(row.id)
        blame = with_price(store, row, known_blame(store, row, ReadParts(transcript)), transcript)
    if as_json:
        invocation.out.json(blame_document(blame))
    else:
        invocation.out.view(blame_view(blame, transcript, invocation.db_option))
    return 0


def _sampled(invocation: Invocation, reference: str, options: BlameOptions, asking: Asking) -> int:
    """Sample, and print the answer; gives the exit code."""
    with invocation.store() as store:
        row = invocation.references(store).failed_run(reference)
        transcript = store.transcript(row.id)
        blame = blame_of(store, row, ReadParts(transcript))
        oracle = Oracle(store, row, options, purpose="blame")
        sampling = Sampling(oracle, transcript, options.samples or SAMPLES)
        permit_oracle(invocation, oracle, sampling.questions[:1])
        takes, requests = sampling.price()
        if takes.runs:
            words = f"at most {price_text(takes, requests)}"
            if asking.price:
                invocation.out.line(words)
                return 0
            if not agree_to_price(invocation, words, takes.whole_cost, asking, options.max_cost):
                return 0
        elif asking.price:
            invocation.out.line("nothing to ask: these continuations are already stored")
            return 0
        sampled, interrupted = run_to_end(_ask(invocation, sampling, silent=asking.as_json))
        blame = with_sampling(blame, sampled)
        if asking.as_json:
            invocation.out.json(blame_document(blame))
        else:
            invocation.out.view(blame_view(blame, transcript, invocation.db_option))
        return INTERRUPTED if interrupted else 0


async def _ask(invocation: Invocation, sampling: Sampling, *, silent: bool) -> tuple[SampledAnswer, bool]:
    def tell(sampled: SampledAnswer) -> None:
        if not (silent or invocation.quiet) and sampled.rates:
            newest = sampling.newest
            rate = next(
                (sampled_rate for sampled_rate in sampled.rates if sampled_rate.step == newest), sampled.rates[0]
            )
            invocation.out.line((f"  {rate_text(rate)}", "dim"))

    with handle_interrupt(asyncio.get_running_loop(), sampling.oracle.stop) as interrupts:
        return await sampling.asking(tell), interrupts.count > 0
