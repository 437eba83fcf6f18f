"""`agenteval help`: what `--help` shows, for who types it first."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options
from agenteval_tui.cli.verbs import find_verb, no_such_verb
from agenteval_tui.core.errors import AgentevalError


@click.command("help")
@click.argument("words", nargs=-1, metavar="[VERB [PART]]")
@common_options
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of VERB with its examples, like `agenteval VERB --help`. Without VERB: all verbs.

    Some verbs have subcommands: `agenteval help db prune`. `agenteval docs` has pages about everything else.
    """
    top = context.find_root()
    shown, seen = top, ""
    for word in words:
        inside = shown.command
        if shown is top:
            found = find_verb(word)
            if found is None:
                raise no_such_verb(word)
        else:
            found = inside.get_command(shown, word) if isinstance(inside, click.Group) else None
            if found is None:
                parts = ", ".join(inside.list_commands(shown)) if isinstance(inside, click.Group) else ""
                mend = f"its parts: {parts}" if parts else f"agenteval help {seen}"
                raise AgentevalError(f"{seen} has no part {word!r}", mend=mend)
        seen = f"{seen} {word}".strip()
        shown = click.Context(found, info_name=word, parent=shown)
    context.ensure_object(Invocation).out.line(shown.get_help())
    return 0
