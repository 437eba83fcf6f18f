"""`agenteval run`: suites against their agents; every run is kept in the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agenteval_tui.cli.commands.validate import print_problem
from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.report_files import ReportFiles, report_options
from agenteval_tui.cli.run_detached import begin, print_detached, watch_to_end
from agenteval_tui.cli.run_finish import report
from agenteval_tui.cli.run_inline import execute_plan, plan_of
from agenteval_tui.cli.run_options import Limits, limit_options, runs_apart
from agenteval_tui.cli.standard_input import STDIN
from agenteval_tui.cli.suites_given import paths_given, suites_given
from agenteval_tui.cli.trust_prompt import plan_with_permission, text_with_permission
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.model import Plan, PlanOptions
from agenteval_tui.runs.plan.preview import preview_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.views.plan import plan_heading, plan_view

# What says which runs there are: a resumed execution has its own already.
_CHOICES = {
    "tests": "--test", "tags": "--tag", "failed": "--failed", "agent": "--agent", "judge": "--judge",
    "variation": "--variation", "repeat": "--repeat", "timeout": "--timeout", "seed": "--seed", "ab": "--ab",
    "sample": "--sample", "cache": "--cache", "no_early_stop": "--no-early-stop", "plan": "--plan",
}  # fmt: skip


class _Run(click.Command):
    """`--cache` may stand alone: what follows is a path then, never its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        given = ["--cache=first" if one == "--cache" else one for one in args[:end]]
        return super().parse_args(ctx, [*given, *args[end:]])


@click.command("run", cls=_Run)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--test", "tests", multiple=True, metavar="ID", help="Only this test, as ID or FILE::ID; may be repeated."
)
@click.option(
    "--tag", "tags", multiple=True, metavar="T", help="Only tests with this tag; if repeated, with all of them."
)
@click.option("--failed", is_flag=True, help="Only the tests that failed in the last execution of these suites.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N of the chosen tests and rows, by --seed.")
@click.option("--agent", metavar="A", help="Use this agent instead of the suites' agents.")
@click.option(
    "--ab", nargs=2, metavar="A B", help="Run every test with both agents or variations, and test whether they differ."
)
@click.option("--judge", metavar="A", help="Use this agent as the judge, instead of those that metrics name.")
@click.option("--variation", metavar="V", help="Only this variation; `default` is the test without one.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Run every test N times.")
@click.option("--no-early-stop", is_flag=True, help="Run all repetitions, even of tests that are already decided.")
@click.option("--timeout", type=click.FloatRange(0.001), metavar="SECONDS", help="For each run.")
@click.option("--seed", type=int, default=0, metavar="N", help="The seed for agents that vary.")
@click.option(
    "--cache", type=click.Choice(("first", "all")), default=None, metavar="[=all]",
    help="Take answers to equal requests from the history: of first repetitions, or of all.",
)  # fmt: skip
@click.option("--trust", is_flag=True, help="Let programs and Python functions of the suites' folders run.")
@click.option("--plan", is_flag=True, help="Print what would be run, and what it may cost; run nothing.")
@click.option("--resume", metavar="ID", help="Run the rest of this execution, like `agenteval resume ID`.")
@limit_options
@report_options
@common_options
@pass_invocation
def command(invocation: Invocation, /, paths: tuple[Path, ...], trust: bool, resume: str | None, **given: Any) -> int:
    """Run the suites at PATH (files or folders) and grade what the agents do; without PATH those of the current folder.

    `-` is a suite on standard input. Its relative paths are meant from the current folder. What it would start needs
    --trust, whatever folder you trust; it can't be detached, and `resume` takes up only what needs no file of it.

    Every run is in the history as soon as it has ended. Ctrl-C cancels what is running, and keeps what ended; a
    terminal that is lost leaves it running (`agenteval attach`). In a pipe everything happens in this process.
    """
    limits = Limits.taken(given)
    reports = ReportFiles.taken(given)
    limits.check(reports)
    if resume is not None:
        return _resume(invocation, resume, paths, limits, reports, trust, given)
    _check(given, limits, reports)
    if STDIN in paths and limits.detach:
        raise AgentevalError("a suite on standard input can't be detached", mend="write it into a file first")
    paths = paths_given(paths)
    if not given["plan"]:
        reports.check(invocation)
    with invocation.store() as store:
        loaded = load_for_run(invocation, paths, given["tests"])
        options = _options(store, loaded, given, limits, trust)
        return _go(invocation, store, paths, loaded, options, limits, reports, only_plan=given["plan"])


def _go(
    invocation: Invocation,
    store: Store,
    paths: Sequence[Path],
    loaded: list[LoadedSuite],
    options: PlanOptions,
    limits: Limits,
    reports: ReportFiles,
    *,
    only_plan: bool,
) -> int:

    plan = plan_of(store, loaded, options)
    if only_plan:
        return _show_plan(invocation, store, plan, as_json=reports.on_stdout)
    limits.baseline.check_baselines(store, [(run.suite_key, run.ref.test) for run in plan.runs])
    plan = text_with_permission(plan) if STDIN in paths else plan_with_permission(invocation, plan)
    if invocation.out.is_terminal and not reports.on_stdout:
        invocation.out.line((plan_heading(preview_plan(plan, store)), "dim"))
    if STDIN in paths or not runs_apart(invocation, detach=limits.detach):
        done = execute_plan(invocation, store, plan, quiet=reports.on_stdout)
        return report(invocation, store, done, reports, limits.gate, limits.baseline)

    # Its process asks nobody: what was permitted_plan here, for this once, goes with the request.
    options = replace(options, trust=plan.trust)
    request = ExecutionRequest(
        tuple(map(str, paths)), options, str(directories.history_file(invocation.db)), str(directories.config_dir())
    )
    live = begin(invocation, request, quiet=reports.on_stdout)
    if limits.detach:
        print_detached(invocation.out, live, len(plan.runs))
        return 0
    watched = watch_to_end(invocation, store, live, quiet=reports.on_stdout)
    if watched is None:
        return INTERRUPTED
    return report(invocation, store, watched, reports, limits.gate, limits.baseline)


def _show_plan(invocation: Invocation, store: Store, plan: Plan, *, as_json: bool) -> int:
    previewed = preview_plan(plan, store)
    if as_json:
        invocation.out.json(previewed.to_json())
    else:
        invocation.out.view(plan_view(previewed))
    return 0


def _resume(
    invocation: Invocation,
    reference: str,
    paths: tuple[Path, ...],
    limits: Limits,
    reports: ReportFiles,
    trust: bool,
    given: dict[str, Any],
) -> int:
    wrong = [_CHOICES[name] for name, value in given.items() if value]
    if paths or wrong:
        what = wrong[0] if wrong else str(paths[0])
        raise AgentevalError(
            f"a resumed execution has its runs already: {what} can't be given", mend="leave it out, or start a new run"
        )
    from agenteval_tui.cli.commands.resume import resume

    return resume(invocation, reference, limits, reports, trust=trust)


def _check(given: dict[str, Any], limits: Limits, reports: ReportFiles) -> None:
    """Raise `AgentevalError` where options do not go together."""
    if given["plan"]:
        if limits.detach:
            raise AgentevalError("--plan runs nothing that --detach could start", mend="give one of them")
        written = [kind for kind, name in reports.files if (kind, name) != ("json", "-")]
        if written:
            raise AgentevalError(
                f"--plan runs nothing that --{written[0]} could report", mend="for the plan itself: --json -"
            )
    if given["ab"]:
        for name in ("agent", "variation"):
            if given[name] is not None:
                raise AgentevalError(f"--ab and --{name} do not go together", mend=f"leave out --{name}")
        if name := limits.baseline.first:
            raise AgentevalError(
                f"--ab and {name} do not go together: a baseline has one agent",
                mend=f"leave out {name}; A and B are compared with each other",
            )


def _options(
    store: Store, loaded: list[LoadedSuite], given: dict[str, Any], limits: Limits, trust: bool
) -> PlanOptions:
    return PlanOptions(
        tests=given["tests"],
        tags=given["tags"],
        agent=given["agent"],
        variation=given["variation"],
        repeat=given["repeat"],
        concurrency=limits.concurrency,
        timeout=given["timeout"],
        failed_from=last_of(store, loaded) if given["failed"] else None,
        seed=given["seed"],
        judge=given["judge"],
        trust=trust,
        max_cost=limits.max_cost,
        max_tokens=limits.max_tokens,
        max_seconds=limits.max_seconds,
        cache=given["cache"] or "",
        early_stop=not given["no_early_stop"],
        ab=tuple(given["ab"] or ()),
        sample=given["sample"],
        executor=limits.executor,
        scheduler=limits.scheduler,
    )


def load_for_run(invocation: Invocation, paths: Sequence[Path], tests: Sequence[str]) -> list[LoadedSuite]:
    """The suites at `paths`. Problems go to stderr; raises `AgentevalError` when they must be mended first.

    Where tests are named, only what is wrong with those matters.
    """
    loaded, problems = suites_given(invocation, paths)
    errors = [one for one in problems if one.severity == "error" and (not tests or _concerns(one, loaded, tests))]
    for problem in errors:
        print_problem(invocation.err, problem)
    if errors:
        many = f"{len(errors)} errors" if len(errors) > 1 else "an error"
        raise AgentevalError(f"nothing was run: the suites have {many}", mend="mend what is listed above")
    if not loaded:
        raise AgentevalError(
            "there are no suites",
            where=", ".join(map(str, paths)),
            mend="a suite is a file `*.suite.yaml`, or `suite.yaml`",
        )
    return loaded


def _concerns(problem: Problem, loaded: Sequence[LoadedSuite], tests: Sequence[str]) -> bool:
    """Whether the problem stands in one of the named tests, or above all tests of its file."""
    for one in loaded:
        if str(one.path) != problem.file or one.suite is None:
            continue
        begins = sorted((one.line_of(test_id), test_id) for test_id in one.test_nodes)
        here = [test_id for line, test_id in begins if line <= problem.line]
        return not here or here[-1] in {test.casefold() for test in tests}
    return False


def last_of(store: Store, loaded: Sequence[LoadedSuite]) -> str:
    """The id of the last execution that ran one of these suites. Raises `AgentevalError` when there is none."""
    newest = max((ids[0] for one in loaded if (ids := store.execution_ids(RunFilter(suite_key=one.key)))), default=None)
    rows = store.execution_rows([newest]) if newest is not None else []
    if not rows:
        raise AgentevalError("these suites were never run", where="--failed", mend="run them without --failed first")
    return rows[0].id
