"""`agenteval share`: an execution or a run as one HTML file that reads in any browser, and opens in agenteval again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.prompts import agree_to_overwrite
from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.display import command_line
from agenteval_tui.core.numbers import count, file_size
from agenteval_tui.extensions.share.page import ShareOptions, share, share_name


@click.command("share")
@click.argument("what", metavar="[WHAT]", default="last", shell_complete=shell_completion.executions_and_files)
@click.argument("file", metavar="[FILE.html]", default=None, required=False, type=click.Path(path_type=Path))
@declared(ShareOptions, "max_mb")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, what: str, file: Path | None, force: bool, **options: Any) -> int:
    """Write WHAT to one HTML file: transcripts, criteria with their evidence, where repetitions diverge, and costs.

    WHAT is an execution or a run, by its id or a part of it, or a test by its id (its newest run); `last`, the default,
    is the newest execution. The page loads nothing and sends nothing; secrets are `***`. Anyone with the file can open
    its runs in the app with `agenteval open FILE.html`.
    """
    with invocation.store(to_look=True) as store:
        target = invocation.references(store).either(what)
        file = file or Path(share_name(target))
        force = force or agree_to_overwrite(invocation, file)
        page = share(store, target, ShareOptions(**options))
        write_pieces(file, page.pieces, force=force)
    if page.missing:
        invocation.note(f"not in the file: {page.missing}")
    invocation.out.line(f"{file}: {count(page.runs, 'run')} with transcripts and evidence, {file_size(page.size)}")
    opens = command_line("agenteval", "open", str(file))
    invocation.out.line((f"  open it in any browser, or in the app with {opens}{invocation.db_option}", "dim"))
    return 0
