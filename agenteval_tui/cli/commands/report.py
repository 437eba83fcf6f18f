"""`agenteval report`: the reports of an execution that is in the history already."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.cli import completed_values
from agenteval_tui.cli.github_comment import comment_text, pull_request, put_comment
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.report_files import check_reports, write_reports
from agenteval_tui.cli.run_options import STDOUT, ReportFiles, report_options
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.report_md import report_md

TITLES = {
    "json": "JSON document",
    "junit": "JUnit XML",
    "csv": "CSV table",
    "md": "Markdown report",
    "html": "HTML report",
}
"""What the files of reports are, by kind."""


@click.command("report")
@click.argument("execution", required=False, default="last", metavar="[ID]", shell_complete=completed_values.executions)
@report_options
@click.option(
    "--comment", is_flag=True, help="On GitHub: post the report as a comment on the pull request, and update it there."
)
@click.option(
    "--comment-name",
    metavar="NAME",
    default="",
    help="With --comment: each name has a comment of its own (matrix jobs).",
)
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, execution: str, comment: bool, comment_name: str, **options: Any) -> int:
    """Write reports of execution ID (`last`, the default, is the newest), like those of `run`.

    Without a file, the Markdown report is printed. `--comment` finds its comment by a hidden marker. It needs
    GITHUB_TOKEN, and does nothing in a job that does not belong to a pull request.
    """
    reports = ReportFiles.taken(options)
    check_reports(invocation, reports)
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).execution(execution)
        if row.status == "running" and not row.ended:
            raise AgentevalError("no run of this execution has ended yet", where=f"execution {row.id}")
        write_reports(invocation, store, reports, row)
        output = invocation.err if reports.on_stdout else invocation.out
        for kind, name in reports.files:
            if name != STDOUT:
                output.line(f"{name}: {TITLES[kind]} of {count(row.runs, 'run')}")
        if comment:
            number = pull_request()
            if number is None:
                output.line("no comment: this job does not belong to a pull request")
            else:
                done = put_comment(comment_text(store, row, comment_name), number)
                output.line(f"the comment of pull request {number} was {done}")
        elif not reports.files:
            for line in report_md(store, row).splitlines():
                invocation.out.line(line)
    return 0
