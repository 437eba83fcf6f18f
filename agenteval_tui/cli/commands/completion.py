"""`agenteval completion`: the script that lets a shell complete what is typed."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core import directories
from agenteval_tui.core.errors import InfrastructureError

SCRIPTS = {"bash": "agenteval.bash", "zsh": "_agenteval", "fish": "agenteval.fish"}
"""The shells, and the names of their scripts in `completions/`."""


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(tuple(SCRIPTS)))
@common_options
@pass_invocation
def command(invocation: Invocation, shell: str) -> int:
    """Print the completion script of SHELL, for `agenteval` and `agenteval-tui`.

    It completes verbs, options and their values, and ids: executions and runs from the history; tests, agents,
    variations and tags from the history and from the suites below the current folder. It also completes `last`.
    """
    path = directories.bundled("completions") / SCRIPTS[shell]
    try:
        script = path.read_text("utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InfrastructureError(
            f"the script can't be read: {reason}", where=str(path), fix="install agenteval again"
        ) from error
    invocation.out.line(script.rstrip("\n"))
    return 0
