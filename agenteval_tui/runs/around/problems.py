"""What failed around a run and ends nothing: hooks after it, and probes that no criterion asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agenteval_tui.grading.sentences import reading_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.grading.type_names import STATE
from agenteval_tui.runs.events import AroundProblem
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ReadingProblem

_NOT_TRIED = (ReadingProblem.CONTINUED, ReadingProblem.STOPPED)


def problems_around(transcript: Transcript, specs: Iterable[CriterionSpec]) -> Iterator[AroundProblem]:
    """Hooks that failed after the run; then the probes that could not be read and that none of the criteria names: a
    criterion says it of its own probe."""
    for hook in transcript.hooks:
        if hook.phase == "after" and hook.error is not None:
            yield AroundProblem("after", hook.name, hook.error.message, hook.error.fix)
    if not transcript.state:
        return
    asked = {_probe_of(spec) for spec in specs}
    for probe in transcript.state:
        readings = [reading for reading in (probe.after, probe.before) if reading is not None and reading.problem]
        if readings and probe.name not in asked and readings[0].problem not in _NOT_TRIED:
            why = reading_sentence(readings[0].problem, readings[0].fields)
            yield AroundProblem("probe", probe.name, why)


def _probe_of(spec: CriterionSpec) -> object:
    if spec.prototype != STATE or not isinstance(spec.value, dict):
        return None
    name = spec.value.get("probe")
    return name if isinstance(name, str) else None
