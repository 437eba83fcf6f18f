"""What extensions tell the doctor of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import DOCTOR_CHECKS


@pytest.mark.parametrize("turn", [1, -1])
def test_they_stand_in_the_order_of_the_help(cli: Any, monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    """An installed package has its entry points sorted, a checkout as they are written."""
    targets = [*entry_points.own(DOCTOR_CHECKS).items()]
    monkeypatch.setitem(entry_points._own(), DOCTOR_CHECKS, dict(targets[::turn]))
    checks = [check["name"] for check in cli("doctor", "--json").json("doctor")["checks"]]
    assert [name for name in checks if name in dict(targets)] == ["lsp", "serve", "samples"]


def test_one_that_can_not_be_loaded_is_an_error_beside_the_others(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(entry_points.own(DOCTOR_CHECKS), "gone", "agenteval_tui.extensions.gone.doctor:check")
    ran = cli("doctor", "--json")
    states = {check["name"]: check["state"] for check in ran.json("doctor")["checks"]}
    assert (ran.code, states["gone"], states["serve"], states["lsp"]) == (3, "error", "ok", "ok")
