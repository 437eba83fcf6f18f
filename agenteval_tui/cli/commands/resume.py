"""`agenteval resume`: what is missing of an execution, and nothing that was paid for already."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.report_files import ReportFiles, report_options
from agenteval_tui.cli.run_detached import begin, print_detached, watch_to_end
from agenteval_tui.cli.run_finish import report
from agenteval_tui.cli.run_inline import execute_plan
from agenteval_tui.cli.run_options import Limits, limit_options, runs_apart
from agenteval_tui.cli.trust_prompt import trust_answer
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.history.store import Store
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.model import PlanOptions
from agenteval_tui.runs.resume import Resumed, resume_plan


@click.command("resume")
@click.argument("execution", required=False, default="last", metavar="[ID]")
@click.option("--errors", is_flag=True, help="Also run again what ended in an error of an agent or of grading.")
@click.option("--trust", is_flag=True, help="Let programs and Python functions of the suites' folders run.")
@limit_options
@report_options
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, execution: str, errors: bool, trust: bool, **given: Any) -> int:
    """Run what is missing of execution ID (`last`, the default, is the newest): after a crash, a cancel or a limit.

    What has an outcome is neither run nor paid for again. Everything is run as it was planned; a limit that is given
    here is for the whole execution, with what it has used before. Progress, reports and exit codes are those of `run`.
    """
    limits = Limits.taken(given)
    reports = ReportFiles.taken(given)
    limits.check(reports)
    return resume(invocation, execution, limits, reports, trust=trust, errors=errors)


def resume(
    invocation: Invocation, reference: str, limits: Limits, reports: ReportFiles, *, trust: bool, errors: bool = False
) -> int:
    """Take an execution up again; gives the exit code."""
    reports.check(invocation)
    with invocation.store() as store:
        resumed, options = _planned(invocation, store, reference, limits, trust, errors)
        for notice in resumed.notices:
            invocation.err.line(("note: ", "warn"), notice)
        plan = resumed.plan
        if not reports.on_stdout:
            left, total = len(plan.runs), len(plan.runs) + len(plan.earlier)
            invocation.out.line((f"{one_line(plan.title)}: {left} of {total} runs are missing", "dim"))
        if not runs_apart(invocation, detach=limits.detach):
            done = execute_plan(invocation, store, plan, quiet=reports.on_stdout)
            return report(invocation, store, done, reports, limits.gate, limits.baseline)

        request = ExecutionRequest(
            (),
            options,
            str(directories.history_file(invocation.db)),
            str(directories.config_dir()),
            resume=plan.execution_id,
            errors=errors,
        )
        live = begin(invocation, request, quiet=reports.on_stdout)
        if limits.detach:
            print_detached(invocation.out, live, len(plan.runs))
            return 0
        watched = watch_to_end(invocation, store, live, quiet=reports.on_stdout)
        if watched is None:
            return INTERRUPTED
        return report(invocation, store, watched, reports, limits.gate, limits.baseline)


def _planned(
    invocation: Invocation, store: Store, reference: str, limits: Limits, trust: bool, errors: bool
) -> tuple[Resumed, PlanOptions]:
    """What is missing, permitted, and the options with which its process comes to the same plan."""

    def options(trusted: bool) -> PlanOptions:
        return PlanOptions(
            concurrency=limits.concurrency,
            trust=trusted,
            max_cost=limits.max_cost,
            max_tokens=limits.max_tokens,
            max_seconds=limits.max_seconds,
            executor=limits.executor,
            scheduler=limits.scheduler,
        )

    execution = invocation.references(store).execution(reference).id
    try:
        resumed = resume_plan(store, execution, options(trust), errors=errors)
    except NotTrustedError as refused:
        if not trust_answer(invocation, refused):
            raise
        resumed = resume_plan(store, execution, options(True), errors=errors)
    return resumed, options(resumed.plan.trust)
