"""`agenteval blame`: the step where a run was lost."""

from __future__ import annotations

import click

from agenteval_tui.analysis.blame.free_answer import blame_of
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.formats.documents.blame import blame_document
from agenteval_tui.views.blame import blame_view


@click.command("blame")
@click.argument("reference", metavar="[RUN]", default="")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the four answers and the evidence.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, as_json: bool) -> int:
    """Say which step RUN was lost at; without RUN the newest run that failed.

    Four questions, in this order: does it reproduce, could it pass, whose fault is it, and which step was it? The
    answers come from the stored runs: nobody is asked, and nothing is paid. RUN is as in `agenteval why`.
    """

    with invocation.store(to_look=True) as store:
        row = invocation.references(store).run(reference, failure=True)
        blame = blame_of(store, row)
        transcript = store.transcript(row.id)
    if as_json:
        invocation.out.json(blame_document(blame))
    else:
        invocation.out.view(blame_view(blame, transcript))
    return 0
