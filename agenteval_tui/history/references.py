"""What people name on a command line: a run, an execution or a test, and what a verb takes from that.

A reference is the id of a run or an execution, a part of it, a test's id (`FILE::ID` where several suites have it),
the name of an execution (the newest that has it), what executions are versions of (`commit:7b8c`, `meta.model:mini`:
the newest that the search finds), `last`, or nothing. A full id always means what it says; then comes the test of that
id or the execution of that name; then the beginning of an id, and last its end, as ids are shown in short.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Literal

from msgspec import Struct

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.core.storable import storable
from agenteval_tui.history import queries
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.history.execution_names import newest_named
from agenteval_tui.history.recordings import COUNTED, FORK
from agenteval_tui.history.records import ExecutionRow, RunFilter, RunRow
from agenteval_tui.history.scope import count_elsewhere, executions_in, newer_elsewhere, runs_in
from agenteval_tui.history.search import HistoryQuery, described_executions
from agenteval_tui.history.store import Store
from agenteval_tui.suites.projects import ALL_BY_ENVIRONMENT

LAST = "last"
_LISTED = 10  # candidates of an ambiguous reference
_FAILURES = ("failed", "error")
_FAILED = f"status IN {_FAILURES}"
_WITH_OUTCOME = "status IN ('passed', 'failed', 'error', 'needs_review', 'skipped')"


Kind = Literal["execution", "run", "test"]


class _Named(Struct, frozen=True):
    """What a reference names: `row` is its row in the table of that kind."""

    kind: Kind
    row: int
    name: str


class References(Struct, frozen=True):
    """Finds what references mean in a history. Every method raises `AgentevalError`: nothing has that name, or
    `AmbiguousError` with the candidates where several have it.

    `last`, nothing, and tests that several suites have are looked for in these projects (none: in all); what is named
    is found wherever it is from. `say` takes a sentence that a person should know: something elsewhere is newer.
    """

    store: Store
    projects: tuple[str, ...] = ()
    say: Callable[[str], None] = lambda _: None
    option: str = ALL_BY_ENVIRONMENT
    """What makes whoever asks look in all projects: an option of the command, or this variable."""

    def execution(self, reference: str = "") -> ExecutionRow:
        """An execution; the one that a run belongs to; the newest one of a test; `last` or nothing: the newest."""
        if reference in ("", LAST):
            return self._execution(self._last())
        named = self._named(reference, "execution")
        if named.kind == "execution":
            return self._execution(named.row)
        column = "id" if named.kind == "run" else "test"
        counted = "" if named.kind == "run" else f" AND superseded != {FORK}"
        execution = self._one(f"SELECT max(execution) FROM runs WHERE {column} = ?{counted}", named.row)
        if execution is None:
            raise _never_ran(named.name)
        return self._execution(execution)

    def run(self, reference: str = "", *, failure: bool = False) -> RunRow:
        """A run; the newest one of a test; for `last`, the newest run of the newest execution.

        Of an execution its only run. `failure`: what is asked for is a failure. Then nothing means the newest run that
        failed or ended in an error, and an execution (`last` too) means its newest failure, if it has one.
        """
        if not reference and failure:
            return self._newest_failure()
        if reference in ("", LAST):
            return self._of_execution(self._last(), failure=failure, any_run=True)
        named = self._named(reference, "run")
        if named.kind == "run":
            return self._run(named.row)
        if named.kind == "execution":
            return self._of_execution(named.row, failure=failure, any_run=failure)
        return self._run(self._newest_of_test(named))

    def failed_run(self, reference: str = "") -> RunRow:
        """A run for those who can only use one that failed: as `run` with `failure`, but of a test its newest run that
        failed, also where a newer one passed, which is said. A test that never failed gives its newest run."""
        row = self.run(reference, failure=True)
        if row.status in _FAILURES or self.test(reference) is None:
            return row
        run = self._one(
            f"SELECT id FROM runs WHERE test = (SELECT test FROM runs WHERE id = ?) AND {_FAILED}"
            f" AND superseded != {FORK} ORDER BY superseded, id DESC LIMIT 1",
            row.rowid,
        )
        if run is None:
            return row
        failed = self._run(run)
        did = "passed" if row.status == "passed" else "did not fail"
        self.say(f"the newest run of {row.test_id} {did}: this is run {failed.id}, the newest that failed")
        return failed

    def why_nothing(self) -> str:
        """Where nothing has run, and where these projects have nothing but others have: a sentence that says so, and
        what to do next. Else ""."""
        if self.store.read(queries.is_empty):
            error = NothingRanError()
            return f"{error.what}: {error.fix}"
        if not self.projects or self.store.execution_ids(RunFilter(projects=self.projects)):
            return ""
        many = self.store.read(lambda connection: count_elsewhere(connection, self.projects))
        return f"{nothing_here(self.projects, many)}: {self.option} shows them" if many else ""

    def either(self, reference: str = "") -> ExecutionRow | RunRow:
        """An execution or a run; the newest run of a test; `last` or nothing: the newest execution."""
        if reference in ("", LAST):
            return self._execution(self._last())
        named = self._named(reference, "execution")
        if named.kind == "execution":
            return self._execution(named.row)
        return self._run(named.row if named.kind == "run" else self._newest_of_test(named))

    def address(self, text: str, *, failure: bool = False) -> tuple[RunRow, str]:
        """The run of RUN or RUN/CRITERION, and the text for the criterion ("" without one).

        The run may be named in every way that `run` knows. A test's id may hold slashes itself.
        """
        if not text or text == LAST:
            return self.run(text, failure=failure), ""
        refused: list[AgentevalError] = []
        for head, tail in _splits(text):
            try:
                return self.run(head, failure=failure), tail
            except AmbiguousError:
                raise
            except AgentevalError as error:
                refused.append(error)
        # RUN/CRITERION with the shortest RUN is most likely meant; with FILE::ID the slashes may be those of the path.
        raise refused[0 if "::" in text or len(refused) == 1 else 1]

    def test(self, reference: str) -> tuple[str, str] | None:
        """(suite's key, id) of the test that a reference names; None: it names no test, or it is a full id."""
        reference = reference.strip()
        if reference in ("", LAST) or self.store.read(lambda c: _exact(c, reference)) is not None:
            return None
        named = self.store.read(lambda c: _test(c, reference, self.projects))
        if named is None:
            return None
        key, test_id = self.store.read(
            lambda c: c.execute(
                "SELECT s.key, t.test_id FROM tests t JOIN suites s ON s.id = t.suite WHERE t.id = ?", (named.row,)
            ).fetchone()
        )
        return str(key), str(test_id)

    def _named(self, reference: str, first: Kind) -> _Named:
        return self.store.read(lambda connection: _lookup(connection, reference.strip(), first, self.projects))

    def _one(self, statement: str, *values: int | str) -> int | None:
        row = self.store.read(lambda connection: connection.execute(statement, values).fetchone())
        return row[0] if row else None

    def _last(self) -> int:
        condition, values = executions_in(self.projects)
        newest = self._one(f"SELECT max(id) FROM executions WHERE {COUNTED} AND {condition}", *values)
        if newest is None:
            raise self._nothing_here()
        if self.projects:
            many, project = self.store.read(lambda c: newer_elsewhere(c, self.projects, newest))
            if many:
                self.say(
                    f"{'an execution of another project' if many == 1 else f'{many} executions of other projects'} "
                    f"{'is' if many == 1 else 'are'} newer (the newest: {project or 'project not known'}); "
                    f"{self.option} counts them too"
                )
        return newest

    def _nothing_here(self) -> AgentevalError:
        elsewhere = self.store.read(lambda c: count_elsewhere(c, self.projects)) if self.projects else 0
        if not elsewhere:
            return NothingRanError()
        return NothingHereError(self.projects, elsewhere, self.option)

    def _newest_failure(self) -> RunRow:
        newest = self._last()
        condition, values = runs_in(self.projects)
        run = self._one(
            f"SELECT id FROM runs WHERE {_FAILED} AND superseded = 0 AND {condition} ORDER BY id DESC LIMIT 1", *values
        )
        if run is None:
            raise AgentevalError(
                f"no stored run {'of this project ' if self.projects else ''}failed or ended in an error",
                fix="`agenteval history --runs` lists them all",
            )
        row = self._run(run)
        if row.execution_id != (last := self._execution(newest).id):
            self.say(f"no run of the newest execution {last} failed: this is a run of {row.execution_id}, before it")
        return row

    def _of_execution(self, execution: int, *, failure: bool, any_run: bool) -> RunRow:
        failed = f"SELECT id FROM runs WHERE execution = ? AND {_FAILED} ORDER BY id DESC LIMIT 1"
        if failure and (run := self._one(failed, execution)) is not None:
            return self._run(run)
        name = self._execution(execution).id
        if not any_run:
            listed = self.store.runs_of_execution(name)
            if len(listed) > 1:
                names = [f"{row.id}  {row.test_id}, {row.status}" for row in listed]
                raise AmbiguousError(f"execution {name} has {len(listed)} runs", fix=_candidates(names))
        newest = f"SELECT id FROM runs WHERE execution = ? ORDER BY {_WITH_OUTCOME} DESC, id DESC LIMIT 1"
        run = self._one(newest, execution)
        if run is None:
            raise AgentevalError(f"execution {name} has no run", fix="`agenteval history` lists the others")
        return self._run(run)

    def _newest_of_test(self, named: _Named) -> int:
        newest = self._one(
            f"SELECT id FROM runs WHERE test = ? AND superseded != {FORK}"
            f" ORDER BY {_WITH_OUTCOME} DESC, superseded, id DESC LIMIT 1",
            named.row,
        )
        if newest is None:
            raise _never_ran(named.name)
        return newest

    def _execution(self, row: int) -> ExecutionRow:
        return self.store.execution_rows([row])[0]

    def _run(self, row: int) -> RunRow:
        return self.store.run_rows([row])[0]


class NothingHereError(AgentevalError):
    """These projects have no execution, others have this many."""

    def __init__(self, projects: Sequence[str], elsewhere: int, option: str) -> None:
        super().__init__(nothing_here(projects, elsewhere), fix=f"{option} shows them")
        self.elsewhere = elsewhere


def _lookup(connection: Connection, reference: str, first: Kind, projects: Sequence[str]) -> _Named:
    exact = _exact(connection, reference)
    if exact is not None:
        return exact
    # Asked for all kinds before one is chosen: a test called as an execution, or as an id begins, must not be taken
    # for it in silence.
    test = _test(connection, reference, projects)
    called = _called(connection, reference, projects) or _described(connection, reference, projects)
    if called is not None:
        if test is not None:
            raise AmbiguousError(
                f"{reference!r} is both a test and the name of an execution",
                fix=_candidates([f"test {test.name}", f"execution {called.name}"]),
            )
        return called
    executions = queries.begin_with(connection, "executions", reference, _LISTED + 1)
    runs = queries.begin_with(connection, "runs", reference, _LISTED + 1)
    if test is not None:
        if executions or runs:
            names = [f"test {test.name}", *_kinds(executions, runs)]
            raise AmbiguousError(f"{reference!r} is both a test and the beginning of an id", fix=_candidates(names))
        return test
    # Ends of ids last: they are how lists show ids in short, and no index finds them.
    if not executions and not runs:
        executions = queries.end_with(connection, "executions", reference, _LISTED + 1)
        runs = queries.end_with(connection, "runs", reference, _LISTED + 1)
    of_kind: dict[Kind, list[tuple[int, str]]] = {"execution": executions, "run": runs}
    # Of an execution and a run that fit, the kind that the command takes first is meant.
    kinds: tuple[Kind, ...] = ("run", "execution") if first == "run" else ("execution", "run")
    for kind in kinds:
        if len(of_kind[kind]) == 1:
            return _Named(kind, *of_kind[kind][0])
    if executions or runs:
        raise AmbiguousError(
            f"{reference!r} matches more than one {'execution' if executions else 'run'}",
            fix=_candidates(_kinds(executions, runs)),
        )
    if queries.is_empty(connection):
        raise NothingRanError(reference)
    raise AgentevalError(
        f"there is no run, no execution and no test {reference!r} in the history", fix=_hint(connection, reference)
    )


def _hint(connection: Connection, reference: str) -> str:
    # Bounded: names are compared letter by letter.
    names = [row[0] for row in connection.execute("SELECT DISTINCT test_id FROM tests LIMIT 20000").fetchall()]
    otherwise = "`agenteval history` and `agenteval history --runs` list them"
    if len(reference) < queries.SHORTEST_REF:
        otherwise = f"give at least {queries.SHORTEST_REF} characters of an id"
    return did_you_mean(reference.rpartition("::")[2], names, otherwise)


def _exact(connection: Connection, reference: str) -> _Named | None:
    kinds: tuple[tuple[Kind, str], ...] = (("execution", "executions"), ("run", "runs"))
    for kind, table in kinds:
        row = connection.execute(f"SELECT id, uid FROM {table} WHERE uid = ?", (storable(reference),)).fetchone()
        if row is not None:
            return _Named(kind, row[0], row[1])
    return None


def _called(connection: Connection, reference: str, projects: Sequence[str]) -> _Named | None:
    """The newest execution with this name: of these projects, else of any."""
    row = newest_named(connection, reference, *executions_in(projects)) or newest_named(connection, reference)
    if row is None:
        return None
    (uid,) = connection.execute("SELECT uid FROM executions WHERE id = ?", (row,)).fetchone()
    return _Named("execution", row, uid)


def _described(connection: Connection, reference: str, projects: Sequence[str]) -> _Named | None:
    """The newest execution that a search such as `commit:7b8c meta.model:mini` finds: of these projects, or of any."""
    query = HistoryQuery.parse(reference)
    if not query.fields or not query.of_executions:
        return None
    history_filter = query.filter(0)
    conditions, values = described_executions(
        history_filter.name_part,
        history_filter.commit,
        history_filter.meta,
        note_part=history_filter.note_part,
        column="e.id",
    )
    # Of these projects first; a commit or metadata of another project is still what was named.
    for of_projects, more in (executions_in(projects), ("1", [])):
        where = " AND ".join((COUNTED, of_projects, *conditions))
        row = connection.execute(
            f"SELECT id, uid FROM executions AS e WHERE {where} ORDER BY id DESC LIMIT 1", (*more, *values)
        ).fetchone()
        if row is not None:
            return _Named("execution", *row)
    return None


def _test(connection: Connection, reference: str, projects: Sequence[str]) -> _Named | None:
    """The test with this id, whatever its case; FILE::ID: the one in this file; of several that of these projects.

    Raises `AmbiguousError`.
    """
    tests = _tests_called(connection, reference)
    file, colons, name = reference.rpartition("::")
    if not tests and colons:
        tests = [test for test in _tests_called(connection, name) if is_file(test[1], file)]
    if len(tests) > 1:
        # Of two copies of a suite perhaps only one was ever run, or only one is of this project.
        for condition, values in (("1", []), runs_in(projects)):
            ran = f"SELECT 1 FROM runs WHERE test = ? AND {condition} LIMIT 1"
            tests = [test for test in tests if connection.execute(ran, [test[0], *values]).fetchone()] or tests
    if len(tests) > 1:
        raise AmbiguousError(
            f"several suites have a test {reference!r}", fix=_candidates([f"{key}::{name}" for _, key, name in tests])
        )
    return _Named("test", tests[0][0], tests[0][2]) if tests else None


def _tests_called(connection: Connection, test_id: str) -> list[tuple[int, str, str]]:
    """(row, suite's key, id) of each; where a test has the id letter by letter, only such ones."""
    rows = connection.execute(
        "SELECT t.id, s.key, t.test_id FROM tests t JOIN suites s ON s.id = t.suite WHERE lower(t.test_id) = lower(?)"
        " ORDER BY s.key",
        (storable(test_id),),
    ).fetchall()
    return [row for row in rows if row[2] == test_id] or rows


def is_file(key: str, file: str) -> bool:
    """Whether a suite's key is this file: its path, from here or in full, or the end of its path."""
    if not file:
        return False
    try:
        full = str(Path(file).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):
        full = file
    return key in (file, full) or key.endswith(f"/{file.removeprefix('./')}")


def nothing_here(projects: Sequence[str], elsewhere: int) -> str:
    """A sentence: none of this many executions belongs to these projects."""
    where = ", ".join(projects)
    there = "1 execution of another project is" if elsewhere == 1 else f"{elsewhere:,} executions of other projects are"
    return f"the history has no execution of this project ({where}); {there} in it"


def _splits(text: str) -> list[tuple[str, str]]:
    """The text as a whole, then cut in two at each slash, from the left."""
    cuts = [at for at, char in enumerate(text) if char == "/"]
    return [(text, ""), *((text[:at], text[at + 1 :]) for at in cuts if at)]


def _kinds(executions: list[tuple[int, str]], runs: list[tuple[int, str]]) -> list[str]:
    return [*(f"execution {uid}" for _, uid in executions), *(f"run {uid}" for _, uid in runs)]


def _candidates(names: list[str]) -> str:
    """A remedy of several lines: each candidate in a line of its own."""
    more = [f"  and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return "\n".join(["name one of these:", *(f"  {name}" for name in names[:_LISTED]), *more])


def _never_ran(test: str) -> AgentevalError:
    return AgentevalError(f"test {test} has no stored run", fix="run it first: agenteval run PATH --test ID")
