"""The app in a browser ends when its server was killed: nobody can see it any more."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminal import ROOT

# The app, which looks more often than it does for people.
APP = """
import sys
from agenteval_tui.__main__ import main
from agenteval_tui.tui import app
app.SERVER_SECONDS = 0.1
sys.exit(main())
"""
# As textual-serve starts it. What it reads and writes stays open, as it does where another process holds it.
SERVER = f"""
import os, subprocess, sys
app = subprocess.Popen([sys.executable, "-c", {APP!r}, sys.argv[1]], stdin=0, stdout=1, stderr=2)
os.write(int(sys.argv[2]), str(app.pid).encode())
app.wait()
"""


@pytest.mark.e2e
def test_the_app_ends_when_its_server_was_killed(tmp_path: Path) -> None:
    told, tell = os.pipe()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(ROOT / "sample_suites" / "recorded"), str(tell)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=(tell,), cwd=ROOT,
        env={
            **os.environ, **{f"AGENTEVAL_{name}_DIR": str(tmp_path) for name in ("DATA", "CONFIG", "RUNTIME")},
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TERM_PROGRAM": "textual",
            "COLUMNS": "80", "ROWS": "24",
        },
    )  # fmt: skip
    os.close(tell)
    app = int(os.read(told, 20))
    os.close(told)
    assert server.stdout is not None
    try:
        shown, end = b"", time.monotonic() + 250
        while b"customers" not in shown:
            assert time.monotonic() < end, shown[-500:]
            if select.select([server.stdout], [], [], 0.1)[0]:
                shown += os.read(server.stdout.fileno(), 1 << 16)
        os.kill(app, 0)  # it is there
        server.kill()
        server.wait()
        while _runs(app):
            assert time.monotonic() < end, "it goes on for nobody"
            if select.select([server.stdout], [], [], 0.1)[0]:
                os.read(server.stdout.fileno(), 1 << 16)
    finally:
        server.kill()
        if _runs(app):
            os.kill(app, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Is it there, and not only as something whose end nobody asked about?"""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
