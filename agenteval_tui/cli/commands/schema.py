"""`agenteval schema`: the JSON Schema of what is read and printed."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import json_text
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.registry import SCHEMAS, schema


@click.command("schema")
@click.argument("name", default="suite", shell_complete=shell_completion.choice(lambda: SCHEMAS))
@click.option("--list", "listed", is_flag=True, help="List the schemas.")
@click.option(
    "--all", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Write all schemas as files into FOLDER."
)
@common_options
@pass_invocation
def command(invocation: Invocation, name: str, listed: bool, folder: Path | None) -> int:
    """Print the JSON Schema NAME: suite (the default), criteria, transcript, or that of an output.

    For an editor, write it to a file and name that file at the top of a suite: # yaml-language-server: $schema=FILE
    """
    if listed:
        for document, (about, _) in SCHEMAS.items():
            invocation.out.line(f"{document:<16} ", (about, "dim"))
        return 0
    if folder is not None:
        if not folder.is_dir():
            raise AgentevalError("there is no such folder", where=str(folder), fix="make it first")
        for document in SCHEMAS:
            (folder / f"{document}.json").write_text(json_text(schema(document)) + "\n", "utf-8")
        invocation.out.line(f"{len(SCHEMAS)} schemas written to {folder}")
        return 0
    invocation.out.json(schema(name))
    return 0
