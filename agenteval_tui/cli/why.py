"""`agenteval why`: why a run, or one criterion of it, did not pass."""

from __future__ import annotations

import click

from agenteval_tui.cli.explained import print_facts
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError


@click.command("why")
@click.argument("reference", metavar="RUN[/CRITERION]")
@click.option("--json", "as_json", is_flag=True, help="Print the criterion results as one JSON list.")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, as_json: bool) -> int:
    """Say why RUN ended as it did. CRITERION is a criterion's number (from 1), name, or the beginning of its name."""
    from agenteval_tui.grading.codec import result_to_json
    from agenteval_tui.grading.explain import explain

    run_ref, _, wanted = reference.partition("/")
    with invocation.store() as store:
        row = store.run(run_ref)
        results = list(store.results(row.id))
        error = store.transcript(row.id).error
    chosen = [_chosen(results, wanted, row.id)] if wanted else results
    if as_json:
        invocation.out.json([result_to_json(result) for result in chosen])
        return 0
    out = invocation.out
    out.line((f"{one_line(row.test_name)}: {row.status}", "bold"), (f"  {row.id}", "dim"))
    if error is not None:
        mend = f" ({error.mend})" if error.mend else ""
        out.line((f"the agent did not finish: {error.kind}: {error.message}{mend}", "broken"))
    print_facts(out, explain(chosen), 0)
    if not chosen and error is None:
        out.line("no criterion was applied to this run")
    return 0


def _chosen(results: list[CriterionResult], wanted: str, run: str) -> CriterionResult:
    if wanted.isdecimal() and 1 <= int(wanted) <= len(results):
        return results[int(wanted) - 1]
    folded = wanted.casefold()
    for one in results:
        if one.criterion.casefold() == folded:
            return one
    close = [one for one in results if one.criterion.casefold().startswith(folded)]
    if len(close) == 1:
        return close[0]
    names = ", ".join(f"{number} {one.criterion}" for number, one in enumerate(results, 1)) or "none"
    raise AgentevalError(f"there is no criterion {wanted!r}", where=f"run {run}", mend=f"its criteria: {names}")
