"""`agenteval mcp`: an MCP server for coding agents."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.fork.options import ContinuationOptions


@click.command("mcp")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--allow-edit", is_flag=True, help="Let it save criteria's configs in suite files.")
@click.option(
    "--allow-run", is_flag=True, help="Let it run suites; what needs trust runs only in repositories you trusted."
)
@declared(ContinuationOptions, "max_cost", help="The cost limit of each execution it starts.")
@common_options
@pass_invocation
def command(invocation: Invocation, folder: Path, allow_edit: bool, allow_run: bool, max_cost: float | None) -> int:
    """Serve the history and the suites in FOLDER (default: the current folder) to a coding agent, on standard input and
    output. Needs the extra `mcp`.

    Its tools list failures by cause, explain why a run failed, show transcripts, try an edit of a criterion on every
    stored run, grade and validate. Without --allow-edit and --allow-run it only reads.
    """
    if max_cost is not None and not allow_run:
        raise AgentevalError("--max-cost limits what --allow-run runs", fix="give --allow-run too")
    try:
        # Here, to say what is missing where the extra is not installed.
        from agenteval_tui.extensions.mcp.server import Allowed, make_server
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "mcp":
            raise
        raise AgentevalError(
            "a server for coding agents needs the extra `mcp`", fix="pip install 'agenteval-tui[mcp]'"
        ) from missing
    server = make_server(
        folder, invocation.db.absolute() if invocation.db else None, Allowed(allow_edit, allow_run, max_cost)
    )
    os.chdir(folder)  # whose project's runs are meant
    server.run("stdio")
    return 0
