"""Chat messages: one conversation, a list of conversations, or one conversation a line; also agenteval's transcripts.

Reads OpenAI's messages and those of other libraries (`message_formats`), and results of batches, a request a line:
OpenAI's (`response`, `error`), Anthropic's (`result`) and Gemini's (`key`). A request that failed, expired or was
cancelled is a run in error: rates over those that were answered would be of another set of tests than the batch's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note, without_own_fields
from agenteval_tui.formats.importers.agenteval_results import results_of
from agenteval_tui.formats.importers.conversations import as_conversation, transcript_in
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_object, is_message, plain_text
from agenteval_tui.formats.importers.recording import (
    Recording,
    Skipped,
    as_id,
    as_repetition,
    first_user_text,
    skipped_element,
)
from agenteval_tui.formats.importers.usage_import import moment_ms
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
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
        # A batch's line has an `error` of its own, which is read above.
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
    response = as_object(value.get("response"))
    body = response["body"] if isinstance(response.get("body"), Mapping) else response
    status = response.get("status_code")
    error = value.get("error") or body.get("error")
    is_bad = isinstance(status, int) and status >= 400
    if error or is_bad or not body:
        return body, _error(error or body, f"HTTP {status}" if is_bad else "", "the request failed")
    return body, None


def _error(error: Any, kind: str, otherwise: str) -> RunError:
    """Why a request failed: the innermost `error` says it."""
    # Servers wrap it: {"error": {"error": {"message": ...}}}.
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    about = error if isinstance(error, Mapping) else {"message": error}
    code = next((plain_text(about[key]) for key in ("code", "type", "status") if about.get(key)), "")
    return RunError.told(code or kind or "batch", (plain_text(about.get("message")) or otherwise)[:20_000])


_IDS = ("test_id", "test", "task_id", "custom_id", "id", "name")


def can_read(value: Any) -> bool:
    """Whether a value of the file is a message, a list of messages, or an object with `messages`."""
    if isinstance(value, list):
        return bool(value) and is_message(value[0])
    if is_message(value):
        return True
    if not isinstance(value, Mapping):
        return False
    return is_result(value) or isinstance(as_conversation(value).get("messages"), list)


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """The conversations of the file. One without a name of its own is called by its number.

    A top-level list of messages is one conversation, and so are messages that stand a line each; if one of its messages
    can't be read, all of it is left out, because a conversation with a hole would be judged for what it does not say.
    """
    number = 0
    lists = _MessageList()
    for element in elements:
        if (
            lists.begun
            and element.container != lists.container
            and not (isinstance(element, BrokenElement) and element.note)
        ):
            number += 1
            yield lists.conversation(number)
        if isinstance(element, JsonElement) and is_message(element.value):
            lists.add(element.container, element.value, element.line)
        elif isinstance(element, BrokenElement):
            skipped = skipped_element(element)
            if (element.note and not element.cut_off) or not lists.broke(element.container, skipped):
                yield skipped
        else:
            number += 1
            yield _conversation(element.value, number, element.line)
    if lists.begun:
        yield lists.conversation(number + 1)


_NO_LIST = -1  # not None, which is the container of a file's lines


class _MessageList:
    """The messages of the top-level list (None: of the lines) that is being read, if it is one of messages."""

    def __init__(self) -> None:
        self.container: int | None = None
        self._messages: list[Any] = []
        self._line = 0
        self._hole: Skipped | None = None
        self._broken_list: int | None = _NO_LIST

    @property
    def begun(self) -> bool:
        return bool(self._messages)

    def add(self, container: int | None, message: Any, line: int) -> None:
        if not self._messages:
            self.container, self._line = container, line
            if self._broken_list == container:
                self._hole = Skipped("its first message can't be read", line)
        self._messages.append(message)

    def broke(self, container: int | None, skipped: Skipped) -> bool:
        """Something of list `container` is broken; True when that belongs to the conversation being read."""
        self._broken_list = container
        if not self._messages or container != self.container or not (skipped.counts or skipped.cut_off):
            return False
        self._hole = Skipped(f"a message of it can't be read: {skipped.reason}", skipped.line, skipped.cut_off)
        return True

    def conversation(self, number: int) -> Recording | Skipped:
        """What was read, and room for the next list."""
        recording = self._hole or _conversation(self._messages, number, self._line)
        self._messages, self._hole = [], None
        return recording


def _conversation(value: Any, number: int, line: int) -> Recording | Skipped:
    if is_result(value):
        try:
            return result_recording(value)
        except AgentevalError as error:
            return Skipped(error.what, line)
    if not can_read(value):
        return Skipped("no conversation: neither a list of messages nor an object with `messages`", line)
    raw, value = value, as_conversation(value)
    notes: list[str] = []
    about = as_object(value)
    try:
        transcript = transcript_in(value, notes)
        results = results_of(about.get("results"), transcript) if "version" in about else ()
    except AgentevalError as error:
        return Skipped(error.what, line)
    own = about.get(KEY)
    answered_at_all = any(message.role == "assistant" for message in transcript.messages)
    # A run of ours may have ended before the agent said anything.
    if not answered_at_all and transcript.error is None and not is_ours(own):
        return Skipped("the agent says nothing in it (no message with the role `assistant`)", line)
    name = _name_of(about) or f"conversation {number}"
    own_name = about.get("name")
    recording = Recording(
        test_id=as_id(name),
        test_name=own_name.strip()[:500] if isinstance(own_name, str) and own_name.strip() else name,
        transcript=transcript,
        repetition=as_repetition(about.get("repetition")),
        prompt=first_user_text(transcript),
        agent=_text(about.get("agent")) or transcript.model,
        variation=_text(about.get("variation")),
        results=results,
        variables=about["variables"] if isinstance(about.get("variables"), dict) else {},
        started_ms=_began(value, about),
        notes=tuple(notes),
        source=(("", without_own_fields(raw, own, "outcome", "results") if isinstance(raw, Mapping) else raw),),
    )
    return restore_or_note(recording, own, whole="version" not in about)


def _began(value: Any, about: Mapping[str, Any]) -> float | None:
    """When a conversation started: as written beside its messages, or in the first message with a time."""
    messages = value if isinstance(value, list) else about.get("messages")
    first = next(
        (message for message in messages or () if isinstance(message, (dict, Mapping)) and "timestamp" in message), {}
    )
    stamps = (about.get(key) for key in ("started", "started_at", "created_at", "timestamp"))
    return next(
        (moment for stamp in (*stamps, first.get("timestamp")) if (moment := moment_ms(stamp)) is not None), None
    )


def _text(value: Any) -> str:
    return value[:500] if isinstance(value, str) else ""


def _name_of(about: Mapping[str, Any]) -> str:
    for key in _IDS:
        value = about.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return ""


FORMAT = Format(
    name="openai",
    title="chat messages of OpenAI, Anthropic, LangChain, pydantic-ai",
    looks_like="a list of objects with `role`, an object with `messages`, or a list or lines of those; results of "
    "batches",
    can_read=can_read,
    recordings=by_value(recordings),
    aliases=("anthropic", "langchain", "openai-agents", "pydantic-ai", "openai-batch", "anthropic-batch"),
    rank=110,
)
