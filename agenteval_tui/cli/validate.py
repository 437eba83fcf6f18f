"""`agenteval validate`: all that is wrong in suites, with places."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Output, Style, plural
from agenteval_tui.text.problems import WRONG_USE, Problem

_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON list.")
@common_options
@pass_invocation
def command(invocation: Invocation, paths: tuple[Path, ...], as_json: bool) -> int:
    """Check the suites at PATHS (files or folders) without running them.

    All problems come at once, each with file, line and column as the file is on disk, also inside config_uxon.
    Exit code 2 if any is an error.
    """
    from agenteval_tui.analysis.lint import check_suites

    loaded, problems = check_suites(paths)
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        invocation.out.json([problem.as_json() for problem in problems])
        return WRONG_USE if errors else 0
    for problem in problems:
        print_problem(invocation.out, problem)
    tests = sum(len(one.suite.tests) for one in loaded if one.suite is not None)
    criteria = sum(len(test.criteria) for one in loaded if one.suite is not None for test in one.suite.tests)
    if not loaded and not problems:
        invocation.out.line("no suites found: a suite is a file `*.suite.yaml`, or `suite.yaml`")
        return WRONG_USE
    checked = f"{criteria:,} criteri{'on' if criteria == 1 else 'a'}"
    found = f"{plural(len(loaded), 'suite')}, {plural(tests, 'test')}, {checked}"
    warnings = sum(problem.severity == "warning" for problem in problems)
    said = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}" if problems else "no problems"
    invocation.out.line(f"{found}: {said}")
    return WRONG_USE if errors else 0


def print_problem(out: Output, problem: Problem) -> None:
    """One line: place, severity, what is wrong, how to mend it."""
    remedy = f" ({problem.fix})" if problem.fix else ""
    out.line(
        f"{problem.file}:{problem.line}:{problem.column}: ",
        (problem.severity, _STYLES[problem.severity]),
        f": {' '.join(problem.message.split())}",
        (remedy, "dim"),
    )
