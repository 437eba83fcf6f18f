"""What `agenteval doctor` says about the app in a browser."""

from __future__ import annotations

from agenteval_tui.core.installed_packages import installed, version_of
from agenteval_tui.formats.documents.listings import DoctorCheck


def check() -> DoctorCheck:
    """Whether the app can be opened in a browser."""
    if not installed("textual_serve"):
        return DoctorCheck("serve", "ok", "not installed: no app in a browser (pip install 'agenteval-tui[serve]')")
    version = version_of("textual-serve")
    return DoctorCheck("serve", "ok", f"version {version}: agenteval serve shows the app in a browser")
