"""Which run `agenteval shrink` is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_references import db

__all__ = ["db"]  # a fixture


def test_it_takes_the_newest_failed_run_of_a_test(cli: Any, db: Path) -> None:
    # These runs were made by hand, so there is no suite to continue them with; what counts is which one was taken.
    assert "E2-001" in cli("shrink", "smoke", "--price", "--db", db).err
