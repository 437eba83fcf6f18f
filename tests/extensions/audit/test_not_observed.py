"""What nobody could see is an error in the audit, and never a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_not_observed import suite

__all__ = ["suite"]  # a fixture


def test_a_criterion_that_was_never_checked_is_always_an_error(cli: Any, suite: Path) -> None:
    cli("run", suite, "--trust")
    audited = cli("audit", suite).out
    assert audited.count("always an error") == 3
    assert "always passes" not in audited
