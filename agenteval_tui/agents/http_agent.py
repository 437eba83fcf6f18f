"""The kind `http`: any endpoint that takes JSON and does its own work with it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from agenteval_tui.agents.connections import Connections
from agenteval_tui.agents.http_options import HttpOptions
from agenteval_tui.agents.http_reply import HttpReply, LineReader
from agenteval_tui.agents.http_request import MadeRequest, make_request
from agenteval_tui.agents.http_wire import Wire
from agenteval_tui.agents.interface import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    CheckStep,
    Done,
    Failed,
    Noted,
    Prompted,
    ReasoningDelta,
    TextDelta,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.server_access import NoWayError, Secrets, key_of, wire_to
from agenteval_tui.agents.sse import SseReader
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import Message, RunError

_SESSIONS = 10_000  # runs whose session is remembered


class HttpAgent:
    """Asks an endpoint once a turn. Failures are `Failed` events of the kinds that `openai` has."""

    options_model = HttpOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(HttpOptions, setup.name, setup.config)
        self._connections = Connections()
        self._secrets = Secrets(setup)
        self._sessions: OrderedDict[str, Any] = OrderedDict()

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One turn of a run: one request."""
        try:
            options = self._options
            if request.config and request.config != self._setup.config:
                options = read_options(HttpOptions, self._setup.name, request.config)
            if request.turn <= 1:
                self._sessions.pop(request.run, None)  # an attempt that failed had another one
            made = make_request(options, request, self._sessions.get(request.run))
            wire = self._wire(options, made, request.config)
        except AgentevalError as error:
            yield Failed(RunError.told("bad_request", error.what, error.mend))
            return
        except NoWayError as missing:
            yield missing.failed
            return
        redactor = EventRedactor(wire.server.secrets)
        async with aclosing(self._ask(options, request, made, wire)) as events:
            async for event in events:
                for clean in redactor.clean(event):
                    yield clean

    async def check(self, thorough: bool = False) -> CheckReport:
        """Whether anybody answers at the address; `thorough` sends a prompt, as a run does."""
        request = AgentRequest((Message("user", "ping"),), test_id="check", run="check")
        try:
            made = make_request(self._options, request, None)
            wire = self._wire(self._options, made)
        except AgentevalError as error:
            return CheckReport(False, error.what, mend=error.mend)
        except NoWayError as missing:
            return CheckReport(False, missing.failed.error.message, mend=missing.failed.error.mend)
        return await (self._try(request) if thorough else _knock(wire))

    def release(self, run: str) -> None:
        """The run is over: its session is forgotten."""
        self._sessions.pop(run, None)

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def _ask(
        self, options: HttpOptions, request: AgentRequest, made: MadeRequest, wire: Wire
    ) -> AsyncGenerator[AgentEvent, None]:
        if made.messages != request.messages:
            yield Prompted(made.messages)
        reply = HttpReply(options)
        reader = {"sse": SseReader, "jsonl": LineReader, "none": None}[options.stream]
        content = {} if made.content is None else {"content": made.content}
        asked = wire.ask(
            "", reply, method=options.method, reader=reader, always_stream=options.stream == "jsonl", **content
        )
        async with aclosing(asked) as events:
            async for event in events:
                yield event
                if isinstance(event, Failed):
                    return
        yield TurnEnded()
        yield UsageReported(reply.usage)
        odd = reply.odd.note()
        if odd is not None:
            yield Noted(odd)
        if request.run and reply.session is not None:
            self._sessions[request.run] = reply.session
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        yield Done(reply.finish_reason or "stop", reply.model)

    async def _try(self, request: AgentRequest) -> CheckReport:
        began = time.perf_counter()
        pieces, first, last = 0, None, None
        async for event in self.run(request):
            last = event
            if isinstance(event, TextDelta | ReasoningDelta):
                pieces += 1
                first = first or (time.perf_counter() - began) * 1000
        took = (time.perf_counter() - began) * 1000
        failed = last if isinstance(last, Failed) else None
        kind = failed.error.kind if failed is not None else ""
        words = failed.error.message if failed is not None else ""
        there = kind not in ("connection", "timeout")
        steps = [CheckStep("reachable", there, words if not there else "the endpoint answers", took)]
        refused = kind in ("auth", "permission")
        key = None if not there or kind == "region" else not refused
        steps.append(CheckStep("key", key, words if refused else "" if key is None else "the request is taken"))
        model = last.model if isinstance(last, Done) else ""
        steps.append(CheckStep("model", True if model else None, model or "the endpoint does not say"))
        if self._options.stream == "none":
            steps.append(CheckStep("streams", None, "it is not asked to"))
        elif failed is not None:
            steps.append(CheckStep("streams", None if refused or key is None else False, words))
        else:
            said = f"{pieces} piece{'' if pieces == 1 else 's'}" + (
                f"; the first after {first:.0f} ms" if first else ""
            )
            steps.append(CheckStep("streams", True, said, first))
        steps.append(CheckStep("tools", None, "the endpoint calls its own"))
        if failed is not None:
            return CheckReport(False, words, took, failed.error.mend, tuple(steps))
        return CheckReport(True, "the endpoint answers a prompt", took, "", tuple(steps))

    def _wire(self, options: HttpOptions, made: MadeRequest, config: Mapping[str, Any] | None = None) -> Wire:
        """The way to the endpoint; `config` is what the options were read from. Raises `NoWayError`."""
        name = options.api_key_env or ""
        key = key_of(self._setup, name)
        headers = {header.lower(): text for header, text in made.headers.items()}
        if made.content_type and made.content is not None:
            headers.setdefault("content-type", made.content_type)
        headers.setdefault("accept", "text/event-stream" if options.stream == "sse" else "*/*")
        if key:
            header = options.api_key_header.lower()
            scheme = options.api_key_scheme
            if scheme is None:
                scheme = "Bearer" if header == "authorization" else ""
            headers[header] = f"{scheme} {key}" if scheme else key
        filled = options.model_copy(update={"headers": headers, "query": dict(made.query)})
        return wire_to(
            made.url,
            key,
            name,
            {},
            options=filled,
            config=config or self._setup.config,
            connections=self._connections,
            secrets=self._secrets,
            option="url",
        )


async def _knock(wire: Wire) -> CheckReport:
    """Asks what the endpoint takes (OPTIONS): nothing is done by that, and any answer says that it is there."""
    began = time.perf_counter()
    _, failed = await wire.request("OPTIONS", "")
    took = (time.perf_counter() - began) * 1000
    if failed is not None and failed.error.kind in ("connection", "timeout"):
        steps = (CheckStep("reachable", False, failed.error.message, took), CheckStep("key", None, "not tried"))
        return CheckReport(False, failed.error.message, took, failed.error.mend, steps)
    steps = (
        CheckStep("reachable", True, f"{wire.server.url} answers", took),
        CheckStep("key", None, "only a prompt would tell"),
    )
    return CheckReport(True, f"{wire.server.url} is there", took, "", steps)
