"""What this program writes of a run into another tool's format, beside its messages, so that the run comes back whole.

Every format that runs are exported to has a place for fields of others: it holds an object of ours under `KEY`.
It holds what the format has no fields for: outcome, score, the criterion results with severity, weight, threshold and
evidence, the dataset's row, times, the error. The messages and tool calls are the format's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.formats.importers.agenteval_results import results_of
from agenteval_tui.formats.importers.recording import Described, Recording, StatedOutcome
from agenteval_tui.formats.importers.usage_import import moment_ms, number
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.execution_names import checked_meta, checked_name, checked_note
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.fork.model import ForkOrigin, read_origin
from agenteval_tui.suites.commits import Commit, read_commits
from agenteval_tui.transcripts.codec import VERSION, from_json, read_attachments, to_json
from agenteval_tui.transcripts.model import ErrorCode, Message, RunError, ToolCall, Transcript, last_answer

KEY = "agenteval"
RUN_FIELDS = ("name", "agent", "variables", "started")
"""Of a run: what the formats of tau have no place for."""
_LONGEST_WHY = 20_000
_CODES = frozenset(ErrorCode)


def ending_fields(row: RunRow) -> dict[str, Any]:
    """How a run ended, and of which test, suite and row of a dataset it is."""
    fields: dict[str, Any] = {"version": VERSION, "outcome": row.status, "score": row.score}
    optional = {
        "why": row.why,
        "warnings": row.warnings,
        "row": row.row,
        "row_key": row.row_key,
        "test_id": row.test_id,
        "suite": row.suite_name,
        "tags": list(row.tags),
        "fork_of": _origin(row),
    }
    return fields | {key: value for key, value in optional.items() if value}


def _origin(row: RunRow) -> dict[str, Any] | None:
    """The run that it continues, from where and how; None: it is not a fork."""
    origin = read_origin(row.fork_of, row.fork)
    return None if origin is None else to_builtins(origin)


def describe(name: str, note: str, meta: Mapping[str, str], commits: Sequence[Commit]) -> dict[str, Any]:
    """What an execution is called, and what it is a version of, as JSON; {} where nothing is known of that."""
    parts = {"name": name, "note": note, "meta": dict(meta), "commits": to_builtins(commits)}
    return {key: value for key, value in parts.items() if value}


def _described(data: Any) -> Described | None:
    """What `describe` made; None where it can't be read."""
    if not isinstance(data, Mapping):
        return None
    meta, commits, note = data.get("meta"), data.get("commits"), data.get("note")
    try:
        return Described(
            checked_name(_text_or(data.get("name"), "")),
            checked_note(note if isinstance(note, str) else ""),
            checked_meta({str(key): str(value) for key, value in meta.items()} if isinstance(meta, Mapping) else {}),
            read_commits(commits if isinstance(commits, list) else ()),
        )
    except AgentevalError:
        return None


def own_fields(row: RunRow, transcript: Transcript, results: Sequence[CriterionResult]) -> dict[str, Any]:
    """All that a run has beside its messages and tool calls, as JSON."""
    rest = to_json(replace(transcript, messages=(), tool_calls=()))
    del rest["messages"], rest["tool_calls"], rest["version"]
    # An import takes the last answer where it is not said.
    if transcript.final_output == last_answer(transcript.messages):
        del rest["final_output"]
    times = [[call.started_ms, call.duration_ms] for call in transcript.tool_calls]
    if any(moment is not None for pair in times for moment in pair):
        rest["tool_times"] = times
    attached = {
        str(number): to_builtins(message.attachments)
        for number, message in enumerate(transcript.messages)
        if message.attachments
    }
    if attached:
        rest["attachments"] = attached
    more = {"results": [result_to_json(result) for result in results]} if results else {}
    return {**ending_fields(row), "transcript": {key: value for key, value in rest.items() if value}, **more}


def restore(recording: Recording, data: Any, *, events: bool = False) -> Recording:
    """The recording of a foreign format with what `own_fields` wrote into it. Unchanged if `data` is not ours.
    `events`: its results are elsewhere. Raises `AgentevalError` if it is ours and can't be read.
    """
    if isinstance(data, str):
        data = parsed_json(data)
    if not is_ours(data):
        return recording
    transcript = _transcript(recording.transcript, data.get("transcript"))
    results = recording.results
    if "results" in data:
        results = results_of(data["results"], transcript)
    # It had none: what the format's own reader took for a verdict is none of ours.
    elif not events:
        results = ()
    restored = replace(
        recording,
        transcript=transcript,
        results=results,
        test_id=_text_or(data.get("test_id"), recording.test_id),
        test_name=_text_or(data.get("name"), recording.test_name),
        agent=_text_or(data.get("agent"), recording.agent),
        variables=data["variables"] if isinstance(data.get("variables"), dict) else recording.variables,
        started_ms=recording.started_ms if (began := moment_ms(data.get("started"))) is None else began,
    )
    return _restore_ending(restored, data)


def is_ours(data: Any) -> bool:
    """Whether a value is what `own_fields` or `ending_fields` makes."""
    return isinstance(data, Mapping) and data.get("version") == VERSION and data.get("outcome") in ENDED


def _restore_ending(recording: Recording, data: Any) -> Recording:
    """The recording with what `ending_fields` says of its end and its row. An outcome is taken over only where its
    results can make it: anybody may have written the file."""
    if not is_ours(data):
        return recording
    row = data.get("row")
    tags = data.get("tags")
    key, why, warnings = data.get("row_key"), data.get("why"), data.get("warnings")
    restored = replace(
        recording,
        row=row if isinstance(row, int) and not isinstance(row, bool) and 0 <= row < 2**31 else 0,
        row_key=key[:500] if isinstance(key, str) else "",
        suite=_text_or(data.get("suite"), ""),
        fork=_fork(data.get("fork_of")),
        execution=_described(data.get("execution")),
        tags=tuple(tag[:200] for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
    )
    outcome = str(data["outcome"])
    if outcome not in _possible_outcomes(restored):
        return restored
    # `number` takes texts, too, which we never write.
    score = None if isinstance(data.get("score"), str | bool) else number(data.get("score"))
    return replace(
        restored,
        stated=StatedOutcome(
            outcome=outcome,
            score=None if score is None else min(1.0, max(0.0, score)),
            why=why[:_LONGEST_WHY] if isinstance(why, str) else "",
            warnings=warnings if isinstance(warnings, int) and 0 <= warnings < 2**31 else 0,
        ),
    )


def _fork(data: Any) -> ForkOrigin | None:
    try:
        return None if data is None else convert(data, ForkOrigin)
    except ValidationError:
        return None


def _possible_outcomes(recording: Recording) -> frozenset[str]:
    """The outcomes that a run with these results can have: without a threshold of its test, or with any."""
    if recording.transcript.error is not None:
        return frozenset({"error", "cancelled", "skipped"})
    if not recording.results:
        return frozenset(ENDED)
    # The extremes are enough: every threshold between them gives one of these outcomes.
    outcomes = (verdict_of(recording.results, threshold).outcome for threshold in (None, 0.0, 1.0))
    return frozenset({*map(str, outcomes), "cancelled"})


def restore_or_note(recording: Recording, data: Any, *, whole: bool = True, events: bool = False) -> Recording:
    """The recording with what we wrote beside it (`restore`; not `whole`: `_restore_ending`), or with a note where that
    can't be read."""
    if data is None:
        return recording
    try:
        return restore(recording, data, events=events) if whole else _restore_ending(recording, data)
    except AgentevalError as error:
        note = f"what `{KEY}` says of this run can't be read: {error.what}"
        return replace(recording, notes=(*recording.notes, note))


def without_own_fields(value: Mapping[str, Any], own: Any, *others: str) -> Mapping[str, Any]:
    """An object without `own`, the fields that we wrote into it, and without the `others` that repeat them: an import
    can't lose those texts."""
    return {key: item for key, item in value.items() if key != KEY and key not in others} if is_ours(own) else value


def coded_error(kind: str, message: str, data: Any) -> RunError:
    """The error of a file. One with a code of ours and its fields is known by these, else by its words."""
    code = data.get("code") if isinstance(data, Mapping) else None
    fields = data.get("fields") if isinstance(data, Mapping) else None
    if not isinstance(code, str) or code not in _CODES or not isinstance(fields, Mapping):
        return RunError.told(kind, message)
    return RunError(kind, message, "", code, dict(fields))


def error_fields(error: RunError) -> dict[str, Any]:
    """What `coded_error` reads."""
    return {"kind": error.kind, "message": error.message, "code": error.code, "fields": dict(error.fields)}


def _text_or(value: Any, otherwise: str) -> str:
    return value[:500] if isinstance(value, str) and value.strip() else otherwise


def _transcript(messages: Transcript, data: Any) -> Transcript:
    if not isinstance(data, Mapping):
        return messages
    rest = from_json({"version": VERSION, "tool_calls": [], **data, "messages": []})
    calls = messages.tool_calls
    times = data.get("tool_times")
    if isinstance(times, list) and len(times) == len(calls):
        calls = tuple(_timed(call, pair) for call, pair in zip(calls, times, strict=True))
    final = data.get("final_output")
    attached = _attached(messages.messages, data.get("attachments"))
    return replace(
        rest,
        messages=attached,
        tool_calls=calls,
        final_output=final if isinstance(final, str) else last_answer(attached),
    )


def _attached(messages: tuple[Message, ...], listed_by_number: Any) -> tuple[Message, ...]:
    """The messages with the images and files that they had. Raises `AgentevalError` where that can't be read."""
    if not isinstance(listed_by_number, Mapping) or not listed_by_number:
        return messages
    restored = list(messages)
    try:
        for number, listed in listed_by_number.items():
            restored[int(number)] = replace(restored[int(number)], attachments=read_attachments(listed))
    except (TypeError, ValueError, LookupError) as error:
        raise AgentevalError(f"its attachments can't be read: {error}") from None
    return tuple(restored)


def _timed(call: ToolCall, pair: object) -> ToolCall:
    if not isinstance(pair, list) or len(pair) != 2:
        return call
    started, lasted = (None if isinstance(moment, str | bool) else number(moment) for moment in pair)
    return replace(call, started_ms=started, duration_ms=lasted)
