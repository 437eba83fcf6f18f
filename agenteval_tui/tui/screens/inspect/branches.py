"""What the tab "where runs diverge" of Inspect knows, without Textual: the repetitions of a test as a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval_tui.analysis.divergence import Node
from agenteval_tui.analysis.repetitions import Divergence, divergence_of
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.branch_tree import TreeRow, TreeRows, nodes_of


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
