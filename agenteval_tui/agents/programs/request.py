"""What a program is told of its task: one JSON document. The shape: docs/schemas/agent-request.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.interface import AgentRequest
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript

VERSION = 1


def request_document(request: AgentRequest, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The request as JSON data. `settings` are the agent's own options for the program, its `config`."""
    return {
        "version": VERSION,
        "prompt": prompt_of(request),
        "messages": to_openai_messages(Transcript(messages=request.messages, tool_calls=request.tool_calls)),
        "context": dict(request.context),
        "variables": json_like(request.variables),
        "config": dict(settings),
        "test": request.test_id,
        "repetition": request.repetition,
        "seed": request.seed,
        "run": request.run,
        "turn": request.turn,
    }


def prompt_of(request: AgentRequest) -> str:
    """The text of the last user message."""
    return next((one.content for one in reversed(request.messages) if one.role == "user"), "")
