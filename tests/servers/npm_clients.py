"""HTTP clients for Node by which programs ask models. Fetched once from npm, kept in a cache.

`NODE_CLIENTS_DIR` names another folder than ~/.cache/agenteval-tests/node-clients (CI may fill it beforehand).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = [
    "axios@1.21.1",
    "node-fetch-2@npm:node-fetch@2.7.0",
    "node-fetch-3@npm:node-fetch@3.3.2",
    "got@14.4.7",
    "superagent@10.4.2",
    "openai-4@npm:openai@4.95.0",  # on node-fetch and agentkeepalive
    "undici@6.21.3",
]


class NotAvailable(Exception):  # noqa: N818
    """The clients can't be had here; the text says why."""


def installed() -> Path:
    """The folder of the installed packages. Raises `NotAvailable`."""
    folder = Path(os.environ.get("NODE_CLIENTS_DIR") or Path.home() / ".cache" / "agenteval-tests" / "node-clients")
    if shutil.which("node") is None:
        raise NotAvailable("node is not installed")
    if folder.exists():
        return folder
    if shutil.which("npm") is None:
        raise NotAvailable("npm is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Apart, because another test may fetch them at the same time, and this one may be ended.
    with TemporaryDirectory(dir=folder.parent) as place:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", place, *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        except subprocess.TimeoutExpired:
            raise NotAvailable("npm did not bring the clients within 200 s") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NotAvailable(f"npm could not install the clients: {last}")
        try:
            Path(place).rename(folder)
        except OSError:
            if not folder.exists():
                raise
        else:
            Path(place).mkdir()  # to be removed
    return folder
