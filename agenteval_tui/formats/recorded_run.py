"""What another program recorded, as a run of the history."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from msgspec.structs import replace

from agenteval_tui.core.ids import new_id
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.grading import sentences
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import PlannedRun, RunEnded
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.runs.fork.model import encode_origin

NO_VERDICT = "skipped"
"""The status of a run that comes without a verdict: nothing was checked, so nothing passed or failed."""
_YEAR_9999 = 253_402_300_800_000  # in milliseconds: no calendar goes further


def planned_run(
    recording: Recording,
    execution: str,
    position: int,
    suite_key: str,
    suite: str,
    source: str,
    repetition: int,
    specs: Sequence[CriterionSpec] = (),
) -> PlannedRun:
    """The run before its end. `suite`: the name of its suite where the recording has none; `source`: where it is from,
    for an agent without a name."""
    return PlannedRun(
        id=new_id(),
        execution_id=execution,
        position=position,
        suite_key=suite_key,
        suite_name=recording.suite or suite,
        test_id=recording.test_id,
        test_name=recording.test_name or recording.test_id,
        variation=recording.variation,
        row=recording.row,
        row_key=recording.row_key,
        repetition=repetition,
        agent=recording.agent or f"recorded ({source})",
        prompt=recording.prompt,
        variables=recording.variables,
        tags=recording.tags,
        criteria=tuple(spec.hash for spec in specs),
        specs=tuple(spec_to_dict(spec) for spec in specs),
        fork_of=recording.fork.run if recording.fork is not None else "",
        fork=encode_origin(recording.fork) if recording.fork is not None else "",
    )


def storable(recording: Recording) -> Recording:
    """The recording in a form that can be stored: foreign JSON has numbers and depths that nothing else accepts. The
    parts that could not be read are listed after its log, where every screen shows them."""
    transcript = recording.transcript
    calls = []
    for call in transcript.tool_calls:
        arguments = replace_non_finite(call.arguments)
        calls.append(call if arguments is call.arguments else replace(call, arguments=arguments))
    log = "\n".join(line for line in (transcript.log, *(f"import: {note}" for note in recording.notes)) if line)
    variables = replace_non_finite(recording.variables)
    if log == transcript.log and variables is recording.variables and all(map(is_, calls, transcript.tool_calls)):
        return recording
    return replace(recording, variables=variables, transcript=replace(transcript, tool_calls=tuple(calls), log=log))


def run_end(run_id: str, recording: Recording) -> RunEnded:
    """How the run ended, by what its file or its trace says of it."""
    error = recording.transcript.error
    status, score, why, warnings = NO_VERDICT, None, "not graded yet", 0
    if recording.stated is not None:
        status, score, why, warnings = (
            recording.stated.outcome,
            recording.stated.score,
            recording.stated.why,
            recording.stated.warnings,
        )
    elif error is not None:
        status, why = "error", error.message
    elif counted := [result for result in recording.results if not result.derived]:
        verdict = verdict_of(counted)
        status, score, warnings = str(verdict.outcome), verdict.score, verdict.warnings
        # What was derived decides nothing, and still says in which way a run is wrong.
        why = sentences.verdict_sentence(replace(verdict, results=recording.results))
    return RunEnded(
        run_id=run_id,
        status=status,
        score=score,
        started_ms=None
        if recording.started_ms is None or not 0 < recording.started_ms < _YEAR_9999
        else round(recording.started_ms),
        duration_ms=recording.transcript.timing.total_ms,
        attempts=1,
        transcript=recording.transcript,
        results=recording.results,
        warnings=warnings,
        why=why,
    )
