"""The demo without a terminal: the sample suites are run here, and the results printed."""

from __future__ import annotations

import shlex
from pathlib import Path

from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.run_inline import execute_plan, plan_of
from agenteval_tui.cli.run_suites import load_for_run
from agenteval_tui.cli.trust_prompt import plan_with_permission
from agenteval_tui.core.errors import INFRASTRUCTURE, InfrastructureError
from agenteval_tui.runs.plan.options import PlanOptions


def run_samples(invocation: Invocation, samples: Path) -> int:
    """Run the suites in `samples` and say how to look into their failures. Gives the exit code: samples may fail."""
    with invocation.store() as store:
        plan = plan_of(store, load_for_run(invocation, (samples,), ()), PlanOptions())
        done = execute_plan(invocation, store, plan_with_permission(invocation, plan), quiet=False)
    if done.interrupted:
        return INTERRUPTED
    if done.execution.status != "finished":
        raise InfrastructureError(f"the samples did not finish: {done.execution.message}")
    if done.counts["error"]:
        raise InfrastructureError("a sample ended in an error, which should not happen", fix="agenteval doctor")
    invocation.out.line(
        (
            "Some samples fail on purpose: find out why with `agenteval demo` on a terminal, or with"
            f" `agenteval why --db {shlex.quote(str(invocation.db))}`; `agenteval docs tour` continues from here.",
            "dim",
        )
    )
    return 0 if done.counts["passed"] else INFRASTRUCTURE
