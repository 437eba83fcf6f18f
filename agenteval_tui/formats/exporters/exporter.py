"""What an exporter is, and what each needs: a run with all that is stored of it, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from agenteval_tui.core.numbers import iso
from agenteval_tui.formats.agenteval_run import RUN_FIELDS, describe, own_fields
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.formats.labels import feedback_document, label_document
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript


class StoredRun(Struct, frozen=True):
    """A run with all that is stored of it."""

    row: RunRow
    transcript: Transcript
    results: tuple[CriterionResult, ...]
    labels: tuple[Label, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    execution: ExecutionRow | None = None
    """The execution that it is a run of; None: not known."""


class Loss(Struct, frozen=True):
    """Something that a format can't keep: its code, what it is in words, and whether a run has it."""

    code: str
    description: str
    of: Callable[[StoredRun], bool]


LABELS = Loss(
    "labels",
    "people's labels and feedback: the file has them, but an import does not read them",
    lambda run: bool(run.labels or run.feedback),
)


ATTACHED = Loss(
    "attached_bytes",
    "the bytes of images and files: the file has their type, size and hash",
    lambda run: any(attachment.sha256 for message in run.transcript.messages for attachment in message.attachments),
)


class Exporter(Struct, frozen=True, kw_only=True):
    """A format to write (entry point group `agenteval.exporters`); it yields the pieces of its text for runs, one after
    another.

    `title` names it in a choice, `about` says what a file of it is, `suffix` ends a file's name. `losses`: what it
    can't keep of a run; everything else comes back as it was: outcomes, scores, criteria with their evidence, rows.
    `rank`: its place in a list, the lowest first.
    """

    name: str
    title: str
    about: str
    suffix: str
    pieces: Callable[[Iterable[StoredRun]], Iterator[str]]
    losses: tuple[Loss, ...] = ()
    rank: int = 1000


def codes_of(run: StoredRun, losses: Sequence[Loss]) -> list[str]:
    """The codes of what a format loses of a run, for its file."""
    return [loss.code for loss in losses if loss.of(run)]


def chat_messages(transcript: Transcript) -> list[dict[str, Any]]:
    """OpenAI chat messages with what those have no place for: reasoning, and that a tool failed."""
    messages = to_openai_messages(transcript)
    for message, chat_message in zip(transcript.messages, messages, strict=True):
        if message.reasoning:
            chat_message["reasoning_content"] = message.reasoning
        if message.tool_call is not None and transcript.tool_calls[message.tool_call].status == "error":
            chat_message["is_error"] = True
    return messages


def about(run: StoredRun) -> dict[str, Any]:
    """Which run it is: its test, repetition, agent, variables, labels, feedback."""
    row = run.row
    fields: dict[str, Any] = {"test_id": row.test_id, "name": row.test_name, "repetition": row.repetition}
    for key, value in (("variation", row.variation), ("agent", row.agent)):
        if value:
            fields[key] = value
    if row.variables:
        fields["variables"] = dict(row.variables)
    if row.started_ms is not None:
        fields["started"] = iso(row.started_ms)
    if run.labels:
        fields["labels"] = to_builtins([label_document(label) for label in run.labels])
    if run.feedback:
        fields["feedback"] = to_builtins([feedback_document(feedback) for feedback in run.feedback])
    return fields


def json_line(value: Any) -> str:
    """A value as JSON in one line."""
    text = json.dumps(replace_non_finite(value), ensure_ascii=False)
    # Lone surrogates have no UTF-8; JSON can still say them.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_list(values: Iterable[Any]) -> Iterator[str]:
    """The pieces of a JSON list, a value a line."""
    # Before a value, and not behind it, where nobody knows yet whether another one follows.
    before = "[\n"
    for value in values:
        yield before + json_line(value)
        before = ",\n"
    yield "[]" if before == "[\n" else "\n]"


def not_kept(run: StoredRun, losses: Sequence[Loss]) -> dict[str, Any]:
    """What the file itself says of what is missing in it."""
    lost = codes_of(run, losses)
    return {"not_kept": lost} if lost else {}


def beside_of(run: StoredRun, losses: Sequence[Loss]) -> dict[str, Any]:
    """What is agenteval's own of a run, for formats that keep its name and agent by themselves."""
    return {**own_fields(run.row, run.transcript, run.results), **of_execution(run), **not_kept(run, losses)}


def of_execution(run: StoredRun) -> dict[str, Any]:
    """What its execution was called, and what it was a version of; nothing where nothing is known of that."""
    if run.execution is None:
        return {}
    described = describe(run.execution.name, run.execution.note, run.execution.meta, run.execution.commits)
    return {"execution": described} if described else {}


def own(run: StoredRun, losses: Sequence[Loss]) -> dict[str, Any]:
    """What comes back of a run from formats that have no place for its name, agent, and so on."""
    fields = about(run)
    whole = beside_of(run, losses) | {key: fields[key] for key in RUN_FIELDS if key in fields}
    return {**whole, "variables": dict(run.row.variables)}
