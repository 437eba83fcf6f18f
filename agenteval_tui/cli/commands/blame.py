"""`agenteval blame`: the step where a run was lost."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.analysis.blame.options import BlameOptions
from agenteval_tui.cli import completed_values
from agenteval_tui.cli.continuation_options import Asking, continuation_options
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("blame")
@click.argument("reference", metavar="[RUN]", default="", shell_complete=completed_values.runs)
@declared(BlameOptions, "samples")
@continuation_options(BlameOptions, document="the four answers and the evidence")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **given: Any) -> int:
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
    asking = Asking.taken(given)
    options = BlameOptions(**given)

    # What executes is imported only where it is asked for.
    from agenteval_tui.cli.blame_run import blame_free, blame_sampled

    if options.samples is None and options.max_cost is None and not asking.price:
        return blame_free(invocation, reference, as_json=asking.as_json)
    return blame_sampled(invocation, reference, options, asking)
