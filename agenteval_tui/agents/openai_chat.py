"""The kind `openai`: any server that speaks Chat Completions, with our own loop of tool calls."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from agenteval_tui.agents import http_errors
from agenteval_tui.agents.chat_reply import CallParts, Reply
from agenteval_tui.agents.chat_wire import Wire
from agenteval_tui.agents.interface import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
    Prompted,
    ToolCallFinished,
    ToolSpec,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.openai_options import OPENAI, OpenAIOptions
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.tools import Toolbox, make_toolbox
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import Message, RunError, Usage

if TYPE_CHECKING:
    from agenteval_tui.agents.embedders.interface import Embedding

_SECRET_HEADER = re.compile(r"auth|key|token|cookie", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}|\[#~?([\w.:-]+)#\]")


class OpenAIChatAgent:
    """Talks to a Chat Completions server; answers the model's tool calls with mock tools until it is done.

    Failures are `Failed` events with one of the kinds connection, timeout, auth, rate_limit, server, protocol,
    bad_request, max_steps. A key never stands in what it says.
    """

    options_model = OpenAIOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(OpenAIOptions, setup.name, setup.config)
        make_toolbox(self._options.tools, {}, setup.base_dir)  # so that a wrong tools file is said at once
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One conversation, as many requests as the model wants tools."""
        try:
            options = self._options
            if request.config and request.config != self._setup.config:
                options = read_options(OpenAIOptions, self._setup.name, request.config)
            wire = self._wire(options)
            toolbox = make_toolbox(options.tools, request.context, self._setup.base_dir)
        except AgentevalError as error:
            yield Failed(RunError("bad_request", error.what, error.mend))
            return
        except _NoKey as missing:
            yield missing.failed
            return
        async with toolbox, aclosing(self._converse(request, options, wire, toolbox)) as events:
            async for event in events:
                yield event

    async def check(self, thorough: bool = False) -> CheckReport:
        """Asks the server for its models (free), or, where it has no such list, for an answer of one token."""
        try:
            wire = self._wire(self._options)
        except _NoKey as missing:
            return CheckReport(False, missing.failed.error.message, mend=missing.failed.error.mend)
        began = time.perf_counter()
        models, failed = await wire.models()
        if failed is not None and failed.error.kind == "bad_request":
            # A server may have no list of models and answer all the same.
            short = self._options.model_copy(update={"stream": False, "max_tokens": 1, "max_completion_tokens": None})
            body = short.body([{"role": "user", "content": "ping"}], [], 0)
            models, failed = None, None
            async for event in wire.ask(body, Reply()):
                failed = event if isinstance(event, Failed) else failed
        took = (time.perf_counter() - began) * 1000
        if failed is not None:
            return CheckReport(False, failed.error.message, took, failed.error.mend)
        name = self._options.model
        if models and name not in models:
            some = ", ".join(sorted(models)[:5])
            return CheckReport(False, f"{wire.server.url} has no model {name!r}", took, f"models: {some}")
        return CheckReport(True, f"{wire.server.url} answers" + (f" and has {name}" if models else ""), took)

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector of a text, from the server's `/embeddings`."""
        from agenteval_tui.agents.embedders.interface import Embedding

        try:
            wire = self._wire(self._options)
        except _NoKey as missing:
            return missing.failed
        body = {"model": self._options.model, "input": text, **self._options.extra_body}
        given, failed = await wire.post("embeddings", body)
        if failed is not None:
            return failed
        try:
            vector = tuple(float(one) for one in given["data"][0]["embedding"])
        except (KeyError, IndexError, TypeError, ValueError):
            said = f"{wire.server.url} sent no embedding"
            return wire.server.failed("protocol", said, "check `base_url`, and that `model` is one for embeddings")
        usage = given.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        model = given.get("model")
        return Embedding(
            vector,
            model if isinstance(model, str) else self._options.model,
            usage=Usage(tokens if isinstance(tokens, int) else None),
        )

    async def close(self) -> None:
        """Close the connections."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _converse(
        self, request: AgentRequest, options: OpenAIOptions, wire: Wire, toolbox: Toolbox
    ) -> AsyncGenerator[AgentEvent, None]:
        given = _with_system(request, options)
        if given != request.messages:
            yield Prompted(given)
        messages = [_sent(message) for message in given]
        declared = [_declared(spec) for spec in toolbox.specs()]
        key = 0
        for _ in range(options.max_steps):
            reply = Reply(first_key=key)
            async with aclosing(wire.ask(options.body(messages, declared, request.seed), reply)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Failed):
                        return
            yield TurnEnded()
            yield UsageReported(reply.usage or Usage())
            if not reply.calls:
                yield Done(reply.finish_reason or "stop", reply.model)
                return
            results: dict[int, str] = {}
            async with aclosing(_call_tools(toolbox, reply.calls)) as ended:
                async for finished in ended:
                    results[finished.key] = finished.result
                    yield finished
            messages += _answered(reply, results)
            key += len(reply.calls)
        yield wire.server.failed(
            "max_steps",
            f"the model still called tools after {options.max_steps} requests",
            "raise `max_steps`, or look at what its tools answer",
        )

    def _wire(self, options: OpenAIOptions) -> Wire:
        """The way to the server. Raises `_NoKey` when the variable that shall hold the key does not."""
        named = options.api_key_env or ("OPENAI_API_KEY" if options.base_url.rstrip("/") == OPENAI else "")
        key = self._setup.env.get(named, "").strip() if named else ""
        password = urlsplit(options.base_url).password or ""
        secrets = (
            key,
            password,
            *(v for k, v in options.headers.items() if re.search(r"auth|key|token|cookie", k, re.I)),
        )
        url = options.base_url.rstrip("/")
        server = http_errors.Server(_without_credentials(url), named, secrets)
        if named and not key:
            raise _NoKey(
                server.failed(
                    "auth", f"the environment variable {named} is not set", f"set {named} to the server's key"
                )
            )
        headers = {"accept-encoding": "identity", **options.headers}
        if key:
            headers["authorization"] = f"Bearer {key}"
        return Wire(self._http(url), url, headers, server, options.timeouts, int(options.max_reply_mb * 1_000_000))

    def _http(self, url: str) -> httpx.AsyncClient:
        """The connections to a server: one client for each, since their settings differ."""
        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._clients:
            host = parts.hostname or ""
            here = host in ("localhost", "::1") or host.startswith("127.")
            # Loading the machine's certificates takes longer than many a run. Plain HTTP on this machine needs none,
            # and should TLS be wanted all the same, a context without certificates trusts nobody.
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if here and parts.scheme == "http" else True
            self._clients[place] = httpx.AsyncClient(
                verify=verify,
                trust_env=not here,  # a proxy from the environment is for other machines
                follow_redirects=False,  # a redirect would carry the key and the prompt to who knows where
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            )
        return self._clients[place]


class _NoKey(Exception):  # noqa: N818 - not an error to report as such: it carries the failure to yield
    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.error.message)
        self.failed = failed


async def _call_tools(toolbox: Toolbox, calls: Sequence[CallParts]) -> AsyncGenerator[ToolCallFinished, None]:
    """All calls of a turn at once; each as it ends."""

    async def one(call: CallParts) -> ToolCallFinished:
        began = time.perf_counter()
        outcome = await toolbox.call(call.name, call.arguments_text)
        return ToolCallFinished(call.key, outcome.text, outcome.error, (time.perf_counter() - began) * 1000)

    tasks = [asyncio.create_task(one(call)) for call in calls]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()


def _answered(reply: Reply, results: Mapping[int, str]) -> list[dict[str, Any]]:
    """The model's message and the tools' answers, as the next request holds them."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text or "{}"},
        }
        for call in reply.calls
    ]
    said = {"role": "assistant", "content": "".join(reply.text) or None, "tool_calls": calls}
    return [said, *({"role": "tool", "tool_call_id": c.id, "content": results[c.key]} for c in reply.calls)]


def _with_system(request: AgentRequest, options: OpenAIOptions) -> tuple[Message, ...]:
    """The messages, with the system prompt and the input data that the test's context or the agent's options bring.

    A system message of the test's own stands. `input_data` is added to the last user message, as JSON.
    """
    messages = request.messages
    system = request.context.get("sample_system_prompt") or options.system
    if system and not any(message.role in ("system", "developer") for message in messages):
        messages = (Message("system", _filled(str(system), request.context.get("sample_concepts"))), *messages)
    data = request.context.get("input_data")
    if data is not None and messages and messages[-1].role == "user":
        import json

        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        last = messages[-1]
        messages = (*messages[:-1], Message("user", f"{last.content}\n\n{text}", name=last.name))
    return messages


def _filled(text: str, concepts: Any) -> str:
    """A system prompt with its placeholders, {{name}} or [#name#], filled; unknown ones stay."""
    if not isinstance(concepts, Mapping) or not concepts:
        return text

    def value(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        return str(concepts[name]) if name in concepts else found.group()

    return _PLACEHOLDER.sub(value, text)


def _declared(spec: ToolSpec) -> dict[str, Any]:
    """A tool as a Chat Completions request declares it."""
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _sent(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        sent["name"] = message.name
    return sent


def _without_credentials(url: str) -> str:
    """The address without a user and password in it."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
