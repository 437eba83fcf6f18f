"""`agenteval help`: what `--help` shows, for who types it first."""

from __future__ import annotations

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, common_options
from agenteval_tui.cli.verbs import find_verb, no_such_verb, own_verbs
from agenteval_tui.core.errors import AgentevalError


@click.command("help")
@click.argument("words", nargs=-1, metavar="[VERB [PART]]", shell_complete=shell_completion.choice(own_verbs))
@common_options
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of VERB with its examples, like `agenteval VERB --help`. Without VERB: all verbs.

    Some verbs have subcommands: `agenteval help db prune`. `agenteval docs` has pages about everything else.
    """
    top = context.find_root()
    current, path = top, ""
    for word in words:
        inside = current.command
        if current is top:
            command = find_verb(word)
            if command is None:
                raise no_such_verb(word)
        else:
            command = inside.get_command(current, word) if isinstance(inside, click.Group) else None
            if command is None:
                parts = ", ".join(inside.list_commands(current)) if isinstance(inside, click.Group) else ""
                fix = f"its parts: {parts}" if parts else f"agenteval help {path}"
                raise AgentevalError(f"{path} has no part {word!r}", fix=fix)
        path = f"{path} {word}".strip()
        current = click.Context(command, info_name=word, parent=current)
    context.ensure_object(Invocation).out.line(current.get_help())
    return 0
