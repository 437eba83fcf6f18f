"""`agenteval label`: what a person thinks of a run, or of one criterion of it."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import STYLES
from agenteval_tui.text.display import one_line


@click.command("label")
@click.argument("reference", metavar="RUN[/CRITERION]")
@click.argument("rating", type=click.IntRange(1, 5))
@click.option("--comment", default="", help="Why, in a few words.")
@click.option("--who", default="", help="Who says so.")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, rating: int, comment: str, who: str) -> int:
    """Rate RUN from 1 (bad) to 5 (good); with /CRITERION (a number from 1, or a name) only what that one looks at.

    4 and 5 say that it is good. Criteria that wait for a person get their verdict from it; for judges it is what they
    are compared with by `agenteval judge-report`.
    """
    from agenteval_tui.analysis.regrade import with_labels
    from agenteval_tui.exchange.explanation import explanation_of

    run_ref, _, wanted = reference.partition("/")
    with invocation.store() as store:
        row = store.run(run_ref)
        criterion_hash, name = "", "the run"
        if wanted:
            ((_, result),) = explanation_of(row, store.results(row.id), None, wanted).criteria
            criterion_hash, name = result.criterion_hash, result.criterion
        store.label(row.id, rating, criterion_hash=criterion_hash, comment=comment, who=who).result()
        now = with_labels(store, row)
        status = now or row.status
        invocation.out.line(
            f"{one_line(name)}: {rating} of 5; the run: ", (status, STYLES.get(status, "dim")), (f"  {row.id}", "dim")
        )
    return 0
