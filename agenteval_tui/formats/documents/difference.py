"""The difference of two runs: what `agenteval show RUN --diff RUN2 --json` prints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from agenteval_tui.analysis import trajectory_alignment
from agenteval_tui.analysis.text_diff import ArgumentChange, compare_arguments
from agenteval_tui.analysis.trajectory_alignment import Alignment
from agenteval_tui.core.document import Count, Document, Share, Status, extended
from agenteval_tui.history.records import RunRow

_DIGITS = 6  # of a score: a mean has no more to say, and what follows is noise of the arithmetic


class Run(Document, frozen=True, kw_only=True):
    """One of the two runs."""

    run: str
    test: str
    variation: str
    repetition: Count
    agent: str
    status: Status
    score: Share | None


class Step(Document, frozen=True, kw_only=True):
    """A step of one run."""

    index: Annotated[Count, Meta(description="the message, for calls and results the tool call, or the probe; from 0")]
    text: Annotated[
        str, Meta(description="what was compared; of a call its arguments as JSON, of a probe its value after the run")
    ]


class Pair(Document, frozen=True, kw_only=True):
    """A step of both runs, or of one."""

    state: Literal["same", "changed", "left", "right"]
    kind: Annotated[str, Meta(description="the message's role, or reasoning, call, result, error, state")]
    tool: Annotated[str, Meta(description="the tool's name; of a state that of the probe")]
    left: Step | None
    right: Step | None
    arguments: Annotated[
        tuple[ArgumentChange, ...] | UnsetType, Meta(description="of a call that differs: the arguments that do")
    ] = UNSET


class Difference(Document, frozen=True, kw_only=True):
    """Both runs, and all steps in order. Texts are raw."""

    version: Literal[1] = 1
    left: Run
    right: Run
    differences: Annotated[Count, Meta(description="steps that differ; other reasoning alone is not counted")]
    steps: Annotated[tuple[Pair, ...], Meta(description="all steps of both runs, in order")]


def difference_document(left: RunRow, right: RunRow, alignment: Alignment) -> Difference:
    """What `alignment` says of these two runs; of calls that both made, the arguments that differ."""
    return Difference(
        left=_run(left),
        right=_run(right),
        differences=len(alignment.differences),
        steps=tuple(_pair(pair) for pair in alignment.pairs),
    )


def _run(row: RunRow) -> Run:
    score = None if row.score is None else round(row.score, _DIGITS)
    return extended(Run, row, run=row.id, test=row.test_id, score=score)


def _pair(pair: trajectory_alignment.Pair) -> Pair:
    step = pair.step
    return Pair(
        state=pair.state,
        kind=step.kind,
        tool=step.name,
        left=_step(pair.left),
        right=_step(pair.right),
        arguments=_arguments(pair) if pair.state == "changed" and step.kind == "call" else UNSET,
    )


def _arguments(pair: trajectory_alignment.Pair) -> tuple[ArgumentChange, ...]:
    calls = [step.call for step in (pair.left, pair.right) if step is not None and step.call is not None]
    return tuple(compare_arguments(calls[0].arguments, calls[1].arguments))


def _step(step: trajectory_alignment.Step | None) -> Step | None:
    return None if step is None else Step(index=step.place[1], text=step.text)
