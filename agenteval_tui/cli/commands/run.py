"""`agenteval run`: suites against their agents; every run is kept in the history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared, selected_tags, selected_tests
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation, typed_options
from agenteval_tui.cli.run_options import Ending, ReportFiles, execution_options, limit_options, report_options
from agenteval_tui.cli.standard_input import STDIN
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.plan.options import PlanOptions


class _Run(click.Command):
    """`--cache` may stand alone: what follows is a path then, never its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        before = ["--cache=first" if argument == "--cache" else argument for argument in args[:end]]
        return super().parse_args(ctx, [*before, *args[end:]])


@click.command("run", cls=_Run)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path, allow_dash=True))
@selected_tests("Only this test, as ID or FILE::ID; may be repeated.")
@selected_tags
@click.option("--failed", is_flag=True, help="Only the tests that failed in the last execution of these suites.")
@declared(PlanOptions, "sample")
@declared(PlanOptions, "agent", shell_complete=shell_completion.agents)
@click.option(
    "--ab",
    nargs=2,
    metavar="A B",
    help="Run every test with both agents or variations, and test if they differ.",
    shell_complete=shell_completion.arms,
)
@declared(PlanOptions, "judge", shell_complete=shell_completion.agents)
@declared(PlanOptions, "variation", shell_complete=shell_completion.variations)
@declared(PlanOptions, "repeat")
@click.option("--no-early-stop", is_flag=True, help="Run all repetitions, even when a test is already decided.")
@declared(PlanOptions, "timeout")
@declared(PlanOptions, "seed")
@click.option(
    "--cache",
    type=click.Choice(("first", "all")),
    default=None,
    metavar="[=all]",
    help="Reuse answers to equal requests from the history: for first repetitions, or for all.",
)
@declared(PlanOptions, "name")
@declared(PlanOptions, "note")
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keep metadata with the execution, to search and to group by; may be repeated.",
)
@declared(PlanOptions, "trust")
@click.option("--plan", is_flag=True, help="Print what would run and what it may cost; run nothing.")
@click.option(
    "--watch",
    is_flag=True,
    help="After each save of the agents' code, run the recorded runs again from their recordings, and show what "
    "changes.",
)
@click.option(
    "--watch-live",
    is_flag=True,
    help="With --watch and --max-cost: let requests that are not recorded ask the model at once.",
)
@click.option("--once", is_flag=True, help="With --watch: check once with the code as it is, and exit.")
@click.option(
    "--recorded-tools",
    is_flag=True,
    help="With --watch: do not run tools, but answer their calls from the recordings, too.",
)
@click.option("--steer", is_flag=True, hidden=True)
@click.option(
    "--resume",
    metavar="ID",
    help="Run the rest of this execution, like `agenteval resume ID`.",
    shell_complete=shell_completion.executions,
)
@limit_options
@report_options
@common_options
@pass_invocation
def command(invocation: Invocation, /, paths: tuple[Path, ...], resume: str | None, **values: Any) -> int:
    """Run the suites at PATH (files or folders; FILE::TEST: one test; default: the current folder) and grade what the
    agents do.

    `-` is a suite on standard input. Its relative paths start at the current folder. The programs it names need
    --trust, even in a repository you trust; it can't be detached, and `resume` continues only what needs none of its
    files.

    Every run is in the history as soon as it ends. Ctrl-C cancels the runs in progress and keeps the finished ones; if
    the terminal is lost, the execution continues (`agenteval attach`). In a pipe, everything happens in this process.
    """
    options, ending, reports = execution_options(values)
    if resume is None:
        _check(values, ending, reports)
        if STDIN in paths and ending.detach:
            raise AgentevalError("a suite on standard input can't be detached", fix="write it into a file first")
    else:
        _check_resumed(paths, values)

    if values["watch"]:
        # It reads the models' protocols: 100 ms for who runs tests.
        from agenteval_tui.cli import watch_run

        return watch_run.watch(invocation, paths, options, reports, values)

    # A second lazy boundary: what executes loads five times what the options need, and --help took 0.3 s with it.
    from agenteval_tui.cli import run_suites

    if resume is None:
        return run_suites.run_suites(invocation, paths, options, ending, reports, values)
    return run_suites.resume(invocation, resume, options, ending, reports)


def _check_resumed(paths: Sequence[Path], values: Collection[str]) -> None:
    """Raise `AgentevalError` where `--resume` stands beside what says which runs there are (`values`): a resumed
    execution has its own already."""
    if wrong := [*typed_options(values), *map(str, paths)]:
        raise AgentevalError(
            f"a resumed execution already has its runs: {wrong[0]} can't be given",
            fix="leave it out, or start a new run",
        )


def _check(values: dict[str, Any], ending: Ending, reports: ReportFiles) -> None:
    """Raise `AgentevalError` where options do not go together."""
    _check_watch(values, ending, reports)
    if values["plan"]:
        if ending.detach:
            raise AgentevalError("--plan runs nothing, so --detach has nothing to start", fix="give only one")
        written = [kind for kind, name in reports.files if (kind, name) != ("json", "-")]
        if written:
            raise AgentevalError(
                f"--plan runs nothing that --{written[0]} could report", fix="for the plan itself: --json -"
            )
    if values["ab"]:
        for name in ("agent", "variation"):
            if values[name] is not None:
                raise AgentevalError(f"--ab and --{name} can't be used together", fix=f"leave out --{name}")
        if name := ending.baseline.first:
            raise AgentevalError(
                f"--ab and {name} can't be used together: a baseline has one agent",
                fix=f"leave out {name}: --ab compares A and B with each other",
            )


def _check_watch(values: dict[str, Any], ending: Ending, reports: ReportFiles) -> None:
    """Raise `AgentevalError` where an option does not go together with `--watch`, or needs it."""
    if not values["watch"]:
        for option in typed_options(("watch_live", "once", "recorded_tools", "steer")):
            raise AgentevalError(f"{option} is for --watch only", fix="give both")
        return
    wrong = typed_options(("plan", "failed", "ab", "cache", "sample"))
    wrong += ["--detach"] * ending.detach
    wrong += [f"--{kind} {name}" for kind, name in reports.files if (kind, name) != ("json", "-")]
    if wrong:
        raise AgentevalError(f"--watch and {wrong[0]} can't be used together", fix=f"leave out {wrong[0]}")
