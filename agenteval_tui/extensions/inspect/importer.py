"""Inspect's logs, `.eval` and `.json`: samples are tests, epochs are repetitions, scores are criterion results.

A sample is read as a stream: its events, each with all messages up to it, and its pools are many times as large as
what becomes of them: the messages, and what models were asked, each message of that once.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import IO, Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.recording.conversation import Asked
from agenteval_tui.agents.recording.imported_requests import asked_in, with_requests
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import with_texts
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.inspect.zip_file import Archive, DamagedMember, Member, open_archive
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    objects_in,
    plain_text,
    type_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, as_repetition, first_user_text
from agenteval_tui.formats.importers.suite_import import (
    LARGEST,
    FoundTests,
    checked,
    checked_literally,
    literal_prompt,
    needs_manual_work,
)
from agenteval_tui.formats.importers.traced_requests import as_asked
from agenteval_tui.formats.importers.usage_import import moment_ms, number, with_usage
from agenteval_tui.formats.omitted_texts import texts_of
from agenteval_tui.formats.stream.json_reader import JsonReader, skipped_by
from agenteval_tui.formats.stream.json_stream import NOT_UTF8, UnreadableFile
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.codec import content_text, from_openai_messages
from agenteval_tui.transcripts.content_parts import attachment_of
from agenteval_tui.transcripts.model import CallStatus, RunError, Step, Timing, Transcript

KNOWN = 3
"""The newest version of the format that is known. A newer one is read all the same, and said."""
LARGEST_HEADER = 16_000_000
_SAMPLES = "samples/"
_HEADER_READ = ("eval.model", "eval.created", "eval.dataset.sample_ids[]")
_READ = (_SAMPLES, "header.json", "_journal/", "summaries.json")  # summaries say again what samples say
ATTACHED = 32_000_000
"""Characters of attachments that are kept when they come before the messages that use them."""
_LARGEST_METADATA = 20_000
_LONGEST_ERROR = 20_000
_LARGEST_FIELD = 16_000_000
_OF_EVENTS = frozenset(
    {
        "event",
        "timestamp",
        "completed",
        "working_time",
        "error",
        "failed",
        "function",
        "model",
        "id",
        "type",
        "action",
        "role",
        "input",
        "input_refs",
        "tools",
        "config",
        "tool_choice",
        "output",
    }
)
_LARGEST_POOL = 32_000_000
"""Characters of all messages that models were asked with, each once, before what they were asked is given up."""
_WHOLE = frozenset(
    {
        "id",
        "epoch",
        "input",
        "choices",
        "target",
        "scores",
        "score",
        "error",
        "limit",
        "total_time",
        "working_time",
        "started_at",
        "completed_at",
        "model_usage",
        "metadata",
    }
)
_PREFIXES = ("attachment://", "tc://")
_MEDIA = frozenset({"image", "audio", "video", "document", "data"})
SOURCE = "inspect"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_PLACEHOLDER = "88F74D2C"  # what Inspect calls the only score of a log from before scores had names
_PARTS = 1_000
_REASON = 20_000


def can_read(value: Any) -> bool:
    """Whether a file's first value is an Inspect log."""
    evaluation = as_object(value).get("eval")
    return isinstance(evaluation, Mapping) and ("version" in value or "status" in value)


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The samples of a log; before them notes on the log as a whole."""
    with source.open() as file:
        packed = file.read(2) == b"PK"
        yield from _packed(file) if packed else _plain(source)


# JSON


def _plain(source: Source) -> Iterator[Recording | Skipped]:
    # A pass of its own: that a sample is written again later is known only at the end.
    header, last = _outline(source)
    yield from _notes_on_log(header)
    if not last and header.get("eval"):
        yield Skipped("there are no samples in this log (Inspect was told not to log them, or stopped before)")
        return
    reader = source.reader()
    index = -1
    try:
        for key in reader.members():
            if key != "samples":
                continue
            for index in reader.elements():
                yield from _sample_at(reader, header, index, last)
    except UnreadableFile as error:
        yield Skipped(f"from here on the log can't be read: {error.reason}", reader.line, error.cut_off)
    # Passed over here, but read by the first pass.
    read = ("version", "status", "eval", "error", *(("results", "stats") if _is_own(header) else ()))
    for key in list(reader.passed_over):
        if key.partition(".")[0] in read:
            reader.passed_over.pop(key, None)
    yield from skipped_by(reader)


def _outline(source: Source) -> tuple[dict[str, Any], set[int]]:
    """The log's header, and the indices of its samples, of those with the same id and epoch only the last."""
    header: dict[str, Any] = {}
    last: dict[tuple[str, int], int] = {}
    reader = source.reader()
    try:
        for key in reader.members():
            if key == "samples":
                for index in reader.elements():
                    last[sample_identity(reader)] = index
            elif key in ("version", "status", "eval", "error"):
                header[key] = reader.bounded(LARGEST_HEADER)
    except UnreadableFile:
        last[("", -1)] = -1  # said when it is read again
    return header, set(last.values())


def _sample_at(
    reader: JsonReader, header: Mapping[str, Any], index: int, last: set[int]
) -> Iterator[Recording | Skipped]:
    line = reader.line
    # Where the file is cut off, which is the last of a sample is unknown, and all are read.
    if index not in last and -1 not in last:
        yield Skipped("a later entry of the same sample and epoch is used", line)
        reader.skip()
        return
    try:
        recording, remarks = read_sample(reader, _evaluation(header))
    except AgentevalError as error:
        yield Skipped(error.what, line)
        return
    yield recording
    for remark in remarks:
        yield Skipped(remark, counts=False, place=f"line {line}")


# ZIP


def _packed(file: IO[bytes]) -> Iterator[Recording | Skipped]:
    try:
        archive = open_archive(file)
    except DamagedMember as error:
        yield Skipped(error.reason, cut_off=error.cut_off, place="the file")
        return
    samples = [
        member for name, member in archive.members.items() if name.startswith(_SAMPLES) and name.endswith(".json")
    ]
    header, problem, passed_over = _header(archive)
    if not samples and "eval" not in header:
        raise AgentevalError(
            "this ZIP archive is not an Inspect log: it has neither a header nor samples", fix="name the `.eval` file"
        )
    if archive.cut_off:
        yield Skipped("the archive is cut off", cut_off=True, counts=False, place="the log")
    elif problem:
        yield Skipped(problem, counts=False, place="the log")
    if archive.replaced:
        yield Skipped(
            f"{archive.replaced} entries were written again later; the last ones are used",
            counts=False,
            place="the log",
        )
    yield from _notes_on_log(header)
    yield from passed_over
    if not samples:
        yield Skipped("there are no samples in this log (Inspect was told not to log them, or stopped before)")
    for member in sorted(samples, key=_order(header)):
        yield from _member_sample(member, header)
    others = [name for name in archive.members if not name.startswith(_READ) and not name.endswith("/")]
    if others:
        yield Skipped("", counts=False, fields=dict.fromkeys(others, 1))


def _header(archive: Archive) -> tuple[dict[str, Any], str, tuple[Skipped, ...]]:
    """The log's header, and what is to be said when it had none: Inspect writes it when the evaluation ends. Then what
    of it was passed over."""
    for name in ("header.json", "_journal/start.json"):
        member = archive.members.get(name)
        if member is None:
            continue
        fields: dict[str, Any] = {}
        try:
            with member.open() as stream:
                reader = JsonReader(stream)
                for key in reader.members():
                    if key in ("version", "status", "eval", "error"):
                        fields[key] = reader.bounded(LARGEST_HEADER)
        except UnreadableFile:
            continue
        if "eval" in fields:
            ended = name == "header.json"
            problem = "" if ended else "the log has no header: the evaluation did not come to its end"
            return fields, problem, tuple(skipped_by(reader, place=name))
    return {}, "nothing says which evaluation this was: its header can't be read", ()


def _member_sample(member: Member, header: Mapping[str, Any]) -> Iterator[Recording | Skipped]:
    try:
        with member.open() as stream:
            reader = JsonReader(stream)
            if reader.kind() != "object":
                yield Skipped("no sample: it is not a JSON object", place=member.name)
                return
            recording, remarks = read_sample(reader, _evaluation(header))
    except UnreadableFile as error:
        verb = "unpacked" if isinstance(error, DamagedMember) else "read"
        yield Skipped(f"a sample can't be {verb}: {error.reason}", cut_off=error.cut_off, place=member.name)
        return
    except AgentevalError as error:
        yield Skipped(error.what, place=member.name)
        return
    yield recording
    if reader.replaced:
        yield Skipped(NOT_UTF8, counts=False, place=member.name)
    for remark in remarks:
        yield Skipped(remark, counts=False, place=member.name)
    yield from skipped_by(reader, "samples[].", member.name)


def _order(header: Mapping[str, Any]) -> Callable[[Member], tuple[int, int]]:
    """Samples as the dataset has them, then by epoch; the archive has them as they ended."""
    ids = as_list(value_at(header, "eval", "dataset", "sample_ids"))
    place = {plain_text(sample_id): number for number, sample_id in enumerate(ids)}

    def order(member: Member) -> tuple[int, int]:
        name, _, epoch = member.name[len(_SAMPLES) : -len(".json")].rpartition("_epoch_")
        return place.get(name, len(place)), int(epoch) if epoch.isdecimal() and len(epoch) < 10 else 0

    return order


# Both


def _evaluation(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(header.get("eval"))


def _notes_on_log(header: Mapping[str, Any]) -> Iterator[Skipped]:
    """Notes on the log as a whole: its version, and how the evaluation ended."""
    note = replace(Skipped("", place="the log"), counts=False)
    version = header.get("version")
    if isinstance(version, int) and version > KNOWN:
        yield replace(note, reason=f"it is of version {version}, newer than what this program knows ({KNOWN})")
    status = header.get("status")
    error = header.get("error")
    if status == "error" and isinstance(error, Mapping):
        message = plain_text(error.get("message")).strip()[:300]
        yield replace(note, reason=f"the evaluation ended with an error: {message}")
    elif status in ("started", "cancelled"):
        yield replace(note, reason=f"the evaluation was {'cancelled' if status == 'cancelled' else 'not finished'}")
    yield from _told(header)


def _is_own(header: Mapping[str, Any]) -> bool:
    """Whether this program wrote the log: then its head repeats what the samples say."""
    return isinstance(value_at(header, "eval", "metadata", KEY), Mapping)


def _told(header: Mapping[str, Any]) -> Iterator[Skipped]:
    """What the header says of the evaluation: its model and scorers are in the runs, the rest is not."""
    if _is_own(header):
        return
    fields = Counter(field for field, _ in texts_of(_evaluation(header), "eval") if field not in _HEADER_READ)
    if fields:
        yield Skipped("", counts=False, fields=fields)


def tests(source: Source) -> FoundTests:
    """A test for each sample: its input, its target as expected value, and a criterion for each scorer."""
    found_tests = FoundTests(name=source.path.stem)
    ids: set[str] = set()
    options = _scorer_options(source)
    for recording in recordings(source):
        if not isinstance(recording, Recording):
            if recording.counts:
                found_tests.skipped.append(
                    f"{recording.place}: {recording.reason}" if recording.place else recording.reason
                )
            continue
        if recording.test_id in ids or len(ids) > LARGEST:
            continue  # another epoch of the same sample
        ids.add(recording.test_id)
        if not recording.prompt.strip():
            found_tests.skipped.append(f"{recording.test_name}: its input is not text")
            continue
        found_tests.tests.append(_test_of(recording, options))
        if recording.variables.get("choices"):
            found_tests.note("the choices of a sample are its variable `choices`: the agent, or the prompt, shows them")
    for scorer, settings in options.items():
        if own := [f"`{name}`" for name in _OF_GRADERS if scorer in _GRADED and settings.get(name)]:
            found_tests.note(
                f"{scorer} has its own {' and '.join(own)}, not translated: write it as the `prompt` of the Judge"
            )
    found_tests.note("solvers, tools and system messages are not translated: they belong to the agent")
    return found_tests


def _scorer_options(source: Source) -> dict[str, Mapping[str, Any]]:
    """The scorers of a log with what they were called with."""
    with source.open() as file:
        try:
            header = _header(open_archive(file))[0] if file.read(2) == b"PK" else _outline(source)[0]
        except DamagedMember:
            return {}
    scorers = objects_in(_evaluation(header).get("scorers"))
    return {
        plain_text(scorer.get("name")).rpartition("/")[2]: scorer["options"]
        for scorer in scorers
        if isinstance(scorer.get("options"), Mapping)
    }


def _test_of(recording: Recording, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    expected, choices = (recording.variables.get(name) for name in ("expected_value", "choices"))
    scorers = [result.criterion.removeprefix(f"{SOURCE} ") for result in recording.results] or ["as expected"]
    criteria = []
    for scorer in scorers:
        criterion = _criterion(scorer, expected, choices, options.get(scorer, {}))
        if expected is not None:
            criterion["expected_value"] = literally(plain_text(expected))
        criteria.append(criterion)
    prompt_keys = literal_prompt(recording.prompt)
    if choices:
        prompt_keys["variables"] = {**prompt_keys.get("variables", {}), "choices": choices}
    return {"id": recording.test_id, "name": recording.test_name, **prompt_keys, "criteria": criteria}


_GRADED = ("model_graded_qa", "model_graded_fact")
_OF_GRADERS = ("template", "instructions", "grade_pattern", "partial_credit")
_EDGE = string.whitespace + string.punctuation
"""What `match` leaves out at both ends of an answer and of a target."""
_AT_EDGE = r"[\W_]*"
_MATCHED = {
    "begin": (rf"\A{_AT_EDGE}", ""),
    "end": ("", rf"{_AT_EDGE}\Z"),
    "exact": (rf"\A{_AT_EDGE}", rf"{_AT_EDGE}\Z"),
    "any": ("", ""),
}
"""What stands before and behind the target, by the `location` of `match`."""


def _criterion(scorer: str, expected: Any, choices: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What an Inspect scorer checks, called with `options`; a person is asked where nothing here checks the same."""
    targets = [plain_text(target) for target in expected] if isinstance(expected, list) else [plain_text(expected)]
    ignores_case = options.get("ignore_case") is not False
    flags = {"flags": "i"} if ignores_case else {}
    # An empty target would be in any answer.
    there = all(map(str.strip, targets))
    if scorer == "choice" and (made := criteria_of_target(expected, choices)):
        return {**made[0], "name": scorer}
    location = _MATCHED.get(plain_text(options.get("location") or "end"))
    stripped = [target.strip(_EDGE) for target in targets]
    if scorer == "match" and location is not None and not options.get("numeric") and all(stripped):
        pattern = f"{location[0]}(?:{'|'.join(map(re.escape, stripped))}){location[1]}"
        return checked(scorer, {"type": "Regex", "pattern": pattern, **flags})
    if len(targets) > 1 and there and scorer in ("includes", "exact"):
        around = ("", "") if scorer == "includes" else (r"\A\s*", r"\s*\Z")
        pattern = f"{around[0]}(?:{'|'.join(re.escape(target.strip()) for target in targets)}){around[1]}"
        return checked(scorer, {"type": "Regex", "pattern": pattern, **flags})
    if len(targets) == 1 and targets[0]:
        if scorer == "includes":
            return checked_literally(
                scorer, {"type": "TextMatch", "contains_ignore_case" if ignores_case else "contains": targets[0]}
            )
        if scorer == "exact":
            return checked_literally(scorer, {"type": "TextMatch", "equals_ignore_case": targets[0]})
        if scorer in _GRADED:
            criteria = "The answer agrees with the reference."
            return checked_literally(scorer, {"type": "Judge", "criteria": criteria, "reference": targets[0]})
    called = f"{scorer}({', '.join(f'{name}={value!r}' for name, value in options.items())})" if options else scorer
    return needs_manual_work(scorer, f"Inspect's scorer {called[:300]}, target {' or '.join(targets)[:300]}")


FORMAT = Format(
    name="inspect",
    title="an Inspect log",
    looks_like="`.eval` (a ZIP), or JSON with `version`, `eval` and `samples`",
    can_read=can_read,
    recordings=recordings,
    tests=tests,
    zip=True,
    page="coming-from/inspect",
    rank=10,
)


# One sample of an Inspect log, in one of its epochs, as a recorded run


class _Event(Struct):
    """What is kept of a model's turn or a tool's call."""

    name: str
    call_id: str | None
    started: float | None
    duration: float | None
    failed: bool


class _ModelEvent(Struct):
    """What a model was asked with: places in the pools of messages and tools. `ours`: whether the pool of messages is
    the one that this program makes, and not the log's own."""

    messages: list[int]
    ours: bool
    tools: int
    parameters: Mapping[str, Any]
    answer: Any
    model: str
    error: str
    started: float | None
    ended: float | None
    usage: Any


class _Pool:
    """JSON values, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.size = 0
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        key = json.dumps(value, sort_keys=True, default=str)
        place = self._places.setdefault(key, len(self.values))
        if place == len(self.values):
            self.values.append(value)
            self.size += len(key)
        return place


class _Sample(Struct):
    """What is kept of a sample."""

    asked: list[_ModelEvent] = field(default_factory=list)
    pool: _Pool = field(default_factory=_Pool)
    tools: _Pool = field(default_factory=_Pool)
    own_pool: list[int] = field(default_factory=list)  # the log's own, as places in `pool`
    scoring: bool = False  # models are asked by scorers now, and not by what is tested
    fields: dict[str, Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)
    attachments: dict[str, str] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)
    moments: tuple[float, float] | None = None  # of the first and the last event, milliseconds since 1970
    seen_messages: bool = False
    kinds: Counter[str] = field(default_factory=Counter)  # of events: how many there are
    media: Counter[str] = field(default_factory=Counter)  # images and the like, which are left out
    unused: int = 0  # attachments that no message has


def sample_identity(reader: JsonReader) -> tuple[str, int]:
    """(id, epoch) of the sample that begins here; everything else of it is skipped."""
    identity: dict[str, Any] = {}
    for key in reader.members():
        if key in ("id", "epoch"):
            identity[key] = reader.bounded(_LARGEST_FIELD)
    return plain_text(identity.get("id")), as_repetition(identity.get("epoch")) or 1


def read_sample(reader: JsonReader, header: Mapping[str, Any]) -> tuple[Recording, tuple[str, ...]]:
    """The sample that begins here, and its parts that can't be kept. `header`: the log's `eval`.

    Raises `UnreadableFile` (the text can't be read) and `AgentevalError` (it is not a sample).
    """
    sample = _Sample()
    for key in reader.members():
        if key in _WHOLE:
            sample.fields[key] = reader.bounded(_LARGEST_FIELD)
        elif key == "messages":
            sample.seen_messages = True
            for _ in reader.elements():
                sample.messages.append(_without_media(reader.bounded(), sample.media))
        elif key == "output":
            _read_output(reader, sample)
        elif key == "events":
            _read_events(reader, sample)
        elif key == "attachments":
            _read_attachments(reader, sample)
        elif key == "message_pool":
            _read_pool(reader, sample)
        elif key == "events_data":
            for inner in reader.members():
                if inner == "messages":
                    _read_pool(reader, sample)
        elif key == "transcript":  # before 2025: events and attachments stood in it
            for inner in reader.members():
                if inner == "events":
                    _read_events(reader, sample)
                elif inner == "content":
                    _read_attachments(reader, sample)
    recording = _recording(sample, header)
    return recording, tuple(_not_kept(sample))


def _read_pool(reader: JsonReader, sample: _Sample) -> None:
    # All requests have their messages themselves: nothing refers to the pool.
    if sample.asked and all(model_event.ours for model_event in sample.asked):
        reader.skip()
        return
    for _ in reader.elements():
        sample.own_pool.append(sample.pool.place(_without_media(reader.bounded(), Counter())))


def _not_kept(sample: _Sample) -> Iterator[str]:
    if sample.kinds:
        and_theirs = ", and of `attachments` only those of messages" if sample.unused else ""
        yield f"of `events` only names, times, failures and what models were asked are kept{and_theirs}"
    for kind in sorted(sample.media):
        yield f"content of the kind {kind} is not kept: [{kind}] takes its place"
    if sample.unused and not sample.kinds:
        yield "`attachments` that no message uses are not kept"


def _read_output(reader: JsonReader, sample: _Sample) -> None:
    for key in reader.members():
        if key in ("model", "choices", "completion", "error"):
            sample.output[key] = reader.bounded(_LARGEST_FIELD)


def _read_events(reader: JsonReader, sample: _Sample) -> None:
    for _ in reader.elements():
        shortened = len(reader.shortened)
        event = reader.picked(_OF_EVENTS)
        if not isinstance(event, Mapping):
            continue
        kind = event.get("event")
        sample.kinds[plain_text(kind)[:40] or "without a kind"] += 1
        started = moment_ms(event.get("timestamp"))
        ended = moment_ms(event.get("completed"))
        for moment in (started, ended):
            if moment is not None:
                first, last = sample.moments or (moment, moment)
                sample.moments = min(first, moment), max(last, moment)
        # From here on scorers ask models: these requests are not of what is tested.
        if kind in ("span_begin", "step") and event.get("type") in ("scorers", "scorer"):
            sample.scoring = kind == "span_begin" or event.get("action") == "begin"
        if kind not in ("tool", "model"):
            continue
        if kind == "model" and not sample.scoring and event.get("role") != "grader":
            # A request that lacks a part is no request that was made: it is kept without its messages.
            is_whole = len(reader.shortened) == shortened
            sample.asked.append(_model_event(event if is_whole else {**event, "input": []}, sample, started, ended))
        working = number(event.get("working_time"))
        duration = ended - started if started is not None and ended is not None else None
        if duration is None and working is not None:
            duration = working * 1000
        failed = bool(event.get("error")) or bool(event.get("failed"))
        called = event.get("function") if kind == "tool" else event.get("model")
        call_id = event.get("id") if kind == "tool" and isinstance(event.get("id"), str) else None
        sample.events.append(_Event(plain_text(called) or str(kind), call_id, started, duration, failed))


def _model_event(event: Mapping[str, Any], sample: _Sample, started: float | None, ended: float | None) -> _ModelEvent:
    inputs, refs = event.get("input"), event.get("input_refs")
    ours = isinstance(inputs, list) and bool(inputs)
    if ours:
        messages = [sample.pool.place(_without_media(message, Counter())) for message in inputs or ()]
    else:
        pairs = [ref for ref in as_list(refs) if isinstance(ref, list) and len(ref) == 2]
        messages = [
            place
            for first, end in pairs
            if isinstance(first, int) and isinstance(end, int) and end < _MOST
            for place in range(first, end)
        ]
    # Given up, and not cut: half of a request would look like a whole one.
    if sample.pool.size > _LARGEST_POOL:
        messages = []
    parameters = {key: value for key, value in as_object(event.get("config")).items() if value is not None}
    if event.get("tool_choice"):
        parameters["tool_choice"] = event["tool_choice"]
    output = event.get("output")
    choices = as_list(value_at(output, "choices"))
    answer = value_at(choices[0], "message") if choices else None
    tools = sample.tools.place(as_list(event.get("tools")))
    model, error = plain_text(event.get("model")), plain_text(event.get("error"))
    return _ModelEvent(
        messages,
        ours=ours,
        tools=tools,
        parameters=parameters,
        answer=_without_media(answer, Counter()),
        model=model,
        error=error,
        started=started,
        ended=ended,
        usage=value_at(output, "usage"),
    )


_MOST = 1_000_000  # messages of a pool


def _as_read(message: Any, sample: _Sample) -> list[dict[str, Any]] | None:
    """A message of a pool; None where a part of it is not in the log."""
    whole = _resolved(message, sample.attachments)
    return None if _references(whole) else as_asked([_as_openai(whole)])


def _requests_of(sample: _Sample) -> Iterator[Asked | None]:
    """What models were asked, in the order of the events; None for what the log has not."""
    read: dict[int, list[dict[str, Any]] | None] = {}  # each message once: it is in all later requests
    for order, model_event in enumerate(sample.asked):
        places = model_event.messages
        if not model_event.ours:
            places = [sample.own_pool[at] for at in places] if max(places, default=0) < len(sample.own_pool) else []
        for at in places:
            if at not in read:
                read[at] = _as_read(sample.pool.values[at], sample)
        messages = [message for at in places for message in read[at] or ()]
        answer = _resolved(model_event.answer, sample.attachments)
        if not messages or any(read[at] is None for at in places) or _references(answer):
            yield None
            continue
        about = {**model_event.parameters, "tools": sample.tools.values[model_event.tools]}
        yield asked_in(
            messages,
            as_asked([_as_openai(answer)] if isinstance(answer, Mapping) else []),
            number=order,
            started=model_event.started,
            ended=model_event.ended,
            about=about,
            model=model_event.model,
            error=model_event.error,
            usage=model_event.usage,
        )


def _read_attachments(reader: JsonReader, sample: _Sample) -> None:
    # Kept at once are those that something read before refers to. Where messages come later, the others may be theirs.
    holders = [sample.pool.values, [model_event.answer for model_event in sample.asked]]
    references = _references([sample.fields, sample.messages, sample.output, holders])
    # Requests that name messages by number, of a pool that comes later.
    by_number = any(not model_event.ours for model_event in sample.asked) and not sample.own_pool
    room = ATTACHED
    for key in reader.members():
        if key in references or not sample.seen_messages or by_number:
            value = reader.bounded(ATTACHED)
            if isinstance(value, str) and (key in references or len(value) <= room):
                sample.attachments[key] = value
                room -= 0 if key in references else len(value)
                continue
        else:
            reader.skip()
        sample.unused += 1


def _recording(sample: _Sample, header: Mapping[str, Any]) -> Recording:
    fields = sample.fields
    sample_id = plain_text(fields.get("id"))
    if not sample_id.strip() or (not sample.messages and not sample.output and "input" not in fields):
        raise AgentevalError("no sample: it has neither an id nor messages")
    if sample.attachments:
        fields = _resolved(fields, sample.attachments)
        sample.messages = _resolved(sample.messages, sample.attachments)
        sample.output = _resolved(sample.output, sample.attachments)
    transcript = with_requests(_transcript(sample, fields, header), _requests_of(sample))
    prompt = fields.get("input")
    own = value_at(fields, "metadata", KEY)
    ours = is_ours(own)
    recording = Recording(
        test_id=as_id(sample_id),
        test_name=sample_id,
        transcript=transcript,
        repetition=as_repetition(fields.get("epoch")),
        prompt=prompt if isinstance(prompt, str) else first_user_text(transcript),
        agent=plain_text(header.get("model")),
        variables=_variables(fields),
        results=() if ours else results_of(fields.get("scores"), fields.get("score"), header),
        expected=() if ours else criteria_of_target(fields.get("target"), fields.get("choices")),
        started_ms=_beginning(sample, fields) or (None if ours else moment_ms(header.get("created"))),
        source=(
            (
                "samples[]",
                _own_source(sample, fields)
                if ours
                else {**fields, "messages": sample.messages, "output": sample.output},
            ),
        ),
    )
    if ours and isinstance(own, Mapping):
        variation = plain_text(own.get("variation"))
        recording = replace(recording, variation=variation, repetition=as_repetition(own.get("repetition")))
    return restore_or_note(recording, own)


def _own_source(sample: _Sample, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run of this program, what could be lost: its messages. The rest repeats what `agenteval` says."""
    return {"input": fields.get("input"), "messages": [_as_openai(message) for message in sample.messages]}


def _transcript(sample: _Sample, fields: Mapping[str, Any], header: Mapping[str, Any]) -> Transcript:
    choices = as_list(sample.output.get("choices"))
    choice = as_object(choices[0]) if choices else {}
    messages = sample.messages
    # The conversation was not kept: what was asked and what was answered is all there is.
    if not messages and not is_ours(value_at(fields, "metadata", KEY)):
        inputs = fields.get("input")
        messages = list(inputs) if isinstance(inputs, list) else [{"role": "user", "content": plain_text(inputs)}]
        messages += [choice["message"]] if isinstance(choice.get("message"), Mapping) else []
    transcript = from_openai_messages([_as_openai(message) for message in messages])
    calls = list(transcript.tool_calls)
    parse_errors = [error for message in messages for error in _parse_errors(message)]
    # Only then is it known which call each belongs to.
    if len(parse_errors) == len(calls):
        for index, problem in enumerate(parse_errors):
            if problem:
                # Inspect has only objects: our export writes other JSON (a list, a number) here, too.
                arguments, malformed = decode_arguments(problem)
                calls[index] = replace(calls[index], arguments=arguments, malformed=malformed)
    base = _beginning(sample, fields)
    by_id = {event.call_id: event for event in sample.events if event.call_id}
    for index, call in enumerate(calls):
        event = by_id.get(call.id)
        if event is not None:
            started = None if event.started is None or base is None else max(0.0, event.started - base)
            status: CallStatus = "error" if event.failed else call.status
            calls[index] = replace(call, started_ms=started, duration_ms=event.duration, status=status)
    completion = sample.output.get("completion")
    error, limit = fields.get("error"), fields.get("limit")
    finish = plain_text(choice.get("stop_reason"))
    if isinstance(limit, Mapping) and limit.get("type"):
        finish = f"limit: {plain_text(limit['type'])}"
    used = UsageReader()
    for usage in as_object(fields.get("model_usage")).values():
        used.add(usage)
    return replace(
        with_usage(transcript, used),
        tool_calls=tuple(calls),
        timing=_timing(sample, fields, base),
        model=plain_text(sample.output.get("model") or header.get("model")),
        finish_reason=finish,
        final_output=completion if isinstance(completion, str) and completion else transcript.final_output,
        error=None if not error else RunError.told("inspect", _error_text(error)),
    )


def _as_openai(data: Any) -> dict[str, Any]:
    """One of Inspect's messages as an OpenAI chat message."""
    if not isinstance(data, Mapping) or not isinstance(data.get("role"), str):
        raise AgentevalError("a message of it has no role")
    own = as_object(value_at(data, "metadata", KEY, "message"))
    if "role" in own:
        return dict(own)
    content, thoughts = data.get("content"), []
    if isinstance(content, list):
        thoughts = [_thought(part) for part in content if type_of(part) == "reasoning"]
        content = [part for part in content if type_of(part) != "reasoning"]
    message: dict[str, Any] = {"role": data["role"], "content": content}
    if isinstance(data.get("attachments"), list):  # from `_without_media`
        message["attachments"] = data["attachments"]
    if isinstance(data.get("reasoning"), str):  # as it was before 2025
        thoughts.append(data["reasoning"])
    if any(thoughts):
        message["reasoning"] = "\n\n".join(text for text in thoughts if text)
    if isinstance(data.get("tool_calls"), list):
        message["tool_calls"] = [
            {"id": call.get("id"), "function": {"name": call.get("function"), "arguments": call.get("arguments")}}
            for call in data["tool_calls"]
            if isinstance(call, Mapping) and isinstance(call.get("function"), str)
        ]
    if data["role"] == "tool":
        error = data.get("error", data.get("tool_error"))
        reason = error.get("message") if isinstance(error, Mapping) else error
        message["content"] = content_text(content) or plain_text(reason)
        message |= {"tool_call_id": data.get("tool_call_id"), "is_error": bool(error)}
        if isinstance(data.get("function"), str):
            message["name"] = data["function"]
    return message


def _parse_errors(message: Any) -> list[str]:
    calls = objects_in(value_at(message, "tool_calls"))
    return [plain_text(call.get("parse_error")) for call in calls if isinstance(call.get("function"), str)]


def _thought(part: Mapping[str, Any]) -> str:
    if part.get("redacted"):
        return plain_text(part.get("summary")) or "[redacted]"
    return plain_text(part.get("reasoning") or part.get("summary"))


def _beginning(sample: _Sample, fields: Mapping[str, Any]) -> float | None:
    moments = [moment_ms(fields.get("started_at")), *(sample.moments or ())]
    return min((moment for moment in moments if moment is not None), default=None)


def _timing(sample: _Sample, fields: Mapping[str, Any], base: float | None) -> Timing:
    total = number(fields.get("total_time"))
    if total is None and base is not None:  # logs before 2025 do not say it
        ended = moment_ms(fields.get("completed_at")) or (sample.moments or (base, base))[1]
        total = (ended - base) / 1000 if ended > base else None
    steps = tuple(
        Step(event.name, max(0.0, event.started - base), event.duration)
        for event in sample.events
        if event.started is not None and base is not None and event.duration is not None
    )
    return Timing(total_ms=None if total is None else total * 1000, steps=steps)


def _variables(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the sample knows beside its input: the target as `expected_value`, choices, small metadata."""
    target = fields.get("target")
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    variables = {"expected_value": target, "choices": fields.get("choices")}
    metadata = fields.get("metadata")
    if isinstance(metadata, Mapping) and metadata and len(json.dumps(metadata, default=str)) <= _LARGEST_METADATA:
        variables["metadata"] = metadata
    return {key: value for key, value in variables.items() if value not in (None, "", [])}


def _error_text(error: Any) -> str:
    reason = error.get("message") if isinstance(error, Mapping) else error
    return (plain_text(reason).strip() or "the sample ended with an error")[:_LONGEST_ERROR]


def _without_media(message: object, left_out: Counter[str]) -> object:
    """The message with `[image]` for an image, which may have megabytes: what it is is kept."""
    if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), list):
        return message
    media = [attachment_of(block, f"[{type_of(block)}]") if type_of(block) in _MEDIA else None for block in content]
    pairs = list(zip(content, media, strict=True))
    left_out.update(type_of(block) for block, attachment in pairs if type_of(block) in _MEDIA and attachment is None)
    blocks = [
        {"type": "text", "text": f"[{type_of(block)}]"} if type_of(block) in _MEDIA else block for block in content
    ]
    attachments = [attachment for attachment in media if attachment is not None]
    return {**message, "content": blocks, **({"attachments": attachments} if attachments else {})}


def _references(value: Any) -> set[str]:
    references: set[str] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            if current.startswith(_PREFIXES):
                references.add(current.partition("://")[2])
        elif isinstance(current, Mapping):
            waiting.extend(current.values())
        elif isinstance(current, list):
            waiting.extend(current)
    return references


def _resolved(value: object, attachments: Mapping[str, str]) -> Any:
    def resolved(text: str) -> str:
        return attachments.get(text.partition("://")[2], text) if text.startswith(_PREFIXES) else text

    return with_texts(value, resolved)


# Inspect's scores as criterion results: `inspect match`, `inspect includes`


def results_of(scores: Any, legacy: Any, header: Mapping[str, Any]) -> tuple[CriterionResult, ...]:
    """A sample's `scores` (or its `score`, as old logs have it), one result each; of an object one for each key."""
    if not isinstance(scores, Mapping):
        scores = {_PLACEHOLDER: legacy} if isinstance(legacy, Mapping) else {}
    criterion_results: list[CriterionResult] = []
    for name, score in scores.items():
        called = _only_scorer(header) if name == _PLACEHOLDER else str(name)
        fields = score if isinstance(score, Mapping) else {"value": score}
        criterion_results += list(_results(f"{SOURCE} {called}", fields.get("value"), _score_explanation(fields)))
    return tuple(criterion_results)


def _results(name: str, value: Any, explanation: str) -> Iterator[CriterionResult]:
    if isinstance(value, Mapping | list):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        if (more := len(value) - _PARTS) > 0:
            reason = f"{count(more, 'more value')} left out"
            rest = foreign_result(f"{name}: other values", source=SOURCE, reason=reason)
            yield replace(rest, severity="info")
        for key, part in islice(parts, _PARTS):
            if not isinstance(part, Mapping | list):
                yield from _results(f"{name}/{key}", part, explanation)
            elif part:
                inner = foreign_result(
                    f"{name}/{key}", source=SOURCE, reason=f"Inspect gave {plain_text(part)[:_REASON]}"
                )
                yield replace(inner, severity="info")  # its verdict is unknown
        return
    score, problem = _score(value)
    if score is None:
        yield foreign_result(name, source=SOURCE, reason=f"{problem}; {explanation}" if explanation else problem)
        return
    sentence = f"Inspect gave {plain_text(value)!r}" if isinstance(value, str) else f"Inspect gave {value:g}"
    yield foreign_result(
        name, score=score, source=SOURCE, reason=f"{sentence}: {explanation}" if explanation else sentence
    )


def _score(value: Any) -> tuple[float | None, str]:
    """(0..1, "") of a value, as Inspect itself counts it; (None, why) when that says nothing on right or wrong."""
    if isinstance(value, str):
        text = value.strip()
        if text in _GRADES or text.lower() in _GRADES:
            return _GRADES.get(text, _GRADES.get(text.lower())), ""
        try:
            value = float(text)
        except ValueError:
            return None, f"Inspect gave {text[:_REASON]!r}, which is neither right nor wrong"
    if isinstance(value, bool):
        return float(value), ""
    if not isinstance(value, int | float):
        return None, "Inspect gave no value"
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if math.isnan(value):
        return None, "Inspect left it unscored"
    if not 0 <= value <= 1:
        return None, f"Inspect gave {value:g}, and what is enough is not in the log"
    return value, ""


def _score_explanation(score: Mapping[str, Any]) -> str:
    answer, explanation = plain_text(score.get("answer")), plain_text(score.get("explanation"))
    parts = [f"answer {answer!r}" if answer and answer != explanation else "", explanation]
    return "; ".join(part for part in parts if part)[:_REASON]


def _only_scorer(header: Mapping[str, Any]) -> str:
    names = [scorer.get("name") for scorer in objects_in(header.get("scorers"))]
    name = names[0] if len(names) == 1 else None
    return name.rpartition("/")[2] if isinstance(name, str) and name else "score"
