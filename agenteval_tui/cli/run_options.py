"""The options that `run`, `resume` and `report` share, and what they mean. What executes and what writes reports is not
loaded with them: see `commands.run`."""

from __future__ import annotations

import os
from typing import Any

import click
from msgspec import Struct

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.exit_codes import read_rate, read_seconds
from agenteval_tui.cli.gate_options import (
    FAIL_UNDER_OPTION,
    FAIL_UNDER_TEST_OPTION,
    BaselineOptions,
    gate_options,
)
from agenteval_tui.cli.invocation import Invocation, option_group
from agenteval_tui.cli.output import is_ci
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EXECUTORS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.executors import LOCAL, executor_class, executor_names
from agenteval_tui.runs.plan.options import PlanOptions

STDOUT = "-"


class _ExecutorName(click.Choice):  # type: ignore[type-arg]  # before click 8.2 it takes none
    """The choices are agenteval's own names; a plug-in's is taken too."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        plugin = value not in self.choices and value in executor_names()
        return value if plugin else super().convert(value, param, ctx)


limit_options = option_group(
    (
        *(declared(PlanOptions, name) for name in ("concurrency", "max_cost", "max_tokens")),
        click.option(
            "--notify", metavar="URL", help="Post the result to this web hook (JSON; Slack shows its `text`)."
        ),
        declared(PlanOptions, "max_seconds", "--max-time", type=str),
        FAIL_UNDER_OPTION,
        FAIL_UNDER_TEST_OPTION,
        gate_options,
        click.option(
            "--executor",
            type=_ExecutorName((LOCAL, *entry_points.own(EXECUTORS))),
            default=None,
            help="Where agents run: on this machine, or on a Dask cluster's workers (extra `dask`).",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="The cluster's scheduler, tcp://HOST:PORT (default: DASK_SCHEDULER_ADDRESS).",
        ),
        click.option(
            "--detach", is_flag=True, help="Start it in the background, print its id and exit; see `agenteval attach`."
        ),
    )
)
"""`--concurrency`, the limits, the gates, `--detach`, and where agents run."""

REPORTS = {
    "json": "Write the results as JSON; `-` prints them and nothing else.",
    "junit": "Write a JUnit XML report.",
    "csv": "Write a table with one line per run.",
    "md": "Write a Markdown report: figures, failures, conclusion.",
    "html": "Write the same report as one self-contained HTML file.",
}
"""The kinds of reports, and what the help says of the option of each."""

report_options = option_group(
    (
        *(
            click.option(
                f"--{kind}", f"{kind}_file", metavar="FILE", help=description, shell_complete=shell_completion.files
            )
            for kind, description in REPORTS.items()
        ),
        click.option("--force", is_flag=True, help="Overwrite existing files, whatever they contain."),
    )
)
"""`--json --junit --csv --md --html --force`; the function gets them as `report_files`, for `ReportFiles.taken`."""


class ReportFiles(Struct, frozen=True):
    """The reports to write: (kind, file). `force`: overwrite files without a question."""

    files: tuple[tuple[str, str], ...] = ()
    force: bool = False

    @classmethod
    def taken(cls, options: dict[str, Any]) -> ReportFiles:
        """Takes the report options out of a command's options."""
        files = tuple((kind, name) for kind in REPORTS if (name := options.pop(f"{kind}_file")) is not None)
        return cls(files, bool(options.pop("force")))

    @property
    def on_stdout(self) -> bool:
        """Whether stdout gets one JSON document and nothing else."""
        return ("json", STDOUT) in self.files


class Ending(Struct, frozen=True):
    """What follows when an execution ends: the gate for its pass rate, the baseline options, the web hook that is told.
    `detach`: the command exits before."""

    gate: float | None
    detach: bool
    baseline: BaselineOptions
    notify: str | None

    def check(self, reports: ReportFiles) -> None:
        """Raise `AgentevalError` if options contradict each other."""
        if not self.detach:
            return
        if reports.files:
            raise AgentevalError(
                f"--detach exits before there is anything to write into --{reports.files[0][0]}",
                fix="without --detach, or later: agenteval show ID --json",
            )
        if self.notify is not None:
            raise AgentevalError(
                "--detach exits before the execution ends, so --notify has nothing to send",
                fix="give --notify to `agenteval attach`",
            )
        if self.gate is not None:
            raise AgentevalError(
                "--detach exits before there is a pass rate for --fail-under",
                fix="give --fail-under to `agenteval attach`, or leave out --detach",
            )
        self.baseline.check_detached()


def execution_options(options: dict[str, Any]) -> tuple[PlanOptions, Ending, ReportFiles]:
    """Takes the options that `run` and `resume` share out of a command's options. Raises `AgentevalError`, also if
    options contradict each other."""
    gate, of_test, time = (options.pop(name) for name in ("fail_under", "fail_under_test", "max_seconds"))
    executor, scheduler = _executor(options.pop("executor"), options.pop("scheduler"))
    planned = PlanOptions(
        max_seconds=None if time is None else read_seconds(time, "--max-time"),
        fail_under_test=None if of_test is None else read_rate(of_test, "--fail-under-test"),
        executor=executor,
        scheduler=scheduler,
        **{name: options.pop(name) for name in ("concurrency", "max_cost", "max_tokens", "trust")},
    )
    baseline = BaselineOptions.taken(options)
    ending = Ending(None if gate is None else read_rate(gate), options.pop("detach"), baseline, options.pop("notify"))
    reports = ReportFiles.taken(options)
    ending.check(reports)
    return planned, ending, reports


def _executor(executor: str | None, scheduler: str | None) -> tuple[str, str]:
    if executor in (None, LOCAL):
        if scheduler:
            others = " or ".join(entry_points.own(EXECUTORS)) or "of a plug-in"
            raise AgentevalError(f"--scheduler is for --executor {others} only", fix="give both")
        return executor or "", ""
    return executor, scheduler or os.environ.get(executor_class(executor).address_variable, "")


def runs_apart(invocation: Invocation, *, detach: bool) -> bool:
    """Whether the execution gets a process of its own: on a terminal, which may be lost, and to be detached."""
    return detach or (invocation.out.is_terminal and not is_ci(os.environ))
