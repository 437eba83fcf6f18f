"""@modelcontextprotocol's own servers: somebody else's programs that speak MCP. Fetched once from npm, kept in a cache.

`MCP_SERVERS_DIR` names another folder than ~/.cache/agenteval-tests/mcp-servers (CI may fill it beforehand).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = ["@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"]


class NotAvailable(Exception):  # noqa: N818
    """The servers can't be had here; the text says why."""


def server(name: str) -> list[str]:
    """The command that starts `mcp-server-everything` or `mcp-server-filesystem`. Raises `NotAvailable`."""
    cache = Path.home() / ".cache" / "agenteval-tests"
    folder = Path(os.environ.get("MCP_SERVERS_DIR") or cache / "mcp-servers")
    program = folder / "node_modules" / ".bin" / name
    if shutil.which("node") is None:
        raise NotAvailable("node is not installed")
    if not program.exists():
        if shutil.which("npm") is None:
            raise NotAvailable("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        except subprocess.TimeoutExpired:
            raise NotAvailable("npm did not bring the MCP servers within 100 s") from None
        if done.returncode != 0 or not program.exists():
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NotAvailable(f"npm could not install the MCP servers: {last}")
    return ["node", str(program)]
