"""Is a model's server there, and what can it do? Step by step, as `agenteval agents check` shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec import Struct, field

from agenteval_tui.agents.base import CheckReport, CheckStep, Failed, ReasoningDelta, TextDelta, ToolSpec
from agenteval_tui.agents.models.message_mapping import ProviderMessage, arguments_object
from agenteval_tui.agents.models.stream import ModelClient, ModelProtocol, ModelReply
from agenteval_tui.agents.network_options import ModelOptions
from agenteval_tui.transcripts.model import ErrorCode

Options = TypeVar("Options", bound=ModelOptions)

_PING = ToolSpec(
    "ping",
    "Answers with the text that it is given.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
_ASK = "Answer with the single word: ok"
_CALL = 'Call the tool `ping` with the text "hello".'


class _Tried(Struct):
    """What one request gave."""

    reply: ModelReply
    failed: Failed | None = None
    pieces: int = 0
    first_ms: float | None = None
    total_ms: float = 0.0


class _Findings(Struct):
    """The steps so far, and the first thing that is so wrong that the agent can't be used."""

    steps: list[CheckStep] = field(default_factory=list)
    failed: Failed | None = None

    def add(self, name: str, ok: bool | None, message: str = "", latency_ms: float | None = None) -> None:
        self.steps.append(CheckStep(name, ok, message, latency_ms))

    def skip(self, *names: str) -> None:
        for name in names:
            self.add(name, None, "not tried")


async def check_model(
    wire: ModelClient, options: Options, protocol: Callable[[Options], ModelProtocol], *, thorough: bool
) -> CheckReport:
    """The report on a server and its model. Not `thorough`: free, or one token where the server has no list of models
    or the model is not on it."""
    began = time.perf_counter()
    findings = _Findings()
    place = protocol(options).models_path
    names, failed = await _models(wire, place) if place else (None, None)
    took = (time.perf_counter() - began) * 1000
    listed = names is not None and any(name in names for name in (options.model, f"{options.model}:latest"))
    if not place:
        pass  # only an answer tells
    elif failed is not None and failed.error.kind in ("connection", "timeout"):
        findings.failed = failed
        findings.add("reachable", False, failed.error.message, took)
        findings.skip("key", "model")
    else:
        findings.add("reachable", True, f"{wire.server.url} answers", took)
        if failed is not None and failed.error.kind == "auth":
            findings.failed = failed
            findings.add("key", False, failed.error.message)
            findings.skip("model")
    if findings.failed is None and (thorough or not listed):
        await _ask(wire, options, protocol, findings, names, thorough=thorough)
    elif findings.failed is None:
        # A list that is open to all says nothing of the key: only an answer does.
        named = wire.server.key_env
        findings.add(
            "key", True, f"the server accepts the key in {named} to list its models" if named else "no key is needed"
        )
        findings.add("model", True, f"{options.model} is on the server's list")
    if thorough and findings.failed is None:
        await _call_a_tool(wire, options, protocol, findings)
    elif thorough:
        done = {step.name for step in findings.steps}
        findings.skip(*(name for name in ("streams", "tools") if name not in done))
    total = (time.perf_counter() - began) * 1000
    if not place:
        _say_whether_reached(wire, findings)
    steps = tuple(findings.steps)
    if findings.failed is not None:
        return CheckReport(False, findings.failed.error.message, total, findings.failed.error.fix, steps)
    missing = [step.message for step in steps if step.ok is False]
    words = f"{wire.server.url} answers" + (f" and has {options.model}" if listed else "")
    return CheckReport(True, "; ".join([words, *missing]), total, "", steps)


def _say_whether_reached(wire: ModelClient, findings: _Findings) -> None:
    """The first step, from what an answer told."""
    failed = findings.failed.error if findings.failed is not None else None
    if failed is not None and failed.kind in ("connection", "timeout"):
        step = CheckStep("reachable", False, failed.message)
    elif failed is not None and failed.code != ErrorCode.STATUS:
        step = CheckStep("reachable", None, "not tried" if failed.code == ErrorCode.KEY_MISSING else failed.message)
    else:
        step = CheckStep("reachable", True, f"{wire.server.url} answers")
    findings.steps.insert(0, step)


async def _models(wire: ModelClient, path: str) -> tuple[set[str] | None, Failed | None]:
    """The names of the server's models (None: it does not say), or why they can't be had."""
    listing, failed = await wire.get(path)
    try:
        if "models" in listing:  # Gemini's list, where each name begins with models/
            return {str(model["name"]).removeprefix("models/") for model in listing["models"]}, None
        return {str(model["id"]) for model in listing["data"]}, None
    except (KeyError, TypeError):
        return None, failed


async def _ask(
    wire: ModelClient,
    options: Options,
    protocol: Callable[[Options], ModelProtocol],
    findings: _Findings,
    names: set[str] | None,
    *,
    thorough: bool,
) -> None:
    """Ask for an answer, which tells of the key and the model; `thorough` streams it."""
    probe_options = options.model_copy(update={"stream": thorough, "system": None})
    tried = await _try(wire, protocol(probe_options if thorough else probe_options.limited(1)), _ASK)
    if not thorough and tried.failed is not None and tried.failed.error.kind == "bad_request":
        # Some models take no limit by that name, or none so small.
        tried = await _try(wire, protocol(probe_options), _ASK)
    failed = tried.failed
    if thorough and failed is not None and options.stream is False and failed.error.kind in ("bad_request", "protocol"):
        reason = failed.error.message
        tried = await _try(wire, protocol(options.model_copy(update={"system": None})), _ASK)
        failed = tried.failed
        if failed is None:
            _say_of_answer(wire, options, findings, names, tried)
            findings.add("streams", False, f"the server does not stream: {reason}")
            return
    if failed is None:
        _say_of_answer(wire, options, findings, names, tried)
        if thorough:
            _say_of_stream(tried, findings)
        return
    findings.failed = failed
    refused = failed.error.kind == "auth"
    findings.add("key", not refused if refused or names is not None else None, failed.error.message if refused else "")
    if names is not None and options.model not in names and failed.error.kind in ("bad_request", "protocol"):
        some = ", ".join(sorted(names)[:5])
        reason = f"{wire.server.url} has no model {options.model!r}"
        findings.failed = wire.server.told(failed.error.kind, reason, f"models: {some}")
    findings.add("model", None if refused else False, "not tried" if refused else findings.failed.error.message)


def _say_of_answer(
    wire: ModelClient, options: ModelOptions, findings: _Findings, names: set[str] | None, tried: _Tried
) -> None:
    findings.add("key", True, _key_words(wire))
    unlisted = names is not None and options.model not in names and f"{options.model}:latest" not in names
    as_named = tried.reply.model or options.model
    words = f"{as_named} answers" + (", though it is not on the server's list" if unlisted else "")
    findings.add("model", True, words, tried.total_ms)


def _say_of_stream(tried: _Tried, findings: _Findings) -> None:
    if not tried.reply.streamed:
        findings.add("streams", False, "the server sent its answer in one piece, not as a stream")
    elif tried.first_ms is None:
        findings.add("streams", True, "a stream without any text", tried.total_ms)
    else:
        pieces = "1 piece" if tried.pieces == 1 else f"{tried.pieces} pieces"
        findings.add("streams", True, f"{pieces}; the first after {tried.first_ms:.0f} ms", tried.first_ms)


async def _call_a_tool(
    wire: ModelClient, options: Options, protocol: Callable[[Options], ModelProtocol], findings: _Findings
) -> None:
    changes: dict[str, Any] = {"system": None}
    if getattr(options, "tool_choice", None) is not None:
        changes["tool_choice"] = None
    tried = await _try(wire, protocol(options.model_copy(update=changes)), _CALL, _PING)
    calls = tried.reply.calls
    if tried.failed is not None:
        findings.add("tools", False, f"a request with a tool failed: {tried.failed.error.message}", tried.total_ms)
    elif not calls:
        findings.add("tools", False, "the model answered in words instead of calling the tool", tried.total_ms)
    elif calls[0].name != _PING.name:
        findings.add("tools", False, f"the model called the tool {calls[0].name[:40]!r}, not ping", tried.total_ms)
    elif arguments_object(calls[0].arguments_text) is None:
        findings.add("tools", False, "the arguments of the model's call are not a JSON object", tried.total_ms)
    else:
        findings.add("tools", True, "the model calls a tool", tried.total_ms)
    if options.tools and findings.steps[-1].ok is False:
        findings.failed = tried.failed or wire.server.told(
            "protocol", findings.steps[-1].message, "the agent has tools: choose a model and a server that call them"
        )


async def _try(wire: ModelClient, protocol: ModelProtocol, text: str, *tools: ToolSpec) -> _Tried:
    dialogue = protocol.begin([ProviderMessage("user", text)], tools, 0)
    tried = _Tried(dialogue.reply(0))
    began = time.perf_counter()
    async with aclosing(wire.ask(protocol.path, tried.reply, json=dialogue.body())) as events:
        async for event in events:
            if isinstance(event, Failed):
                tried.failed = event
            elif isinstance(event, TextDelta | ReasoningDelta):
                tried.pieces += 1
                if tried.first_ms is None:
                    tried.first_ms = (time.perf_counter() - began) * 1000
    tried.total_ms = (time.perf_counter() - began) * 1000
    return tried


def _key_words(wire: ModelClient) -> str:
    return f"the server accepts the key in {wire.server.key_env}" if wire.server.key_env else "no key is needed"
