"""What the difference tab of Inspect knows, without Textual: two runs, and how their steps match."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from agenteval_tui.analysis.repetitions import repetitions, run_to_compare, runs_to_choose
from agenteval_tui.analysis.trajectory_alignment import Alignment, align
from agenteval_tui.core.display import command_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


class RunPair(Struct, frozen=True):
    """Two runs and how their steps match."""

    left: RunRow
    right: RunRow
    alignment: Alignment

    def place(self, pair: int, side: str) -> BlockKey | None:
        """Where step `pair` is in the transcript of a side ("left", "right"); of a step that only the other has: the
        last one before. None: there is none."""
        for other_pair in reversed(self.alignment.pairs[: pair + 1]):
            step = other_pair.left if side == "left" else other_pair.right
            if step is not None:
                return step.place
        return None

    def command(self, options: str) -> str:
        """The command that prints this difference. `options`: those that it needs, as ` --db FILE`."""
        return command_line("agenteval", "show", self.left.id, "--diff", self.right.id) + options


def pair_reader(session: Session, run: str, other: str = "") -> Callable[[], RunPair | None]:
    """What reads and aligns two runs: to be called in a thread. `other` "": the one that says most beside `run`, of a
    fork the run that it continues; None when there is none. It raises AgentevalError when a run is gone."""

    def read() -> RunPair | None:
        store = session.store
        left = store.run(run)
        right = store.run(other) if other else _continued(store, left)
        if right is None:
            right = run_to_compare(left, repetitions(store, left, everywhere=True))
        if right is None:
            # Of another variation, but asked the same.
            right = run_to_compare(left, [run for run in runs_to_choose(store, left) if run.row_key == left.row_key])
        if right is None:
            return None
        return RunPair(left, right, align(store.transcript(left.id), store.transcript(right.id)))

    return read


def _continued(store: Store, run: RunRow) -> RunRow | None:
    """The run that a fork continues, if it is still there."""
    try:
        return store.run(run.fork_of) if run.fork_of else None
    except AgentevalError:
        return None
