"""What a change of the agent's code does to recorded runs: a type from the check to the JSON that is printed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, RowKey, Status, StatusOrNone, one_of
from agenteval_tui.transcripts.model import Transcript

Effect = Literal["passes", "fails", "needs_model", "unchanged"]
EFFECTS: tuple[Effect, ...] = ("passes", "fails", "needs_model", "unchanged")


class RunChange(Document, frozen=True, kw_only=True):
    """A recorded run, and the same run with the code as it is now."""

    effect: Annotated[
        str,
        one_of(*EFFECTS),
        Meta(
            description="passes: it passes now; fails: it passed, and does not now; needs_model: it asks its model, or "
            "a judge, something that is not recorded; unchanged: as it was"
        ),
    ]
    suite: str
    test: str
    test_name: str
    variation: str
    row_key: RowKey
    repetition: int
    agent: str
    before: Annotated[str, Meta(description="the id of the recorded run")]
    status_before: Status
    after: Annotated[str, Meta(description="the id of the new run, which counts nowhere; empty: it was not made")]
    status: Annotated[StatusOrNone, Meta(description="how the new run ended; empty: it was not made")]
    reason: Annotated[str, Meta(description="what failed, or why the model is needed, in words; empty: it passes")]
    criterion: Annotated[str, Meta(description="the first criterion that failed; empty: none")]
    request: Annotated[
        Count | None, Meta(description="the request, from 1, from which the model is needed; null: from none")
    ]
    cost: Annotated[float | None, Meta(description="about what the model would cost in US dollars; null: not known")]
    step: Annotated[
        Count | None, Meta(description="the first message, from 1, that differs from the recorded run; null: none")
    ]


class CodeChange(Document, frozen=True, kw_only=True):
    """What a save changed. The runs are in the order in which they were made: those that failed come first."""

    version: Literal[1] = 1
    files: Annotated[tuple[str, ...], Meta(description="the saved files; empty: nothing was saved, all was checked")]
    runs: tuple[RunChange, ...]
    failures_before: Annotated[Count, Meta(description="how many of the runs had not passed when they were recorded")]
    passes: Annotated[Count, Meta(description="how many of these pass now")]
    fails: Annotated[Count, Meta(description="how many runs passed and do not now, or fail for one criterion more")]
    needs_model: Count
    unchanged: Count
    not_affected: Annotated[Count, Meta(description="recorded runs whose agents did not import what was saved")]
    answers: Annotated[Count, Meta(description="how many requests the recordings answered")]
    requests: Annotated[Count, Meta(description="how many requests went to servers of models")]
    real_tools: Annotated[
        tuple[str, ...],
        Meta(description="tools that ran for real although their results were to be recorded ones: no call is equal"),
    ]
    cost: Annotated[float | None, Meta(description="what these cost in US dollars; null: not known")]
    needed_cost: Annotated[
        float | None, Meta(description="about what the runs that need the model would cost; null: not known")
    ]
    duration_ms: float
    execution: Annotated[str, Meta(description="the id of the execution with the new runs; empty: there is none")]
    error: Annotated[
        str, Meta(description="why nothing could be run, such as an import that fails; empty: it could be")
    ]
    fix: str


def code_change(
    files: tuple[str, ...],
    runs: tuple[RunChange, ...],
    *,
    not_affected: int = 0,
    answers: int = 0,
    requests: int = 0,
    real_tools: Iterable[str] = (),
    cost: float | None = 0.0,
    duration_ms: float,
    execution: str = "",
    error: str = "",
    fix: str = "",
) -> CodeChange:
    """The change with its counts."""
    effects = [run.effect for run in runs]
    prices = [run.cost for run in runs if run.effect == "needs_model"]
    known_prices = [price for price in prices if price is not None]
    return CodeChange(
        files=files,
        runs=runs,
        failures_before=sum(run.status_before != "passed" for run in runs),
        passes=effects.count("passes"),
        fails=effects.count("fails"),
        needs_model=effects.count("needs_model"),
        unchanged=effects.count("unchanged"),
        not_affected=not_affected,
        answers=answers,
        requests=requests,
        real_tools=tuple(dict.fromkeys(real_tools)),
        cost=cost,
        needed_cost=sum(known_prices) if len(known_prices) == len(prices) else None,
        duration_ms=duration_ms,
        execution=execution,
        error=error,
        fix=fix,
    )


def with_runs(change: CodeChange, newer: CodeChange) -> CodeChange:
    """A change of which some runs were made once more: these in place of the runs that they were before."""
    runs = {run.before: run for run in newer.runs}
    return code_change(
        change.files,
        tuple([runs.get(run.before, run) for run in change.runs]),
        not_affected=change.not_affected,
        answers=newer.answers,
        requests=newer.requests,
        real_tools=[*change.real_tools, *newer.real_tools],
        cost=newer.cost,
        duration_ms=newer.duration_ms,
        execution=newer.execution,
    )


class InstalledCopy(Document, frozen=True):
    """An agent whose command runs a copy of the code, and how to let it run the code itself."""

    agent: str
    fix: Annotated[str, Meta(description="the command that installs the package with links to the code")]

    @property
    def problem(self) -> str:
        """In words."""
        return "its command runs an installed copy of the code, which no edit changes"


class Watching(Document, frozen=True, kw_only=True, tag_field="event", tag="watching"):
    """What is watched: the first event. `missing`: planned runs of which none is recorded."""

    recorded: Count
    failing: Count
    missing: Count
    not_programs: Annotated[Count, Meta(description="planned runs of agents whose code is not here")]
    projects: tuple[str, ...]
    real_tools: Annotated[
        tuple[str, ...],
        Meta(description="agents whose tools run for real although recordings were to answer for them: there are none"),
    ] = ()
    copies: Annotated[
        tuple[InstalledCopy, ...], Meta(description="agents whose commands run an installed copy of the code")
    ] = ()


class Saved(Document, frozen=True, kw_only=True, tag_field="event", tag="saved"):
    """Files were saved, and runs begin again."""

    files: tuple[str, ...]
    runs: Count


class RunChecked(Document, frozen=True, kw_only=True, tag_field="event", tag="run"):
    """A run has ended."""

    change: RunChange


class Checked(Document, frozen=True, kw_only=True, tag_field="event", tag="change"):
    """All runs after a save have ended."""

    change: CodeChange


class Ignored(Document, frozen=True, kw_only=True, tag_field="event", tag="ignored"):
    """A file is left alone while runs are made: they write it. `*.ENDING` stands for the new files of a folder."""

    file: str


class NotBuilt(Document, frozen=True, kw_only=True, tag_field="event", tag="not_built"):
    """Sources were saved after the last build of a program: its runs are made when it is built."""

    files: tuple[str, ...]
    folder: Annotated[str, Meta(description="where the build writes")]


WatchEvent = Watching | Saved | RunChecked | Checked | Ignored | NotBuilt


def first_difference(before: Transcript, after: Transcript) -> int | None:
    """The first message, from 1, that two transcripts do not have in common; None: they are equal."""
    pairs = zip_longest(_contents(before), _contents(after))
    return next((place for place, (message, other) in enumerate(pairs, 1) if message != other), None)


def _contents(transcript: Transcript) -> list[tuple[object, ...]]:
    """What each message says and calls."""
    calls = [(call.name, call.arguments) for call in transcript.tool_calls]
    return [
        (message.role, message.content, [calls[index] for index in message.tool_calls])
        for message in transcript.messages
    ]
