"""What the kinds have in common that talk to a model and answer its tool calls."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, ClassVar, Generic, TypeVar

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    Asks,
    CheckReport,
    Done,
    Failed,
    ModelAsked,
    Prepared,
    Printed,
    PromptSent,
    ToolCallFinished,
    ToolSpec,
)
from agenteval_tui.agents.http.client import HttpClient
from agenteval_tui.agents.http.client_factory import NoWayError, Secrets, api_key, make_client, run_on_client
from agenteval_tui.agents.http.connection_pool import Connections, without_credentials
from agenteval_tui.agents.http.exported_request import WrittenRequest, own_headers
from agenteval_tui.agents.models.health_check import check_model
from agenteval_tui.agents.models.message_mapping import CallIds, provider_messages, with_system
from agenteval_tui.agents.models.requests import read_body
from agenteval_tui.agents.models.stream import (
    CallParts,
    Dialogue,
    ModelClient,
    ModelProtocol,
    ModelReply,
    ReplyMessage,
    end_of_turn,
)
from agenteval_tui.agents.network_options import ModelOptions
from agenteval_tui.agents.options import options_for, read_options
from agenteval_tui.agents.think_tags import split_thinking, without_thinking
from agenteval_tui.agents.tools.mcp import ToolHost
from agenteval_tui.agents.tools.toolset import Toolbox, make_toolbox
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import ErrorCode

Options = TypeVar("Options", bound=ModelOptions)
# Calls of one turn that are answered at once: a model that makes thousands must not start thousands of programs.
_AT_ONCE = 32


class ModelAgent(ABC, Generic[Options]):
    """Asks a model and answers its tool calls until it is done.

    Failures are `Failed` events with one of the kinds connection, timeout, auth, rate_limit, server, protocol,
    bad_request, tool, max_steps. Its messages never contain a key.
    """

    options_model: type[Options]
    usual_address: ClassVar[str] = ""

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(self.options_model, setup.name, setup.config)
        self._host = ToolHost()
        self._toolbox(self._options, AgentRequest(()))  # so that a wrong tools file is said at once
        self._connections = Connections()
        self._secrets = Secrets(setup)

    @abstractmethod
    def _protocol(self, options: Options) -> ModelProtocol:
        """How to speak with the server."""

    def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One conversation, as many requests as the model wants tools."""
        return run_on_client(lambda: self._begin(request))

    async def check(self, thorough: bool = False) -> CheckReport:
        """Asks the server for its models (free), or, where that does not tell, for an answer of one token.
        `thorough` also asks for a streamed answer and a call of a tool."""
        try:
            wire = self._client(self._options)
        except NoWayError as missing:
            return missing.report
        return await check_model(wire, self._options, self._protocol, thorough=thorough)

    async def offered_tools(self, request: AgentRequest) -> Sequence[ToolSpec]:
        """What the model is told of its tools."""
        async with self._toolbox(options_for(request, self._setup, self._options), request) as toolbox:
            return toolbox.specs()

    async def written_request(self, request: AgentRequest) -> WrittenRequest:
        """The first request of a run, without keys: what the headers have of the environment is named, no value of it
        is there; of other headers and parameters the note says that they are missing."""
        options = options_for(request, self._setup, self._options)
        tools = await self.offered_tools(request)
        protocol = self._protocol(options)
        messages = provider_messages(with_system(request, options.system), request.tool_calls, CallIds())
        body = dict(protocol.begin(messages, tools, request.seed).body())
        body.pop("stream", None)
        body.pop("stream_options", None)
        path = protocol.path.replace(":streamGenerateContent?alt=sse", ":generateContent")
        url = without_credentials(options.url)
        headers = options.key_headers(f"${{{options.key_env}}}" if options.key_env else "")
        written = self._setup.written.get("headers")
        more, others = own_headers(options.headers, written if isinstance(written, Mapping) else {}, headers)
        config = request.config or self._setup.config
        clean = self._secrets.of(config, "", options.headers, options.query, options.url).data(body)
        missing = [*(f"the header {name}" for name in others), *(f"the parameter {name}" for name in options.query)]
        missing += ["the user and password of the address"] if url != options.url else []
        missing += ["what is replaced by *** in the body"] if clean != body else []
        note = f"add what the agent's configuration has and is not written here: {', '.join(missing)}"
        return WrittenRequest(f"{url}/{path.lstrip('/')}", {**more, **headers}, clean, note if missing else "")

    def release(self, run: str) -> None:
        """The run is over: the shop that it had is closed."""
        self._host.release(run)

    async def close(self) -> None:
        """Close the connections, and end the servers of tools that runs share."""
        await self._host.close()
        await self._connections.close()

    def _begin(self, request: AgentRequest) -> tuple[ModelClient, AsyncIterator[AgentEvent]]:
        options = options_for(request, self._setup, self._options)
        wire = self._client(options, request.config)
        if isinstance(wire, HttpClient):
            wire.paid = request.paid
        return wire, self._converse(request, options, wire, self._toolbox(options, request))

    async def _converse(
        self, request: AgentRequest, options: Options, wire: ModelClient, toolbox: Toolbox
    ) -> AsyncGenerator[AgentEvent, None]:
        messages = with_system(request, options.system)
        if messages != request.messages:
            yield PromptSent(messages)
        # The tools are closed after the events: a call that is cancelled may still need them.
        async with AsyncExitStack() as stack:
            began = time.perf_counter()
            try:
                await stack.enter_async_context(toolbox)
            except AgentevalError as error:
                yield wire.server.told("tool", error.what, error.fix)
                return
            if toolbox.sources:
                yield Prepared("start of tool servers", (time.perf_counter() - began) * 1000)
            protocol = self._protocol(options)
            own_messages = provider_messages(messages, request.tool_calls, CallIds())
            try:
                dialogue = protocol.begin(own_messages, toolbox.specs(), request.seed)
            except AgentevalError as error:  # an image or file that can't be sent
                yield wire.server.told("bad_request", error.what, error.fix)
                return
            events = converse(wire, protocol.path, dialogue, toolbox, options.max_steps)
            await stack.enter_async_context(aclosing(events))
            async for event in without_thinking(events):
                yield event

    def _client(self, options: Options, config: Mapping[str, Any] | None = None) -> ModelClient:
        """The way to the model; `config` is what the options were read from. Raises `NoWayError`."""
        return self._wire(options, config)

    def _wire(self, options: Options, config: Mapping[str, Any] | None = None) -> HttpClient:
        """The way to the server; `config` is what the options were read from. Raises `NoWayError`."""
        key = api_key(self._setup, options.key_env)
        return make_client(
            options.url,
            key,
            options.key_env,
            options.key_headers(key),
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


# A run of a model: asks, answers its tool calls, asks again, until it calls no more


async def converse(
    wire: ModelClient, path: str, dialogue: Dialogue[Any], toolbox: Toolbox, max_steps: int
) -> AsyncGenerator[AgentEvent, None]:
    """The events of the whole loop; ends with `Done` or `Failed`."""
    key, exchange = 0, None
    for _ in range(max_steps):
        # Keys of calls go on from one reply to the next, since a run numbers all of its calls.
        reply, body = dialogue.reply(key), dialogue.body()
        yield Asks(body)
        exchange = _Exchange(path, body, reply, exchange)
        async with aclosing(wire.ask(path, reply, json=body)) as events:
            async for event in events:
                exchange.message.take(event)
                if isinstance(event, Failed):
                    yield exchange.told(event.error.message)
                    yield event
                    return
                yield event
        for event in end_of_turn(reply.usage, reply.figures):
            yield event
        # Before the tools run: its time is the model's.
        yield exchange.told()
        # `pause_turn` ends a reply without calls of ours: the server goes on when it is asked again.
        if not reply.calls and not reply.unfinished:
            yield Done(reply.finish_reason or "stop", reply.model)
            return
        results: dict[int, ToolCallFinished] = {}
        async with aclosing(_call_tools(toolbox, reply.calls)) as ended:
            async for finished, printed in ended:
                for piece in printed:
                    yield piece
                results[finished.key] = finished
                yield finished
        dialogue.add_results(reply, results)
        key = reply.next_key
    yield wire.server.failed(
        "max_steps",
        ErrorCode.MAX_STEPS,
        f"the model still called tools after {max_steps} requests",
        "raise `max_steps`, or look at what its tools answer",
    )


class _Exchange:
    """One request of the loop, and its reply as far as it has come. `before`: the request before it."""

    def __init__(self, path: str, body: Mapping[str, Any], reply: ModelReply, before: _Exchange | None) -> None:
        request = read_body(f"/{path.partition('?')[0]}", body)
        # A conversation is sent again and again. Equal messages are one object, so that a recorder looks at each once:
        # at 200 steps it would else take more than a second.
        self._messages: list[dict[str, Any]] = [] if request is None else list(request.messages)
        for place, message in enumerate(before._messages if before is not None else ()):
            if place >= len(self._messages) or self._messages[place] != message:
                break
            self._messages[place] = message
        self._request = request
        self._tools = body.get("tools") or ()
        self._reply = reply
        self._began = time.perf_counter()
        self.message = ReplyMessage(reply)

    def told(self, error: str = "") -> ModelAsked:
        """What a recorder keeps of it, when the reply is there, or why there is none."""
        request = self._request
        if request is None:
            return ModelAsked()
        system = [{"role": "system", "content": request.system}] if request.system else []
        answer = None if error and self.message.empty else self.message.fields()
        if answer is not None:
            thinking, answer["content"] = split_thinking(answer["content"])
            if thinking:
                answer["reasoning"] = thinking + answer.get("reasoning", "")
        return ModelAsked(
            [*system, *self._messages],
            answer,
            {"model": request.model, "tools": self._tools, **request.parameters},
            error=error,
            duration_ms=(time.perf_counter() - self._began) * 1000,
            usage=dict(self._reply.told_usage),
        )


async def _call_tools(
    toolbox: Toolbox, calls: Sequence[CallParts]
) -> AsyncGenerator[tuple[ToolCallFinished, tuple[Printed, ...]], None]:
    """All calls of a turn at once; each as it ends, with what its function printed."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def answered(call: CallParts) -> tuple[ToolCallFinished, tuple[Printed, ...]]:
        async with free:
            began = time.perf_counter()
            outcome = await toolbox.call(call.name, call.arguments_text)
            took_ms = (time.perf_counter() - began) * 1000
            finished = ToolCallFinished(call.key, outcome.text, outcome.error, took_ms, outcome.traceback)
            return finished, outcome.printed

    tasks = [asyncio.create_task(answered(call)) for call in calls]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        # A tool that is being stopped gives back what it holds (a program, a connection) before the run is over.
        await asyncio.gather(*tasks, return_exceptions=True)
