"""One conversation with what is beside its messages: a server's answer with its request, a run's document, or what
somebody wrote by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.agenteval_run import coded_error
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.formats.importers.openai_responses import answer_messages
from agenteval_tui.formats.importers.usage_import import with_usage
from agenteval_tui.transcripts.codec import content_text, from_json
from agenteval_tui.transcripts.model import RunError, Transcript


def _instructions(value: Mapping[str, Any]) -> str:
    instructions = value.get("systemInstruction") or value.get("system_instruction") or value.get("system")
    return content_text(
        instructions["parts"] if isinstance(instructions, Mapping) and "parts" in instructions else instructions
    )


@overload
def as_conversation(value: Mapping[str, Any]) -> Mapping[str, Any]: ...
@overload
def as_conversation(value: object) -> object: ...
def as_conversation(value: object) -> object:
    """A conversation as a list of messages, or as an object with `messages` (one with a `version` is agenteval's own
    transcript); anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    if "version" in value:
        # A run's document has its transcript inside, and the version beside it.
        inner = value.get("transcript")
        if "messages" in value or not isinstance(inner, Mapping) or not isinstance(inner.get("messages"), list):
            return value
        return {"version": value["version"], **inner}
    if (reply := answer_messages(value)) is not None:
        return {**reply, "error": value.get("error")} if value.get("error") is not None else reply
    if isinstance(value.get("contents"), list) and "messages" not in value:  # as Gemini is asked
        return {**value, "messages": value["contents"], "system": _instructions(value)}
    return value


def transcript_in(value: Any, notes: list[str]) -> Transcript:
    """The transcript of what `as_conversation` gives: our own form as it is; else its messages, with the model, usage
    and answer beside them. What could not be read is added to `notes`."""
    if isinstance(value, list):
        return transcript_of(value, notes=notes)
    if "version" in value:
        return from_json(value)
    transcript = transcript_of(value["messages"], system=value.get("system"), notes=notes)
    final, model, finish = value.get("final_output"), value.get("model"), value.get("finish_reason")
    beside: dict[str, Any] = {}
    if isinstance(final, str):
        beside["final_output"] = final
    if isinstance(model, str) and model:
        beside["model"] = model
    if isinstance(finish, str) and finish:
        beside["finish_reason"] = finish
    used = UsageReader()
    used.add(value.get("usage"))
    transcript = with_usage(transcript, used)
    if value.get("error") is not None:
        beside["error"] = _error(value["error"])
    return replace(transcript, **beside) if beside else transcript


def _error(error: Any) -> RunError | None:
    """Why the agent did not finish, as a text or an object with a `message` beside the messages."""
    message = error.get("message") if isinstance(error, Mapping) else error
    if not isinstance(message, str) or not message.strip():
        return None
    kinds = [error.get(key) for key in ("kind", "code", "type")] if isinstance(error, Mapping) else []
    kind = next((name for name in kinds if isinstance(name, str) and name), "recorded")
    return coded_error(kind, message.strip()[:20_000], error)
