"""An execution in a process of its own, which this command watches: it outlives the terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agenteval_tui.cli.attach_client import AttachResult, cancel, watch
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.run_finish import RunReport, finish
from agenteval_tui.cli.run_progress import progress_for
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.history.store import Store
from agenteval_tui.runs import client
from agenteval_tui.runs.events import Event
from agenteval_tui.runs.live_registry import ExecutionRequest, Live


def begin(invocation: Invocation, request: ExecutionRequest, *, quiet: bool) -> Live:
    """Start it. Raises the `AgentevalError` that its process met.

    Ctrl-C meanwhile must not leave an unwanted execution behind: it is allowed to start, then cancelled, then
    KeyboardInterrupt is raised.
    """
    if not quiet:
        invocation.out.status("starting …")
    with _delayed_interrupts() as pressed:
        try:
            live = client.start(request)
        finally:
            invocation.out.status("")
    if pressed:
        cancel(live)
        raise KeyboardInterrupt
    return live


@contextmanager
def _delayed_interrupts() -> Iterator[list[int]]:
    """While this lasts, Ctrl-C is only noted in the list."""
    pressed: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    except ValueError:  # not the main thread: whoever called us has the signals
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def print_detached(invocation: Invocation, live: Live, runs: int) -> None:
    """Where it is now, and how to get back to it. With --quiet: its id, and nothing else."""
    out, execution, options = invocation.out, live.execution, invocation.db_option
    if invocation.quiet:
        out.line(execution)
        return
    many = f", {count(runs, 'run')}"
    out.line(("started ", "good"), one_line(live.title), many, " in the background: execution ", (execution, "bold"))
    out.line((f"  agenteval attach {execution}{options}   watch it", "dim"))
    out.line((f"  agenteval cancel {execution}{options}   end it", "dim"))
    out.line((f"  agenteval ps{options}{' ' * (len(execution) + 9)}list what is running", "dim"))


def watch_to_end(
    invocation: Invocation,
    store: Store,
    live: Live,
    *,
    quiet: bool = False,
    leaves: bool = False,
    also: Callable[[Event], None] | None = None,
) -> RunReport | None:
    """Show it until it has ended; None when it was left before that (it continues).

    Ctrl-C cancels it, and with `leaves` only stops watching. `also` gets every event before it is shown.
    """
    progress = progress_for(invocation, store, silent=quiet)

    def take(event: Event) -> None:
        if also is not None:
            also(event)
        progress.apply(event)

    try:
        watched = watch(live, take, leaves=leaves, streams=also is not None)
    except AgentevalError:
        # It has ended in the moment between its start and our coming; the history knows how.
        if store.execution(live.execution).finished_ms is None:
            raise
        watched = AttachResult(None)
    if watched.left:
        progress.out.status("")
        return None
    # Nothing for one that has ended. Of one whose process died, no run goes on.
    progress.view.lose()
    return finish(store, live.execution, progress, interrupted=watched.stops > 0)
