"""The exact requests of a recording, each with the agent that asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.recording.conversation import agents_of, asked_of
from agenteval_tui.agents.recording.exchange import Exchange, Question
from agenteval_tui.agents.recording.protocols import protocol_of
from agenteval_tui.transcripts.model_request import ModelRequest, OfferedTool

_TOLD = frozenset(
    ("messages", "input", "instructions", "system", "tools", "model", "stream", "stream_options", "contents",
     "systemInstruction", "system_instruction", "previous_response_id", "conversation", "metadata", "user",
     "prompt_cache_key", "safety_identifier")
)  # fmt: skip
"""What of a body stands elsewhere, or says nothing to the model."""


def model_requests(exchanges: Sequence[Exchange]) -> tuple[ModelRequest, ...]:
    """What a program asked of models, in the order of its requests. Requests of other kinds, and those that can't be
    read, are left out."""
    read = [(exchange, asked) for exchange in exchanges if (asked := asked_of(exchange)) is not None]
    read.sort(key=lambda pair: pair[1].started_ms)
    lines = agents_of([asked for _, asked in read])
    requests = []
    for number, ((exchange, asked), line) in enumerate(zip(read, lines, strict=True), 1):
        body = exchange.question.body if isinstance(exchange.question.body, Mapping) else {}
        kept = body.get("conversation")
        requests.append(
            ModelRequest(
                number,
                line,
                asked.request.model,
                asked.request.system,
                asked.request.messages,
                tuple(_tools(exchange.question, body)),
                {str(key): value for key, value in body.items() if key not in _TOLD},
                asked.request.previous or str((kept.get("id") if isinstance(kept, Mapping) else kept) or ""),
                asked.reply.usage.cached_tokens,
                asked.reply.error,
            )
        )
    return tuple(requests)


def before_in_line(requests: Sequence[ModelRequest], number: int) -> ModelRequest | None:
    """The last request before this one of the same agent; None for its first."""
    line = requests[number - 1].line
    return next((one for one in reversed(requests[: number - 1]) if one.line == line), None)


def _tools(question: Question, body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    listed = body.get("tools")
    for tool in listed if isinstance(listed, list) else ():
        if not isinstance(tool, Mapping):
            continue
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        if protocol_of(question) == "gemini" and isinstance(declared, list):
            yield from (_tool(one) for one in declared if isinstance(one, Mapping))
        else:
            function = tool.get("function")
            yield _tool(function if isinstance(function, Mapping) else tool)


def _tool(given: Mapping[str, Any]) -> OfferedTool:
    schemas = (given.get(key) for key in ("parameters", "input_schema", "parametersJsonSchema"))
    schema: Mapping[str, Any] = next((one for one in schemas if isinstance(one, Mapping)), {})
    return OfferedTool(str(given.get("name") or given.get("type") or ""), str(given.get("description") or ""), schema)
