"""Transcripts given for grading, in any format that an import reads, and by the same readers.

What is not understood must not become an empty transcript: every check that something is absent would pass on it. So
chat messages are taken strictly: one that can't be read refuses them all, where an import would say so and go on.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.detect import detect
from agenteval_tui.formats.importers import openai_messages
from agenteval_tui.formats.importers.conversations import as_conversation, transcript_in
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import dialect_of, is_message
from agenteval_tui.formats.importers.recording import Skipped
from agenteval_tui.formats.stream.json_stream import wide_encoding
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.suites.files import decode_utf8
from agenteval_tui.transcripts.codec import VERSION, describe_json
from agenteval_tui.transcripts.model import Transcript

SHAPES = (
    "give this project's JSON (`agenteval show RUN --transcript --json`), a list of chat messages, an object with "
    "`messages`, a server's whole reply (Chat Completions, Responses, Anthropic Messages), or a file that `agenteval "
    "import` reads"
)


class RunToGrade(Struct, frozen=True):
    """A transcript of a file. `label` says which of several it is. `notes`: what of it could not be read."""

    label: str
    transcript: Transcript
    variables: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def runs_to_grade(source: Source, name: str, *, by_line: bool = False) -> Iterator[RunToGrade]:
    """The transcripts of a file; `name`: how messages call it. `by_line`: of chat messages each line is a transcript.

    Raises `AgentevalError` for a file in no format that is known, and for chat messages that can't be read.
    """
    format_ = _format_of(source)
    is_chat = format_ is None or format_ is openai_messages.FORMAT
    if is_chat and by_line:
        yield from _lines(source, name)
        return
    if is_chat:
        value, error = _decoded(source, name)
        # JSON Lines are no JSON: their error only counts where no other reader knows the file.
        if error is not None and format_ is None:
            raise error
        if error is None and (format_ is None or not _holds_conversations(value)):
            yield RunToGrade("", _placed(value, name))
            return
    assert format_ is not None
    yield from _recorded(source, format_, name)


def transcript_to_grade(value: Any) -> Transcript:
    """The transcript in decoded JSON. Raises `AgentevalError` for a shape that is not known, saying what was found, and
    where there are several."""
    if not _is_chat(value):
        runs = _of_another_format(value)
        if len(runs) == 1:
            return runs[0].transcript
        if runs:
            raise AgentevalError(f"there are {count(len(runs), 'run')} in it", fix="give them one by one")
    return _conversation(value)


def _is_chat(value: Any) -> bool:
    """Whether it is meant as one conversation."""
    if isinstance(value, list):
        return not value or is_message(value[0])
    if not isinstance(value, Mapping):
        return True
    is_told = bool(value.keys() & {"messages", "contents"}) or is_message(value)
    return is_told or isinstance(as_conversation(value).get("messages"), list)


def _of_another_format(value: Any) -> list[RunToGrade]:
    with tempfile.TemporaryDirectory(prefix="agenteval-") as folder:
        path = Path(folder, "given.json")
        path.write_text(json.dumps(value), "utf-8")
        with Source(path) as source:
            format_ = _format_of(source)
            return [] if format_ is None or format_.recordings is None else list(_recorded(source, format_, ""))


def _format_of(source: Source) -> Format | None:
    try:
        return detect(source)
    except AgentevalError:
        return None


def _holds_conversations(value: Any) -> bool:
    """Whether it is a list of conversations, and not of messages."""
    return isinstance(value, list) and bool(value) and not is_message(value[0])


def _recorded(source: Source, format_: Format, name: str) -> Iterator[RunToGrade]:
    """The runs that the reader of a format finds."""
    if format_.recordings is None:
        raise AgentevalError(f"there are tests in this file ({format_.name}) and no runs", where=name)
    count = 0
    reasons: list[str] = []
    for part in format_.runs(source):
        if isinstance(part, Skipped):
            if not part.counts:
                continue
            where = f"{name}:{part.line}" if part.line else name
            if format_ is openai_messages.FORMAT:
                raise AgentevalError(part.reason, where=where, fix=SHAPES)
            reasons.append(f"{part.place or where}: {part.reason}")
            continue
        if format_ is openai_messages.FORMAT and part.notes:
            raise AgentevalError(part.notes[0], where=name, fix=SHAPES)
        count += 1
        yield RunToGrade(f"run {count} ({part.test_id})", part.transcript, part.variables, (*part.notes, *reasons))
        # What was skipped before a run belongs to it: it may lack that.
        reasons.clear()
    if not count:
        reason = f": {reasons[0]}" if reasons else ""
        raise AgentevalError(f"there are no runs in this file ({format_.name}){reason}", where=name)


def _lines(source: Source, name: str) -> Iterator[RunToGrade]:
    """A transcript a line."""
    lines: Iterable[bytes] = source.open()
    # The end of a line in UTF-16 is no byte that could be looked for: all of it is decoded first.
    if encoding := wide_encoding(source.open().read(4)):
        lines = source.open().read().decode(encoding, "replace").encode().splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{name}:{number}"
            try:
                value = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise AgentevalError(f"this line is not valid JSON: {error}", where=where) from None
            yield RunToGrade(f"line {number}", _placed(value, where))


def _decoded(source: Source, name: str) -> tuple[Any, AgentevalError | None]:
    """The file as one JSON value, or why it is none."""
    with source.open() as file:
        data = file.read()
    try:
        text = _text(data, name)
        return json.loads(text), None
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        fix = "give a JSON Lines file with --transcripts" if "\n" in text.strip() else "give JSON"
        return None, AgentevalError(f"this is not valid JSON: {error.msg}", where=where, fix=fix)
    except (RecursionError, ValueError) as error:  # too deep, or a whole number of thousands of digits
        return None, AgentevalError(f"this JSON can't be read: {error}", where=name)


def _text(data: bytes, name: str) -> str:
    """The text of a file in UTF-8, or in UTF-16 as some shells write it."""
    encoding = wide_encoding(data)
    return data.decode(encoding) if encoding else decode_utf8(data, Path(name))


def _placed(value: Any, where: str) -> Transcript:
    try:
        return transcript_to_grade(value)
    except AgentevalError as error:
        raise AgentevalError(error.what, where=where, fix=error.fix) from None


# One conversation, strictly


def _conversation(value: Any) -> Transcript:
    if isinstance(value, Mapping) and "version" in value:
        _check_own(value)
    conversation = as_conversation(value)
    if isinstance(conversation, Mapping) and "version" not in conversation and "messages" in conversation:
        _check_list(conversation["messages"])
    messages = (
        conversation
        if isinstance(conversation, list)
        else conversation.get("messages")
        if isinstance(conversation, Mapping)
        else None
    )
    if messages is None and is_message(value):  # such as the reply of Anthropic's Messages API
        conversation = {**value, "messages": [value]}
        messages = [value]
    if not isinstance(messages, list):
        raise AgentevalError(f"this is not a transcript: it is {describe_json(value)}", fix=SHAPES)
    is_own = isinstance(conversation, Mapping) and "version" in conversation
    if not is_own:
        _check(messages)
    notes: list[str] = []
    transcript = transcript_in(conversation, notes)
    if notes:
        raise AgentevalError(notes[0], fix=SHAPES)
    if is_own:
        if not (transcript.messages or transcript.tool_calls or transcript.final_output or transcript.error):
            raise AgentevalError("there is nothing in this transcript: its `messages` are empty", fix=SHAPES)
        return transcript
    if transcript.error is None and not any(message.role == "assistant" for message in transcript.messages):
        roles = ", ".join(dict.fromkeys(message.role for message in transcript.messages))
        raise AgentevalError(
            f"the agent says nothing in this transcript: it has no message with the role `assistant` (roles: {roles})",
            fix=SHAPES,
        )
    return transcript


def _check_own(value: Mapping[str, Any]) -> None:
    """This project's JSON: a transcript, or the document of a run with its transcript in it."""
    inner = value.get("transcript")
    if isinstance(inner, Mapping) and "messages" not in value:
        _check_own({"version": None, **inner})
    elif value["version"] != VERSION or isinstance(value["version"], bool):
        raise AgentevalError(
            f"this transcript has version {describe_json(value['version'])}; version {VERSION} is known", fix=SHAPES
        )


def _check_list(messages: Any) -> None:
    if not isinstance(messages, list):
        raise AgentevalError(
            f"this is not a transcript: `messages` is {describe_json(messages)}, not a list", fix=SHAPES
        )


def _check(messages: list[Any]) -> None:
    """Raises `AgentevalError` for chat messages of which one can't be read."""
    if not messages:
        raise AgentevalError("there is nothing in this transcript: it has no messages", fix=SHAPES)
    for number, message in enumerate(messages, 1):
        if not is_message(message):
            without = " without a `role`" if isinstance(message, Mapping) and "role" not in message else ""
            raise AgentevalError(f"item {number} is not a message: {describe_json(message)}{without}", fix=SHAPES)
        if dialect_of(message) == "openai" and not _says_something(message):
            raise AgentevalError(
                f"message {number} has nothing that can be read: {describe_json(message)}",
                fix="a message has `content` (text or a list of parts) or `tool_calls`",
            )


def _says_something(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    beside = message.get("additional_kwargs")
    calls = message.get("tool_calls") or message.get("function_call")
    if isinstance(calls, list):
        readable = all(_is_call(call) for call in calls)
    else:
        readable = calls is None or _is_call({"function": calls})
    if not readable or not (content is None or isinstance(content, str | list | Mapping)):
        return False
    if isinstance(content, list) and not all(isinstance(part, str | Mapping) for part in content):
        return False
    return "content" in message or bool(calls) or (isinstance(beside, Mapping) and bool(beside.get("tool_calls")))


def _is_call(call: Any) -> bool:
    function = call.get("function") or call.get("custom") or call if isinstance(call, Mapping) else None
    names = ("name", "toolName", "tool_name")
    if isinstance(call, Mapping) and isinstance(call.get("function"), str):
        return True
    return isinstance(function, Mapping) and any(isinstance(function.get(name), str) for name in names)
