"""The proxy of `capture: auto`: what each run asked of models, and the events that tell of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, Captured
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recording.capture import captured_of, known_prices, not_recorded, over_limit, usage_of
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.keys import keys_of
from agenteval_tui.agents.recording.mcp_requests import is_mcp
from agenteval_tui.agents.recording.proxied_run import OpenRun
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.transcripts.model import RunError


class RunProxy:
    """A proxy for the runs in `open_runs`, by the secrets in their addresses."""

    def __init__(self, upstreams: Mapping[str, str], open_runs: Mapping[str, OpenRun]) -> None:
        self._open = open_runs
        self._sessions: dict[str, Session] = {}
        self._cost: Cost | None = None
        self._proxy = Proxy(upstreams, asides=True, session_of=self._session_of)

    async def start(self, listening: socket.socket) -> None:
        """Serve from now on. The first clients wait already."""
        self._cost = await asyncio.to_thread(known_prices)
        await self._proxy.start(listening=listening)

    async def recorded(self, run: OpenRun) -> list[AgentEvent]:
        """What this turn of the run asked, as events. What the agent says itself of its usage counts alone."""
        session = self._sessions.get(run.secret)
        if session is None:
            return []
        if not run.stopped.is_set():
            await session.settle()
        exchanges = self._exchanges(session, run)
        new, run.before = exchanges[run.before :], len(exchanges)
        captured = self.captured(run)
        if captured is None:
            return []
        return [*([] if run.tells_usage else usage_of(new, self._cost)), captured]

    def captured(self, run: OpenRun) -> Captured | None:
        """What the run has asked by now; None where that is not all of it."""
        session = self._sessions.get(run.secret)
        # Some requests went past the proxy: what it has is not the whole run, and would be a wrong one.
        if session is None or session.has_stepped_aside:
            return None
        exchanges = self._exchanges(session, run)
        # Calls of MCP servers alone are not the whole run: its model was asked past us, or it has none.
        if all(is_mcp(exchange.question) for exchange in exchanges if not exchange.refused):
            return None
        return replace(captured_of(exchanges, session, answers=False), beside=True)

    @staticmethod
    def _exchanges(session: Session, run: OpenRun) -> tuple[Exchange, ...]:
        exchanges = session.exchanges()
        # The request that a stopped run waits for has no answer.
        return exchanges[: session.missed_at] if run.stopped.is_set() else exchanges

    def not_recorded(self, run: OpenRun) -> RunError:
        """Why a run ended that was stopped by a request that is not recorded."""
        return not_recorded(self._sessions[run.secret])

    def parted(self, run: OpenRun) -> RunError | None:
        """Why a run that is continued from its tape is none of its step: it asked for something else before that."""
        session = self._sessions.get(run.secret)
        if session is None or not session.misses or session.on_miss != "error":
            return None
        return not_recorded(session)

    def over_limit(self, run: OpenRun) -> RunError | None:
        """Why a run that is made again ended: the limit on cost let it ask no more; None: it did not."""
        session = self._sessions.get(run.secret)
        if run.recorded is None or session is None or session.over_limit is None:
            return None
        return over_limit(session)

    def cut(self, run: OpenRun) -> None:
        """The run was stopped: its requests need no answer."""
        if (session := self._sessions.get(run.secret)) is not None:
            self._proxy.cut(session)

    def forget(self, run: OpenRun) -> None:
        """The run is over."""
        session = self._sessions.pop(run.secret, None)
        if session is not None:
            session.over.set()

    async def close(self) -> None:
        """Stop listening, and end what is in flight."""
        await self._proxy.close()

    def _session_of(self, secret: str) -> Session | None:
        run = self._open.get(secret)
        if run is None:
            return None
        session = self._sessions.get(secret)
        if session is None:
            session = self._sessions[secret] = Session(
                run.name,
                recorded=run.recorded,
                cost=None if run.recorded is None else self._cost,  # who has no limit needs no sum
                keys=keys_of(run.env),
                keep=None if run.paid is None else run.paid.add,
                paid=run.paid,
                stopped=run.stopped,
            )
        return session
