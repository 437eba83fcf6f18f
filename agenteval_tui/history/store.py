"""The history as the rest of the program sees it: one object, any thread."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import sys
import threading
import weakref
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.open_histories import history_closed, history_opened
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history import (
    estimates,
    execution_writes,
    queries,
    resume,
    run_writes,
    tapes,
    task_specs,
    write_operations,
)
from agenteval_tui.history import labels as label_rows
from agenteval_tui.history import replies as reply_rows
from agenteval_tui.history.blobs import unpack_results, unpack_transcript
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.connections import READING_TRIES, Connection, connect_reader, connect_writer
from agenteval_tui.history.errors import DamagedError, HistoryError, LockedError, explain, is_busy
from agenteval_tui.history.feedback import Feedback, feedback_of
from agenteval_tui.history.labels import Label
from agenteval_tui.history.lock_wait import tell_waiting
from agenteval_tui.history.open_database import FileIdentity, OpenedDatabase, mark_damaged, open_file
from agenteval_tui.history.programs import ProgramFiles, program_files, programs_of
from agenteval_tui.history.records import (
    CostRow,
    Counts,
    ExecutionRecord,
    ExecutionRow,
    FailedAttempt,
    PlannedRun,
    RunEnded,
    RunFilter,
    RunRow,
    StoredTask,
    TestSummary,
)
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.writer import Operation, Writer
from agenteval_tui.transcripts.model import Transcript, Usage

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_TRANSCRIPTS = 200  # fetched at a time
_TURN_S, _IMPORT_TURN_S = sys.getswitchinterval(), 0.0005
_IMPORTED = 500  # runs written at a time
_IMPORTED_TEXT = 1_500_000  # characters of them: a run of another tool may be as large as hundreds of others
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error)
"""What decoding a row raises that is not what this program writes."""
_LAST_READS = 10.0  # seconds that closing waits for readers


class Store:
    """The open history file.

    Writing methods return at once; their future is done when the data is on the disk, or holds a HistoryError. Where
    the data need not be `durable`, it is done when others can read it: the last of it may be lost with the power.
    Reading methods raise HistoryError when the file can't be read and AgentevalError for a name that fits nothing;
    they never wait for the writer. Everything may be called from any thread.
    """

    def __init__(self, opened: OpenedDatabase, *, durable: bool = True) -> None:
        self.path: Path = opened.path
        self.notices: tuple[str, ...] = opened.notices
        self.read_only: bool = opened.read_only
        self._immutable = opened.immutable
        self._local = threading.local()
        self._readers: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._guard = threading.Condition()
        self._reading = 0
        self._closed = False
        path = opened.path
        history_opened(path)
        self._in_place = FileIdentity(path)
        self._writer = (
            None
            if opened.read_only
            else Writer(
                path,
                lambda: connect_writer(path, durable=durable),
                write_operations.apply_operations,
                on_damage=lambda: mark_damaged(path),
                in_place=self._in_place.require,
            )
        )

    @classmethod
    def open(cls, path: Path | str, *, read_only: bool = False, durable: bool = True) -> Store:
        """Open the file, making or fixing it as needed; `.notices` says what a person should know about that.

        Raises HistoryError: no permission, not a history file, locked, disk full.
        """
        return cls(open_file(Path(path), read_only=read_only), durable=durable)

    @classmethod
    def open_to_look(cls, path: Path | str) -> Store:
        """Open for reading: if the file can't be written it is opened read only, with a notice. Raises HistoryError
        when it can't be read either, or there is no file and none can be created.
        """
        try:
            return cls.open(path)
        except LockedError:
            raise  # for a moment: it can be written, and reading has to wait as well
        except HistoryError as error:
            if not Path(path).is_file():
                raise
            try:
                return cls.open(path, read_only=True)  # which says so in its notices
            except HistoryError:
                raise error from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def in_place(self) -> bool:
        """Is the file at the path still the one that was opened? It may be moved, deleted or replaced meanwhile."""
        return self._in_place.now

    def close(self) -> None:
        """Write what waits, then close. May be called more than once."""
        if self._writer is not None:
            self._writer.close()
        with self._guard:
            if not self._closed:
                self._closed = True
                history_closed(self.path)
            # A connection must not go away under another thread's feet. Reading takes milliseconds.
            self._guard.wait_for(lambda: self._reading == 0, timeout=_LAST_READS)
            if self._reading:
                return
            for connection in list(self._readers):
                connection.close()

    # Writing

    def begin_execution(self, record: ExecutionRecord, runs: Sequence[PlannedRun]) -> Future[None]:
        """Store an execution as running, its runs as queued, its criteria, and what resuming it needs."""
        return self.write(execution_writes.Begin(record, runs))

    def resume_execution(
        self,
        execution_id: str,
        pid: int | None = None,
        *,
        again: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Future[int]:
        """Take an execution up: it is running, in process `pid` (None: this one), and no longer ended. Gives the
        number of runs that are queued now.

        Queued are all runs without an outcome (queued, running, grading, cancelled) and those in `again` (ids), whose
        outcome is forgotten; what they had used is kept as a failed attempt. `options` are laid over the execution's.
        The future holds an `AgentevalError` when its process is alive, or it was imported.
        """
        return self.write(resume.Resume(execution_id, pid, again, options or {}))

    def add_runs(self, execution_id: str, runs: Sequence[PlannedRun]) -> Future[None]:
        """More planned runs of an execution."""
        return self.write(execution_writes.AddRuns(execution_id, runs))

    def run_started(self, run_id: str, attempt: int, at_ms: int) -> Future[None]:
        """A run is running. Says nothing of a run that has ended."""
        return self.write(run_writes.StartRun(run_id, attempt, at_ms))

    def run_ended(self, ended: RunEnded) -> Future[None]:
        """Store a run's end with transcript and results. Of a run that had ended before, the new end replaces it."""
        return self.write(run_writes.EndRuns(ended))

    def keep_attempts(self, run_id: str, attempts: Sequence[FailedAttempt]) -> Future[None]:
        """Store the failed attempts of a run that has not ended, and goes back to the queue: they were paid for."""
        return self.write(run_writes.KeepAttempts(run_id, attempts))

    def keep_replies(self, run_id: str, replies: Sequence[StoredReply]) -> Future[None]:
        """Store what judges and others said of a run, with the questions; what it had before stays."""
        return self.write(reply_rows.KeepReplies(run_id, replies))

    def label(
        self,
        run_id: str,
        rating: int | None = None,
        *,
        passed: bool | None = None,
        criterion: str = "",
        criterion_hash: str = "",
        comment: str = "",
        who: str = "",
    ) -> Future[int]:
        """A person's verdict (1 to 5, passed or not, or both) on a run, or on one criterion of it; gives its number.

        The criterion is the one of that name, or the only one of that content. Earlier labels stay; the last counts.
        """
        label = Label(run_id, rating, criterion, comment, who, passed=passed, criterion_hash=criterion_hash)
        return self.write(label_rows.AddLabel(label))

    def around_of(self, execution_id: str) -> str:
        """What an execution had around its runs, as JSON (`runs.around.record`); "" for nothing."""
        row = self.read(lambda c: c.execute("SELECT around FROM executions WHERE uid = ?", (execution_id,)).fetchone())
        return str(row[0]) if row else ""

    def end_execution(
        self, execution_id: str, status: str, message: str = "", startup_ms: float | None = None, around: str = ""
    ) -> Future[None]:
        """`status`: finished, cancelled (what has not ended is cancelled too), stopped, failed or interrupted (what
        has not ended is queued, and can be resumed). `startup_ms` is added to that of an execution that was resumed."""
        return self.write(write_operations.EndExecution(execution_id, status, message, startup_ms, around))

    def delete_execution(self, execution_id: str) -> Future[int]:
        """Delete an execution with its runs, and the transcripts that no other run has. Gives the number of runs."""
        return self.write(write_operations.DeleteExecution(execution_id))

    def import_runs(
        self,
        record: ExecutionRecord,
        runs: Iterable[tuple[PlannedRun, RunEnded]],
        *,
        digest: str = "",
        path: str = "",
        notes: Callable[[], Sequence[str]] = tuple,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Store a whole execution that happened elsewhere; blocks. Returns the number of runs.

        `runs` is read as a stream. If it raises, or a run can't be stored, what was written of it is deleted again.
        `notes` is called at the end for the notes on the import; it is kept with the execution. Raises
        `AlreadyImportedError` when a file with this digest came in meanwhile: then nothing is added.
        """
        waiting: list[Future[None]] = [self.begin_execution(record, ())]
        done = 0
        # The writer gives the interpreter away with each row, and gets it back when the turn of who reads ends.
        sys.setswitchinterval(_IMPORT_TURN_S)
        try:
            for chunk in _imported_chunks(runs):
                waiting.append(self.add_runs(record.id, [planned for planned, _ in chunk]))
                waiting.extend(self._import_end(ended) for _, ended in chunk)
                # One chunk is written while the next is read.
                ahead = len(chunk) + 1
                for future in waiting[:-ahead]:
                    future.result()
                del waiting[:-ahead]
                done += len(chunk)
                if on_progress is not None:
                    on_progress(done)
            for future in waiting:
                future.result()
            self.write(write_operations.EndImport(digest, record.id, path, tuple(notes()))).result()
        except BaseException:
            # Also on Ctrl+C: half an import would count in all figures.
            self.delete_execution(record.id).result()
            raise
        finally:
            sys.setswitchinterval(_TURN_S)
        return done

    def _import_end(self, ended: RunEnded) -> Future[None]:
        """As `run_ended`, encoded here: of an import the writer has more to do than who reads the file."""
        end = run_writes.EndRuns(ended)
        with contextlib.suppress(Exception):  # the writer tries again, and says what is wrong
            end.prepare()
        return self.write(end)

    def flush(self) -> None:
        """Block until everything that was given before is on the disk (or has failed)."""
        if self._writer is not None:
            self.write(write_operations.Barrier()).result()

    def write(self, operation: Operation) -> Future[Any]:
        """Write something, behind what waits; the future holds what the operation gives."""
        if self._writer is not None:
            return self._writer.submit(operation)
        future: Future[Any] = Future()
        future.set_exception(
            HistoryError(
                "the history is open for reading only", where=str(self.path), fix="name another file with --db"
            )
        )
        return future

    # Reading

    def read(self, query: Callable[[Connection], _T]) -> _T:
        """What a query gives, which gets a connection of this thread. Raises HistoryError."""
        with self._guard:
            if self._closed:
                raise HistoryError("the history is closed already", where=str(self.path))
            # `close` waits until it is 0: a connection is not closed under a query.
            self._reading += 1
        try:
            return self._tried(query)
        finally:
            with self._guard:
                self._reading -= 1
                self._guard.notify_all()

    def executions(self, limit: int = 200, before: int | None = None) -> list[ExecutionRow]:
        """Newest first; for the next page give the rowid of the last row as `before`."""
        return self.read(lambda c: queries.executions(c, limit, before))

    def execution(self, ref: str) -> ExecutionRow:
        """By id, a unique start of at least four characters, or "last". Raises AgentevalError."""
        return self.read(lambda c: queries.execution(c, ref))

    def runs_state(self) -> tuple[int, ...]:
        """Figures that differ after an execution was added, deleted, started or ended, or one of its runs ended; they
        mean nothing by themselves."""
        return self.read(queries.runs_state)

    def execution_ids(self, run_filter: RunFilter | None = None) -> array[int]:
        """Rowids of executions that have a run that fits, newest first; no filter: all."""
        return self.read(lambda c: queries.execution_ids(c, run_filter or RunFilter()))

    def execution_rows(self, rowids: Sequence[int]) -> list[ExecutionRow]:
        """In the given order; deleted ones are left out."""
        return self.read(lambda c: queries.execution_rows(c, rowids))

    def run_ids(self, run_filter: RunFilter | None = None) -> array[int]:
        """Rowids of runs that fit, newest first; no filter: all."""
        return self.read(lambda c: queries.run_ids(c, run_filter or RunFilter()))

    def run_rows(self, rowids: Sequence[int]) -> list[RunRow]:
        """In the given order; deleted ones are left out."""
        return self.read(lambda c: queries.run_rows(c, rowids))

    def runs_of_execution(self, execution_id: str) -> list[RunRow]:
        """In the order of the plan; no such execution: an empty list."""
        return self.read(lambda c: queries.runs_of_execution(c, execution_id))

    def steps_of_execution(self, execution_id: str) -> dict[str, int]:
        """How many tools each run called, by run id; runs where that is unknown are left out."""
        return self.read(lambda c: queries.steps_of_execution(c, execution_id))

    def runs_of_test(self, suite_key: str, test_id: str, limit: int = 1000) -> list[RunRow]:
        """The newest runs of a test, newest first."""
        return self.read(lambda c: queries.runs_of_test(c, suite_key, test_id, limit))

    def repetitions(
        self, suite_key: str, test_id: str, variation: str, row_key: str, limit: int = 1000, execution_id: str = ""
    ) -> list[RunRow]:
        """The newest ended runs of one row of one variation of a test, newest first."""
        return self.read(lambda c: queries.repetitions(c, suite_key, test_id, variation, row_key, limit, execution_id))

    def forks_of(self, run_id: str) -> list[RunRow]:
        """The runs that continue this one, oldest first, ended or not."""
        return self.read(lambda c: queries.forks_of(c, run_id))

    def run(self, ref: str) -> RunRow:
        """By id, or a unique start or end of at least four characters. Raises AgentevalError."""
        return self.read(lambda c: queries.run(c, ref))

    def transcript(self, run_id: str) -> Transcript:
        """What the agent did; an empty transcript for a run that has not ended. Raises AgentevalError: no such run."""
        blob = self.read(lambda c: queries.transcript_blob(c, run_id))
        if blob is None:
            raise AgentevalError(f"there is no run {run_id} in the history", fix="see agenteval history")
        data, has_one = blob
        if data is None:
            if has_one:
                raise HistoryError(f"the transcript of run {run_id} was lost", where=str(self.path))
            return Transcript()
        return self._unpacked(unpack_transcript, data)

    def transcripts(self, run_ids: Iterable[str]) -> Iterator[tuple[str, Transcript]]:
        """Transcripts of many runs, in the given order, decoded as asked for; runs without one are left out."""
        for chunk in batches(run_ids, _TRANSCRIPTS):
            blobs = self.read(lambda c, chunk=chunk: queries.transcript_blobs(c, chunk))  # type: ignore[misc]
            for run_id in chunk:
                if run_id in blobs:
                    yield run_id, self._unpacked(unpack_transcript, blobs[run_id])

    def results(self, run_id: str) -> tuple[CriterionResult, ...]:
        """The criterion results with metrics and evidence; () while there are none. AgentevalError: no such run."""
        data = self.read(lambda c: queries.evidence_blob(c, run_id))
        return () if data is None else self._unpacked(unpack_results, data)

    def replies(self, run_id: str) -> tuple[StoredReply, ...]:
        """What judges and others said of a run, oldest first."""
        return tuple(self.replies_of([run_id]).get(run_id, ()))

    def replies_of(self, run_ids: Sequence[str]) -> dict[str, list[StoredReply]]:
        """What judges and others said of runs, by run id; runs of which nothing was asked are left out."""
        return self.read(lambda c: reply_rows.replies_of(c, run_ids))

    def known_reply(self, request_hash: str, answerer: str) -> StoredReply | None:
        """What this answerer said to this question the last time that it gave an answer."""
        return self.read(lambda c: reply_rows.known_reply(c, request_hash, answerer))

    def labels(self, run_ids: Sequence[str] | None = None) -> list[Label]:
        """People's verdicts on these runs (None: on all), oldest first."""
        return self.read(lambda c: label_rows.labels_of(c, run_ids))

    def feedback(self, run_ids: Sequence[str] | None = None) -> list[Feedback]:
        """The scores by key that these runs (None: all) were given, oldest first."""
        return self.read(lambda c: feedback_of(c, run_ids))

    def tasks_of(self, execution_id: str) -> dict[str, StoredTask]:
        """What the runs of an execution were planned from (`runs.task_payload`), by run id. Imported runs are
        not in it."""
        return self.read(lambda c: task_specs.tasks_of(c, execution_id))

    def task_of(self, run_id: str) -> Mapping[str, Any] | None:
        """What one run was planned from (`runs.task_payload`); None where `tasks_of` has nothing of it."""
        return self.read(lambda c: task_specs.task_of(c, run_id))

    def setup_of(self, execution_id: str) -> dict[str, Any] | None:
        """What the tasks of an execution have in common (`runs.task_payload`); None: it can't be resumed."""
        return self.read(lambda c: task_specs.setup_of(c, execution_id))

    def programs_of(self, execution_ids: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """By execution, then by agent: the hash of the state that the agent's project was in. What is not known is left
        out."""
        return self.read(lambda c: programs_of(c, execution_ids))

    def program_files(self, program: str) -> ProgramFiles:
        """The files of such a state, with hashes of their content; none where they are not known any more."""
        return self.read(lambda c: program_files(c, program))

    def cached(self, request_hash: str) -> tuple[str, Transcript] | None:
        """The newest run whose agent was asked exactly this and answered without an error: its id and transcript."""
        row = self.read(lambda c: resume.cached_run(c, request_hash))
        return None if row is None else (row[0], self._unpacked(unpack_transcript, row[1]))

    def tape(self, run_id: str) -> list[dict[str, Any]]:
        """What the run's program asked of models and was answered, as JSON; [] where that was not kept."""
        return self.read(lambda c: tapes.tape_of(c, run_id))

    def failed_attempts(self, run_id: str) -> list[FailedAttempt]:
        """The attempts of a run that ended in an error before the one that counts, in order."""
        return self.read(lambda c: resume.failed_attempts(c, run_id))

    def costs(self, execution_id: str) -> list[CostRow]:
        """What an execution used: agents by test, then judges by test and criterion."""
        return self.read(lambda c: queries.costs(c, execution_id))

    def unfinished_imports(self, digest: str) -> list[str]:
        """Executions that a file with this digest was to become when their process died."""
        return self.read(lambda c: resume.unfinished_imports(c, digest))

    def judge_usage(self, execution_id: str) -> tuple[int, Usage]:
        """How many replies of judges and others an execution rests on, and their tokens and cost."""
        return self.read(lambda c: reply_rows.judge_usage(c, execution_id))

    def criterion(self, content_hash: str) -> dict[str, Any] | None:
        """The version of a criterion with this hash, as JSON; None: never stored."""
        return self.read(lambda c: queries.criterion(c, content_hash))

    def test_summaries(self, suite_key: str) -> dict[str, TestSummary]:
        """How the tests of a suite did lately, by test id; tests without an ended run are left out."""
        return self.read(lambda c: queries.test_summaries(c, suite_key))

    def figures_of_tests(
        self, suite_key: str, tests: Sequence[str], agents: Sequence[str], window: int
    ) -> list[estimates.RunUsage]:
        """What the newest `window` ended runs of each of these tests with one of the agents used, newest first."""
        return self.read(lambda c: estimates.figures_of_tests(c, suite_key, tests, agents, window))

    def figures_of_agent(self, agent: str, window: int) -> list[estimates.RunUsage]:
        """What the newest `window` runs of an agent used, whatever was tested; only lately: [] says nothing of long
        ago."""
        return self.read(lambda c: estimates.figures_of_agent(c, agent, window))

    def imported(self, digest: str) -> str | None:
        """The id of the execution that a file with this digest became; None: not imported yet."""
        return self.read(lambda c: queries.imported(c, digest))

    def counts(self) -> Counts:
        """Totals over the whole history."""
        return self.read(queries.counts)

    def _reader(self) -> Connection:
        # One for each thread: a connection does one query at a time, and readers must not wait for each other.
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect_reader(self.path, immutable=self._immutable)
            with self._guard:
                self._readers.add(connection)
        return connection

    def _tried(self, query: Callable[[Connection], _T]) -> _T:
        for attempt in range(1, READING_TRIES + 1):
            try:
                return query(self._reader())
            except sqlite3.Error as error:
                if is_busy(error) and attempt < READING_TRIES:
                    tell_waiting(self.path)
                    continue
                history_error = explain(error, self.path, doing="read")
                if isinstance(history_error, DamagedError):
                    mark_damaged(self.path)
                raise history_error from error
            except _UNREADABLE as error:
                log.debug("a row of %s can't be read", self.path, exc_info=True)
                raise HistoryError(
                    f"what is stored can't be read ({type(error).__name__}: {error})",
                    where=str(self.path),
                    fix="`agenteval db check --fix` repairs what is damaged",
                ) from error
        raise AssertionError

    def _unpacked(self, unpack: Callable[[bytes], _T], data: bytes) -> _T:
        try:
            return unpack(data)
        except ValueError as error:
            raise HistoryError(f"what is stored of this run can't be read: {error}", where=str(self.path)) from error


def _imported_chunks(
    runs: Iterable[tuple[PlannedRun, RunEnded]],
) -> Iterator[list[tuple[PlannedRun, RunEnded]]]:
    """As many runs as are written together: what is read ahead is bounded, however large they are."""
    chunk: list[tuple[PlannedRun, RunEnded]] = []
    text = 0
    for run in runs:
        chunk.append(run)
        transcript = run[1].transcript
        text += sum(len(message.content) + len(message.reasoning) for message in transcript.messages)
        if len(chunk) >= _IMPORTED or text >= _IMPORTED_TEXT:
            yield chunk
            chunk, text = [], 0
    if chunk:
        yield chunk
