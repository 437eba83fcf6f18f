"""A plan and its runs as the store takes them."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any

from agenteval_tui.agents.stored_config import agent_version
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.fork.model import encode_origin
from agenteval_tui.runs.grading_pool import GradedRun
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.task_payload import Tasks
from agenteval_tui.suites.commits import Place, agent_folder, places_of
from agenteval_tui.suites.environment import environment_if_readable
from agenteval_tui.transcripts.model import Transcript


def begin(store: Store, plan: Plan, started_ms: int) -> Future[Any]:
    """Store the plan: as a new execution, with the data needed to resume it, or as one that continues."""
    # A plan with an order continues an execution that is there.
    if plan.order:
        again = [run.ref.run for run in plan.runs]
        return store.resume_execution(plan.execution_id, os.getpid(), again=again, options=plan.options)
    tasks = Tasks(plan)
    return store.begin_execution(_execution_record(plan, started_ms, tasks), planned_runs(plan, tasks))


def _execution_record(plan: Plan, started_ms: int, tasks: Tasks) -> ExecutionRecord:
    """The execution itself. Where several tests run together, its id is their batch id as well."""
    return ExecutionRecord(
        id=plan.execution_id,
        title=plan.title,
        kind=plan.kind,
        source=plan.source,
        suite_keys=plan.suite_keys,
        started_ms=started_ms,
        batch_id=plan.execution_id if plan.tests > 1 else None,
        options=dict(plan.options),
        setup=tasks.setup(),
        name=plan.name,
        note=plan.note,
        meta=plan.meta,
    )


def places_of_plan(plan: Plan) -> tuple[Place, ...]:
    """The repositories in which a plan's suites and its agents' programs lie."""
    agents = {run.agent.hash: run.agent for run in plan.runs}.values()
    folders = (agent_folder(agent.config, agent.base_dir) for agent in agents)
    return places_of(plan.suite_keys, [folder for folder in folders if folder is not None])


def planned_runs(plan: Plan, tasks: Tasks, first: int = 0) -> list[PlannedRun]:
    """All runs of the plan, in its order, which is shown from position `first` on."""
    versions: dict[str, str] = {}
    rows = []
    for position, run in enumerate(plan.runs, first):
        ref = run.ref
        if run.agent.hash not in versions:
            versions[run.agent.hash] = _version_of(run.agent)
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
                row_key=ref.row_key,
                repetition=ref.repetition,
                agent=ref.agent,
                prompt=run.prompt,
                tags=run.tags,
                variables=run.variables,
                criteria=tuple([spec.hash for spec in run.specs]),
                specs=tuple([tasks.spec_dict(spec) for spec in run.specs]),
                task=tasks.of(run),
                seed=run.seed,
                agent_version=versions[run.agent.hash],
                fork_of=run.fork.run if run.fork is not None else "",
                fork=encode_origin(run.fork) if run.fork is not None else "",
            )
        )
    return rows


def _version_of(agent: AgentPlan) -> str:
    env = environment_if_readable(agent.base_dir, config=agent.config)
    return agent_version(agent.config, agent.base_dir, env)


def run_ended(attempts: RunAttempts, judged: GradedRun, transcript: Transcript, request: str) -> RunEnded:
    """How a run in attempts ended. `request` is the hash of what was asked, "" where there is no answer to it."""
    return RunEnded(
        run_id=attempts.run,
        status=judged.status,
        score=judged.score,
        started_ms=attempts.started_ms or None,
        duration_ms=attempts.duration_ms if attempts.started_ms else None,
        attempts=attempts.attempt,
        transcript=transcript,
        results=judged.results,
        warnings=judged.warnings,
        why=judged.why,
        failed_attempts=tuple(attempts.failed_attempts),
        request=request,
        cached=attempts.cached,
        asked=attempts.asked,
        tape=attempts.tape,
    )


def run_never_begun(run: RunPlan, judged: GradedRun) -> RunEnded:
    """The end of a run that no agent was asked: it was cancelled before, or not needed. It has no times."""
    transcript = Transcript(messages=run.messages, tool_calls=run.tool_calls)
    return RunEnded(
        run.ref.run,
        status=judged.status,
        score=None,
        started_ms=None,
        duration_ms=None,
        attempts=0,
        transcript=transcript,
        why=judged.why,
    )
