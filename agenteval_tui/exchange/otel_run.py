"""The spans of one trace as a recorded run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval_tui.exchange.foreign_usage import added, number
from agenteval_tui.exchange.message_dialects import plain_text
from agenteval_tui.exchange.message_parts import messages_of
from agenteval_tui.exchange.otel_dialects import OF_EVENTS
from agenteval_tui.exchange.own_results import results_of
from agenteval_tui.exchange.own_run import come_back, is_ours
from agenteval_tui.exchange.recorded import Recording, Skipped, as_id, as_repetition, first_user_text
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.codec import content_text, from_openai_messages
from agenteval_tui.transcripts.model import RunError, Step, Timing, ToolCall, Transcript, Usage

SOURCE = "otel"
_TOOL, _AGENTS = "execute_tool", ("invoke_agent", "create_agent", "invoke_workflow")
_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")
_INDEXED_CALL = re.compile(r"tool_calls\.(\d+)\.(id|name|arguments)")
_COST = ("operation.cost", "gen_ai.usage.cost")
_OURS = "agenteval.evaluation."
_TWICE = ("agenteval.run", "agenteval.not_kept", "error.type")
_MOST = 10_000  # messages of the older, indexed form


def recording_of(trace: str, spans: Sequence[Mapping[str, Any]]) -> Recording | Skipped:
    """The run that a trace holds; `Skipped` when nothing was recorded of what was said."""
    spans = sorted(spans, key=lambda one: (one["start"] is None, one["start"] or 0))
    tools = [one for one in spans if _operation(one) == _TOOL]
    agents = [one for one in spans if _operation(one) in _AGENTS]
    models = [one for one in spans if one not in tools and one not in agents]
    top = agents[0] if agents else spans[0]
    try:
        transcript = _conversation(_of_agent(models, agents, top), [top, *models], tools)
    except AgentevalError as error:
        return Skipped(error.what, place=f"trace {trace[:32]}")
    about = top["attributes"]
    own = _object(about.get("agenteval.run"))
    if transcript is None and is_ours(own):
        transcript = Transcript()
    if transcript is None:
        return Skipped(
            "no span of this trace has messages or calls of tools: what was said is not in it",
            place=f"trace {trace[:32]}",
        )
    name = plain_text(about.get("agenteval.test.id") or about.get("gen_ai.conversation.id")) or trace
    named_agents = [one["attributes"].get("gen_ai.agent.name") or one["attributes"].get("agent_name") for one in
                    (top, *agents, *models)]  # fmt: skip
    agent = plain_text(next(filter(None, named_agents), None))
    measured = _measured(transcript, spans, models or [top], tools, top)
    found = Recording(
        test_id=as_id(name),
        test_name=plain_text(about.get("agenteval.test.name")) or name,
        transcript=measured,
        repetition=as_repetition(about.get("agenteval.run.repetition")),
        prompt=first_user_text(transcript),
        variables=_object(about.get("agenteval.test.variables")),
        agent=agent or transcript.model,
        variation=plain_text(about.get("agenteval.run.variation")),
        results=tuple(_evaluation(one, measured) for span in spans for one in span["evaluations"]),
        started_ms=spans[0]["start"],
        source=tuple(("", _told(one, is_ours(own))) for one in spans),
    )
    return come_back(found, own or None, events=True)


def _told(span: Mapping[str, Any], ours: bool) -> dict[str, Any]:
    """What a span says; its operation tells what kind of span it is. `ours`: this program wrote it, and what it says of
    the run once more in the words of the conventions is nothing that could be lost."""
    attributes = {**span.get("others", {}), **span["attributes"], "gen_ai.operation.name": None}
    if ours:
        attributes = {key: one for key, one in attributes.items() if not key.startswith(_TWICE)}
    evaluations = [{} if f"{_OURS}result" in given else given for given in span["evaluations"]]
    return {"name": None if ours else span["name"], "status": {"message": span["said"]}, "attributes": attributes,
            "events[].attributes": evaluations}  # fmt: skip


def _object(given: Any) -> dict[str, Any]:
    """An object that stands in an attribute as JSON: a test's variables, or what we say of a run."""
    try:
        found = json.loads(given) if isinstance(given, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _operation(span: Mapping[str, Any]) -> str:
    told = plain_text(span["attributes"].get("gen_ai.operation.name"))
    if told:
        return told
    return _TOOL if "gen_ai.tool.name" in span["attributes"] else ""


def _of_agent(
    models: list[Mapping[str, Any]], agents: list[Mapping[str, Any]], top: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The model's turns of the outermost agent: those of agents that it called are other conversations."""
    inner = {one["id"] for one in agents if one is not top}
    return [one for one in models if one["parent"] not in inner] or models


def _conversation(
    models: Sequence[Mapping[str, Any]], carriers: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Transcript | None:
    """The longest conversation that a span tells: each turn's input holds all that came before."""
    best: list[dict[str, Any]] = []
    for span in (*[one for one in carriers if one not in models][:1], *models):
        said = _said(span["attributes"])
        if len(said) >= len(best):
            best = said
    if not best and tools:
        calls = [
            {
                "id": tool["attributes"].get("gen_ai.tool.call.id"),
                "function": {
                    "name": plain_text(tool["attributes"].get("gen_ai.tool.name")) or tool["name"],
                    "arguments": tool["attributes"].get("gen_ai.tool.call.arguments"),
                },
            }
            for tool in tools
        ]
        best = [{"role": "assistant", "content": "", "tool_calls": calls}]
    return from_openai_messages(best) if best else None


def _said(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    instructions = _decoded(attributes.get("gen_ai.system_instructions"))
    if instructions:
        texts = [one.get("content") if isinstance(one, Mapping) else one for one in instructions]
        messages.append({"role": "system", "content": "\n".join(plain_text(one) for one in texts)})
    whole = _decoded(attributes.get("pydantic_ai.all_messages"))
    turns = [
        *(_decoded(attributes.get("gen_ai.input.messages")) or whole),
        *_decoded(attributes.get("gen_ai.output.messages")),
    ]
    for one in turns:
        if isinstance(one, Mapping):
            messages += messages_of(one)
    return messages if turns else attributes.get(OF_EVENTS) or _indexed(attributes)


def _decoded(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list) else []


def _indexed(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`gen_ai.prompt.0.content` and so on, as instrumentations wrote before the conventions had messages."""
    found: dict[tuple[bool, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _INDEXED.fullmatch(key)
        if match is None or len(match.group(2)) > 5:
            continue
        kind, index, rest = match.groups()
        message = found.setdefault((kind == "completion", int(index)), {"role": "", "content": "", "calls": {}})
        call = _INDEXED_CALL.fullmatch(rest)
        if call is not None and len(call.group(1)) <= 5:
            message["calls"].setdefault(int(call.group(1)), {})[call.group(2)] = value
        elif rest in ("role", "content", "tool_call_id"):
            message[rest] = plain_text(value)
    messages = []
    for (answered, _), one in sorted(found.items())[:_MOST]:
        calls = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
            for _, call in sorted(one.pop("calls").items())
        ]
        one["role"] = one["role"] or ("assistant" if answered else "user")
        messages.append({**one, "tool_calls": calls} if calls else one)
    return messages


def _measured(
    transcript: Transcript,
    spans: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    top: Mapping[str, Any],
) -> Transcript:
    """With times, usage, model, and how the trace ended."""
    base = min((one["start"] for one in spans if one["start"] is not None), default=None)
    ended = max((one["end"] for one in spans if one["end"] is not None), default=None)
    calls = [_timed(call, span, base) for call, span in _of_calls(transcript.tool_calls, tools)]
    steps = tuple(
        Step(_step_name(one), one["start"] - base, one["end"] - one["start"])
        for one in sorted((one for one in (*models, *tools) if one["start"] is not None), key=lambda one: one["start"])
        if base is not None and one["end"] is not None and (one["end"] > one["start"] or one is not top)
    )
    last = models[-1]["attributes"]
    reasons = last.get("gen_ai.response.finish_reasons") or top["attributes"].get("gen_ai.response.finish_reasons")
    usage = Usage()
    for one in models:
        usage = added(usage, _usage(one["attributes"]))
    if usage == Usage():
        usage = _usage(top["attributes"])
    first = number(models[0]["attributes"].get("gen_ai.server.time_to_first_token"))
    return replace(
        transcript,
        tool_calls=tuple(calls),
        timing=Timing(
            first_token_ms=None if first is None else first * 1000,
            total_ms=None if base is None or ended is None or ended <= base else ended - base,
            steps=steps,
        ),
        usage=usage,
        model=plain_text(last.get("gen_ai.response.model") or last.get("gen_ai.request.model")),
        finish_reason=plain_text(reasons[-1]) if isinstance(reasons, list) and reasons else "",
        error=_error(top) if top["failed"] else None,
    )


def _of_calls(
    calls: Sequence[ToolCall], tools: Sequence[Mapping[str, Any]]
) -> list[tuple[ToolCall, Mapping[str, Any] | None]]:
    """Each call with its tool's span: told by the call's id, else (a span without one) by name, in their order."""
    left = list(tools)
    found: dict[int, Mapping[str, Any]] = {}
    for by_name in (False, True):
        for index, call in enumerate(calls):
            if index in found:
                continue
            for span in left:
                uid = plain_text(span["attributes"].get("gen_ai.tool.call.id"))
                if uid == call.id if not by_name else not uid and _tool_name(span) == call.name:
                    found[index] = span
                    left.remove(span)
                    break
    return [(call, found.get(index)) for index, call in enumerate(calls)]


def _tool_name(span: Mapping[str, Any]) -> str:
    told = plain_text(span["attributes"].get("gen_ai.tool.name"))
    return told or str(span["name"]).removeprefix(f"{_TOOL} ").removesuffix(".tool")


def _step_name(span: Mapping[str, Any]) -> str:
    """A tool by its name; the conventions call its span `execute_tool NAME`."""
    return plain_text(span["attributes"].get("gen_ai.tool.name")) or str(span["name"])


def _timed(call: ToolCall, span: Mapping[str, Any] | None, base: float | None) -> ToolCall:
    if span is None:
        return call
    result = call.result
    if result is None and "gen_ai.tool.call.result" in span["attributes"]:
        result = content_text(span["attributes"]["gen_ai.tool.call.result"])
    started, ended = span["start"], span["end"]
    return replace(
        call,
        result=result,
        status="error" if span["failed"] else "ok" if result is not None else call.status,
        started_ms=None if started is None or base is None else started - base,
        duration_ms=None if started is None or ended is None or ended <= started else ended - started,
    )


def _usage(about: Mapping[str, Any]) -> Usage:
    def whole(*keys: str) -> int | None:
        found = next((value for key in keys if (value := number(about.get(key))) is not None), None)
        return None if found is None or not 0 <= found < 2**63 else int(found)

    return Usage(
        whole("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.aggregated_usage.input_tokens"),
        whole("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.output_tokens"),
        whole("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens"),
        whole("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        next((cost for key in _COST if (cost := number(about.get(key))) is not None), None),
    )


def _error(span: Mapping[str, Any]) -> RunError:
    kind = plain_text(span["attributes"].get("error.type")) or SOURCE
    return RunError.told(kind, span["said"] or "the trace ended with an error")


def _evaluation(given: Mapping[str, Any], transcript: Transcript) -> CriterionResult:
    """An evaluation that was recorded in the trace (`gen_ai.evaluation.result`); one of ours as it was."""
    if whole := _object(given.get(f"{_OURS}result")):
        try:
            return results_of([whole], transcript)[0]
        except AgentevalError:
            pass  # what the conventions say of it stands beside it
    severity, weight = given.get(f"{_OURS}severity"), number(given.get(f"{_OURS}weight"))
    return replace(
        _told_evaluation(given),
        severity=severity if severity in ("warning", "info") else "error",
        weight=1.0 if weight is None or weight < 0 else weight,
        negate=given.get(f"{_OURS}negate") is True,
    )


def _told_evaluation(given: Mapping[str, Any]) -> CriterionResult:
    score = number(given.get("gen_ai.evaluation.score.value"))
    label = plain_text(given.get("gen_ai.evaluation.score.label"))
    passed = {"pass": True, "passed": True, "fail": False, "failed": False}.get(label.casefold())
    reason = plain_text(given.get("gen_ai.evaluation.explanation")) or label
    name = plain_text(given.get("gen_ai.evaluation.name")) or "evaluation"
    if label.casefold() == "error" and score is None:
        return unreadable_result(f"{SOURCE} {name}", source=SOURCE, reason=reason)
    if score is not None and passed is None and not 0 <= score <= 1:
        score, reason = None, f"score {score:g}; {reason}"
    return foreign_result(f"{SOURCE} {name}", score=score, passed=passed, source=SOURCE, reason=reason)
