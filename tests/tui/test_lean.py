"""The first screen loads no more than it needs: what it shows then is read in a thread."""

from __future__ import annotations

import json
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
}


def test_the_first_screen_imports_nothing_heavy() -> None:
    """Neither the app does, nor the verb that opens it on the samples."""
    code = (
        "import json, sys\n"
        "import agenteval_tui.cli.main, agenteval_tui.cli.commands.demo\n"
        "from agenteval_tui.tui import app\n"
        "app.FACTORIES['suites']()\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert set(json.loads(out.stdout)) & HEAVY == set()
