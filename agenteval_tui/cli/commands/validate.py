"""`agenteval validate`: all that is wrong in suites, with places."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.analysis.lint import user_agents
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.named_tests import concerns, named
from agenteval_tui.cli.output import Output, Style
from agenteval_tui.cli.suite_arguments import suites_given
from agenteval_tui.core import directories
from agenteval_tui.core.errors import WRONG_USE, AgentevalError, Problem
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.load import LoadedSuite

_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "info": "dim"}


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the problems as one JSON list.")
@click.option(
    "--facts/--no-facts",
    default=True,
    show_default=True,
    help="Also compare criteria with the agent's recorded runs, if there is a history.",
)
@common_options
@pass_invocation
def command(invocation: Invocation, paths: tuple[Path, ...], as_json: bool, facts: bool) -> int:
    """Check the suites at PATH (files or folders; FILE::TEST: one test; `-`: a suite on standard input) without running
    them. Without PATH: the suites of the current folder.

    It lists all problems at once, each with its file, line and column, also inside config_uxon. Exit code 2 if any is
    an error. What the recordings show (tools, arguments and texts that never occurred) is a warning or a note.
    """
    selection = named(paths)
    loaded, problems = suites_given(invocation, selection.paths)
    tests = selection.chosen(loaded)
    if facts:
        problems = _with_facts(invocation, loaded, problems)
    if tests:
        problems = [problem for problem in problems if concerns(problem, loaded, tests)]
    errors = sum(problem.severity == "error" for problem in problems)
    code = WRONG_USE if errors or not loaded else 0
    if as_json:
        invocation.out.json(problems)
        return code
    for problem in problems:
        if not (invocation.quiet and problem.severity == "info"):
            print_problem(invocation.out, problem)
    for suite in loaded if invocation.verbose else ():
        tests_of_suite = suite.suite.tests if suite.suite is not None else ()
        invocation.detail(f"{suite.path}: {count(len(tests_of_suite), 'test')}")
    if not loaded and not problems:
        invocation.out.line("no suites found: a suite is a file `*.suite.yaml`, or `suite.yaml`")
        return code
    checked_tests = [
        test
        for suite in loaded
        for test in (suite.suite.tests if suite.suite is not None else ())
        if selection.takes(suite.key, test.id)
    ]
    criteria = sum(len(test.criteria) for test in checked_tests)
    checked = count(criteria, "criterion")
    counts = f"{count(len(loaded), 'suite')}, {count(len(checked_tests), 'test')}, {checked}"
    warnings = sum(problem.severity == "warning" for problem in problems)
    summary = f"{count(errors, 'error')}, {count(warnings, 'warning')}" if problems else "no problems"
    if infos := len(problems) - errors - warnings:
        summary += f", {count(infos, 'info')}"
    if not invocation.quiet:
        invocation.out.line(f"{counts}: {summary}")
    return code


def _with_facts(invocation: Invocation, loaded: list[LoadedSuite], problems: list[Problem]) -> list[Problem]:
    """The problems, and what does not fit the recordings, in the order of the files. No history: as they are."""
    path = directories.history_file(invocation.db)
    if not path.is_file() or not any(suite.suite is not None for suite in loaded):
        return problems
    # Here and not above: 50 ms, for which `validate` would wait where there is no history.
    from agenteval_tui.analysis.lint_tool_names import facts_problems
    from agenteval_tui.history.store import Store

    facts: list[Problem] = []
    try:
        # Read only: a check changes nothing, and does not wait for a file that needs repair first.
        with Store.open(path, read_only=True) as store:
            agents = user_agents()
            for loaded_suite in loaded:
                facts += facts_problems(loaded_suite, store, agents)
    except AgentevalError as error:
        invocation.note(f"not compared with the recordings: {error}")
    order = {file: number for number, file in enumerate(dict.fromkeys(problem.file for problem in problems))}
    for suite in loaded:
        order.setdefault(str(suite.path), len(order))
    return sorted(
        [*problems, *facts],
        key=lambda loaded_suite: (order.get(loaded_suite.file, len(order)), loaded_suite.line, loaded_suite.column),
    )


def print_problem(out: Output, problem: Problem) -> None:
    """One line: place, severity, what is wrong, how to fix it."""
    remedy = f" ({problem.fix})" if problem.fix else ""
    out.line(
        f"{problem.where}: ",
        (problem.severity, _STYLES[problem.severity]),
        f": {' '.join(problem.message.split())}",
        (remedy, "dim"),
    )
