"""`agenteval label`: what a person thinks of a run, or of one criterion of it."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import STYLES
from agenteval_tui.text.display import one_line

_VERDICTS = {"passed": True, "failed": False}
_SAYS = ("passed", "failed", "1", "2", "3", "4", "5")


@click.command("label")
@click.argument("reference", metavar="RUN[/CRITERION]")
@click.argument("says", metavar="passed|failed|1..5", type=click.Choice(_SAYS), nargs=-1, required=True)
@click.option("--comment", "--note", default="", help="Why, in a few words.")
@click.option("--who", default="", help="Who says so; without it AGENTEVAL_WHO, else the account's name.")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, says: tuple[str, ...], comment: str, who: str) -> int:
    """Say that RUN passed or failed, or rate it from 1 (bad) to 5 (good), or both; with /CRITERION (a number from 1, or
    a name) only what that one looks at.

    `passed` is good, `failed` is not; without either, 4 and 5 are good. Criteria that wait for a person get their
    verdict from it; judges and criteria are compared with it by `agenteval judge-report`.
    """
    from agenteval_tui.analysis.labels import give_label
    from agenteval_tui.exchange.explanation import explanation_of
    from agenteval_tui.history.labels import Label
    from agenteval_tui.history.people import person

    verdicts = [_VERDICTS[one] for one in says if one in _VERDICTS]
    ratings = [int(one) for one in says if one not in _VERDICTS]
    if len(verdicts) > 1 or len(ratings) > 1:
        raise click.UsageError("give one verdict (passed or failed), one rating (1 to 5), or one of each")
    run_ref, _, wanted = reference.partition("/")
    with invocation.store() as store:
        row = store.run(run_ref)
        criterion_hash, name = "", "the run"
        if wanted:
            ((_, result),) = explanation_of(row, store.results(row.id), None, wanted).criteria
            criterion_hash, name = result.criterion_hash, result.criterion
        label = Label(
            row.id,
            ratings[0] if ratings else None,
            criterion_hash,
            comment,
            who or person(),
            passed=verdicts[0] if verdicts else None,
        )
        status = give_label(store, label).status
        invocation.out.line(
            f"{one_line(name)}: {label.said}; the run stands as ",
            (status, STYLES.get(status, "dim")),
            (f"  {row.id}", "dim"),
        )
    return 0
