"""The repetitions of a run's test out of the history: the run to compare it with, and where they part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.divergence import (
    BranchPoint,
    Compared,
    Trajectory,
    Tree,
    acts_of,
    compared_in,
    first_divergence,
    tree_of,
)
from agenteval_tui.core.outcomes import COMPLETED
from agenteval_tui.history.recordings import UNGRADED
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import row_case

MOST = 1_000
"""Repetitions that are looked at: the newest."""
BESIDE = 100
"""Repetitions that are looked at where it is one thing among others."""
OTHERS = 200
"""Runs of other rows and variations that can be chosen to compare with."""


class Divergence(Struct, frozen=True):
    """The repetitions of a test, and the step at which passing and failing ones part.

    `rows` by run id. `everywhere`: out of all executions, not only the run's own. `compared`: what of steps is
    compared.
    """

    run: str
    rows: dict[str, RunRow]
    tree: Tree
    fork: BranchPoint | None
    everywhere: bool
    compared: Compared

    @property
    def with_arguments(self) -> bool:
        """Whether calls with other arguments are other steps."""
        return self.compared.arguments


def repetitions(store: Store, run: RunRow, *, everywhere: bool, most: int = MOST) -> list[RunRow]:
    """The ended runs of the same test, row and variation, newest first; `everywhere` false: of its execution. Programs
    that were recorded without a test repeat each other where they were asked the same."""
    case = (run.suite_key, run.test_id, run.variation, row_case(run.row, run.row_key))
    if not everywhere:
        rows = store.repetitions(*case, most, run.execution_id)
        return [row for row in rows if row.execution_id == run.execution_id]
    # An older grading of a recording is compared as what it is, in place of the newest one.
    rows = store.repetitions(*case, most, run.execution_id if run.superseded else "")
    if run.suite_name == UNGRADED:
        rows = [row for row in rows if row.prompt_head == run.prompt_head]
    return [row for row in rows if row.id == run.id or not (row.superseded or row.recorded == run.recorded)]


def is_same_test(run: RunRow, other: RunRow) -> bool:
    """Whether both were asked the same and judged by the same criteria. The test may have been edited between them."""
    return (run.prompt_head, run.criteria) == (other.prompt_head, other.criteria)


def is_same_agent(run: RunRow, other: RunRow) -> bool:
    """Whether both have the same agent, and as far as is known in the same configuration."""
    return run.agent == other.agent and (
        run.agent_version == other.agent_version or not (run.agent_version and other.agent_version)
    )


def divergence_of(
    store: Store,
    run: RunRow,
    *,
    everywhere: bool | None = None,
    with_arguments: bool | None = None,
    most: int = MOST,
) -> Divergence:
    """Where the repetitions of a run's test part. Reads their transcripts: a second for a thousand.

    `everywhere` None: its own execution where that has passing and failing runs, else all. `with_arguments` None:
    with them, else without where that tells more.
    """
    rows = repetitions(store, run, everywhere=True, most=most)
    here = [row for row in rows if row.execution_id == run.execution_id]
    if everywhere is None:
        # Where all ended alike in this execution, nothing in it could part them.
        everywhere = len({row.status == "passed" for row in here}) < 2
    return divergence_among(store, run.id, rows if everywhere else here, everywhere, with_arguments)


def divergence_among(
    store: Store, run: str, rows: Sequence[RunRow], everywhere: bool = True, with_arguments: bool | None = None
) -> Divergence:
    """Where these runs part, of which `run` is one."""
    by_id = {row.id: row for row in rows if row.status != "needs_review"}
    transcripts = dict(store.transcripts(by_id))

    def grown(compared: Compared) -> Tree:
        ways = (
            Trajectory(run_id, by_id[run_id].status == "passed", acts_of(transcript, compared))
            for run_id, transcript in transcripts.items()
        )
        return tree_of(ways)

    detailed = Compared(arguments=with_arguments is not False)
    tree = grown(detailed)
    if not (tree.root.passed and tree.root.failed):
        return Divergence(run, by_id, tree, None, everywhere, detailed)
    # Requests first: what a model was asked with comes before what it did. So does what its tools told it. Then what it
    # did, in detail or not.
    everything = replace(compared_in(list(transcripts.values())), arguments=detailed.arguments)
    with_requests, with_results = (
        replace(everything, results=frozenset()),
        replace(detailed, results=everything.results),
    )
    plain = Compared(arguments=False)
    for compared in (
        *((with_requests,) if with_requests.context else ()),
        *((with_results,) if with_results.results else ()),
        detailed,
        *((plain,) if with_arguments is None else ()),
    ):
        grown_tree = tree if compared == detailed else grown(compared)
        fork = first_divergence(grown_tree)
        # A fork at another step is found as well without requests or results, and said in plainer words.
        looked_for = ("asked", "context") if compared.context else ("result",) if compared.results else ()
        if fork is not None and (not looked_for or any(branch.act.kind in looked_for for branch in fork.branches)):
            return Divergence(run, by_id, grown_tree, fork, everywhere, compared)
    return Divergence(run, by_id, tree, None, everywhere, detailed)


def divergence_beside(store: Store, run: RunRow) -> Divergence | None:
    """Where passing and failing repetitions of a run's test part; None when nothing parts them. Looks at the newest of
    them only: it is shown beside other things, and must not keep anybody waiting."""
    divergence = divergence_of(store, run, most=BESIDE) if run.status in COMPLETED else None
    return divergence if divergence is not None and divergence.fork is not None else None


def run_to_compare(run: RunRow, rows: Iterable[RunRow]) -> RunRow | None:
    """The run that says most beside this one: the nearest that passed when it failed, and the other way round.

    `rows` are the repetitions of its test. Without one that ended otherwise, the run before it, else the one after.
    Near is: of the same execution, of the same agent, run at about the same time.
    """
    others = [row for row in rows if row.id != run.id and row.status in COMPLETED]
    if not others:
        return None

    def distance(row: RunRow) -> tuple[bool, bool, int]:
        return row.execution_id != run.execution_id, row.agent != run.agent, abs(row.rowid - run.rowid)

    opposite = [row for row in others if (row.status == "passed") != (run.status == "passed")]
    if opposite:
        return min(opposite, key=distance)
    before = [row for row in others if row.rowid < run.rowid]
    return max(before, key=lambda row: row.rowid) if before else min(others, key=lambda row: row.rowid)


def runs_to_choose(store: Store, run: RunRow) -> list[RunRow]:
    """The runs that this one can be compared with: its test's repetitions first, then the test's other runs."""
    run_rows = [row for row in repetitions(store, run, everywhere=True) if row.id != run.id]
    ids = {run.id, *(row.id for row in run_rows)}
    others = store.runs_of_test(run.suite_key, run.test_id, OTHERS)
    return [*run_rows, *(row for row in others if row.id not in ids and row.status in COMPLETED)]
