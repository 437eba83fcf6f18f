"""`agenteval serve`: the app in a browser; and what `agenteval doctor` says about it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.directories import own_command, own_environment
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.installed_packages import installed, version_of
from agenteval_tui.formats.documents.listings import DoctorCheck

PORT = 8777
_NO_EXTRA = "pip install 'agenteval-tui[serve]'"


@click.command("serve")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; with any other address, others can connect.",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port; 0 for any free one.",
)
@common_options
@pass_invocation
def command(invocation: Invocation, paths: tuple[Path, ...], host: str, port: int) -> int:
    """Serve the app (on the suites at PATHS) to a browser, until Ctrl-C. Needs the extra `serve`.

    Each page that you open is a separate app. The printed address holds a secret, which is new at each start:
    anyone who has it controls the app with your rights, which means your files, agents and programs. Pages of other
    sites can't use it, and the page loads nothing from other servers.
    """
    for path in paths:
        if not path.exists():
            raise AgentevalError("no such file or folder", where=str(path))
    try:
        # Here, to say what is missing where the extra is not installed.
        from agenteval_tui.extensions.serve.web_server import ServerOptions, serve
    except ModuleNotFoundError as missing:
        raise AgentevalError("the app in a browser needs the extra `serve`", fix=_NO_EXTRA) from missing

    def ready(address: str) -> None:
        out = invocation.out
        out.line("agenteval in a browser: ", (address, "bold"))
        out.line("Anyone who opens this address controls the app with your rights: files, agents, programs.")
        if is_local(host):
            out.line(("Only this machine can reach it. From another machine: ssh -L PORT:127.0.0.1:PORT.", "dim"))
        else:
            out.line(("note: ", "warn"), f"Every machine that can reach {host} can open it, and nothing is encrypted.")
        out.line(("Ctrl-C stops it; running executions continue.", "dim"))
        out.flush()

    serve(ServerOptions(app_command(paths, invocation.db), host, port), ready)
    return 0


def app_command(paths: tuple[Path, ...], db: Path | None) -> str:
    """The command of an app, for a shell: the paths that were given, and nothing that a shell would act on."""
    words = own_command("agenteval_tui", *(["--db", str(db.absolute())] if db else []))
    path = own_environment().get("PYTHONPATH", "")
    if path != os.environ.get("PYTHONPATH", ""):
        words = ["env", f"PYTHONPATH={path}", *words] if path else ["env", "-u", "PYTHONPATH", *words]
    # The shell goes away: the app ends with the server.
    return "exec " + shlex.join([*words, *(str(path.absolute()) for path in paths)])


def check() -> DoctorCheck:
    """Whether the app can be opened in a browser."""
    if not installed("textual_serve"):
        return DoctorCheck("serve", "ok", "not installed: no app in a browser (pip install 'agenteval-tui[serve]')")
    version = version_of("textual-serve")
    return DoctorCheck("serve", "ok", f"version {version}: agenteval serve shows the app in a browser")
