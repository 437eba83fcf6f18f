"""A cluster is no way around trust: see tests/cli/test_keys_stay.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_keys_stay import Listener, environment, listener, port, stored

__all__ = ("environment", "listener", "port", "stored")


def test_a_cluster_is_no_second_way_in(cli: Any, listener: Listener, stored: Path) -> None:
    done = cli("run", stored, "--executor", "dask", "--scheduler", "tcp://127.0.0.1:9")
    assert listener.requests == []
    assert done.code in (2, 3), done.out
    assert "trust" in done.out + done.err
