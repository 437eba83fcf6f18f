"""What a run left behind outside of its conversation: the values of the test's probes, before and after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from agenteval_tui.transcripts.traceback import Traceback

_LINE = 88
"""Characters of a JSON value that stays in one line."""


class ReadingProblem(StrEnum):
    """Why a probe has no value. Each code lists its fields; histories hold them, so none ever changes its meaning."""

    NO_FILE = "no_file"  # file
    NOT_A_FILE = "not_a_file"  # file: a folder, a pipe, a device
    OUTSIDE = "outside"  # file: it leads out of the folder, and the folder is not trusted
    NOT_TEXT = "not_text"  # file, or column
    TOO_LARGE = "too_large"  # most (bytes); file, where one is to blame
    TOO_MANY = "too_many"  # most; what: files, rows
    SLOW = "slow"  # seconds
    NO_START = "no_start"  # message
    EXIT = "exit"  # status; message: the last of what it wrote
    RAISED = "raised"  # message
    NO_RESULT = "no_result"  # message: how the function's process ended
    LOCKED = "locked"  # database
    SQL = "sql"  # message
    NOT_A_DATABASE = "not_a_database"  # database
    SAME_COLUMN = "same_column"  # column
    HTTP_STATUS = "http_status"  # status
    NO_ANSWER = "no_answer"  # message
    UNUSABLE = "unusable"  # message: a template, a path, an address, an argument that can't be used
    NOT_PERMITTED = "not_permitted"  # message
    CONTINUED = "continued"  # the run continues another one: nothing that is outside of its conversation was there
    TOOLS_RECORDED = "tools_recorded"  # calls of tools got their recorded results: nothing was done
    STOPPED = "stopped"  # the run was ended before


class Reading(Struct, frozen=True, dict=True):
    """What a probe read at one time: a JSON value (a text as it is), or the `problem` that kept it from that, with its
    fields. `traceback`: where its function raised; `output`: the end of what that function printed."""

    value: Any = None
    problem: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    traceback: Traceback | None = None
    output: str = ""

    @cached_property
    def text(self) -> str:
        """The value as people read it: a text as it is, anything else as JSON; "" where there is none."""
        return "" if self.problem else value_text(self.value)


class ProbeState(Struct, frozen=True):
    """What the probe `name` read before and after the run. None: it was not read then."""

    name: str
    before: Reading | None = None
    after: Reading | None = None


def unread(problem: ReadingProblem, **fields: Any) -> Reading:
    """A reading without a value."""
    return Reading(None, problem.value, fields)


def value_text(value: object) -> str:
    """A JSON value as people read it: a text as it is, anything else as JSON, with what is short in one line."""
    return value if isinstance(value, str) else _pretty(value, "")


def _pretty(value: object, margin: str) -> str:
    if not value or not isinstance(value, list | Mapping):
        return json.dumps(value, ensure_ascii=False)
    if margin:  # the whole value is always broken: an item or a key each line
        line = json.dumps(value, ensure_ascii=False)
        if len(line) <= _LINE:
            return line
    inner = margin + "  "
    if isinstance(value, list):
        items = [f"{inner}{_pretty(item, inner)}" for item in value]
    else:
        items = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_pretty(item, inner)}" for key, item in value.items()]
    first, last = "[]" if isinstance(value, list) else "{}"
    return f"{first}\n" + ",\n".join(items) + f"\n{margin}{last}"
