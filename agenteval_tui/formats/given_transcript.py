"""One transcript given for grading: read in a known format, or refused with what was found.

What is not understood must not become an empty transcript: every check that something is absent would pass on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_run import coded_error
from agenteval_tui.formats.importers.message_formats import dialect_of, is_message, transcript_of
from agenteval_tui.formats.importers.openai_responses import answer_messages
from agenteval_tui.formats.importers.usage_import import with_usage
from agenteval_tui.transcripts.codec import VERSION, describe_json, from_json
from agenteval_tui.transcripts.model import RunError, Transcript

SHAPES = (
    "give this project's JSON (`agenteval show RUN --transcript --json`), a list of chat messages, an object with "
    "`messages`, or a server's whole reply (Chat Completions, Responses, Anthropic Messages)"
)


def read_given(value: Any) -> Transcript:
    """The transcript in decoded JSON. Raises `AgentevalError` for a shape that is not known, saying what was found."""
    if isinstance(value, list):
        return _conversation(value, {})
    if not isinstance(value, Mapping):
        raise _unknown(value)
    if "version" in value:
        return _own(value)
    if isinstance(value.get("messages"), list):
        return _conversation(value["messages"], value)
    if "messages" in value:
        raise AgentevalError(
            f"this is not a transcript: `messages` is {describe_json(value['messages'])}, not a list", mend=SHAPES
        )
    reply = answer_messages(value)
    if reply is not None:
        return _conversation(reply["messages"], {**reply, "error": value.get("error")})
    if is_message(value):  # such as the reply of Anthropic's Messages API
        return _conversation([value], value)
    raise _unknown(value)


def _own(value: Mapping[str, Any]) -> Transcript:
    """This project's JSON: a transcript, or the document of a run with its transcript in it."""
    inner = value.get("transcript")
    if isinstance(inner, Mapping) and "messages" not in value:
        return _own(inner)
    if value["version"] != VERSION or isinstance(value["version"], bool):
        raise AgentevalError(
            f"this transcript has version {describe_json(value['version'])}; version {VERSION} is known",
            mend=SHAPES,
        )
    if not isinstance(value.get("messages"), list):
        raise _unknown(value)
    transcript = from_json(value)
    did = transcript.messages or transcript.tool_calls or transcript.final_output
    if not did and transcript.error is None:
        raise AgentevalError("there is nothing in this transcript: its `messages` are empty", mend=SHAPES)
    return transcript


def _conversation(messages: list[Any], about: Mapping[str, Any]) -> Transcript:
    """Chat messages with the fields beside them: the system prompt, model, usage, answer, error."""
    if not messages:
        raise AgentevalError("there is nothing in this transcript: it has no messages", mend=SHAPES)
    for number, one in enumerate(messages, 1):
        if not is_message(one):
            without = " without a `role`" if isinstance(one, Mapping) and "role" not in one else ""
            raise AgentevalError(f"item {number} is not a message: {describe_json(one)}{without}", mend=SHAPES)
        if dialect_of(one) == "openai" and not _says_something(one):
            raise AgentevalError(
                f"message {number} has nothing that can be read: {describe_json(one)}",
                mend="a message has `content` (text or a list of parts) or `tool_calls`",
            )
    transcript = transcript_of(messages, system=about.get("system"))
    error = _error(about.get("error"))
    if error is None and not any(message.role == "assistant" for message in transcript.messages):
        roles = ", ".join(dict.fromkeys(message.role for message in transcript.messages))
        raise AgentevalError(
            f"the agent says nothing in this transcript: it has no message with the role `assistant` (roles: {roles})",
            mend=SHAPES,
        )
    final, model, finish = about.get("final_output"), about.get("model"), about.get("finish_reason")
    used = UsageReader()
    used.add(about.get("usage"))
    return replace(
        with_usage(transcript, used),
        final_output=final if isinstance(final, str) else transcript.final_output,
        model=model if isinstance(model, str) and model else transcript.model,
        finish_reason=finish if isinstance(finish, str) and finish else transcript.finish_reason,
        error=error,
    )


def _says_something(one: Mapping[str, Any]) -> bool:
    content = one.get("content")
    calls = one.get("tool_calls") or one.get("function_call")
    if isinstance(calls, list):
        readable = all(_is_call(call) for call in calls)
    else:
        readable = calls is None or _is_call({"function": calls})
    if not readable or not (content is None or isinstance(content, str | list | Mapping)):
        return False
    if isinstance(content, list) and not all(isinstance(part, str | Mapping) for part in content):
        return False
    return "content" in one or bool(calls)


def _is_call(call: Any) -> bool:
    function = call.get("function") or call.get("custom") or call if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


def _error(given: Any) -> RunError | None:
    """Why the agent did not finish, where that is said beside its messages."""
    said = given.get("message") if isinstance(given, Mapping) else given
    if not isinstance(said, str) or not said.strip():
        return None
    kind = (
        next((given[key] for key in ("kind", "code", "type") if isinstance(given.get(key), str)), "")
        if isinstance(given, Mapping)
        else ""
    )
    return coded_error(kind or "recorded", said.strip()[:2000], given)


def _unknown(value: Any) -> AgentevalError:
    return AgentevalError(f"this is not a transcript: it is {describe_json(value)}", mend=SHAPES)
