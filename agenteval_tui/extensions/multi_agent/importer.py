"""Conversations of several agents whose roles are their names: Who&When, AgentRx, and what Magentic-One logs.

`human` (or `user`) is the user; everybody else is the agent, and the message keeps who it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import plain_text, with_attachments
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.observed import without_calls

NAME = "multi-agent"
_KNOWN = ("user", "assistant", "system", "developer", "tool", "function", "model", "ai", "human")
_ABOUT = ("question", "ground_truth", "mistake_agent", "mistake_step", "mistake_reason", "level", "system_prompt")


def can_read(value: Any) -> bool:
    """Whether a value of the file is such a conversation, or a message of one."""
    if isinstance(value, list):
        return (
            bool(value)
            and all(isinstance(message, Mapping) and "role" in message for message in value[:2])
            and _named(value)
        )
    if not isinstance(value, Mapping):
        return False
    history = value.get("history")
    if isinstance(history, list) and "question" in value:
        return all(isinstance(message, Mapping) and "content" in message for message in history[:3])
    role = value.get("role")
    return isinstance(role, str) and (_is_name(role) or role == "human") and isinstance(value.get("content"), str)


def _named(messages: Iterable[Any]) -> bool:
    return any(isinstance(message, Mapping) and _is_name(plain_text(message.get("role"))) for message in messages)


def _is_name(role: str) -> bool:
    return bool(role) and role.casefold() not in _KNOWN


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each conversation; messages that follow one another are one."""
    messages: list[Any] = []
    for number, element in enumerate(elements, 1):
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
        elif isinstance(element.value, Mapping) and isinstance(element.value.get("history"), list):
            yield _run(element.value["history"], element.value, element.line, number)
        elif isinstance(element.value, list):
            yield _run(element.value, {}, element.line, number)
        elif isinstance(element.value, Mapping) and "role" in element.value:
            messages.append(element.value)
        else:
            yield Skipped("not a conversation: it has no `history`", element.line)
    if messages:
        yield _run(messages, {}, 1, 1)


def _run(history: list[Any], about: Mapping[str, Any], line: int, number: int) -> Recording | Skipped:
    session = Session(plain_text(about.get("question_ID")) or f"conversation-{number}", agent=NAME)
    question = plain_text(about.get("question"))
    for message in history:
        if not isinstance(message, Mapping):
            return Skipped("a message is not an object", line)
        session.messages.append(_message(message))
    if question and not any(message["role"] == "user" for message in session.messages[:1]):
        session.messages.insert(0, {"role": "user", "content": question})
    source = (("", about),) if about else tuple(("[]", entry) for entry in history)
    try:
        recording = session_recording(session, source)
    except AgentevalError as error:
        return Skipped(error.what, line)
    return replace(
        recording,
        transcript=without_calls(recording.transcript, NAME),  # what agents did is told in their texts
        prompt=question or recording.prompt,
        variables={key: about[key] for key in _ABOUT if about.get(key) is not None},
        results=tuple(_results(about)),
        expected=criteria_of_target(about.get("ground_truth")),
    )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    speaker = plain_text(message.get("role"))
    content = content_text(message.get("content"))
    if speaker in _KNOWN or speaker.casefold() in ("human", "user"):  # an agent may be called Assistant
        # Where agents have names, `user` is whoever did not speak as the model: a tool's terminal, say.
        role = {"model": "assistant", "ai": "assistant", "human": "user"}.get(speaker.casefold(), speaker.casefold())
        return with_attachments({**message, "role": role, "content": content}, message.get("content"))
    return with_attachments({"role": "assistant", "content": content, "name": speaker}, message.get("content"))


def _results(about: Mapping[str, Any]) -> Iterator[CriterionResult]:
    for key in ("is_correct", "is_corrected"):
        if isinstance(about.get(key), bool):
            reason = plain_text(about.get("mistake_reason"))
            yield foreign_result("correct", passed=about[key], source=NAME, reason=reason)
            return


FORMAT = Format(
    name=NAME,
    title="conversations of several agents",
    looks_like="`history` and `question` (Who&When), or messages with names as roles",
    can_read=can_read,
    recordings=by_value(recordings),
    aliases=("who-and-when", "agentrx"),
    rank=94,
)
