"""Listening for traces from Python: what programs send meanwhile becomes runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType

from agenteval_tui.api.grading import Criteria, criteria_of
from agenteval_tui.api.runs import Execution, File, execution_of
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.otel.listener import Listener, ListenerSettings, ListeningOptions, loss_notes
from agenteval_tui.extensions.otel.protobuf import require_protobuf
from agenteval_tui.extensions.otel.receiver import Receiver
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end


class Listening:
    """Receives traces inside its `with` block, once; made by `listen`."""

    def __init__(self, port: int, host: str, options: ListenerSettings, place: Path) -> None:
        self.endpoint = ""
        """Where programs send their traces: their OTEL_EXPORTER_OTLP_ENDPOINT. Inside the block."""
        self.notes: tuple[str, ...] = ()
        """What did not become a run, or not whole, in a sentence each. After the block."""
        self._port = port
        self._host = host
        self._options = options
        self._place = place
        self._began: Future[tuple[asyncio.AbstractEventLoop, Listener, str]] = Future()
        self._ended: Future[Execution] = Future()

    @property
    def execution(self) -> Execution:
        """What was received, with its runs. After the block; raises `AgentevalError` inside it."""
        if not self._ended.done():
            raise AgentevalError("it has not listened to the end yet", fix="read the execution after the `with` block")
        return self._ended.result()

    def __enter__(self) -> Listening:
        if self._began.done():
            raise AgentevalError("it has listened already", fix="call `listen` again for another `with` block")
        threading.Thread(target=self._work, name="agenteval-listen", daemon=True).start()
        _, _, self.endpoint = self._began.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop, listener, _ = self._began.result()
        with contextlib.suppress(RuntimeError):  # the loop is closed: it ended by an error of its own
            loop.call_soon_threadsafe(listener.stop)
        failure = self._ended.exception()
        if failure is not None and error is None:
            raise failure

    def _work(self) -> None:
        try:
            with Store.open(self._place) as store:
                listener = run_to_end(self._listen(store))
                self._ended.set_result(execution_of(store, store.execution(listener.execution), self._place))
        except BaseException as error:  # raised in the thread that waits
            (self._ended if self._began.done() else self._began).set_exception(error)

    async def _listen(self, store: Store) -> Listener:
        receiver = Receiver(lambda spans, events: listener.take(spans, events))
        await receiver.start(self._port, self._host)
        try:
            listener = Listener(store, self._options, lambda heard: None)
            self._began.set_result((asyncio.get_running_loop(), listener, receiver.address))
            await listener.run(receiver.address)
        finally:
            await receiver.close()
        skipped = dict(listener.skipped.most_common())
        self.notes = loss_notes(skipped, listener.late, receiver.refused, receiver.last_refusal, option="quiet_after")
        return listener


def listen(
    criteria: Criteria = (),
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    quiet_after: float = 2.0,
    patience: float = 60.0,
    title: str = "",
    db: File | None = None,
) -> Listening:
    """Receive OpenTelemetry traces (OTLP over HTTP) in a `with` block, and store each as a run.

    `criteria` grade each run; no judge is asked. `port` 0: any free one. A trace with its first span is complete after
    `quiet_after` seconds without new spans, one without it after `patience` seconds; the end of the block completes
    all. Have your exporter send what it holds before that (`force_flush`). Needs the extra `otel`.

    Raises `AgentevalError`: an option outside its limits, the extra is missing, the criteria are wrong, or (at the
    start of the block) the port can't be had.
    """
    asked = ListeningOptions(port=port, quiet_after=quiet_after, patience=patience)
    require_protobuf()
    none = isinstance(criteria, Sequence) and not criteria
    specs = () if none else criteria_of(criteria)
    options = ListenerSettings(specs, asked.quiet_after, asked.patience, 0, title or "traces")
    return Listening(asked.port, host, options, directories.history_file(db))
