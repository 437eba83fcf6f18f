"""`agenteval blame`: the step where a run was lost."""

from __future__ import annotations

import click

from agenteval_tui.cli.continuation_options import MAX_COST, continuation_options
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("blame")
@click.argument("reference", metavar="[RUN]", default="")
@click.option(
    "--samples", type=click.IntRange(2, 200), metavar="N",
    help="Also continue the run from each step, at most N times (8 is a good start).",
)  # fmt: skip
@continuation_options(
    document="the four answers and the evidence", max_cost=f"{MAX_COST}; without --samples: sample, 8 times."
)
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    reference: str,
    samples: int | None,
    max_cost: float | None,
    concurrency: int | None,
    trust: bool,
    price: bool,
    sure: bool,
    as_json: bool,
) -> int:
    """Find the step where RUN went wrong; without RUN, the newest run that failed.

    It answers four questions, in this order: does it reproduce, could it pass, whose fault is it, and which step was
    it? The answers come from the stored runs: no agent is called, and it costs nothing. RUN is as in `agenteval why`,
    but for a test it is the newest run that failed, even if a newer one passed.

    With --samples, the run is continued from some of its steps, to find the step after which it can no longer pass.
    These continuations are stored as forks: they do not count in rates, and nothing is asked twice, not even after
    Ctrl-C.
    """
    # What executes is imported only where it is asked for.
    from agenteval_tui.cli.blame_run import SampleOptions, blame_free, blame_sampled

    if samples is None and max_cost is None and not price:
        return blame_free(invocation, reference, as_json=as_json)
    options = SampleOptions(samples, max_cost, concurrency, trust, price, sure, as_json)
    return blame_sampled(invocation, reference, options)
