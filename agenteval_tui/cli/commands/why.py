"""`agenteval why`: why a run, or one criterion of it, did not pass."""

from __future__ import annotations

import click

from agenteval_tui.analysis.explanation import stored_explanation
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, allow_one_of, common_options, pass_invocation
from agenteval_tui.formats.documents.why import explanation_document
from agenteval_tui.views.evidence import explanation_page, explanation_view
from agenteval_tui.views.markdown import markdown


@click.command("why")
@click.argument("reference", metavar="[RUN[/CRITERION]]", default="", shell_complete=shell_completion.runs)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the facts, and the criterion results.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, to paste into a bug report.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, as_json: bool, as_markdown: bool) -> int:
    """Explain why RUN passed or failed; without RUN, the newest run that failed.

    RUN is the id of a run or a part of it, or a test's id (its newest run; FILE::ID if several suites have it). It can
    also be an execution or `last`, the newest execution: then its newest failure is explained. CRITERION is a
    criterion's number (from 1), its name, or the start of its name.
    """
    allow_one_of("as_json", "as_markdown")
    with invocation.store(to_look=True) as store:
        row, criterion = invocation.references(store).address(reference, failure=True)
        explanation = stored_explanation(store, row, criterion)
    out = invocation.out
    if as_json:
        out.json(explanation_document(explanation))
    elif as_markdown:
        out.line(markdown(explanation_page(explanation, options=invocation.db_option)).rstrip("\n"))
    else:
        out.view(explanation_view(explanation, invocation.db_option))
    return 0
