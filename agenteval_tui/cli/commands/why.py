"""`agenteval why`: why a run, or one criterion of it, did not pass."""

from __future__ import annotations

import click

from agenteval_tui.analysis.repetitions import said_of_divergence
from agenteval_tui.cli.explain_output import print_facts
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import STYLES
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.exporters import explanation
from agenteval_tui.formats.labels import label_line
from agenteval_tui.grading.explain import on_one_line
from agenteval_tui.grading.sentences import of_not_made


@click.command("why")
@click.argument("reference", metavar="[RUN[/CRITERION]]", default="")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the facts, and the criterion results.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, to paste into a bug report.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, as_json: bool, as_markdown: bool) -> int:
    """Say why RUN ended as it did; without RUN the newest run that failed.

    RUN is the id of a run or a part of it, a test's id (its newest run; FILE::ID where several suites have it), or an
    execution or `last`, the newest execution: then its newest failure. CRITERION is a criterion's number (from 1),
    name, or the beginning of its name.
    """

    if as_json and as_markdown:
        raise AgentevalError("--json and --markdown do not go together", mend="give one of them")
    with invocation.store() as store:
        row, wanted = invocation.references(store).address(reference, failure=True)
        transcript, parted = store.transcript(row.id), said_of_divergence(store, row)
        labels = store.labels([row.id])
        found = explanation.explanation_of(
            row, store.results(row.id), transcript.error, wanted, parted, labels, transcript
        )
    out = invocation.out
    if as_json:
        out.json(explanation.as_json(found))
        return 0
    if as_markdown:
        out.line(explanation.as_markdown(found).rstrip("\n"))
        return 0
    missing = f"  {of_not_made(row.checks_not_made)}" if row.checks_not_made else ""
    out.line(
        (f"{one_line(row.test_name)}: {row.status}", STYLES.get(row.status, "bold")),
        (f"  {row.id}", "dim"),
        (missing, "warn"),
    )
    for remark in found.remarks:
        out.line((remark, "warn"))
    if found.agent_error:
        out.line((found.agent_error, "broken"))
    print_facts(out, found.facts, 0, longest=None)
    if not found.criteria and not found.agent_error:
        out.line("no criterion was applied to this run")
    for label in found.labels:
        out.line((one_line(label_line(label)), "dim"))
    if found.divergence:
        out.line(("first divergence: ", "bold"), on_one_line(found.divergence))
    out.line((f"agenteval why {found.address}", "dim"))
    return 0
