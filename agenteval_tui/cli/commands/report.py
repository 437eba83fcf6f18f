"""`agenteval report`: the reports of an execution that is in the history already.

The one comment of a pull request that holds the newest report is found by a hidden marker, and edited in place. API:
https://docs.github.com/rest/issues/comments. The token comes from `GITHUB_TOKEN` alone and goes to `GITHUB_API_URL`
alone; redirects are not followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.report_files import check_reports, write_reports
from agenteval_tui.cli.run_options import STDOUT, ReportFiles, report_options
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.report_md import report_md
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store
from agenteval_tui.views.markdown import escaped

TITLES = {
    "json": "JSON document",
    "junit": "JUnit XML",
    "csv": "CSV table",
    "md": "Markdown report",
    "html": "HTML report",
}
"""What the files of reports are, by kind."""


@click.command("report")
@click.argument("execution", required=False, default="last", metavar="[ID]", shell_complete=shell_completion.executions)
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
            invocation.out.line(report_md(store, row).rstrip("\n"))
    return 0


MOST = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
_LONGEST_NAME = 300
_PAGES = 30  # of 100 comments
_SECONDS = 20.0
_LOCAL = ("127.0.0.1", "localhost", "::1")


def marker(name: str = "") -> str:
    """What a comment begins with, unseen by people: of each name its own."""
    return f"<!-- agenteval comment {content_hash(name)[:16]} -->" if name else "<!-- agenteval comment -->"


def comment_text(store: Store, execution: ExecutionRow, name: str = "") -> str:
    """The report behind the marker and below the name, as large as a comment may be."""
    head = f"{marker(name)}\n\n{escaped(name, _LONGEST_NAME)}\n" if name else marker()
    for most in (20, 5, 1, 0):
        text = f"{head}\n{report_md(store, execution, most=most)}"
        if len(text) <= MOST:
            return text
    return f"{head}\nThe report of execution {one_line(execution.id)} is too large for a comment.\n"


def pull_request(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of the pull request that a job is about; None: it is about none."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        event = {}
    about = event.get("pull_request") if isinstance(event, dict) else None
    number = about.get("number") if isinstance(about, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def put_comment(text: str, number: int, environment: Mapping[str, str] = os.environ) -> str:
    """Edit the comment of pull request `number` with the marker that `text` begins with, or make it. Returns "edited"
    or "made". Raises `AgentevalError`."""
    # httpx takes longer to import than most reports take to write, and few reports become comments.
    import httpx

    address, token, repository = (
        environment.get(name, "") for name in ("GITHUB_API_URL", "GITHUB_TOKEN", "GITHUB_REPOSITORY")
    )
    address = address or "https://api.github.com"
    for name, value in (("GITHUB_TOKEN", token), ("GITHUB_REPOSITORY", repository)):
        if not value:
            raise AgentevalError(f"a comment needs {name}", fix="the action sets it; elsewhere set it yourself")
    place = urlsplit(address)
    if place.scheme != "https" and place.hostname not in _LOCAL:
        raise AgentevalError("a token is only sent over https", where=address, fix="correct GITHUB_API_URL")
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    base = f"{address.rstrip('/')}/repos/{repository}/issues"
    try:
        with httpx.Client(headers=headers, timeout=_SECONDS) as client:
            for own_comment in _own_comments(client, f"{base}/{number}/comments", text.partition("\n")[0]):
                answer = client.patch(f"{base}/comments/{own_comment}", json={"body": text})
                if answer.status_code not in (403, 404):  # somebody else's with our marker in it
                    _check(answer)
                    return "edited"
            _check(client.post(f"{base}/{number}/comments", json={"body": text}))
    except httpx.HTTPError as error:
        raise AgentevalError(f"GitHub can't be reached: {one_line(str(error), 200)}", where=address) from None
    return "made"


def _own_comments(client: Any, address: str, mark: str) -> Iterator[int]:
    # A comment of ours may be old: it is looked for from the first one on, and not among the newest.
    for page in range(1, _PAGES + 1):
        answer = client.get(address, params={"per_page": 100, "page": page})
        _check(answer)
        try:
            comments = answer.json()
        except ValueError:
            comments = None
        if not isinstance(comments, list):
            raise AgentevalError("GitHub's answer is not a list of comments", where=address)
        for comment in comments:
            if (
                isinstance(comment, dict)
                and str(comment.get("body") or "").startswith(mark)
                and isinstance(comment.get("id"), int)
            ):
                yield comment["id"]
        if len(comments) < 100:
            return


def _check(answer: Any) -> None:
    """Raise `AgentevalError` for an answer that is not a success."""
    if answer.is_success:
        return
    fix = "the job needs `permissions: pull-requests: write`; pull requests of forks never have it"
    raise AgentevalError(
        f"GitHub answered {answer.status_code}: {one_line(answer.text, 200)}",
        where=str(answer.request.url),
        fix=fix if answer.status_code in (401, 403, 404) else "try again later",
    )
