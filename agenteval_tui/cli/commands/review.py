"""`agenteval review`: what waits for a person."""

from __future__ import annotations

import click

from agenteval_tui.analysis.review_queue import ReviewFilter, queue
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.core.document import extended
from agenteval_tui.formats.documents.listings import Review, WaitingReview
from agenteval_tui.views.review import waiting_view


@click.command("review")
@click.option(
    "--execution",
    metavar="REF",
    help="Only this execution (an id, or `last`).",
    shell_complete=shell_completion.executions,
)
@click.option("--failures", is_flag=True, help="Include failures without a label.")
@click.option("--disagreements", is_flag=True, help="Include results that differ from their label.")
@click.option("--sample", type=click.IntRange(1, 10_000), metavar="N", help="Include N random runs without a label.")
@click.option("--seed", type=int, metavar="N", default=0, help="The seed of the sample.")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    execution: str | None,
    failures: bool,
    disagreements: bool,
    sample: int | None,
    seed: int,
    as_json: bool,
) -> int:
    """List the runs that wait for a person: criteria that ask one, and what you include with options.

    `agenteval label` answers one; the app's Review screen takes you through all.
    """
    with invocation.store(to_look=True) as store:
        only = invocation.references(store).execution(execution).id if execution else ""
        items = queue(
            store,
            ReviewFilter(
                failures,
                disagreements,
                sample or 0,
                seed,
                execution_id=only,
                projects=() if only else invocation.projects,
            ),
        )
        nothing = "" if items else invocation.why_nothing(store)
    out = invocation.out
    if as_json:
        waiting = tuple(
            extended(WaitingReview, item, run=item.run_id, test=item.test_id, outcome=item.status) for item in items
        )
        out.json(Review(waiting=waiting))
        return 0
    out.view(waiting_view(items))
    if nothing:
        out.line((nothing, "dim"))
    return 0
