"""Running an agent once, and the servers that tests talk to."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from agenteval_tui.agents.base import AgentEvent, AgentRequest
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message, Transcript

ALLOWED = permission_for((), everything=True)
"""As after --trust."""


@dataclass
class Ran:
    """What one run gave. `stored`: what is kept of it, with the requests to models."""

    events: list[AgentEvent]
    transcript: Transcript
    stored: Transcript


Run = Callable[..., Awaitable[Ran]]


def run_in(folder: Path) -> Run:
    """`await run(config, "text")`: one run in this folder; keyword arguments are those of the request."""

    async def run(
        config: Mapping[str, Any], text: str = "hello", /, *, env: Mapping[str, str] | None = None, **request: Any
    ) -> Ran:
        agent = make_agent("tested", config, base_dir=folder, env=env or {}, permission=ALLOWED)
        asked = AgentRequest(request.pop("messages", (Message("user", text),)), **request)
        recorder, events = Recorder(asked.messages), list[AgentEvent]()
        try:
            async for event in agent.run(asked):
                recorder.apply(event)
                events.append(event)
        finally:
            await agent.close()
        return Ran(events, recorder.transcript(), recorder.stored())

    return run


def skip_without(package: str) -> None:
    """Skip the test if the package is not installed. This process need not import it: some take seconds."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.fixture
def run_agent(tmp_path: Path) -> Run:
    return run_in(tmp_path)
