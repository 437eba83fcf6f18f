"""Messages that are made of parts, as OpenAI chat messages.

OpenTelemetry's GenAI conventions (`text`, `tool_call`, `tool_call_response`), Vercel's AI SDK (its UIMessage, where
calls hold their results: `tool-NAME`, `dynamic-tool`, `tool-invocation`; its ModelMessage: `tool-call`, `tool-result`),
and Gemini (`functionCall`, `functionResponse`). Told apart part by part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.transcripts.codec import content_text

CALLS = frozenset({"tool_call", "tool-call", "server_tool_call", "function_call", "functionCall"})
ANSWERS = frozenset({
    "tool_call_response", "tool-result", "tool-error", "tool-output-denied", "server_tool_call_response",
    "function_response", "functionResponse",
})  # fmt: skip
_THOUGHTS = frozenset({"reasoning", "thinking"})
_STEPS = frozenset({"step-start", "step-finish"})
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user"}


def has_parts(message: Mapping[str, Any]) -> bool:
    """Whether a message with a role is made of such parts, in `parts` or in its content."""
    if isinstance(message.get("parts"), list) or isinstance(message.get("toolInvocations"), list):
        return True
    content = message.get("content")
    return isinstance(content, list) and any(_kind(one) in CALLS | ANSWERS or _is_ui_call(one) for one in content)


def messages_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that one of parts is: what tools answered are messages of their own, where they stand."""
    role = str(message.get("role") or "user")
    found = _Parts(_ROLES.get(role, role))
    parts = message.get("parts")
    content = message.get("content")
    if not isinstance(parts, list) or not parts:
        parts = content if isinstance(content, list) else [content] if content else []
    for part in parts:
        found.take(part)
    invocations = message.get("toolInvocations")
    for one in invocations if isinstance(invocations, list) else ():
        if isinstance(one, Mapping) and one.get("toolCallId") not in found.called:
            found.take({"type": "tool-invocation", "toolInvocation": one})
    said = found.ended()
    if isinstance(message.get("name"), str):
        said = [{"name": message["name"], **one} for one in said]
    return said


class _Parts:
    """What the parts of a message say, so far."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._messages: list[dict[str, Any]] = []
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []
        self.called: set[Any] = set()

    def take(self, part: Any) -> None:
        if isinstance(part, str):
            self._say(part)
            return
        if not isinstance(part, Mapping):
            return
        kind = _kind(part)
        if kind in CALLS:
            given = part.get(kind)
            about = {**part, **given} if isinstance(given, Mapping) else part
            self._call(about)
        elif kind in ANSWERS:
            given = part.get(kind)
            about = {**part, **given} if isinstance(given, Mapping) else part
            self._answer(about, failed=kind in ("tool-error", "tool-output-denied"))
        elif _is_ui_call(part):
            self._ui_call(part, kind)
        elif kind in _STEPS:
            self._flush()
        elif kind in _THOUGHTS or part.get("thought") is True:
            self._thoughts.append(_text(part) or "")
        else:
            said = _text(part)
            self._say(f"[{kind or 'part'}]" if said is None else said)

    def _say(self, text: str) -> None:
        if self._answers:
            self._flush()  # said after the tools answered
        self._texts.append(text)

    def _call(self, part: Mapping[str, Any]) -> None:
        if self._answers:
            self._flush()
        call_id = _first(part, "id", "toolCallId", "tool_call_id")
        arguments = _first(part, "arguments", "input", "args", "parameters")
        name = _first(part, "name", "toolName", "tool_name")
        self.called.add(call_id)
        self._calls.append({"id": call_id, "function": {"name": _name(name), "arguments": arguments}})

    def _answer(self, part: Mapping[str, Any], *, failed: bool = False) -> None:
        given = _first(part, "response", "result", "output", "error", "errorText", "content")
        if isinstance(given, Mapping) and isinstance(given.get("type"), str) and "value" in given:
            failed = failed or given["type"].startswith(("error", "execution-denied"))
            given = given["value"]
        if part.get("isError") is True or part.get("is_error") is True:
            failed = True
        made = {"role": "tool", "content": content_text(given), "is_error": failed}
        call_id, name = _first(part, "id", "toolCallId", "tool_call_id"), _first(part, "name", "toolName", "tool_name")
        if call_id is not None:
            made["tool_call_id"] = call_id
        if isinstance(name, str):
            made["name"] = name
        self._answers.append(made)

    def _ui_call(self, part: Mapping[str, Any], kind: str) -> None:
        """A call of Vercel's UIMessage: with its result, or why there is none."""
        inner = part.get("toolInvocation")
        about = inner if isinstance(inner, Mapping) else part
        name = about.get("toolName") or kind.removeprefix("tool-")
        self._call({**about, "name": name, "id": about.get("toolCallId")})
        state = about.get("state")
        if about.get("errorText") is not None or state in ("output-error", "output-denied"):
            said = about.get("errorText") or about.get("approval") or state
            self._answer({"id": about.get("toolCallId"), "name": name, "result": said}, failed=True)
        elif "output" in about or "result" in about:
            result = about["output"] if "output" in about else about["result"]
            self._answers.append({
                "role": "tool", "tool_call_id": about.get("toolCallId"), "name": str(name),
                "content": content_text(result), "is_error": about.get("isError") is True,
            })  # fmt: skip

    def _flush(self) -> None:
        if self._texts or self._thoughts or self._calls:
            made: dict[str, Any] = {"role": self._role, "content": "".join(self._texts)}
            if self._thoughts:
                made["reasoning"] = "\n\n".join(filter(None, self._thoughts))
            if self._calls:
                made["tool_calls"] = list(self._calls)
            # What a user's message brings of tools stands before what the user says to it.
            self._messages += [made, *self._answers] if self._calls or self._role == "assistant" else [
                *self._answers, made]  # fmt: skip
        else:
            self._messages += self._answers
        self._texts, self._thoughts, self._calls, self._answers = [], [], [], []

    def ended(self) -> list[dict[str, Any]]:
        self._flush()
        return self._messages or [{"role": self._role, "content": ""}]


def _is_ui_call(part: Any) -> bool:
    kind = _kind(part)
    if kind in CALLS | ANSWERS:
        return False
    if kind in ("tool-invocation", "dynamic-tool"):
        return True
    return kind.startswith("tool-") and isinstance(part, Mapping) and ("toolCallId" in part or "state" in part)


def _kind(part: Any) -> str:
    """The kind of a part; Gemini's are called by the key that they have."""
    if not isinstance(part, (dict, Mapping)):  # a dict is known sooner than a mapping
        return ""
    told = part.get("type")
    if isinstance(told, str):
        return told
    return next((key for key in part if key in CALLS | ANSWERS), "")


def _text(part: Mapping[str, Any]) -> str | None:
    """What a part of text says; None when it is none."""
    for key in ("text", "content", "reasoning", "thinking", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    for key, inner in (("executableCode", "code"), ("codeExecutionResult", "output")):
        about = part.get(key)
        if isinstance(about, Mapping) and isinstance(about.get(inner), str):
            return str(about[inner])
    return None


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _first(part: Mapping[str, Any], *keys: str) -> Any:
    return next((part[key] for key in keys if part.get(key) is not None), None)
