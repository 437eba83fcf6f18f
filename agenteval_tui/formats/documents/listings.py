"""What commands print that list things: problems of suites, executions and runs, imports, agents, running executions,
trusted repositories, quarantines, what `doctor` looked at.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from agenteval_tui.agents.base import CheckStep
from agenteval_tui.agents.prices import Price
from agenteval_tui.core.document import Count, Document, ExecutionStatus, Share, Status, Time, extended, one_of
from agenteval_tui.core.numbers import iso
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.suites.commits import Commit


class ListedExecution(Document, frozen=True, kw_only=True):
    """An execution in `agenteval history`."""

    execution: str
    title: str
    kind: Annotated[str, one_of("run", "import", "fork")]
    status: ExecutionStatus
    message: str
    notes: Annotated[tuple[str, ...], Meta(description="of an import: what was left out of its file")]
    started: Time
    finished: Time | None
    suites: str
    agents: str
    project: Annotated[str, Meta(description="the folder of its project; empty where that is not known")]
    runs: Count
    passed: Count
    failed: Count
    errors: Count
    skipped: Count
    cancelled: Count
    needs_review: Count
    cost: float | None
    name: Annotated[str, Meta(description="what a person called it; empty: it has no name")]
    note: str
    meta: Annotated[dict[str, str], Meta(description="metadata that it was started with, or was given later")]
    commits: Annotated[
        tuple[Commit, ...], Meta(description="of the repositories of its suites and agents, when it started")
    ]


def listed_execution(row: ExecutionRow) -> ListedExecution:
    """What `agenteval history` lists of an execution."""
    return extended(
        ListedExecution,
        row,
        execution=row.id,
        started=iso(row.started_ms),
        finished=iso(row.finished_ms),
        meta=dict(row.meta),
    )


class ListedRun(Document, frozen=True, kw_only=True):
    """A run in `agenteval history --runs`."""

    run: str
    execution: str
    suite: str
    test: str
    variation: str
    repetition: Count
    agent: str
    outcome: Status
    score: Share | None
    why: str
    started: Time | None
    duration_ms: float | None
    prompt: str
    output: str


def listed_run(row: RunRow) -> ListedRun:
    """What `agenteval history --runs` lists of a run."""
    return extended(
        ListedRun,
        row,
        run=row.id,
        execution=row.execution_id,
        suite=row.suite_name,
        test=row.test_id,
        outcome=row.status,
        started=iso(row.started_ms),
        prompt=row.prompt_head,
        output=row.output_head,
    )


class SkippedParts(Document, frozen=True, kw_only=True):
    """Parts of an imported file that were not read, for one reason."""

    reason: str
    count: Count
    first: str


class ImportedFile(Document, frozen=True, kw_only=True):
    """A file in `agenteval import`."""

    file: str
    format: str = ""
    execution: str = ""
    read: Count = 0
    added: Count = 0
    already: bool = False
    cut_off: bool = False
    skipped: tuple[SkippedParts, ...] = ()
    notes: tuple[str, ...] = ()
    error: Annotated[str | None, Meta(description="why nothing of this file was imported")] = None
    dry_run: Annotated[bool, Meta(description="nothing was stored")]


class ListedAgent(Document, frozen=True, kw_only=True):
    """An agent in `agenteval agents`."""

    agent: str
    kind: str
    file: str = field(name="from")
    description: str
    ok: Annotated[bool | None, Meta(description="null: the agent was not checked")] = None
    message: str = ""
    fix: str = ""
    latency_ms: float | None = None
    steps: tuple[CheckStep, ...] = ()


class DoctorCheck(Document, frozen=True):
    """One thing that `agenteval doctor` looked at: how it is, in words, and what to do about it."""

    name: str
    state: Annotated[Literal["ok", "warning", "error"], one_of("ok", "warning", "error")]
    message: str
    fix: str = ""


class Doctor(Document, frozen=True, kw_only=True):
    """`agenteval doctor`."""

    version: Literal[1] = 1
    checks: tuple[DoctorCheck, ...]


class LiveExecution(Document, frozen=True, kw_only=True):
    """An execution in `agenteval ps`: one that runs, or whose process died within the last day."""

    execution: str
    title: str
    pid: Annotated[Count | None, Meta(description="null: its process died")]
    started: Time
    answers: Annotated[bool, Meta(description="false: its process says nothing, or died")]
    status: Annotated[str, one_of("running", "paused", "ended", "unknown", "died")]
    runs: Count | None = None
    ended: Annotated[Count | None, Meta(description="runs that have an outcome or were cancelled")] = None
    running: Count | None = None
    passed: Count | None = None
    failed: Count | None = None
    error: Count | None = None
    eta_s: float | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost: Annotated[float | None, Meta(description="US dollars, of agents and judges; null: not measured")] = None
    processes: Annotated[Count | None, Meta(description="programs that it has started and that run now")] = None
    levels: Annotated[Count | None, Meta(description="of these, the ones that runs of Python are forked from")] = None
    memory_mb: Annotated[float | None, Meta(description="memory of these programs; what they share counts once")] = None


class LiveExecutions(Document, frozen=True, kw_only=True):
    """`agenteval ps`."""

    version: Literal[1] = 1
    executions: Annotated[tuple[LiveExecution, ...], Meta(description="the oldest first")]


class AgreedSending(Document, frozen=True, kw_only=True):
    """A secret that may be sent without a question."""

    name: Annotated[str, Meta(description="the name of a variable")]
    address: Annotated[str, Meta(description="a host; on this machine with its port")]


class TrustedRepositoryRow(Document, frozen=True, kw_only=True):
    """A repository in `agenteval trust --list`."""

    folder: str
    since: str
    sends: tuple[AgreedSending, ...]


class TrustedRepositories(Document, frozen=True, kw_only=True):
    """`agenteval trust --list`."""

    version: Literal[1] = 1
    repositories: tuple[TrustedRepositoryRow, ...]


class ListedPrice(Document, frozen=True, kw_only=True):
    """A model in `agenteval prices`."""

    model: str
    name: Annotated[str, Meta(description="its name in the list that has the price; empty where no list has it")]
    source: Annotated[
        str | None, one_of("yours", "updated", "bundled", None), Meta(description="the list; null: no price is known")
    ]
    price: Price | None


class ListedPrices(Document, frozen=True, kw_only=True):
    """`agenteval prices`."""

    version: Literal[1] = 1
    prices: tuple[ListedPrice, ...]


class PriceChanged(Document, frozen=True, kw_only=True):
    """A model whose price an update changed."""

    model: str
    before: Annotated[Price | None, Meta(description="the price that counted until now; null: none was known")]
    after: Price


class PricesUpdated(Document, frozen=True, kw_only=True):
    """`agenteval prices update`."""

    version: Literal[1] = 1
    file: str
    written: Annotated[bool, Meta(description="false: with --dry-run")]
    changes: tuple[PriceChanged, ...]
    unchanged: Count
    yours: Annotated[tuple[str, ...], Meta(description="models of the list that you priced by hand: yours counts")]
    kept: Annotated[Count, Meta(description="models of earlier updates that this list does not have")]
    left_out: Annotated[Count, Meta(description="entries of the list that have no price by token")]


class WaitingReview(Document, frozen=True, kw_only=True):
    """A run or a criterion of one that waits for a person."""

    run: str
    suite: str
    test: str
    outcome: Status
    criterion: Annotated[str, Meta(description='"": the run as a whole')]
    address: Annotated[str, Meta(description="RUN/NUMBER, for `agenteval label`")]
    why: Annotated[str, one_of("needs_review", "failure", "disagreement", "sample")]
    question: str


class Review(Document, frozen=True, kw_only=True):
    """`agenteval review`."""

    version: Literal[1] = 1
    waiting: tuple[WaitingReview, ...]


class ListedQuarantine(Document, frozen=True, kw_only=True):
    """A test or a criterion of one in `agenteval quarantine`."""

    file: str
    suite: str
    test: str
    criterion: str | None
    reason: str
    who: str
    at: Annotated[Count, Meta(description="milliseconds since 1970, as `until`")]
    until: Count
    holds: bool


class Quarantines(Document, frozen=True, kw_only=True):
    """`agenteval quarantine`."""

    version: Literal[1] = 1
    quarantines: tuple[ListedQuarantine, ...]


def listed_quarantine(quarantine: Quarantine, now: int) -> ListedQuarantine:
    """What `agenteval quarantine` lists of a quarantine. `now`: milliseconds since 1970."""
    return ListedQuarantine(
        file=quarantine.suite_key,
        suite=quarantine.suite_name,
        test=quarantine.test_id,
        criterion=quarantine.criterion or None,
        reason=quarantine.reason,
        who=quarantine.who,
        at=quarantine.at_ms,
        until=quarantine.until_ms,
        holds=quarantine.holds(now),
    )
