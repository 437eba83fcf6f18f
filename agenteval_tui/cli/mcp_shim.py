"""What `agenteval record --mcp` does: an MCP server, behind a shim that tells the recording of its program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agenteval_tui.agents.permission import Permission, Use, agent_hash, permission_for
from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.agents.process.launchers import launched
from agenteval_tui.agents.process.orphans import ends_with_us, is_over, marked
from agenteval_tui.agents.recording.mcp_shim import Recorder, Shim
from agenteval_tui.agents.recording.providers import mcp_address
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.slugs import slug


def run_shim(argv: Sequence[str], name: str) -> int:
    """Pass on between the program that started this process and the server; gives the server's exit code."""
    permission = permission_for([Use(Path.cwd(), (), (), agent_hash({"command": list(argv)}, Path.cwd()))])
    recorder = Recorder(mcp_address(os.environ), name or server_name(argv), secrets_of({"kind": "command"}, os.environ))
    shim = Shim(lambda: _start(argv, permission), recorder, sys.stdin.buffer, sys.stdout.buffer, os._exit)

    def end(*_: object) -> None:
        shim.stop()
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, lambda *_: None)  # the server gets it, too
    return shim.run()


def _start(argv: Sequence[str], permission: Permission) -> subprocess.Popen[bytes]:
    permission.require_start(argv)
    program = find_program(argv[0], Path.cwd(), os.environ)
    try:
        env, mark = marked(os.environ)
        server = subprocess.Popen([program, *argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)  # noqa: S603  the user typed it
    except (OSError, ValueError) as error:
        raise AgentevalError(
            f"can't start {argv[0]}: {getattr(error, 'strerror', None) or error}", fix="start it by hand"
        ) from None
    # It is never said to be over: this process ends with it, or before.
    ends_with_us("tree", server.pid)
    is_over("start", mark)
    return server


def server_name(argv: Sequence[str]) -> str:
    """What a server is called, by its command: "server-git" of `uvx mcp-server-git --repository .`."""
    own = launched(argv) or argv[0]
    return slug(Path(own.rpartition("@")[0] or own).stem) or "server"
