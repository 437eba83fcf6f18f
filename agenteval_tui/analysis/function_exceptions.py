"""What functions around an agent raised: those of its tools, of hooks, of probes, and those that judge it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.traceback import Traceback, traceback_from


class Raised(Struct, frozen=True):
    """A function that raised. `name`: of the tool, the hook, the probe, or the function that judges; `of`: the phase of
    the hook, or the criterion. `output`: the end of what it printed, where nothing else of the run has that."""

    kind: Literal["tool", "hook", "probe", "function"]
    name: str
    traceback: Traceback
    of: str = ""
    output: str = ""


def raised_around(transcript: Transcript, results: Iterable[CriterionResult] = ()) -> tuple[Raised, ...]:
    """All that raised, in the order of the run, what raised equally once; not what is the run's error itself."""
    own = transcript.error.traceback if transcript.error is not None else None
    around: list[Raised] = []
    for raised in _raised(transcript, results):
        if raised.traceback != own and raised not in around:
            around.append(raised)
    return tuple(around)


def _raised(transcript: Transcript, results: Iterable[CriterionResult]) -> Iterator[Raised]:
    late = []
    for hook in transcript.hooks:
        if hook.error is not None and hook.error.traceback is not None:
            raised = Raised("hook", hook.name, hook.error.traceback, hook.phase)
            if hook.phase.startswith("before"):
                yield raised
            else:
                late.append(raised)
    for call in transcript.tool_calls:
        if call.traceback is not None:
            yield Raised("tool", call.name, call.traceback)
    for state in transcript.state:
        for reading in (state.before, state.after):
            if reading is not None and reading.traceback is not None:
                yield Raised("probe", state.name, reading.traceback, output=reading.output)
    yield from late
    for result in results:
        for metric in result.metrics:
            if (traceback := traceback_from(metric.fields.get("traceback"))) is not None:
                yield Raised("function", str(metric.fields.get("target", "")), traceback, result.criterion)
