"""`capture: auto`: what an agent's models were asked and answered is kept beside its run, and changes nothing in it.

A Python agent asks its models by way of a proxy without knowing it (`python_http_clients`), and so does a command that
is a program for Python or Node. One in another language is led there only by variables that its environment has
already, as many programs do something else where one is set.

Until the first request comes there is nothing but a socket: the proxy takes 100 ms to load.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    Agent,
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Closable,
    Done,
    Failed,
    ReadsFiles,
    TellsServers,
    UsageReported,
    closing,
)
from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.recording.providers import (
    client_startup,
    has_own_network,
    leading,
    to_shims,
    usable_upstreams,
)
from agenteval_tui.agents.recording.proxied_run import OpenRun
from agenteval_tui.transcripts.model import Usage

if TYPE_CHECKING:
    from agenteval_tui.agents.recording.run_proxy import RunProxy

_HOST = "127.0.0.1"
_WAITING = 128  # connections, until the proxy is there


class AutoCapturingAgent:
    """Another agent, whose requests to models are recorded where that changes nothing."""

    def __init__(self, inner: Agent, setup: AgentSetup, options: AgentOptions) -> None:
        self._inner = inner
        self._setup = setup
        self._is_command = setup.config.get("kind") == "command"
        self._socket: socket.socket | None = None
        self._own_network: bool | None = None
        self._unrecorded: set[str] = set()
        self._proxy: asyncio.Task[RunProxy] | None = None
        self._open: dict[str, OpenRun] = {}  # those that may ask now, by their secret
        self._runs: dict[str, OpenRun] = {}  # by `AgentRequest.run`

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """The agent's events; before the last one, the requests to its models."""
        run = self._run_of(request)
        # Before the agent starts: it may ask at once.
        self._open[run.secret] = run
        has_ended, usage = False, list[AgentEvent]()
        try:
            async with aclosing(_until_stopped(self._inner.run(self._led(request, run)), run)) as events:
                async for event in events:
                    if isinstance(event, UsageReported):
                        # What recorded answers used was paid for when they were recorded: the proxy knows which. And
                        # it knows what a server doesn't tell.
                        if run.recorded is not None or event.usage == Usage():
                            usage.append(event)
                            continue
                        run.tells_usage = True
                    elif isinstance(event, Done | Failed):
                        has_ended = True
                        # Before the agent's last event: nobody reads what comes after it.
                        recorded = await self._recorded(run)
                        if isinstance(self._inner, TellsServers):
                            servers = self._inner.asked_past(request.run)
                            # A Python agent tells whose address was looked up, as one does to ask for something else.
                            if run.recorded is None and (self._is_command or not recorded):
                                self._unrecorded.update(servers)
                        for before in recorded or usage:
                            yield before
                        if (proxy := self._started_proxy()) is not None:
                            error = proxy.over_limit(run) or proxy.parted(run)
                            if error is not None:
                                yield Failed(error)
                                return
                    yield event
            if run.stopped.is_set() and (proxy := self._started_proxy()) is not None:
                has_ended = True
                for before in await self._recorded(run):
                    yield before
                yield Failed(proxy.not_recorded(run))
        finally:
            del self._open[run.secret]
            # It was stopped, as by a time limit: what its models answered until then is kept.
            if not has_ended and (proxy := self._started_proxy()) is not None:
                request.cut_off.captured = proxy.captured(run)
                proxy.cut(run)

    async def check(self, thorough: bool = False) -> CheckReport:
        """As the agent itself says."""
        return await self._inner.check(thorough)

    def release(self, run: str) -> None:
        """The run is over."""
        over = self._runs.pop(run, None)
        if over is not None and (proxy := self._started_proxy()) is not None:
            proxy.forget(over)
        if isinstance(self._inner, Closable):
            self._inner.release(run)

    async def close(self) -> None:
        """Stop the proxy, and close the agent."""
        try:
            await self._inner.close()
        finally:
            if self._proxy is not None:
                await (await self._proxy).close()
            elif self._socket is not None:
                asyncio.get_running_loop().remove_reader(self._socket)
            if self._socket is not None:
                self._socket.close()

    @property
    def files(self) -> frozenset[str]:
        """The files of the project that the agent's processes have imported or read by now."""
        return self._inner.files if isinstance(self._inner, ReadsFiles) else frozenset()

    @property
    def unrecorded(self) -> frozenset[str]:
        """The servers of models that were asked in runs of which nothing was recorded."""
        return frozenset(self._unrecorded)

    def _run_of(self, request: AgentRequest) -> OpenRun:
        """The run: a new one in each attempt, the same in all turns."""
        run = self._runs.get(request.run)
        if run is not None and request.turn > 1:
            return run
        # The first turn again is another attempt: what the one before asked is no part of it.
        if run is not None and (proxy := self._started_proxy()) is not None:
            proxy.forget(run)
        env = self._setup.env_with(request.config or self._setup.config)
        name = f"{request.test_id}#{request.repetition}"
        run = OpenRun(secrets.token_hex(8), name, env, request.paid, recorded=request.recorded)
        if request.run:
            self._runs[request.run] = run
        return run

    def _led(self, request: AgentRequest, run: OpenRun) -> AgentRequest:
        """The request with the proxy's address, where the agent's requests can be sent there."""
        if run.recorded is None and self._has_own_network(run.env):
            return request
        # A Python agent is forked from a process that runs already; no variable reaches that, so it is told itself.
        if not self._is_command:
            return replace(request, proxy=self._address(run))
        upstreams = usable_upstreams(run.env)
        # The proxy knows the servers of the agent's own configuration; a variation that names others goes there by
        # itself.
        if upstreams != usable_upstreams(self._setup.env_with(self._setup.config)):
            return request
        address, config = self._address(run), dict(request.config or self._setup.config)
        variables = {
            **client_startup(address, run.env),
            **to_shims(address, run.env),
            **leading(address, upstreams, run.env),
        }
        config["env"] = {**(config.get("env") or {}), **variables}
        return replace(request, config=config)

    def _has_own_network(self, env: Mapping[str, str]) -> bool:
        if env is not self._setup.env:
            return has_own_network(env)
        # The usual environment is looked at once.
        if self._own_network is None:  # it takes as long as much else of a run
            self._own_network = has_own_network(env)
        return self._own_network

    def _address(self, run: OpenRun) -> str:
        if self._socket is None:
            # asyncio sends without waiting (TCP_NODELAY) only where a socket says that it is TCP: else each answer to a
            # connection that is used again would wait 40 ms.
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            self._socket.setblocking(False)
            self._socket.bind((_HOST, 0))
            self._socket.listen(_WAITING)
            asyncio.get_running_loop().add_reader(self._socket, self._connected)
        return f"http://{_HOST}:{self._socket.getsockname()[1]}/{run.secret}"

    def _connected(self) -> None:
        """Somebody asks for the first time."""
        assert self._socket is not None
        # The connection waits in the socket's queue until the proxy accepts it.
        asyncio.get_running_loop().remove_reader(self._socket)
        self._proxy = asyncio.create_task(self._start(self._socket))

    async def _start(self, listening: socket.socket) -> RunProxy:
        # In a thread: the import would hold up all other runs.
        module = await asyncio.to_thread(import_module, "agenteval_tui.agents.recording.run_proxy")
        proxy: RunProxy = module.RunProxy(usable_upstreams(self._setup.env_with(self._setup.config)), self._open)
        await proxy.start(listening)
        return proxy

    def _started_proxy(self) -> RunProxy | None:
        task = self._proxy
        return task.result() if task is not None and task.done() and task.exception() is None else None

    async def _recorded(self, run: OpenRun) -> list[AgentEvent]:
        if self._proxy is None:
            return []
        return await (await self._proxy).recorded(run)


async def _until_stopped(events: AsyncIterator[AgentEvent], run: OpenRun) -> AsyncGenerator[AgentEvent]:
    """The events, until the run is stopped by a request that is not recorded."""
    async with closing(events):
        if run.recorded is None:
            async for event in events:
                yield event
            return
        stopped = asyncio.create_task(run.stopped.wait())
        try:
            while True:
                # A generator that is asked for its next event can't be asked again before it answers: the question is a
                # task, and is cancelled where the run was stopped.
                following = asyncio.ensure_future(anext(events))
                try:
                    await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not following.done():
                        following.cancel()
                        await asyncio.gather(following, return_exceptions=True)
                if following.cancelled():
                    return
                try:
                    yield following.result()
                except StopAsyncIteration:
                    return
        finally:
            stopped.cancel()
