"""The first screen loads no more than it needs: what it shows then is read in a thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = {
    "agenteval_tui.suites.load",
    "agenteval_tui.history.store",
    "pydantic.main",
    "sqlite3",
    "yaml",
    "jinja2",
    "httpx",
    "jsonschema",
    "watchfiles",
    "agenteval_tui.tui.jump_mode",
    "agenteval_tui.tui.screens.help",
    "agenteval_tui.tui.screens.notification_log",
    "agenteval_tui.tui.screens.select_dialog",
    "agenteval_tui.tui.widgets.blocks_view",
}


def test_the_first_screen_imports_nothing_heavy(tmp_path: Path) -> None:
    """Neither the app does, nor the verb that opens it on the samples; and no colours are derived for a theme."""
    code = (
        "import json, sys\n"
        "import agenteval_tui.cli.main, agenteval_tui.cli.commands.demo\n"
        "from agenteval_tui.tui import app, screen_registry, themes\n"
        "themes.complete = None\n"
        "app.AgentevalApp(app.AppStart())\n"
        "screen_registry.FACTORIES['suites']()\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    own = {f"AGENTEVAL_{one}_DIR": str(tmp_path) for one in ("DATA", "CONFIG", "RUNTIME")}
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | own | {"TERM": "xterm-256color"}
    out = subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True)
    assert set(json.loads(out.stdout)) & HEAVY == set()
