"""Which run `agenteval blame` is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agenteval_tui as agenteval
from tests.cli.test_references import db

__all__ = ["db"]  # a fixture


def test_it_takes_the_newest_failed_run_of_a_test(cli: Any, db: Path) -> None:
    blamed = cli("blame", "smoke", "--json", "--db", db)
    assert blamed.json("blame")["run"] == "E2-001"
    assert "the newest run of smoke passed: this is run E2-001" in blamed.err
    assert agenteval.blame("smoke", db=db).answers.run == "E2-001"
    never = cli("blame", "mood", "--db", db)
    assert (never.code, "there is nothing to blame: it passed" in never.err) == (2, True)
