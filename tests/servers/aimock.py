"""@copilotkit/aimock: somebody else's server that speaks Chat Completions. Fetched once from npm, kept in a cache.

`AIMOCK_DIR` names another folder than ~/.cache/agenteval-tests/aimock (CI may fill it beforehand).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGE = "@copilotkit/aimock@1.43.0"


class NotAvailable(Exception):  # noqa: N818
    """The server can't be had here; the text says why."""


def installed() -> Path:
    """The folder of the installed package. Raises `NotAvailable`."""
    cache = Path.home() / ".cache" / "agenteval-tests"
    folder = Path(os.environ.get("AIMOCK_DIR") or cache / "aimock")
    program = folder / "node_modules" / ".bin" / "llmock"
    if shutil.which("node") is None:
        raise NotAvailable("node is not installed")
    if not program.exists():
        if shutil.which("npm") is None:
            raise NotAvailable("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        except subprocess.TimeoutExpired:
            raise NotAvailable(f"npm did not bring {PACKAGE} within 100 s") from None
        if done.returncode != 0 or not program.exists():
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NotAvailable(f"npm could not install {PACKAGE}: {last}")
    return folder


class Aimock:
    """A running server with fixtures of ours: `url` ends with /v1. Use as a context manager."""

    def __init__(self, fixtures: Sequence[dict[str, Any]], folder: Path, *options: str) -> None:
        self._program = installed() / "node_modules" / ".bin" / "llmock"
        self._file = folder / "fixtures.json"
        self._file.write_text(json.dumps({"fixtures": list(fixtures)}), encoding="utf-8")
        self._log = folder / "aimock.log"
        self._options = options

    def __enter__(self) -> Aimock:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        command = ["node", str(self._program), "-p", str(port), "-h", "127.0.0.1", "-f", str(self._file), "--strict"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, *self._options], stdout=log, stderr=log)
        end = time.monotonic() + 100
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise NotAvailable(f"aimock did not start: {self._log.read_text(errors='replace')[-400:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(250)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _answers(self) -> bool:
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/models", timeout=50):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
