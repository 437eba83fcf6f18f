"""A suite from a text, a history, and an agent that does what a test tells it."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, AgentRequest, AgentSetup, CheckReport, Done, TextDelta
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import AGENTS
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Ended, Event
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.model import Limits, Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite, load_text

Script = Callable[[AgentRequest], AsyncIterator[AgentEvent]]

SUITE = """
name: Greetings
agent: bot
agents:
  bot: {kind: scripted}
tests:
  - id: hello
    name: Says hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "hello"}]}'
"""


async def say_hello(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    """The agent of most tests."""
    yield TextDelta("hello")
    yield Done()


@dataclass
class Scripts:
    """What agents of kind `scripted` do, what they were asked, and how many ran at once."""

    script: Script = say_hello
    requests: list[AgentRequest] = field(default_factory=list)
    setups: list[AgentSetup] = field(default_factory=list)
    running: int = 0
    most: int = 0
    closed: int = 0


class ScriptedAgent:
    """An agent as any plug-in would be; `scripts` is set by the fixture."""

    scripts: Scripts

    def __init__(self, setup: AgentSetup) -> None:
        self.scripts.setups.append(setup)

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        self.scripts.requests.append(request)
        self.scripts.running += 1
        self.scripts.most = max(self.scripts.most, self.scripts.running)
        try:
            async for event in self.scripts.script(request):
                yield event
        finally:
            self.scripts.running -= 1

    async def check(self, thorough: bool = False) -> CheckReport:
        return CheckReport(True, "scripted")

    async def close(self) -> None:
        self.scripts.closed += 1


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripts]:
    """The kind `scripted`, registered like any other kind of agent."""
    made = Scripts()
    kind = type("Scripted", (ScriptedAgent,), {"scripts": made})
    monkeypatch.setitem(sys.modules, "scripted_agent", SimpleNamespace(Scripted=kind))
    monkeypatch.setitem(entry_points.own(AGENTS), "scripted", "scripted_agent:Scripted")
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A new history."""
    with Store.open(tmp_path / "history.db") as opened:
        yield opened


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """Load a suite from a text, as if it stood in a file of the temporary folder."""

    def load(text: str = SUITE, name: str = "greetings.suite.yaml") -> LoadedSuite:
        return load_text(textwrap.dedent(text), tmp_path / name)

    return load


@dataclass
class Execution:
    """One execution as a test sees it: the engine, its events, the view made of them, the store."""

    engine: Engine
    store: Store
    events: list[Event]
    view: ExecutionView

    async def run(self) -> Ended:
        """Run it to the end, in bounded time."""
        return await asyncio.wait_for(self.engine.run(), 250)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` holds."""
        async with asyncio.timeout(250):
            while not condition():
                await asyncio.sleep(0.005)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if type(event) is kind]

    def statuses(self) -> dict[str, str]:
        """What the store says of the runs: test#repetition -> status."""
        self.store.flush()
        rows = self.store.runs_of_execution(self.engine.plan.execution_id)
        return {f"{row.test_id}#{row.repetition}": row.status for row in rows}


@pytest.fixture
def execution(suite: Callable[[str], LoadedSuite], store: Store, scripts: Scripts) -> Callable[..., Execution]:
    """Plan the suite and make an engine for it."""

    def make(
        text: str = SUITE,
        *,
        env: Mapping[str, str] | None = None,
        grace_s: float = 5.0,
        limits: Limits | None = None,
        **options: Any,
    ) -> Execution:
        plan: Plan = make_plan([suite(text)], PlanOptions(**options), user_agents={}, store=store)
        plan = plan if limits is None else replace(plan, limits=limits)
        events: list[Event] = []
        view = ExecutionView()

        def emit(event: Event) -> None:
            events.append(event)
            view.apply(event)

        engine = Engine(plan, store, emit, env=env or {}, retry_base_s=0.001, grace_s=grace_s)
        return Execution(engine, store, events, view)

    return make
