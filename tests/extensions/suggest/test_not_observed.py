"""What nobody could see is in no suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_not_observed import suite

__all__ = ["suite"]  # a fixture


def test_no_edit_is_suggested_for_what_was_not_checked(cli: Any, suite: Path) -> None:
    cli("run", suite, "--trust", "--repeat", "3")
    runs = [one["run"] for one in cli("history", "--runs", "--json").json("history-runs") if one["test"] == "a"]
    for run, label in zip(runs, ("passed", "passed", "failed"), strict=True):
        cli("label", run, label)
    suggested = cli("suggest", runs[0])
    assert "tool_call_forbidden" not in suggested.out
    assert "max_calls" not in suggested.out
    assert "ToolResponse" not in suggested.out
