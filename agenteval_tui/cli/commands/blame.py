"""`agenteval blame`: the step where a run was lost."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("blame")
@click.argument("reference", metavar="[RUN]", default="")
@click.option(
    "--samples", type=click.IntRange(2, 200), metavar="N",
    help="Also continue the run from its steps, at most N times from each (8 is a good start).",
)  # fmt: skip
@click.option(
    "--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD",
    help="Stop when agents and judges have cost this much; without --samples: sample, 8 times.",
)  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="How many at the same time.")
@click.option("--trust", is_flag=True, help="Let programs and Python functions of the suite's folder run.")
@click.option("--price", is_flag=True, help="Print what sampling would take, and ask nobody.")
@click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask whether it may cost that.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the four answers and the evidence.")
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
    """Say which step RUN was lost at; without RUN the newest run that failed.

    Four questions, in this order: does it reproduce, could it pass, whose fault is it, and which step was it? The
    answers come from the stored runs: nobody is asked, and nothing is paid. RUN is as in `agenteval why`.

    With --samples the run is continued from some of its steps, and the step is found from where on it can't pass any
    more. What is asked is stored as forks: they count in no rate, and nothing is asked twice, also not after Ctrl-C.
    """
    # What executes is imported only where it is asked for.
    from agenteval_tui.cli.blame_run import SampleOptions, blame_free, blame_sampled

    if samples is None and max_cost is None and not price:
        return blame_free(invocation, reference, as_json=as_json)
    options = SampleOptions(samples, max_cost, concurrency, trust, price, sure, as_json)
    return blame_sampled(invocation, reference, options)
