"""One recorded run as every importer gives it, whatever the format it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.runs.fork.model import ForkOrigin
from agenteval_tui.suites.commits import Commit
from agenteval_tui.transcripts.model import Note, Transcript
from agenteval_tui.transcripts.observed import UNREAD_CALLS


class StatedOutcome(Struct, frozen=True):
    """How a run of this program ended, as its export says it: what its results alone do not tell."""

    outcome: str
    score: float | None
    why: str = ""
    warnings: int = 0


class Described(Struct, frozen=True):
    """What the execution of a run of this program was called, and what it was a version of."""

    name: str = ""
    note: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    commits: tuple[Commit, ...] = ()


class Recording(Struct, frozen=True):
    """What one run left behind in another tool's file.

    `test_id` and `repetition` (from 1) say what was repeated; None: count the runs of the test. `results` are the
    foreign verdicts, kept as criterion results; none: the run has no verdict yet. `variation`: which of several agents
    or configurations did the same test. `started_ms`: when it started, milliseconds since 1970, if the file says it.
    `notes`: what of it could not be read, a sentence each. `source`: (field, value) of what it was made of; texts of it
    that are nowhere in the run are said (`unread`). `row`, `row_key`: the dataset's row, as in `PlannedRun`. `suite`,
    `tags`, `stated`: of a run of this program that comes back, how it ended. `expected`: criteria made of what the file
    says was expected (`derived`), with the keys of a suite. `trace_name`: of a trace that names no test, its agent or
    its root span (`trace_names`).
    """

    test_id: str
    transcript: Transcript
    test_name: str = ""
    repetition: int | None = None
    prompt: str = ""
    agent: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[CriterionResult, ...] = ()
    variation: str = ""
    started_ms: float | None = None
    notes: tuple[str, ...] = ()
    source: tuple[tuple[str, Any], ...] = ()
    row: int = 0
    row_key: str = ""
    suite: str = ""
    tags: tuple[str, ...] = ()
    stated: StatedOutcome | None = None
    expected: tuple[Mapping[str, Any], ...] = ()
    trace_name: str = ""
    fork: ForkOrigin | None = None
    """Of a run of this program that comes back: the run that it continues."""
    execution: Described | None = None
    """Of a run of this program that comes back: what its execution was called."""


class Skipped(Struct, frozen=True):
    """A value of the file that was not taken, and why. `cut_off`: the file ends in the middle of it. `unread`: it is
    not known what it was.

    `place` says where in words; "": at `line`, where that is known (from 1). `fields`: only fields that were not looked
    at while the file was read, and how often each occurred.
    """

    reason: str
    line: int = 0
    cut_off: bool = False
    counts: bool = True  # False: a note on the file, not a value that was left out
    place: str = ""
    fields: Mapping[str, int] = field(default_factory=dict)  # what was passed over; the rest is then without meaning
    unread: bool = False


def skipped_element(element: BrokenElement) -> Skipped:
    """What is said of a value that the file's reader could not read."""
    return Skipped(element.reason, element.line, element.cut_off, counts=not element.note, unread=not element.note)


def with_unread(recording: Recording, reason: str) -> Recording:
    """The same run, which may lack a call because a value of the file can't be read."""
    transcript = recording.transcript
    notes = (*transcript.notes, Note(UNREAD_CALLS, reason))
    return replace(recording, transcript=replace(transcript, notes=notes))


def first_user_text(transcript: Transcript) -> str:
    """What the agent was asked first; "" if it was not asked."""
    return next((message.content for message in transcript.messages if message.role == "user"), "")


def as_id(name: str) -> str:
    """A test's id: letters, digits, "-", "_" and "."; what else there is becomes "-"."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:200] or "unnamed"


def as_repetition(value: Any) -> int | None:
    """A repetition's number, from 1; None when `value` is none."""
    counts = isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31
    return value if counts else None
