"""A person's own SQL over the history's views: it only reads, within a time and a number of rows.

SQLite itself sees to that: the file is opened read-only, `query_only` is on, and an authorizer lets through nothing but
reading the views; a progress handler ends what takes too long.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.connections import connect_to_look
from agenteval_tui.history.errors import explain, is_busy, result_code
from agenteval_tui.history.sql_views import VERSION, VIEWS

SECONDS = 30.0
"""How long a query may take."""
ROWS = 10_000
"""How many rows are read."""
_LONGEST_SQL = 100_000
_LARGEST_VALUE = 50_000_000  # bytes of a value that a query makes
_LARGEST_RESULT = 200_000_000
_STEPS = 20_000  # of SQLite's machine, between two looks at the clock
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
_OUTSIDE = ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer")
_WORDS = {
    sqlite3.SQLITE_INSERT: "it would write",
    sqlite3.SQLITE_UPDATE: "it would write",
    sqlite3.SQLITE_DELETE: "it would delete",
    sqlite3.SQLITE_TRANSACTION: "it would begin or end a transaction, and keep others from writing",
    sqlite3.SQLITE_SAVEPOINT: "it would begin or end a transaction, and keep others from writing",
    sqlite3.SQLITE_ATTACH: "it would open another file",
    sqlite3.SQLITE_DETACH: "it would close a file",
    sqlite3.SQLITE_PRAGMA: "PRAGMA changes how the file is read",
    sqlite3.SQLITE_FUNCTION: "it would call a function that leaves the history",
    sqlite3.SQLITE_ANALYZE: "it would write",
    sqlite3.SQLITE_REINDEX: "it would write",
}
_OTHERWISE = "it would change the tables"
_FAULTS = (
    ("syntax", re.compile(r'near "(.*)": syntax error', re.DOTALL)),
    ("token", re.compile(r'unrecognized token: "(.*)"', re.DOTALL)),
    ("table", re.compile(r"no such table: (.+)", re.DOTALL)),
    ("column", re.compile(r"no such column: (.+)", re.DOTALL)),
    ("function", re.compile(r"no such function: (.+)", re.DOTALL)),
    ("ambiguous", re.compile(r"ambiguous column name: (.+)", re.DOTALL)),
    ("writes a view", re.compile(r"cannot modify (.+) because it is a view", re.DOTALL)),
    ("incomplete", re.compile(r"incomplete input()")),
    ("several", re.compile(r"You can only execute one statement at a time\.()")),
    ("parameter", re.compile(r"(?:Incorrect number of bindings supplied|You did not supply a value for binding)().*")),
)
"""What is wrong with a query, and the name that is: SQLite has one code for all of these."""
_VIEWS_HINT = "`agenteval db query --views` lists the views and their columns"


class QueryHead(Document, frozen=True, kw_only=True):
    """What is known of a query's rows."""

    views: Annotated[Count, Meta(description="the version of the views that it read")] = VERSION
    columns: Annotated[tuple[str, ...], Meta(description="their names; of equal ones the second is `NAME_2`")]
    cut: Annotated[bool, Meta(description="whether there are more rows")]


class QueryResult(QueryHead, frozen=True, kw_only=True):
    """What a query gave."""

    rows: tuple[tuple[Any, ...], ...]


class QueryError(AgentevalError):
    """A query that can't be run, or not to its end."""


def query(path: Path, sql: str, *, rows: int = ROWS, seconds: float = SECONDS) -> QueryResult:
    """Run one SELECT over the views (`sql_views`). Reads limited rows, for a limited time.

    Raises `AgentevalError` that says what is wrong with the query, and where in it; `HistoryError` where the file can't
    be read.
    """
    _check_text(sql)
    try:
        connection = connect_to_look(path)
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error
    with closing(connection):
        return _Query(connection, sql, path).run(rows, seconds)


def _check_text(sql: str) -> None:
    if not sql.strip():
        raise QueryError("there is no query", fix='for example: agenteval db query "SELECT * FROM runs LIMIT 5"')
    if len(sql) > _LONGEST_SQL:
        raise QueryError(f"the query has {len(sql):,} characters", fix=f"at most {_LONGEST_SQL:,} are read")
    if "\0" in sql:
        raise QueryError("the query has a character that no SQL has (NUL)", where=_place(sql, sql.index("\0")))


class _Query:
    """A query on its connection, and why the authorizer refused what it refused."""

    def __init__(self, connection: sqlite3.Connection, sql: str, path: Path) -> None:
        self._connection, self._sql, self._path = connection, sql, path
        self._refused = ""
        self._views = {view.name for view in VIEWS}
        self._tables: frozenset[str] = frozenset()
        self._until = 0.0

    def run(self, rows: int, seconds: float) -> QueryResult:
        # 60 ms to import, for which nothing else of `db` waits.
        from sqlite_utils import Database

        # Without plugins of sqlite-utils, which could change the connection.
        database = Database(self._connection, recursive_triggers=False, execute_plugins=False)
        # Damaged bytes in a text must not end the query.
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        # Views for this connection alone: `query_only` would keep them out.
        database.execute("PRAGMA query_only = OFF")
        # The file may be another's: its schema calls nothing that does more than compute.
        database.execute("PRAGMA trusted_schema = OFF")
        try:
            for view in VIEWS:
                database.execute(view.statement)
            database.execute("PRAGMA query_only = ON")
            tables = database.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
            self._tables = frozenset({"sqlite_master", *(name for (name,) in tables)})
            # From here on a person's own words are run.
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self._until = time.monotonic() + seconds
            self._connection.set_progress_handler(self._late, _STEPS)
            self._connection.set_authorizer(self._authorize)
            cursor = database.execute(self._sql)
            if cursor.description is None:
                raise QueryError("this query gives no rows", fix="begin with SELECT or WITH")
            columns = _unique([column[0] for column in cursor.description])
            # One more than is shown tells whether there are more.
            read = _read(cursor, rows + 1)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._error(error, seconds) from error
        return QueryResult(columns=columns, rows=tuple(read[:rows]), cut=len(read) > rows)

    def _late(self) -> bool:
        return time.monotonic() > self._until

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Let through what reads views. `source`: the view that asks, None where the person's own words do."""
        if action in _ALLOWED:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _OUTSIDE:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # A view reads tables; the query itself reads views. `count(*)` reads no column.
            if source in self._views or database != "main" or not second or first not in self._tables:
                return sqlite3.SQLITE_OK
            self._refused = self._refused or f"{first} is a table of the history, which may change with each release"
            return sqlite3.SQLITE_DENY
        self._refused = self._refused or _WORDS.get(action, _OTHERWISE)
        return sqlite3.SQLITE_DENY

    def _error(self, error: sqlite3.Error | sqlite3.Warning, seconds: float) -> AgentevalError:
        kind, name = _fault(error)
        if kind == "writes a view":
            self._refused = self._refused or "it would write"
        if self._refused:
            return QueryError(
                f"this query is refused: {self._refused}",
                where=_place(self._sql, len(self._sql) - len(self._sql.lstrip())),
                fix=f"only SELECT is run; {_VIEWS_HINT}",
            )
        where = self._where(name)
        match kind:
            case "late":
                return QueryError(
                    f"the query took longer than {seconds:g} {'second' if seconds == 1 else 'seconds'}",
                    fix="narrow it with WHERE and LIMIT, or give it more time with --timeout",
                )
            case "too large":
                return QueryError(
                    f"the query makes a value of more than {_LARGEST_VALUE:,} bytes", fix="make it shorter"
                )
            case "several":
                return QueryError("these are several statements", fix="give one SELECT, without a `;` in between")
            case "parameter":
                return QueryError("the query has a parameter (`?`, `:name`)", fix="write the value into the query")
            case "syntax":
                return QueryError(
                    f"this isn't SQL: syntax error near {name[:60]!r}",
                    where=where,
                    fix="write SQLite's SQL, and put names that are keywords in double quotes",
                )
            case "incomplete":
                return QueryError(
                    "the query is incomplete", where=_place(self._sql, len(self._sql)), fix="write the rest"
                )
            case "token":
                return QueryError(
                    f"this isn't SQL: {name[:60]!r} can't be read", where=where, fix="is a quote not closed?"
                )
            case "table" | "column":
                return self._unknown(kind, name)
            case "ambiguous":
                return QueryError(f"several views have a column {name!r}", where=where, fix="write VIEW.COLUMN")
            case "function":
                return QueryError(f"there is no function {name!r}", where=where, fix="use SQLite's own functions")
        own = isinstance(error, sqlite3.OperationalError) and not is_busy(error)
        if isinstance(error, sqlite3.DatabaseError) and not own:
            return explain(error, self._path, doing="read")
        return QueryError(f"the query can't be run: {error}", fix=_VIEWS_HINT)

    def _unknown(self, kind: str, name: str) -> AgentevalError:
        """A view or a column that there is not."""
        bare = _bare(name)
        where = self._where(bare)
        if kind == "table":
            views = f"views: {', '.join(view.name for view in VIEWS)}"
            hint = did_you_mean(bare, sorted(self._views))
            return QueryError(f"there is no view {name!r}", where=where, fix=f"{hint} ({views})" if hint else views)
        asked = [view for view in VIEWS if re.search(rf"\b{view.name}\b", self._sql, re.I)]
        elsewhere = [view.name for view in VIEWS if any(column.name == bare for column in view.columns)]
        hint = did_you_mean(bare, sorted({column.name for view in asked or VIEWS for column in view.columns}))
        if elsewhere:  # the query asks another view, or one that it gives a column of its own
            hint = f"the view {elsewhere[0]} has one"
        hint = f"{hint}; {_VIEWS_HINT}" if elsewhere else f"{hint} {_VIEWS_HINT}".lstrip()
        return QueryError(f"there is no column {name!r}", where=where, fix=hint)

    def _where(self, name: str) -> str:
        """Where in the query a token or name is; "" where that is not sure."""
        token = name if self._sql.count(name) else _bare(name)
        if not token or self._sql.count(token) != 1:
            word = rf"(?<!\w){re.escape(token)}(?!\w)"
            places = [match.start() for match in re.finditer(word, self._sql)] if token else []
            return _place(self._sql, places[0]) if len(places) == 1 else ""
        return _place(self._sql, self._sql.index(token))


def _fault(error: sqlite3.Error | sqlite3.Warning) -> tuple[str, str]:
    """The kind of an error, and the name or token that it is about; "" for other errors."""
    code = result_code(error)
    if code == sqlite3.SQLITE_INTERRUPT:
        return "late", ""
    if code == sqlite3.SQLITE_TOOBIG:
        return "too large", ""
    matches = ((kind, pattern.fullmatch(str(error))) for kind, pattern in _FAULTS)
    return next(((kind, match[1]) for kind, match in matches if match is not None), ("", ""))


def _bare(name: str) -> str:
    """A name without what it belongs to, and without quotes."""
    return name.rpartition(".")[2].strip('"')


def _read(cursor: sqlite3.Cursor, most: int) -> list[tuple[Any, ...]]:
    """The first rows. Raises `QueryError` where they would fill the memory."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in islice(cursor, most):
        rows.append(tuple(row))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _LARGEST_RESULT:
            raise QueryError(
                f"the first {len(rows):,} rows have more than {_LARGEST_RESULT // 1_000_000} MB",
                fix="select fewer columns, or fewer rows with WHERE or LIMIT",
            )
    return rows


def _place(sql: str, offset: int) -> str:
    line, last = sql.count("\n", 0, offset) + 1, sql.rfind("\n", 0, offset)
    return f"query:{line}:{offset - last}"


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number behind those that came before: a row is an object in JSON."""
    counts: dict[str, int] = {}
    unique = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return tuple(unique)
