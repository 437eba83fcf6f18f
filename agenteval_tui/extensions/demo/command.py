"""`agenteval demo-server`: the bundled agent behind the protocol of OpenAI's Chat Completions, on this machine."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.extensions.demo.server import serve


@click.command("demo-server")
@click.option("--port", type=click.IntRange(0, 65535), default=8137, metavar="N", help="Default 8137; 0: a free one.")
@click.option("--version", "version", type=click.Choice(("v1", "v2")), default="v1", help="The agent's version.")
@common_options
@pass_invocation
def command(invocation: Invocation, port: int, version: str) -> int:
    """Serve `demo-rules` (a rule-based program, not an AI model) as an OpenAI-compatible streaming server.

    It listens on this machine only and accepts any key. Use it to try an agent of kind `openai` without an account.
    Ctrl-C stops it.
    """

    def announce(url: str) -> None:
        out = invocation.out
        out.line(f"demo-rules {version} (rules, not an AI model) is served at {url}")
        out.line((f"an agent for it: {{kind: openai, base_url: {url}, model: demo-rules}}", "dim"))
        out.line(("Ctrl-C stops the server", "dim"))
        out.flush()

    try:
        serve(port, version, announce=announce)
    except KeyboardInterrupt:
        invocation.out.line("ended")
    return 0
