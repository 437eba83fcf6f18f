"""What people call an execution: a name, a note, and metadata. Also the commits, which git tells a little later."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import to_builtins

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.suites.commits import Commit, read_commits

LONGEST_NAME = 200
LONGEST_NOTE = 10_000
LONGEST_VALUE = 1_000
MOST_META = 50
_KEY = re.compile(r"[^\W\d][\w.-]{0,63}")
META = "meta."
"""Begins the name of a key of metadata, where it stands for a field: `meta.model`."""
OF_EXECUTIONS = ("name", "commit")
GROUPS = ("suite", "test", "tag", "agent", *OF_EXECUTIONS)
"""What runs can be grouped by, beside `meta.KEY`."""
_TAKEN = ("last", "baseline", "all")
"""Words that mean something else where an execution is named."""


class DescriptionError(AgentevalError):
    """A name, a note or metadata that can't be kept. `option`: which."""

    def __init__(self, option: str, what: str, fix: str) -> None:
        super().__init__(what, fix=fix)
        self.option = option


def checked_name(name: str) -> str:
    """The name without blanks around it; "": none. Raises `AgentevalError`: it is too long, has several lines, or is a
    word such as `last` that means another execution."""
    name = name.strip()
    if len(name) > LONGEST_NAME or "\n" in name or "\r" in name:
        raise DescriptionError(
            "name", f"a name is one line of at most {LONGEST_NAME} characters", "put the rest into --note"
        )
    if name.casefold() in _TAKEN:
        raise DescriptionError(
            "name", f"an execution can't be called {name!r}: it has another meaning", "choose another name"
        )
    return name


def checked_note(note: str) -> str:
    """The note without blanks around it. Raises `AgentevalError` where it is too long."""
    note = note.strip()
    if len(note) > LONGEST_NOTE:
        raise DescriptionError(
            "note", f"a note has at most {LONGEST_NOTE:,} characters, not {len(note):,}", "shorten it"
        )
    return note


def checked_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """Metadata by key. Raises `AgentevalError`: a key isn't a word, a value is too long, or there are too many."""
    if len(meta) > MOST_META:
        raise DescriptionError(
            "meta", f"an execution has at most {MOST_META} metadata, not {len(meta)}", "leave some out"
        )
    for key, value in meta.items():
        if not _KEY.fullmatch(key):
            raise DescriptionError(
                "meta",
                f"{key[:80]!r} can't be a key of metadata",
                "a key has at most 64 letters, digits, `_`, `.` and `-`, and starts with a letter: --meta model=mini",
            )
        if len(value) > LONGEST_VALUE:
            raise DescriptionError(
                "meta", f"the value of {key!r} has {len(value):,} characters", f"a value has at most {LONGEST_VALUE:,}"
            )
    return dict(meta)


def meta_of(words: Iterable[str], option: str = "--meta") -> dict[str, str]:
    """`key=value` words of an option as metadata. Raises `AgentevalError`: a word is something else, or a key comes
    twice."""
    meta: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        key = key.strip()
        if not sign:
            raise DescriptionError("meta", f"{option} {word!r} has no value", f"write {option} key=value")
        if key in meta:
            raise DescriptionError("meta", f"{option} {key} is given twice", "give each key once")
        meta[key] = value.strip()
    return checked_meta(meta)


class DescribeExecution(Operation):
    """A name, a note or metadata are set, in place of those before; None: it stays. Of metadata only these keys change;
    "" takes one away."""

    execution_id: str
    name: str | None = None
    note: str | None = None
    meta: Mapping[str, str] | None = None

    def prepare(self) -> None:
        """Refuse what can't be kept."""
        if self.name is not None:
            self.name = checked_name(self.name)
        if self.note is not None:
            self.note = checked_note(self.note)
        if self.meta is not None:
            self.meta = checked_meta(self.meta)

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Set it. Raises `HistoryError` where there is no such execution."""
        row = connection.execute(
            "UPDATE executions SET name = coalesce(?, name), note = coalesce(?, note) WHERE uid = ? RETURNING id",
            (
                None if self.name is None else storable(self.name),
                None if self.note is None else storable(self.note),
                storable(self.execution_id),
            ),
        ).fetchone()
        if row is None:
            raise HistoryError(f"there is no execution {self.execution_id}")
        if self.meta:
            changed = json_text({key: value or None for key, value in self.meta.items()})
            connection.execute("UPDATE executions SET meta = json_patch(meta, ?) WHERE id = ?", (changed, row[0]))


class KeepCommits(Operation):
    """The commits at an execution's start."""

    patient: ClassVar[bool] = True
    execution_id: str
    commits: Sequence[Commit]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Keep them. Of an execution that was resumed the first ones stay: that is what its first runs are of."""
        connection.execute(
            "UPDATE executions SET commits = ? WHERE uid = ? AND commits = '{}'",
            (
                json_text({commit.repository: to_builtins(commit) for commit in self.commits}),
                storable(self.execution_id),
            ),
        )


def version_groups(
    connection: sqlite3.Connection, group: str, *, rows: Iterable[int] = (), ids: Iterable[str] = ()
) -> dict[int | str, str]:
    """What executions are grouped as: by `name`, `commit` or `meta.KEY`. By row number for `rows`, by id for `ids`."""
    versions = connection.execute(
        "SELECT id, uid, name, meta, commits FROM executions WHERE id IN (SELECT value FROM json_each(?))"
        " OR uid IN (SELECT value FROM json_each(?))",
        (json_text(list(rows)), json_text(list(ids))),
    ).fetchall()
    groups: dict[int | str, str] = {}
    for row, uid, name, meta, commits in versions:
        groups[row] = groups[uid] = _group_of(group, name, json.loads(meta), read_commits(json.loads(commits).values()))
    return groups


def _group_of(group: str, name: str, meta: Mapping[str, object], commits: Sequence[Commit]) -> str:
    if group == "name":
        return name or "(no name)"
    if group == "commit":
        # The agent's own repository says most of what changed.
        commit = next((commit for commit in commits if "agents" in commit.of), next(iter(commits), None))
        return f"{commit.commit[:9]}{' (changed)' if commit.dirty else ''}" if commit is not None else "(no commit)"
    key = group.removeprefix(META)
    value = next((value for name, value in meta.items() if name.casefold() == key.casefold()), None)
    return f"(no {key})" if value is None else str(value)


def check_group(group: str) -> str:
    """The group, if runs can be grouped by it. Raises `AgentevalError`."""
    if group in GROUPS or (group.startswith(META) and _KEY.fullmatch(group.removeprefix(META))):
        return group
    raise AgentevalError(
        f"runs can't be grouped by {group[:80]!r}", fix=f"group by {', '.join(GROUPS)}, or {META}KEY (metadata)"
    )


def newest_named(
    connection: sqlite3.Connection, name: str, projects: str = "1", values: Sequence[str] = ()
) -> int | None:
    """The row of the newest execution with this name, letter by letter; where none has, whatever the case. `projects`:
    a condition with its `values`. None: no execution has it."""
    for condition in ("name != '' AND name = ?", "name != '' AND lower(name) = lower(?)"):
        row = connection.execute(
            f"SELECT max(id) FROM executions WHERE {condition} AND {projects}",
            (storable(name.strip()), *values),
        ).fetchone()
        if row[0] is not None:
            return int(row[0])
    return None
