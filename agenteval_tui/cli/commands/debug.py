"""`agenteval debug`: one run in the foreground, with the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli import completed_values
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation


@click.command("debug")
@click.argument("what", metavar="TEST[#N]|RUN", shell_complete=completed_values.executions_and_files)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--listen",
    type=click.IntRange(0, 65_535),
    is_flag=False,
    flag_value=5678,
    metavar="[PORT]",
    help="Wait until an editor attaches with debugpy (default: port 5678), instead of pdb in this terminal.",
)
@click.option(
    "--agent", metavar="NAME", help="Use this agent instead of the test's.", shell_complete=completed_values.agents
)
@click.option("--live", is_flag=True, help="Of a recorded run: ask the model servers, not its recording.")
@click.option("--trust", is_flag=True, help="Allow the programs and Python functions of the suite's folder.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    what: str,
    paths: tuple[Path, ...],
    listen: int | None,
    agent: str | None,
    live: bool,
    trust: bool,
) -> int:
    """Run a test once in this terminal, in the project's environment, to debug the agent's own code.

    `breakpoint()` stops there, and an exception opens pdb where it was raised, or the debugger that PYTHONBREAKPOINT
    names. TEST#N is the N-th repetition (its seed). With the id of a run that was recorded, the recorded answers of its
    models are served, so a session costs nothing and repeats exactly; from the first request that differs, the servers
    are asked. The run isn't graded or stored: what a debugger changes says nothing about the agent.

    An agent of the kind `command` gets its task on standard input, and keeps the terminal for its output. Hooks and
    services of the suite are not started. The exit code is 0 if the agent ended, 1 if it raised.
    """
    # It reads suites, plans and agents: not for whoever asks for help.
    from agenteval_tui.cli.debug_run import debug_run

    return debug_run(invocation, what, paths, listen=listen, agent=agent, live=live, trust=trust)
