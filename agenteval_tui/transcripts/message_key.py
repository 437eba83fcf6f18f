"""What makes a message of a request the same message in another request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.transcripts.call_arguments import decode_arguments


def message_key(message: Mapping[str, Any]) -> str:
    """Role, text, calls, images and files: what the model sees of it. Frameworks write ids, the arguments of calls,
    names and thoughts of one and the same message otherwise from request to request."""
    calls = [[function.get("name"), decode_arguments(function.get("arguments"))[0]] for function in _functions(message)]
    files = [[file.get("sha256"), file.get("url")] for file in message.get("attachments") or ()]
    parts = [message.get("role"), str(message.get("content") or "").strip(), calls, *files]
    return json.dumps(parts, sort_keys=True, default=str)


def _functions(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The functions that it calls, as a program wrote them: servers refuse much of that, and it is kept."""
    listed = message.get("tool_calls")
    functions = (
        [call.get("function") if isinstance(call, Mapping) else None for call in listed]
        if isinstance(listed, list)
        else []
    )
    for function in (*functions, message.get("function_call")):
        if isinstance(function, Mapping):
            yield function
