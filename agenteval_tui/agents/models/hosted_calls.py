"""Tools that a server runs itself, as APIs tell them: items of the Responses API whose type ends in `_call`, and parts
of Gemini with the code that it ran and with what the code gave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.core.json_values import json_text

_ABOUT = frozenset(
    (
        "type",
        "id",
        "status",
        "call_id",
        "container_id",
        "server_label",
        "error",
        "output",
        "outputs",
        "results",
        "result",
        "name",
        "approval_request_id",
        "created_by",
        "agent",
        "pending_safety_checks",
        "acknowledged_safety_checks",
    )
)
"""Fields of an item that are not what the tool was called with."""
_BY_CLIENT = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
"""Calls that the caller of the API is to run."""

_OF_OTHERS = ("function_call", "custom_tool_call", "tool_call", "server_tool_call")
"""Calls that the caller runs, and parts of messages in other forms."""
CODE_EXECUTION = "code_execution"
"""How Gemini calls its tool that runs code."""


class HostedCall(Struct, frozen=True):
    """A call of a tool that the server ran. `arguments` is JSON text, or what a program gave for it. `result` None: it
    is not told."""

    id: str
    name: str
    arguments: Any
    result: str | None = None
    failed: bool = False


def hosted_call(item: Mapping[str, Any]) -> HostedCall | None:
    """The call that an item of a response is; None for everything else."""
    kind = item.get("type")
    if not isinstance(kind, str) or not kind.endswith("_call") or kind in _OF_OTHERS:
        return None
    name = item.get("name")
    arguments = item.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(_given(item) if arguments is None else arguments, ensure_ascii=False)
    error = item.get("error")
    return HostedCall(
        id=json_text(item.get("call_id")) or json_text(item.get("id")),
        name=name if isinstance(name, str) and name else kind.removesuffix("_call"),
        arguments=arguments,
        result=json_text(error) if error else None if kind in _BY_CLIENT else _result(item),
        failed=bool(error) or item.get("status") == "failed",
    )


def executed_code(part: Mapping[str, Any]) -> HostedCall | None:
    """The call that a part with code that Gemini ran is; None for any other part. The next part tells the result."""
    code = _inner(part, "executableCode", "executable_code")
    if code is None:
        return None
    fields = {key: code[key] for key in ("language", "code") if key in code}
    return HostedCall(json_text(code.get("id")), CODE_EXECUTION, json.dumps(fields, ensure_ascii=False), None)


def code_result(part: Mapping[str, Any]) -> tuple[str, bool] | None:
    """(what code gave that Gemini ran, whether it failed); None for any other part."""
    result = _inner(part, "codeExecutionResult", "code_execution_result")
    if result is None:
        return None
    return json_text(result.get("output")), result.get("outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")


def _inner(part: Mapping[str, Any], *keys: str) -> Mapping[str, Any] | None:
    return next((inner for key in keys if isinstance(inner := part.get(key), Mapping)), None)


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    action = item.get("action")
    if isinstance(action, Mapping):
        return {key: value for key, value in action.items() if key not in ("type", "sources")}
    return {key: value for key, value in item.items() if key not in _ABOUT}


def _result(item: Mapping[str, Any]) -> str:
    if item.get("type") == "image_generation_call":
        return ""  # the image is a part of the answer
    outputs = item.get("outputs")
    if isinstance(outputs, list):  # of the code interpreter
        logs = [
            output.get("logs") if isinstance(output, Mapping) and "logs" in output else output for output in outputs
        ]
        return "\n".join(map(json_text, logs))
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, Mapping) else None
    return next(
        (json_text(output) for output in (item.get("output"), item.get("results"), sources) if output is not None), ""
    )
