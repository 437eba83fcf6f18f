"""What the forks of a run are, for the tab of Inspect, without Textual."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from agenteval_tui.analysis.forks import AT_WORK, ranked, stored_forks
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import attach, live_executions
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.fork.answers import Outcomes
from agenteval_tui.runs.fork.edits import ForkError, fork
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.fork_columns import ForkRows, ForkTree, representative
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


class ForksController:
    """`tree` is None until it was read. `live`: the executions begun here that continue runs now, by their ids."""

    def __init__(self) -> None:
        self.tree: ForkTree | None = None
        self.rows: ForkRows | None = None
        self.live: dict[str, Live] = {}
        self._begun: set[str] = set()

    def reader(self, session: Session, run: str) -> Callable[[], ForkTree]:
        """What reads the forks of a run, or, of a fork, those of the run that it continues: call it in a thread."""
        return lambda: forks_of(session.store, run)

    def show(self, tree: ForkTree) -> None:
        """Take what was read."""
        self.tree = tree
        self.rows = ForkRows(tree)

    def begun(self, live: Live) -> None:
        """An execution continues the run."""
        self.live[live.execution] = live
        self._begun.add(live.execution)

    def over(self, ended: Iterable[str]) -> None:
        """These executions have ended."""
        for execution in ended:
            self.live.pop(execution, None)

    def has_begun(self, execution: str) -> bool:
        """Was it begun here, whether it has ended or not?"""
        return execution in self._begun

    def branch(self, row: int) -> Outcomes | None:
        """The branch in a row; None: the run itself, or nothing."""
        branches = self.tree.forks.branches if self.tree is not None else ()
        return branches[row - 1] if 0 < row <= len(branches) else None

    def runs_of(self, row: int) -> tuple[str, list[str]]:
        """(the continuation that stands for a row, all of its branch); of the first row the run itself."""
        assert self.tree is not None
        if not row or row > len(self.tree.forks.branches):
            return self.tree.forks.run.id, []
        branch = self.tree.forks.branches[row - 1]
        run_row = representative(branch)
        return (run_row.id if run_row is not None else "", [answer.run.id for answer in branch.answers])


def step_at(transcript: Transcript, key: BlockKey | None) -> int:
    """The message that a block of the transcript is about; of a call or a result its own; else the last one."""
    last = len(transcript.messages) - 1
    if key is None:
        return last
    kind, number = key
    if kind in ("call", "result"):
        for at, message in enumerate(transcript.messages):
            if (number in message.tool_calls) if kind == "call" else message.tool_call == number:
                return at
        return last
    return min(max(number, 0), last) if kind in ("message", "reasoning", "raw") else last


def keys_of(transcript: Transcript, step: int) -> list[BlockKey]:
    """The blocks that a message can be shown as, the best one first."""
    message = transcript.messages[step]
    calls: list[BlockKey] = [("call", number) for number in message.tool_calls[:1]]
    results: list[BlockKey] = [] if message.tool_call is None else [("result", message.tool_call)]
    own: list[BlockKey] = [("message", step)]
    return [*own, *calls, *results, ("reasoning", step)]


def ended_of(store: Store, executions: Sequence[str]) -> list[str]:
    """Which of these executions have ended, or died."""
    running = [execution for execution in executions if store.execution(execution).status == "running"]
    living = {live_execution.execution for live_execution in live_executions()} if running else set()
    return [execution for execution in executions if execution not in running or execution not in living]


async def stop_execution(live: Live) -> None:
    """Cancel an execution that lives; one that has just ended is left alone."""
    with suppress(AgentevalError):
        watcher = await attach(live)
        await watcher.send(Command("cancel"))
        await watcher.close()


def forks_of(store: Store, run: str) -> ForkTree:
    """The forks of a run with the transcripts that stand for their branches."""
    row = _root(store, store.run(run))
    all_forks = stored_forks(store, row, at_work=True)
    tried = [branch for branch in all_forks.branches if branch.purpose == "shrink"]
    forks = replace(
        all_forks, branches=ranked(tuple(branch for branch in all_forks.branches if branch.purpose != "shrink"))
    )
    run_rows = [row, *(best for branch in forks.branches if (best := representative(branch)) is not None)]
    transcripts = dict(store.transcripts([run_row.id for run_row in run_rows]))
    original = transcripts.get(row.id, Transcript())
    shared: dict[str, int] = {}
    for branch in forks.branches:
        try:
            prompts = len(fork(original, branch.step, branch.edits).messages)
        except ForkError:  # an edit of a newer program
            prompts = branch.step + 1
        # Its agent may have put a system prompt before what it was told.
        for answer in branch.answers:
            transcript = transcripts.get(answer.run.id)
            more = 0 if transcript is None else _prompts(transcript) - _prompts(original)
            shared[answer.run.id] = prompts + max(more, 0)
    running = sum(run_row.status in AT_WORK for run_row in store.forks_of(row.id))
    return ForkTree(forks, transcripts, shared, running, run, sum(len(branch.answers) for branch in tried))


def _root(store: Store, row: RunRow) -> RunRow:
    """The run that a fork continues, if it is still there; else the run itself."""
    try:
        return store.run(row.fork_of) if row.fork_of else row
    except AgentevalError:
        return row


def _prompts(transcript: Transcript) -> int:
    return sum(message.role in ("system", "developer") for message in transcript.messages)
