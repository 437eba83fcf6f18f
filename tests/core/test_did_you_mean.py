"""Which name was meant."""

from __future__ import annotations

import pytest

from agenteval_tui.core.did_you_mean import closest, did_you_mean

NAMES = ("status", "started", "tool_calls", "Passed")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("statuss", "status"),
        ("Status", "status"),
        ("tool-calls", "tool_calls"),
        ("passed", "Passed"),
        ("tool", "tool_calls"),
        ("x", None),
        ("something else", None),
        # A name that is there, and is wrong all the same, is not its own correction.
        ("status", None),
    ],
)
def test_the_name_that_was_meant(name: str, meant: str | None) -> None:
    assert closest(name, NAMES) == meant


def test_its_sentence() -> None:
    assert did_you_mean("statuss", NAMES, quotes="'") == "did you mean 'status'?"
    assert did_you_mean("x", NAMES, "name one of them") == "name one of them"
