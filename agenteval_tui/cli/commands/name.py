"""`agenteval name`: what an execution is called, a note on it, and its metadata."""

from __future__ import annotations

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.formats.documents.listings import listed_execution
from agenteval_tui.history.execution_names import DescribeExecution, meta_of
from agenteval_tui.views.execution import name_text, note_text, title_text
from agenteval_tui.views.model import paragraphs


@click.command("name")
@click.argument("reference", metavar="EXECUTION", shell_complete=shell_completion.references)
@click.argument("name", required=False)
@click.option("--note", metavar="TEXT", help='Keep this note with it, in place of the one it has; "" removes that.')
@click.option(
    "--meta", multiple=True, metavar="KEY=VALUE", help="Set metadata; `KEY=` removes the key. May be repeated."
)
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation, reference: str, name: str | None, note: str | None, meta: tuple[str, ...], as_json: bool
) -> int:
    """Call EXECUTION NAME ("" removes its name), or show what it is called.

    A name can be used wherever an execution's id is accepted, and means the newest execution that has it. `agenteval
    run --name` gives one from the start. Commits are recorded when an execution starts, and can't be changed.
    """
    changes = name is not None or note is not None or bool(meta)
    with invocation.store(to_look=not changes) as store:
        row = invocation.references(store).execution(reference)
        if changes:
            store.write(DescribeExecution(row.id, name, note, meta_of(meta) if meta else None)).result()
            row = store.execution_rows([row.rowid])[0]
    if as_json:
        invocation.out.json(listed_execution(row))
        return 0
    words = [name_text(row), note_text(row)]
    nothing = [] if any(words) else [(("it has no name, note, metadata or commit", "dim"),)]
    invocation.out.view(paragraphs([title_text(row), *words, *nothing]))
    return 0
