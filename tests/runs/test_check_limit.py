"""How long the check of an agent may take, and what is said about one that never ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import CheckReport
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.child_process import GRACE_S
from agenteval_tui.agents.process.python_start import START_S
from agenteval_tui.runs import agent_factory
from agenteval_tui.runs.agent_factory import IMPORT_S, Configured, check_configured, check_limit


class Silent:
    """An agent whose check never ends."""

    closed = False

    async def check(self, thorough: bool = False) -> CheckReport:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ({"kind": "openai", "model": "x"}, "is the server running?"),
        ({"kind": "http", "url": "http://127.0.0.1:9/"}, "is the server running?"),
        ({"kind": "python", "callable": "a:b"}, "does its code wait for a server, or for input?"),
        ({"kind": "command", "command": ["x"]}, "does the program wait for a server, or for input?"),
    ],
)
async def test_what_is_said_fits_the_kind(
    config: dict[str, Any], fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Silent()
    monkeypatch.setattr(agent_factory, "make_configured", lambda *_: agent)
    monkeypatch.setattr(agent_factory, "check_limit", lambda *_: 0.01)
    report = await check_configured(Configured("a", config, tmp_path / "agents.yaml", 1), permission_for(()))
    assert (report.ok, report.message, report.fix) == (False, "no answer within 0 s", fix)
    assert agent.closed


@pytest.mark.parametrize("thorough", [False, True])
def test_an_import_that_does_not_end_is_said_by_python_itself(thorough: bool) -> None:
    assert IMPORT_S > START_S + GRACE_S
    assert check_limit("python", thorough) == check_limit("openai", thorough) + IMPORT_S
