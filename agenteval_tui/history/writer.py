"""The one thread of a process that writes: takes what is waiting, writes it in one transaction, then says so.

A future is done only when its operation is on the disk. While one commit is on its way to the disk the next batch
gathers, so that thousands of runs a second need only some hundred commits.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import atexit
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.connections import WRITING_TRIES, Connection
from agenteval_tui.history.errors import HistoryError, explain, is_busy, is_damage, result_code
from agenteval_tui.history.lock_wait import tell_waiting

_T = TypeVar("_T")
_BATCH = 512  # operations in one transaction
_TRIES = WRITING_TRIES  # of a batch, when another process holds the lock longer than a connection waits (2 s)
_PATIENT_TRIES = 300  # where something was paid for that would be lost: ten minutes, unless the program wants to end


class Totals:
    """What a batch adds to the maintained totals; written once, before its commit."""

    def __init__(self) -> None:
        self.executions: dict[int, dict[str, float]] = {}
        self.tests: dict[int, int] = {}

    def add(self, execution: int, column: str, number: float) -> None:
        """Add `number` to `column` of an execution."""
        columns = self.executions.setdefault(execution, {})
        columns[column] = columns.get(column, 0) + number

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring the totals into the file."""
        for execution, columns in self.executions.items():
            sets = ", ".join(f"{name} = coalesce({name}, 0) + ?" for name in columns)
            connection.execute(
                f"UPDATE executions SET {sets} WHERE id = ?",
                (*columns.values(), execution),
            )
        connection.executemany(
            "UPDATE tests SET ended = ended + ? WHERE id = ?", [(number, test) for test, number in self.tests.items()]
        )


class Operation(Struct):
    """Something to be written. May be applied more than once: a transaction that failed is done again.

    `patient`: it is worth waiting long for another process that holds the lock.
    """

    patient: ClassVar[bool] = False

    def prepare(self) -> None:
        """Do what needs no lock: encoding, compressing. Called once."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> object:
        """Write, within the batch's transaction; the value becomes the future's result."""
        raise NotImplementedError


class History(Protocol):
    """An open history (`store.Store`), as the modules need it that the store itself is made of."""

    def read(self, query: Callable[[Connection], _T]) -> _T:
        """What a query gives; raises HistoryError."""
        ...

    def write(self, operation: Operation) -> Future[Any]:
        """Write, behind what waits; the future holds what the operation gives."""
        ...


ApplyAll = Callable[[sqlite3.Connection, Totals, Sequence[Operation]], list[Any]]


class Writer:
    """Owns the writing connection and its thread. The thread starts with the first operation."""

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        apply_all: ApplyAll,
        *,
        on_damage: Callable[[], None],
        in_place: Callable[[], None] = lambda: None,
    ) -> None:
        """`in_place` is called before anything is written, and raises when the file is not where it was."""
        self._in_place = in_place
        self._path = path
        self._on_damage = on_damage
        self._connect = connect
        self._apply_all = apply_all
        self._queue: queue.SimpleQueue[tuple[Operation, Future[Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        _open_writers.add(self)

    def submit(self, operation: Operation) -> Future[Any]:
        """Queue an operation. The future holds a HistoryError when it could not be written; nothing raises here."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(HistoryError("the history is closed already", where=str(self._path)))
                return future
            if self._thread is None:
                # A daemon, so that a program that forgot to close can end; `close` at exit still writes what waits.
                self._thread = threading.Thread(target=self._work, name="history-writer", daemon=True)
                self._thread.start()
            # Under the lock: behind the end that `close` puts into the queue, nothing would be written any more.
            self._queue.put((operation, future))
        return future

    def close(self) -> None:
        """Write what waits, then end the thread. May be called more than once."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            if thread is not None:
                self._queue.put(None)
        # A callback of a future runs in the writing thread, and may close the history: a thread can't wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        going = True
        while going:
            batch = []
            item = self._queue.get()
            while True:
                if item is None:
                    going = False
                    break
                batch.append(item)
                if len(batch) >= _BATCH:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            # Encoded before the transaction begins, so that other processes don't wait for it.
            ready = [(operation, future) for operation, future in batch if self._prepared(operation, future)]
            if not ready:
                continue
            try:
                # Each time: the file may have been moved or replaced since, and SQLite would go on writing the old one.
                self._in_place()
                connection = connection or self._connect()
            except (sqlite3.Error, AgentevalError) as error:
                for _, future in ready:
                    _fail(future, self._explained(error))
                continue
            self._write(connection, ready)
        if connection is not None:
            connection.close()

    def _prepared(self, operation: Operation, future: Future[Any]) -> bool:
        try:
            operation.prepare()
        except Exception as error:
            _fail(future, self._explained(error))
            return False
        return True

    def _write(self, connection: sqlite3.Connection, batch: list[tuple[Operation, Future[Any]]]) -> None:
        tries = 0
        while True:
            tries += 1
            try:
                values = self._transaction(connection, [operation for operation, _ in batch])
            except Exception as error:
                # The connection has waited already: here it is only said, and tried again.
                if isinstance(error, sqlite3.Error) and is_busy(error) and tries < self._tries(batch):
                    tell_waiting(self._path)
                    continue
                if len(batch) > 1 and not _hits_all(error):
                    # One of them is at fault: write each by itself, so that it takes no other down.
                    for entry in batch:
                        self._write(connection, [entry])
                    return
                for _, future in batch:
                    _fail(future, self._explained(error))
                return
            for (_, future), value in zip(batch, values, strict=True):
                _finish(future, value)
            return

    def _tries(self, batch: list[tuple[Operation, Future[Any]]]) -> int:
        # Who closes the history waits for this thread, and wants to end.
        patient = not self._closed and any(operation.patient for operation, _ in batch)
        return _PATIENT_TRIES if patient else _TRIES

    def _transaction(self, connection: sqlite3.Connection, operations: list[Operation]) -> list[Any]:
        # The lock is taken at once. A transaction that reads first and writes later would fail instead of waiting.
        connection.execute("BEGIN IMMEDIATE")
        try:
            totals = Totals()
            values = self._apply_all(connection, totals, operations)
            totals.write(connection)
            # Again: a future that is done promises that its data is in the file of that name.
            self._in_place()
            connection.execute("COMMIT")
        except BaseException:
            # SQLite ends the transaction itself after some errors, such as a full disk.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return values

    def _explained(self, error: Exception) -> AgentevalError:
        if isinstance(error, AgentevalError):
            return error
        if isinstance(error, sqlite3.Error):
            if is_damage(error):
                self._on_damage()
            return explain(error, self._path, doing="written")
        return HistoryError(f"this can't be stored: {error}", where=str(self._path))


def _hits_all(error: Exception) -> bool:
    """Whether every other operation would fail in the same way: the disk, the lock, the file."""
    # Codes of SQLite that are about one statement: ERROR, TOOBIG, CONSTRAINT, MISMATCH, RANGE. 0: not an error of
    # SQLite.
    return isinstance(error, sqlite3.Error) and result_code(error) not in (0, 1, 18, 19, 20, 25)


def _finish(future: Future[Any], value: object) -> None:
    try:
        future.set_result(value)
    except InvalidStateError:  # given up by whoever waited; it is written all the same
        pass


def _fail(future: Future[Any], error: Exception) -> None:
    try:
        future.set_exception(error)
    except InvalidStateError:
        pass


# Weak: a history that nothing uses is freed, and not kept for the end of the program.
_open_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for writer in list(_open_writers):
        writer.close()
