"""Results of batches: OpenAI's (`response`, `error`), Anthropic's (`result`) and Gemini's (`key`), a request a line.

A request that failed, expired or was cancelled is a run in error: rates over those that were answered would be of
another set of tests than that of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.conversations import as_conversation, transcript_in
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.recording import Recording, as_id, first_user_text
from agenteval_tui.transcripts.model import RunError, Transcript

_ENDED = {
    "errored": "the request failed",
    "expired": "the request was not answered before the batch expired",
    "canceled": "the request was not answered before the batch was cancelled",
}
"""What Anthropic's types of results say, if nothing else does."""


def is_result(value: Any) -> bool:
    """Whether a value of the file is the result of a request."""
    if not isinstance(value, Mapping):
        return False
    if "custom_id" in value:
        result = value.get("result")
        return (isinstance(result, Mapping) and "type" in result) or ("response" in value or "error" in value)
    return "key" in value and isinstance(value.get("response", value.get("error")), Mapping)


def result_recording(value: Mapping[str, Any]) -> Recording:
    """The run that a result is. Raises `AgentevalError` for an answer that is not a conversation."""
    name = plain_text(value.get("custom_id", value.get("key")))
    notes: list[str] = []
    answer, error = _answer(value)
    if error is not None:
        transcript = Transcript(error=error, model=plain_text(answer.get("model")))
    else:
        conversation = as_conversation(answer)
        if not isinstance(conversation.get("messages"), list):
            raise AgentevalError("no conversation: the response has no message")
        transcript = replace(transcript_in(conversation, notes), error=None)
    return Recording(
        test_id=as_id(name or "request"),
        test_name=name[:500] or "request",
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=transcript.model,
        notes=tuple(notes),
        source=(("", value),),
    )


def _answer(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], RunError | None]:
    """What came back of a request, and why it failed, if it did."""
    result = value.get("result")
    if isinstance(result, Mapping):
        kind = plain_text(result.get("type"))
        message = result.get("message")
        if kind == "succeeded" and isinstance(message, Mapping):
            return {"model": message.get("model"), "messages": [message]}, None
        return {}, _error(result.get("error"), kind, _ENDED.get(kind, kind))
    response = value["response"] if isinstance(value.get("response"), Mapping) else {}
    body = response["body"] if isinstance(response.get("body"), Mapping) else response
    status = response.get("status_code")
    error = value.get("error") or body.get("error")
    is_bad = isinstance(status, int) and status >= 400
    if error or is_bad or not body:
        return body, _error(error or body, f"HTTP {status}" if is_bad else "", "the request failed")
    return body, None


def _error(error: Any, kind: str, otherwise: str) -> RunError:
    """Why a request failed: the innermost `error` says it."""
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    about = error if isinstance(error, Mapping) else {"message": error}
    code = next((plain_text(about[key]) for key in ("code", "type", "status") if about.get(key)), "")
    return RunError.told(code or kind or "batch", (plain_text(about.get("message")) or otherwise)[:20_000])
