"""What the tab "where runs diverge" of Inspect knows, without Textual: the repetitions of a test as a tree, and the
forks of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from agenteval_tui.analysis.divergence import Node
from agenteval_tui.analysis.forks import AT_WORK, ranked, stored_forks
from agenteval_tui.analysis.repetitions import Divergence, divergence_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import attach, live_executions
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.edits import ForkError, fork
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.branch_tree import TreeRow, TreeRows, nodes_of
from agenteval_tui.tui.presenters.fork_columns import ForkRows, ForkTree, representative
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


class BranchesController:
    """`divergence` is None until one was read; `rows` is its tree as it is folded now."""

    def __init__(self) -> None:
        self.divergence: Divergence | None = None
        self.rows: TreeRows | None = None
        self._opened: frozenset[str] = frozenset()

    def reader(
        self, session: Session, run: str, *, other_scope: bool = False, other_arguments: bool = False
    ) -> Callable[[], Divergence]:
        """What reads the repetitions of a run's test: to be called in a thread. `other_scope`: all executions where
        it was one, one where it was all; `other_arguments`: whether arguments count, the other way round too."""
        divergence = self.divergence
        # None: reading chooses what tells more; a person turns round what was chosen.
        everywhere = with_arguments = None
        if divergence is not None and run in divergence.rows:
            everywhere, with_arguments = (
                divergence.everywhere != other_scope,
                divergence.with_arguments != other_arguments,
            )

        def read() -> Divergence:
            row = session.store.run(run)
            return divergence_of(session.store, row, everywhere=everywhere, with_arguments=with_arguments)

        return read

    def show(self, divergence: Divergence) -> None:
        """Take what was read."""
        self.divergence = divergence
        self._opened = frozenset()
        self.rows = TreeRows(divergence)

    def row(self, number: int) -> TreeRow | None:
        """Row `number` of the tree."""
        return self.rows.rows[number] if self.rows is not None and 0 <= number < self.rows.count() else None

    def fork_row(self) -> int | None:
        """The row of the branch at the fork that the run itself took, else of the first branch; None: no fork."""
        divergence, rows = self.divergence, self.rows
        if divergence is None or divergence.fork is None or rows is None:
            return None
        own_branch = divergence.fork.branch_of(divergence.run)
        places = [rows.row_of(node) for node in (own_branch, divergence.fork.branches[0]) if node is not None]
        return next((place for place in places if place is not None), None)

    def fold(self, row: TreeRow) -> int | None:
        """Open what is folded in a row, or fold everything again; the row where that step is now."""
        assert self.divergence is not None
        self._opened = self._opened | {row.key} if row.hidden else frozenset()
        self.rows = TreeRows(self.divergence, self._opened)
        return self.rows.row_of(row.node)

    def runs_of(self, row: TreeRow) -> tuple[str, Sequence[str]]:
        """(a run of this branch, all its runs): the one that the tree was made for if it is there, else one that ended
        as most there."""
        assert self.divergence is not None
        nodes = nodes_of(row)
        return _typical(nodes[0], self.divergence.run), [run for node in nodes for run in node.runs]

    def pair(self) -> tuple[str, str] | None:
        """(a failing run, a passing one) of where they part, of which one is the run itself if it is there; None where
        all ended alike."""
        divergence = self.divergence
        if divergence is None:
            return None
        representatives = divergence.fork.representatives() if divergence.fork is not None else None
        if representatives is None:
            root = divergence.tree.root
            # They part nowhere, and ended differently all the same; those that passed come first.
            return (root.runs[-1], root.runs[0]) if root.passed and root.failed else None
        passing, failing = representatives
        own_branch = divergence.fork.branch_of(divergence.run) if divergence.fork is not None else None
        if own_branch is not None and passing in own_branch.runs and divergence.rows[divergence.run].status == "passed":
            passing = divergence.run
        elif (
            own_branch is not None and failing in own_branch.runs and divergence.rows[divergence.run].status != "passed"
        ):
            failing = divergence.run
        return failing, passing


def _typical(node: Node, run: str) -> str:
    if run in node.runs:
        return run
    # Those that passed come first.
    return node.runs[0] if node.passed >= node.failed else node.runs[-1]


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
    # A process that was killed could not write that its execution has ended.
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
    # Those that shrink tried are only counted: they are many, and nobody asked for one of them.
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
    return sum(message.role in SYSTEM_ROLES for message in transcript.messages)
