"""What servers of models answer (OpenAI's, Gemini's, Bedrock's), as logs and batches keep it: with the request beside
it, or alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.formats.importers.message_formats import as_list, is_message


def answer_messages(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """A logged answer as an object with `messages`; None when `value` is not an answer.

    A chat completion (`choices`), a response (`output`), a line of a batch's output (`response.body`), an answer of
    Gemini (`candidates`) or of Bedrock (`output.message`), or a request and its answer by those names; `messages`,
    `input` or `contents` may also be beside the answer.
    """
    if (conventions := _in_conventions(value)) is not None:
        return conventions
    answer = _inner(value, "response", "body")
    answered = _answered(answer)
    if answered is None:
        return None
    # Where no request is beside it, `_inner` gives the whole: messages may be beside the answer.
    request = _inner(value, "request", "body")
    prompt = request.get("messages", request.get("contents", request.get("input")))
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    before = [message for message in prompt if is_message(message)] if isinstance(prompt, list) else []
    if isinstance(request.get("instructions"), str) and request["instructions"]:
        before.insert(0, {"role": "system", "content": request["instructions"]})
    choices = answer.get("choices") or answer.get("candidates")
    first = choices[0] if choices else {}
    finish = first.get("finish_reason", first.get("finishReason")) or answer.get("status") or answer.get("stopReason")
    usage = answer.get("usage") or answer.get("usageMetadata")
    about = {"model": answer.get("model") or answer.get("modelVersion"), "usage": usage, "finish_reason": finish}
    # In a batch the request's own id is what people look for; the server's is new each time.
    named = value.get("custom_id") or value.get("id") or answer.get("id")
    return {**about, "id": named, "messages": [*before, *answered]}


def _in_conventions(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """What went in and came out in the words of the GenAI conventions: `gen_ai.input.messages` and so on."""
    for prefix, end in (("gen_ai.", ".messages"), ("", "_messages"), ("", "Messages")):
        messages = [*as_list(value.get(f"{prefix}input{end}")), *as_list(value.get(f"{prefix}output{end}"))]
        if messages and all(is_message(message) for message in messages):
            instructions = value.get("gen_ai.system_instructions", value.get("system_instructions"))
            system = (
                [{"role": "system", "parts": instructions}] if isinstance(instructions, list) and instructions else []
            )
            model = value.get("gen_ai.response.model") or value.get("gen_ai.request.model") or value.get("model")
            return {"id": value.get("id"), "model": model, "messages": [*system, *messages]}
    return None


def _inner(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The value of the first key, and in it of the second, if they exist."""
    for key in keys:
        inner = value.get(key)
        if inner is not None and isinstance(inner, Mapping):
            value = inner
    return value


def _answered(answer: Mapping[str, Any]) -> list[Any] | None:
    choices, output = answer.get("choices"), answer.get("output")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return [message] if is_message(message) else None
    candidates = answer.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], Mapping):
        content = candidates[0].get("content")
        parts = content.get("parts") if isinstance(content, Mapping) else None
        return [{"role": "model", "parts": parts}] if isinstance(parts, list) else None
    if isinstance(output, Mapping):  # Bedrock's
        message = output.get("message")
        return [message] if is_message(message) else None
    if answer.get("object") == "response" and isinstance(output, list):
        return [item for item in output if is_message(item)] or None
    return None
