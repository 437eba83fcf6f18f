"""The state of the world around a run: its probes are read before each attempt of the agent and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.around.hooks import run_environment
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.transcripts.state import ProbeState, Reading, ReadingProblem, unread

if TYPE_CHECKING:
    from agenteval_tui.agents.http.connection_pool import Connections
    from agenteval_tui.agents.probes.probe import ProbeSurroundings

_REPLAYED = "replay"


class StateProbes:
    """Reads the probes of the runs of one execution, in the execution's process: also where agents run on a cluster.

    A replayed recording brings its own state; a continuation of another run has none, since nothing of what is outside
    of a conversation is put back to where it was.
    """

    def __init__(self, plan: Plan, env: Mapping[str, str]) -> None:
        self._plan = plan
        self._env = env
        self._lease: Lease | None = None
        self._connections: Connections | None = None

    async def before(self, run: RunPlan, request: AgentRequest) -> tuple[ProbeState, ...]:
        """What the probes of a run read before it; () where it has none, or a recording is to bring its own."""
        if not run.state or run.agent.config.get("kind") == _REPLAYED:
            return ()
        if (problem := _unreadable(run, request)) is not None:
            none = unread(problem)
            return tuple([ProbeState(name, none, none) for name in run.state])
        # What stands after the run until it is read: an agent that is stopped leaves it so.
        stopped = unread(ReadingProblem.STOPPED)
        readings = await self._read(run, request.workdir)
        return tuple([ProbeState(name, read, stopped) for name, read in zip(run.state, readings, strict=True)])

    async def after(
        self, run: RunPlan, request: AgentRequest, before: tuple[ProbeState, ...]
    ) -> tuple[ProbeState, ...]:
        """The same with what they read now, whether the agent came to its end or not."""
        if _unreadable(run, request) is not None:
            return before
        readings = await self._read(run, request.workdir)
        return tuple([replace(probe_state, after=read) for probe_state, read in zip(before, readings, strict=True)])

    async def close(self) -> None:
        """Give back processes and connections."""
        if self._connections is not None:
            await self._connections.close()
        if self._lease is not None:
            await self._lease.close()

    async def _read(self, run: RunPlan, workdir: Path | None) -> tuple[Reading, ...]:
        # 80 ms of httpx, which runs without probes do not need.
        from agenteval_tui.agents.probes.probe import Probe, read_all

        try:
            probes = [Probe.of(name, written) for name, written in run.state.items()]
            # Made here, and not in the thread: it belongs to the event loop.
            self._lease = self._lease or Lease()
            around = await asyncio.to_thread(self._around, run, workdir, self._lease)
        except AgentevalError as error:  # such as a .env that can't be read
            failed = unread(ReadingProblem.UNUSABLE, message=error.what)
            return tuple([failed for _ in run.state])
        readings = await read_all(probes, around)
        # A probe sees more than its run's agent: whatever the environment of its programs holds.
        redactor = TranscriptRedactor(secrets_of({"kind": "command", "state": dict(run.state)}, around.env))
        return tuple([redactor.reading(reading) for reading in readings])

    def _around(self, run: RunPlan, workdir: Path | None, lease: Lease) -> ProbeSurroundings:
        # As in `_read`.
        from agenteval_tui.agents.http.connection_pool import Connections
        from agenteval_tui.agents.probes.probe import ProbeSurroundings

        self._connections = self._connections or Connections()
        folder = self._plan.respondents.base_dir(run.suite_key)
        env = environment_for(folder, self._env)
        if any("command" in probe for probe in run.state.values()):
            env = project_environment(folder).variables(env)  # `python` is the project's
            env |= run_environment(folder, workdir, run.variables)
        return ProbeSurroundings(
            folder,
            workdir or folder,
            env,
            run.variables,
            permission=self._plan.permission,
            lease=lease,
            connections=self._connections,
        )


def _unreadable(run: RunPlan, request: AgentRequest) -> ReadingProblem | None:
    """Why what is outside of the run's conversation says nothing of the run; None: it does."""
    if run.continues:
        return ReadingProblem.CONTINUED
    recorded = request.recorded
    return ReadingProblem.TOOLS_RECORDED if recorded is not None and recorded.tools is not None else None
