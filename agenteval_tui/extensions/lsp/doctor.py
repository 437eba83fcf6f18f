"""What `agenteval doctor` says about the language server."""

from __future__ import annotations

from agenteval_tui.core.installed_packages import installed, version_of
from agenteval_tui.formats.documents.listings import DoctorCheck


def check() -> DoctorCheck:
    """Whether editors can start the language server."""
    if not installed("pygls"):
        return DoctorCheck("lsp", "ok", "not installed: no language server (pip install 'agenteval-tui[lsp]')")
    return DoctorCheck("lsp", "ok", f"version {version_of('pygls')}: editors can start agenteval lsp")
