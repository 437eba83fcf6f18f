"""The forks of a run as the document of `agenteval fork --json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis.forks import Forks, interval_of
from agenteval_tui.analysis.statistics import Interval
from agenteval_tui.core.document import Count, Document, Share, Status, extended, one_of
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.fork.continuations import Answer, Outcomes
from agenteval_tui.runs.fork.model import (
    AnyEdit,
    Arguments,
    Drop,
    Insert,
    Purpose,
    Result,
    System,
    Text,
    Tools,
    read_origin,
)

Step = Annotated[int, Meta(ge=1, description="the number of a message, from 1, as `agenteval show RUN` prints it")]


class ForkEdit(Document, frozen=True, kw_only=True):
    """One thing that was changed."""

    change: Annotated[
        str, one_of("system", "text", "arguments", "tool_result", "tool_error", "insert", "drop", "tools")
    ]
    step: Annotated[Step | UnsetType, Meta(description="absent for the system prompt and the tools")] = UNSET
    value: Annotated[Any, Meta(description="the new text or arguments; of tools {without_tools, changed_tools}")] = None
    role: Annotated[str | UnsetType, Meta(description="of a message that was inserted")] = UNSET


class ForkedFrom(Document, frozen=True, kw_only=True):
    """Which run a fork continues, from where, and what was changed."""

    run: str
    step: Step
    purpose: Annotated[str, one_of(*get_args(Purpose))]
    label: str
    edits: tuple[ForkEdit, ...]


class PassRate(Document, frozen=True, kw_only=True):
    """How many passed of those that passed or failed, with the 95 % interval of the rate (Wilson)."""

    passed: Count
    decided: Count
    rate: Share | None
    low: Share | None
    high: Share | None


class Continuation(Document, frozen=True, kw_only=True):
    """One continuation: a run that is stored."""

    run: str
    status: Status
    failed: Annotated[tuple[str, ...], Meta(description="the criteria that failed")]
    causes: Annotated[tuple[str, ...], Meta(description="the signatures of why, as `agenteval causes --json` has them")]
    answer: Annotated[str, Meta(description="the beginning of the last answer")]
    why: str
    cost: float | None
    known: Annotated[bool, Meta(description="it was stored already: nothing was asked for it now")]


class ForkBranch(Document, frozen=True, kw_only=True):
    """What was changed, and what became of it."""

    label: str
    purpose: Annotated[str, one_of(*get_args(Purpose))]
    step: Step
    edits: tuple[ForkEdit, ...]
    pass_rate: PassRate
    stopped: Annotated[
        str, Meta(description="why there are fewer continuations than were asked for; empty: there are not")
    ]
    continuations: tuple[Continuation, ...]


class RunForks(Document, frozen=True, kw_only=True):
    """A run and its branches."""

    version: Literal[1] = 1
    run: str
    suite: str
    test: str
    agent: str
    status: Status
    pass_rate: Annotated[PassRate, Meta(description="of the repetitions of the run, in its execution")]
    branches: tuple[ForkBranch, ...]
    execution: Annotated[str, Meta(description="what was asked just now; empty: nothing had to be asked")]
    asked: Annotated[Count, Meta(description="continuations that were asked for just now")]
    cost: Annotated[float | None, Meta(description="US dollars that this took, judges included; null: not measured")]


def forks_document(forks: Forks) -> RunForks:
    """The run, its branches and their continuations; texts are raw."""
    run = forks.run
    return extended(
        RunForks,
        forks,
        run,
        run=run.id,
        suite=run.suite_name,
        test=run.test_id,
        pass_rate=_rate(forks.passed, forks.decided, forks.interval),
        branches=tuple(map(_branch, forks.branches)),
    )


def forked_from(row: RunRow) -> ForkedFrom | UnsetType:
    """What a run continues; `UNSET`: nothing."""
    origin = read_origin(row.fork_of, row.fork)
    if origin is None:
        return UNSET
    return extended(ForkedFrom, origin, step=origin.step + 1, edits=tuple(map(_edit, origin.edits)))


def _branch(branch: Outcomes) -> ForkBranch:
    return extended(
        ForkBranch,
        branch,
        step=branch.step + 1,
        edits=tuple(map(_edit, branch.edits)),
        pass_rate=_rate(branch.passed, branch.decided, interval_of(branch)),
        continuations=tuple(map(_continuation, branch.answers)),
    )


def _rate(passed: int, decided: int, interval: Interval | None) -> PassRate:
    low, high = (None, None) if interval is None else (round(interval[0], 4), round(interval[1], 4))
    rate = round(passed / decided, 4) if decided else None
    return PassRate(passed=passed, decided=decided, rate=rate, low=low, high=high)


def _continuation(answer: Answer) -> Continuation:
    row = answer.run
    return Continuation(
        run=row.id,
        status=row.status,
        failed=answer.failed,
        causes=answer.causes,
        answer=row.output_head,
        why=row.why or row.error_message,
        cost=row.cost,
        known=answer.stored,
    )


def _edit(edit: AnyEdit) -> ForkEdit:
    match edit:
        case System(text):
            return ForkEdit(change="system", value=text)
        case Text(step, text):
            return ForkEdit(change="text", step=step + 1, value=text)
        case Arguments(step, value):
            return ForkEdit(change="arguments", step=step + 1, value=value)
        case Result(step, text, error):
            return ForkEdit(change="tool_error" if error else "tool_result", step=step + 1, value=text)
        case Insert(step, role, text):
            return ForkEdit(change="insert", step=step + 1, value=text, role=role)
        case Drop(step):
            return ForkEdit(change="drop", step=step + 1)
        case Tools(changes):
            return ForkEdit(change="tools", value=changes.laid_over({}))
