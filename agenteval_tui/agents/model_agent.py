"""What the kinds have in common that talk to a model and answer its tool calls."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, ClassVar, Generic, TypeVar

from agenteval_tui.agents.connections import Connections
from agenteval_tui.agents.conversation import CallIds, said, with_system
from agenteval_tui.agents.http_wire import Wire
from agenteval_tui.agents.interface import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Failed,
    Prepared,
    Prompted,
)
from agenteval_tui.agents.network_options import ModelOptions
from agenteval_tui.agents.protocol import ModelProtocol
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.server_access import NoWayError, Secrets, key_of, wire_to
from agenteval_tui.agents.tool_loop import converse
from agenteval_tui.agents.tools import Toolbox, ToolHost, make_toolbox
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import RunError

Options = TypeVar("Options", bound=ModelOptions)


class ModelAgent(ABC, Generic[Options]):
    """Asks a model; answers its tool calls until it is done.

    Failures are `Failed` events with one of the kinds connection, timeout, auth, rate_limit, server, protocol,
    bad_request, tool, max_steps. A key never stands in what it says.
    """

    usual_address: ClassVar[str] = ""

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = self._read(setup.config)
        self._host = ToolHost()
        self._toolbox(self._options, AgentRequest(()))  # so that a wrong tools file is said at once
        self._connections = Connections()
        self._secrets = Secrets(setup)

    @abstractmethod
    def _protocol(self, options: Options) -> ModelProtocol:
        """How to speak with the server."""

    @abstractmethod
    def _read(self, config: Mapping[str, Any]) -> Options:
        """The options of a configuration. Raises `AgentevalError`."""

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One conversation, as many requests as the model wants tools."""
        try:
            changed = request.config and request.config != self._setup.config
            options = self._read(request.config) if changed else self._options
            wire = self._wire(options, request.config)
            toolbox = self._toolbox(options, request)
        except AgentevalError as error:
            yield Failed(RunError.told("bad_request", error.what, error.mend))
            return
        except NoWayError as missing:
            yield missing.failed
            return
        redactor = EventRedactor(wire.server.secrets)
        async with aclosing(self._converse(request, options, wire, toolbox)) as events:
            async for event in events:
                for clean in redactor.clean(event):
                    yield clean

    async def check(self, thorough: bool = False) -> CheckReport:
        """Asks the server for its models (free), or, where that does not tell, for an answer of one token.
        `thorough` also asks for a streamed answer and a call of a tool."""
        from agenteval_tui.agents.model_check import check_model

        try:
            wire = self._wire(self._options)
        except NoWayError as missing:
            return CheckReport(False, missing.failed.error.message, mend=missing.failed.error.mend)
        return await check_model(wire, self._options, self._protocol, thorough=thorough)

    def release(self, run: str) -> None:
        """The run is over: the shop that it had is closed."""
        self._host.release(run)

    async def close(self) -> None:
        """Close the connections, and end the servers of tools that runs share."""
        await self._host.close()
        await self._connections.close()

    async def _converse(
        self, request: AgentRequest, options: Options, wire: Wire, toolbox: Toolbox
    ) -> AsyncGenerator[AgentEvent, None]:
        given = with_system(request, options.system)
        if given != request.messages:
            yield Prompted(given)
        async with AsyncExitStack() as stack:
            began = time.perf_counter()
            try:
                await stack.enter_async_context(toolbox)
            except AgentevalError as error:
                yield wire.server.told("tool", error.what, error.mend)
                return
            if toolbox.sources:
                yield Prepared("start of tool servers", (time.perf_counter() - began) * 1000)
            protocol = self._protocol(options)
            dialogue = protocol.begin(said(given, request.tool_calls, CallIds()), toolbox.specs(), request.seed)
            events = converse(wire, protocol.path, dialogue, toolbox, options.max_steps)
            await stack.enter_async_context(aclosing(events))
            async for event in events:
                yield event

    def _wire(self, options: Options, config: Mapping[str, Any] | None = None) -> Wire:
        """The way to the server; `config` is what the options were read from. Raises `NoWayError`."""
        key = key_of(self._setup, options.key_env)
        return wire_to(
            options.url,
            key,
            options.key_env,
            self._protocol(options).key_headers(key),
            options=options,
            config=config or self._setup.config,
            connections=self._connections,
            secrets=self._secrets,
            usual=self.usual_address,
        )

    def _toolbox(self, options: Options, request: AgentRequest) -> Toolbox:
        setup = self._setup
        return make_toolbox(
            options.tools,
            request.context,
            setup.base_dir,
            env=setup.env,
            permission=setup.permission,
            host=self._host,
            run=request.run,
            turn=request.turn,
        )
