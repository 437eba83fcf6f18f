"""An agent of kind `litellm` whose process is killed: see tests/runs/test_kill_continuations.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.test_kill_continuations import (
    REQUESTS,
    Model,
    agenteval,
    counted,
    killed_at,
    model,
    python_of_litellm,
)

__all__ = ("model",)
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("kill")]
AGENT = '  litellm: {kind: litellm, model: openai/m, base_url: "%s", stream: false, tools: "builtin:demo-shop"}\n'


def test_the_kind_litellm_asks_a_continuation_anew_after_a_kill(model: Model, tmp_path: Path) -> None:
    """The package asks, and not our client: what it was answered before is not seen."""
    python = python_of_litellm()
    suite = tmp_path / "asks.suite.yaml"
    suite.write_text(suite.read_text("utf-8").replace("agents:\n", "agents:\n" + AGENT % model.url), "utf-8")
    run = agenteval("run", "asks.suite.yaml", "--agent", "litellm", "--trust", "--db", "h.db", python=python)
    assert counted(model, run) == REQUESTS
    command = agenteval("fork", "kettle", "--at", 1, "-n", 1, "--yes", "--trust", "--db", "h.db", python=python)
    killed_at(model, REQUESTS, command)
    assert counted(model, command) == REQUESTS
    assert counted(model, command) == 0, "it is stored"
