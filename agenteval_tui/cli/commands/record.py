"""`agenteval record` and `replay`: a program in any language, recorded by what it asks of model servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agenteval_tui.agents.recording.cassette import PATTERNS
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, common_options, option_group, pass_invocation, typed_options
from agenteval_tui.runs.recording_request import ProxyOptions

_PROGRAM = "-- PROGRAM [ARGUMENT]..."
_OF_SHIM = {"program", "mcp", "server"}


_proxy_options = option_group(
    (
        click.option(
            "--mcp-config",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Also record the MCP servers in this file; PROGRAM's arguments must name it.",
        ),
        click.option("--ignore-system", is_flag=True, help="Ignore the system prompt in this comparison."),
        click.option("--ready", type=int, default=-1, hidden=True),  # of `runs.client.start_verb`
        click.option(
            "--volatile",
            multiple=True,
            type=click.Choice(tuple(PATTERNS)),
            help="Ignore what matches this when comparing with recorded requests; may be repeated.",
        ),
        declared(ProxyOptions, "pace"),
        declared(ProxyOptions, "max_cost"),
        click.option(
            "--upstream",
            multiple=True,
            metavar="NAME=URL",
            help="The server of a provider (openai, anthropic, gemini, azure, groq), instead of the one in the "
            "environment.",
        ),
        declared(ProxyOptions, "port"),
        click.option(
            "--trust",
            is_flag=True,
            help="Give PROGRAM the variables of .env, and let programs and Python functions in the suite's folder "
            "grade the run.",
        ),
        click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON document; the program's output goes to stderr."
        ),
    )
)
"""What both verbs have."""


@click.command("record")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar=_PROGRAM)
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The suite of --test, or the one that --new is added to.",
)
@click.option(
    "--test", metavar="ID", help="Grade the run with the criteria of this test.", shell_complete=shell_completion.tests
)
@click.option("--new", is_flag=True, help="Make a test from it in --suite (default: recorded.suite.yaml).")
@click.option(
    "--cassette", type=click.Path(path_type=Path), metavar="FILE", help="Keep requests and answers in this file."
)
@click.option("--replay", is_flag=True, help="Answer from --cassette only; ask no server.")
@click.option(
    "--live-after-miss",
    is_flag=True,
    help="With --replay: ask servers from the first request that is not in the cassette, and add their answers.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Run it a second time with the recorded answers, to find values that change from run to run.",
)
@click.option(
    "--judge",
    metavar="A",
    help="Use this agent as the judge, instead of those that metrics name.",
    shell_complete=shell_completion.agents,
)
@click.option(
    "--mcp", is_flag=True, help="PROGRAM is an MCP server, which the recorded program starts with this command."
)
@click.option("--server", metavar="NAME", default="", help="With --mcp: the server's name in the recording.")
@_proxy_options
@common_options
@pass_invocation
def command(invocation: Invocation, /, **options: Any) -> int:
    """Run PROGRAM behind a proxy on this machine, and store its model calls as one run in the history.

    The program gets OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and others that point to the proxy,
    which passes everything on to the original servers. The program keeps its keys; none is stored. The transcript is
    made from the requests: system prompts, answers, and tool calls with their results, as the model saw them.

    With --cassette and --replay, the answers come from a file, without a network. The exit code is 3 if a request is
    not in the file or the program failed, and 1 if a criterion failed.

    MCP servers that the program starts are recorded with --mcp-config FILE, or with a command like `agenteval record
    --mcp -- SERVER` in its MCP configuration: their calls and results are in the transcript and in the replay.
    """
    if options["mcp"]:
        return _shim(options)
    # As in `run`: the options are read without what executes.
    from agenteval_tui.cli.record_program import record_program

    return record_program(invocation, options)


def _shim(options: Mapping[str, Any]) -> int:
    """Stand in for an MCP server."""
    for option in typed_options(options.keys() - _OF_SHIM):
        raise click.UsageError(f"--mcp can't be used with {option}")
    # As in `command`; a program waits for it whenever it starts a server.
    from agenteval_tui.cli.mcp_shim import run_shim

    return run_shim(options["program"], options["server"])


@click.command("replay")
@click.argument("run")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar=_PROGRAM)
@click.option(
    "--as-agent",
    is_flag=True,
    help="Start PROGRAM in the folder of the run's agent, with the variables that its suite gives it.",
)
@_proxy_options
@common_options
@pass_invocation
def replay(invocation: Invocation, /, **options: Any) -> int:
    """Run PROGRAM on the recording of RUN, up to the first request that differs; then ask the servers.

    Change the code or the prompt of your agent and see the effect on a run, paying only for what changed. RUN was made
    by `agenteval record`, or by an agent with `capture: model`. The result is a fork: it is graded by the same
    criteria, but does not count in rates, trends or gates. The exit code is that of its outcome.
    """
    # As in `command`.
    from agenteval_tui.cli.record_program import replay_program

    return replay_program(invocation, options)
