"""`agenteval lsp`: a language server for editors; and what `agenteval doctor` says about it."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.installed_packages import installed, version_of
from agenteval_tui.formats.documents.listings import DoctorCheck


@click.command("lsp")
@common_options
@pass_invocation
def command(invocation: Invocation) -> int:
    """Serve an editor on standard input and output, with the Language Server Protocol. Needs the extra `lsp`.

    In suites it shows the problems that `agenteval validate` finds while you type; completes and explains keys,
    metrics, tools and their arguments (in config_uxon too); applies fixes; formats configs; and goes to agents and
    files. It runs nothing. `agenteval docs editors` has the settings of VS Code, Neovim, Helix, Zed and Emacs.
    """
    try:
        # Here, to say what is missing where the extra is not installed.
        from agenteval_tui.extensions.lsp.language_server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise AgentevalError(
            "the language server needs the extra `lsp`", fix="pip install 'agenteval-tui[lsp]'"
        ) from missing
    serve(invocation.db)
    return 0


def check() -> DoctorCheck:
    """Whether editors can start the language server."""
    if not installed("pygls"):
        return DoctorCheck("lsp", "ok", "not installed: no language server (pip install 'agenteval-tui[lsp]')")
    return DoctorCheck("lsp", "ok", f"version {version_of('pygls')}: editors can start agenteval lsp")
