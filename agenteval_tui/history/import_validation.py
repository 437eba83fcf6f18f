"""Another history file is foreign data: what must hold of it before anything of it comes in.

SQLite keeps whatever a file says: views and triggers in place of tables, columns with names of any kind, texts where
numbers belong. All of a file is looked at before the first row is taken; transcripts and results one by one, and
what is none is left out.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import hashlib
import json
import sqlite3
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from agenteval_tui.core.json_values import is_too_deep
from agenteval_tui.core.outcomes import OUTCOMES, STATUSES
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history import schema
from agenteval_tui.history.blobs import inflated, plan_hash, unpack_results, unpack_transcript
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.records import HEAD
from agenteval_tui.transcripts.model import Transcript

LARGEST_VALUE = 256_000_000
"""Bytes of one text or blob, as it lies there and when it is no longer compressed."""
_LAST_MS = 253_402_300_799_999  # 9999-12-31
_LARGEST_NUMBER = 1e300
_LETTERS = "0-9A-Za-z._-"
_IDS = {"executions": "uid", "runs": "uid"}
WORDS = {
    ("executions", "kind"): ("run", "import", "fork"),
    ("executions", "status"): ("running", "finished", "cancelled", "stopped", "failed", "interrupted"),
    ("runs", "status"): (*STATUSES,),
    ("criterion_results", "outcome"): OUTCOMES,
    ("triage", "decision"): ("accept", "fix", "quarantine", "label", "ignore"),
    ("taken_back", "kind"): ("label", "triage", "baseline"),
}
LISTS = (
    *(("executions", name) for name in ("suite_keys", "suites", "agents")),
    *(("plans", name) for name in ("tags", "criteria")),
)
OBJECTS = (
    ("executions", "options"),
    ("executions", "meta"),
    ("executions", "commits"),
    ("executions", "programs"),
    ("plans", "variables"),
    ("criteria", "spec"),
    ("criterion_texts", "spec"),
    ("triage", "context"),
)
_KINDS = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}


def check_tables(connection: sqlite3.Connection, version: int, where: str) -> None:
    """Refuse a file whose tables are not those of this version, or in which something acts. Raises HistoryError."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    acts = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()
    if acts is not None:
        raise _not_ours(f"it has a {acts[0]}, {acts[1]!r}", where)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        schema.migrate(ours, upto=version)
        our_tables = {row[0] for row in ours.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            if name not in our_tables and not name.startswith("sqlite_"):
                raise _not_ours(f"it has a table {name!r} more", where)
        for table, statement in ours.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            table_row = connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
            ).fetchone()
            if table_row is None:
                raise _not_ours(f"it has no table {table}", where)
            virtual = "CREATE VIRTUAL TABLE" in statement
            if table_row[0] != statement if virtual else _columns(connection, table) != _columns(ours, table):
                raise _not_ours(f"table {table} has other columns", where)


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Name, type, whether it may be empty, place in the key, and whether it is made of others."""
    column_rows = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
    return [(row[1], row[2].upper(), row[3], row[5], row[6]) for row in column_rows]


def check_rows(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file with values that this program never writes, before anything is taken. Raises HistoryError.

    Its tables are known to be ours (`check_tables`).
    """
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    add_functions(connection)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in sorted(tables):
        if table.startswith(("search", "sqlite_")):
            continue
        for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
            for wrong in (*impossible(table, column, declared), not_json(table, column)):
                if wrong and connection.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone() is not None:
                    raise _not_ours(f"a value in {table}.{column} is impossible", where)


def add_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions that `not_json` names."""
    connection.create_function("list_of_texts", 1, is_list, deterministic=True)
    connection.create_function("object_of_json", 1, is_object, deterministic=True)


def impossible(table: str, column: str, declared: str) -> Iterator[str]:
    """What holds in SQL where a column has a value of another type, or one that this program never writes."""
    kind = _KINDS.get(declared.upper())
    if kind is not None:
        yield f"typeof({column}) NOT IN ('{kind}', 'null')"
    if column.endswith("_ms") and kind == "integer":
        yield f"{column} NOT BETWEEN 0 AND {_LAST_MS}"
    elif kind == "real":
        yield f"abs({column}) > {_LARGEST_NUMBER}"
    if _IDS.get(table) == column:
        yield f"{column} GLOB '*[^{_LETTERS}]*' OR {column} GLOB '.*' OR length({column}) NOT BETWEEN 1 AND 100"
    if (table, column) in WORDS:
        yield f"{column} NOT IN ({', '.join(repr(word) for word in WORDS[table, column])})"


def not_json(table: str, column: str) -> str:
    """What holds in SQL where a column has not the JSON that it should have; "": it has none."""
    if (table, column) in LISTS:
        return f"NOT list_of_texts({column})"
    return f"{column} IS NOT NULL AND NOT object_of_json({column})" if (table, column) in OBJECTS else ""


def is_list(text: str) -> bool:
    value = _read(text)
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_object(text: str) -> bool:
    return isinstance(_read(text), dict)


def _read(text: str) -> object:
    """The JSON value; None where it is none, or too deep. (Arguments of tools, read elsewhere, may be deeper.)"""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        return None
    return None if is_too_deep(value) else value


def _not_ours(what: str, where: str) -> HistoryError:
    return HistoryError(f"this is not a history that agenteval wrote: {what}", where=where, fix="nothing was imported")


def transcript_in(row: Mapping[str, Any]) -> tuple[dict[str, Any], Transcript | None]:
    """A row of `transcripts` as it may be imported, and its content. Its hash is computed anew: a wrong one would be
    found in place of another transcript. What is not a transcript is imported without bytes, and None: its run is
    listed, but can't be shown.
    """
    try:
        text = inflated(row["data"], LARGEST_VALUE)
        transcript = unpack_transcript(text)
        if not _fits(transcript, Transcript) or not _points_inside(transcript):
            raise ValueError("its parts are something else")
    except ValueError:
        return {**row, "data": b"", "hash": hashlib.sha256(b"broken" + row["hash"]).digest()[:16]}, None
    return {**row, "hash": hashlib.sha256(text).digest()[:16]}, transcript


def are_results(data: bytes) -> bool:
    """Whether these bytes are results as they are stored."""
    try:
        text = inflated(data, LARGEST_VALUE)
        return all(_fits(result, CriterionResult) for result in unpack_results(text))
    except ValueError:
        return False


def plan_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `plans` with the hash of what it says, and the beginning of its own prompt."""
    digest = plan_hash(row["prompt"], row["tags"], row["variables"], row["criteria"])
    return {**row, "hash": digest, "prompt_head": row["prompt"][:HEAD]}


def is_packed(data: bytes, digest: bytes | None = None) -> bool:
    """Whether this is compressed JSON that may be opened, with the hash that it says where it says one."""
    try:
        text = inflated(data, LARGEST_VALUE, words=False)
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return digest is None or hashlib.sha256(text).digest()[:16] == digest


def _points_inside(transcript: Transcript) -> bool:
    messages, calls = len(transcript.messages), len(transcript.tool_calls)
    return all(
        all(0 <= call < calls for call in message.tool_calls)
        and (message.tool_call is None or 0 <= message.tool_call < calls)
        for message in transcript.messages
    ) and all(call.message is None or 0 <= call.message < messages for call in transcript.tool_calls)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is what its type says: texts are texts, numbers are finite."""
    return _check(hint)(value)


@lru_cache(maxsize=64)
def _check(hint: Any) -> Callable[[Any], bool]:
    """What tells whether a value is of this type. Made once for each: it is asked of everything that comes in."""
    if hint is Any:
        return lambda _: True
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint is float:
        return lambda value: type(value) in (float, int) and abs(value) <= _LARGEST_NUMBER
    if hint is int:
        return lambda value: type(value) is int and abs(value) < 1 << 63
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        checks = [_check(argument) for argument in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is typing.Literal:
        return lambda value: isinstance(value, str) and value in arguments
    if origin is tuple:
        inner = _check(arguments[0])
        return lambda value: type(value) is tuple and all(map(inner, value))
    if origin in (dict, Mapping):
        return lambda value: type(value) is dict
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        parts = [(attrgetter(part.name), _check(hints[part.name])) for part in fields(hint)]
        return lambda value: type(value) is hint and all(check(read(value)) for read, check in parts)
    kind: type = hint
    return lambda value: type(value) is kind
