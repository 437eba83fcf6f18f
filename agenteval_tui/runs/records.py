"""A plan and its runs as the store takes them."""

from __future__ import annotations

from agenteval_tui.history.rows import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.runs.plan import Plan
from agenteval_tui.runs.verdicts import Judged
from agenteval_tui.transcripts.model import Transcript


def execution_record(plan: Plan, started_ms: int, pid: int | None) -> ExecutionRecord:
    """The execution itself. Where several tests run together, its id is their batch id as well."""
    return ExecutionRecord(
        id=plan.execution_id,
        title=plan.title,
        kind="run",
        source=plan.source,
        suite_keys=plan.suite_keys,
        started_ms=started_ms,
        batch_id=plan.execution_id if plan.tests > 1 else None,
        options=dict(plan.options),
        pid=pid,
    )


def planned_runs(plan: Plan) -> list[PlannedRun]:
    """All runs of the plan, in its order."""
    known: dict[int, tuple[str, dict[str, object]]] = {}  # by identity: equal criteria are one object
    rows = []
    for position, run in enumerate(plan.runs):
        for spec in run.specs:
            if id(spec) not in known:
                known[id(spec)] = (spec.hash, spec_to_dict(spec))
        ref = run.ref
        rows.append(
            PlannedRun(
                id=ref.run,
                execution_id=plan.execution_id,
                position=position,
                suite_key=run.suite_key,
                suite_name=run.suite_name,
                test_id=ref.test,
                test_name=ref.test_name,
                variation=ref.variation,
                row=ref.row,
                repetition=ref.repetition,
                agent=ref.agent,
                prompt=run.prompt,
                tags=run.tags,
                variables=run.variables,
                criteria=tuple([known[id(spec)][0] for spec in run.specs]),
                specs=tuple([known[id(spec)][1] for spec in run.specs]),
            )
        )
    return rows


def run_ended(
    run_id: str, judged: Judged, transcript: Transcript, *, started_ms: int, duration_ms: float, attempts: int
) -> RunEnded:
    """How a run ended. A run that never began (`attempts` 0) has no times."""
    return RunEnded(
        run_id=run_id,
        status=judged.status,
        score=judged.score,
        started_ms=started_ms if attempts else None,
        duration_ms=duration_ms if attempts else None,
        attempts=attempts,
        transcript=transcript,
        results=judged.results,
        warnings=judged.warnings,
        why=judged.why,
    )
