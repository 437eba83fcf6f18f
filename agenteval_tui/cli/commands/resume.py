"""`agenteval resume`: what is missing of an execution, and nothing that was paid for already."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.run_options import execution_options, limit_options, report_options
from agenteval_tui.runs.plan.options import PlanOptions


@click.command("resume")
@click.argument("execution", required=False, default="last", metavar="[ID]", shell_complete=shell_completion.executions)
@click.option("--errors", is_flag=True, help="Also repeat runs that ended in an error of the agent or of grading.")
@declared(PlanOptions, "trust")
@limit_options
@report_options
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, execution: str, errors: bool, **values: Any) -> int:
    """Run the rest of execution ID (`last`, the default, is the newest) after a crash, a cancel or a limit.

    Finished runs are not repeated or paid for again. The others run as planned; a limit given here covers the whole
    execution, including what it has already used. Progress, reports and exit codes are those of `run`.
    """
    options, ending, reports = execution_options(values)

    # As in `run`: the options are read without what executes.
    from agenteval_tui.cli.run_suites import resume

    return resume(invocation, execution, options, ending, reports, errors=errors)
