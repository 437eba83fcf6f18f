"""`agenteval run`: suites against their agents, in this process; every run is kept in the history."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agenteval_tui.cli.exits import exit_code, read_rate
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Output, json_text
from agenteval_tui.text.problems import AgentevalError, InfrastructureError, Problem

if TYPE_CHECKING:
    from agenteval_tui.history.rows import ExecutionRow
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.events import Ended
    from agenteval_tui.runs.plan import Plan, PlanOptions
    from agenteval_tui.suites.load import LoadedSuite

INTERRUPTED = 130
STDOUT = "-"


@click.command("run")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--test", "tests", multiple=True, metavar="ID", help="Only this test, as ID or FILE::ID; may come often.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only tests with this tag; with several: with all.")
@click.option("--failed", is_flag=True, help="Only the tests that failed in the last execution of these suites.")
@click.option("--agent", metavar="A", help="This agent in place of the suites'.")
@click.option("--judge", metavar="A", help="This agent as the judge, in place of those that metrics name.")
@click.option("--trust", is_flag=True, help="Let the suites' own Python functions run; look at them first.")
@click.option("--variation", metavar="V", help="Only this variation; `default` is the test without one.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Run every test N times.")
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Runs at the same time.")
@click.option("--timeout", type=click.FloatRange(0.001), metavar="SECONDS", help="For each run.")
@click.option("--seed", type=int, default=0, metavar="N", help="Another seed for agents that vary.")
@click.option("--fail-under", metavar="RATE", help="Exit code 1 only when the pass rate is below this (0.8 or 80%).")
@click.option("--json", "json_file", metavar="FILE", help="Write the results as JSON; `-`: to stdout and nothing else.")
@click.option("--junit", "junit_file", metavar="FILE", help="Write a JUnit XML report.")
@click.option("--csv", "csv_file", metavar="FILE", help="Write a table with a line a run.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    paths: tuple[Path, ...],
    tests: tuple[str, ...],
    tags: tuple[str, ...],
    failed: bool,
    agent: str | None,
    judge: str | None,
    trust: bool,
    variation: str | None,
    repeat: int | None,
    concurrency: int | None,
    timeout: float | None,
    seed: int,
    fail_under: str | None,
    json_file: str | None,
    junit_file: str | None,
    csv_file: str | None,
) -> int:
    """Run the suites at PATHS (files or folders) and grade what the agents do.

    Every run is in the history as soon as it has ended. Ctrl-C cancels what is running, and keeps what ended.
    """
    from agenteval_tui.runs.plan import PlanOptions

    gate = read_rate(fail_under) if fail_under is not None else None
    reports = Reports(json_file, junit_file, csv_file)
    reports.check()
    with invocation.store() as store:
        loaded = load_for_run(invocation, paths, tests)
        options = PlanOptions(
            tests=tests,
            tags=tags,
            agent=agent,
            variation=variation,
            repeat=repeat,
            concurrency=concurrency,
            timeout=timeout,
            failed_from=last_of(store, loaded) if failed else None,
            seed=seed,
            judge=judge,
            trust=trust,
        )
        done = execute(invocation, store, loaded, options, quiet=json_file == STDOUT)
        reports.write(invocation.out, store, done.execution)
        if done.interrupted:
            return INTERRUPTED
        if done.ended.status == "failed":
            raise InfrastructureError(f"the execution broke off: {done.ended.message}")
        return exit_code(done.counts, done.pass_rate, gate)


@dataclass(frozen=True, slots=True)
class Done:
    """An execution that has ended: its row, its last event, how many runs ended how, and the mean pass rate."""

    execution: ExecutionRow
    ended: Ended
    counts: dict[str, int]
    pass_rate: float | None
    interrupted: bool


def load_for_run(invocation: Invocation, paths: Sequence[Path], tests: Sequence[str]) -> list[LoadedSuite]:
    """The suites at `paths`. Problems go to stderr; raises `AgentevalError` when they must be mended first.

    Where tests are named, only what is wrong with those matters.
    """
    from agenteval_tui.analysis.lint import check_suites
    from agenteval_tui.cli.validate import print_problem

    loaded, problems = check_suites(paths)
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
    from agenteval_tui.history.rows import RunFilter

    newest = max((ids[0] for one in loaded if (ids := store.execution_ids(RunFilter(suite_key=one.key)))), default=None)
    rows = store.execution_rows([newest]) if newest is not None else []
    if not rows:
        raise AgentevalError("these suites were never run", where="--failed", mend="run them without --failed first")
    return rows[0].id


def execute(
    invocation: Invocation, store: Store, loaded: Sequence[LoadedSuite], options: PlanOptions, *, quiet: bool
) -> Done:
    """Plan and run in this process; prints unless `quiet`. Ctrl-C cancels, and everything that ended is kept."""
    from agenteval_tui import places
    from agenteval_tui.analysis.summary import execution_stats
    from agenteval_tui.cli.run_progress import RunProgress, print_judges, print_summary
    from agenteval_tui.runs.loop import run_to_end
    from agenteval_tui.runs.plan import make_plan
    from agenteval_tui.suites.agents_file import load_agents

    plan = make_plan(loaded, options, user_agents=load_agents(places.config_dir()), store=store)
    out = Output(invocation.out.stream, silent=True) if quiet else invocation.out

    def remedy_of(run: str) -> str:
        error = store.transcript(run).error
        return error.mend if error is not None else ""

    progress = RunProgress(out, store.results, remedy_of)
    ended, interrupted = run_to_end(_run(plan, store, progress))
    progress.close()
    row = store.execution(plan.execution_id)
    overall = execution_stats(store.runs_of_execution(row.id))["overall"]
    counts = {
        "passed": row.passed,
        "failed": row.failed,
        "error": row.errors,
        "needs_review": row.needs_review,
        "skipped": row.skipped,
        "cancelled": row.cancelled,
    }
    out.line()
    print_summary(out, counts, overall["pass_rate"], overall["interval"])
    print_judges(out, *store.judge_usage(row.id))
    out.line((f"execution {row.id}  (agenteval show {row.id[:10]})", "dim"))
    return Done(row, ended, counts, overall["pass_rate"], interrupted)


async def _run(plan: Plan, store: Store, progress: Any) -> tuple[Ended, bool]:
    from agenteval_tui.runs.engine import Engine
    from agenteval_tui.runs.events import Command

    engine = Engine(plan, store, progress.apply)
    engine.prepare()
    loop = asyncio.get_running_loop()
    stops = 0

    def stop() -> None:
        nonlocal stops
        stops += 1
        engine.command(Command("cancel"))

    undo = _on_signals(loop, stop)
    try:
        return await engine.run(), stops > 0
    finally:
        undo()


def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Callable[[], None]:
    """Call `stop` on Ctrl-C and SIGTERM; gives a function that undoes it."""
    added = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop)
            added.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            break  # not the main thread: whoever called us has the signals

    def undo() -> None:
        for number in added:
            loop.remove_signal_handler(number)

    return undo


@dataclass(frozen=True, slots=True)
class Reports:
    """The files that are to be written of an execution; None: not asked for."""

    json_file: str | None
    junit_file: str | None
    csv_file: str | None

    def check(self) -> None:
        """Raise `AgentevalError` now when a file can't be written later: a run may have cost money by then."""
        for given in (self.json_file, self.junit_file, self.csv_file):
            if given is None or given == STDOUT:
                continue
            folder = Path(given).resolve().parent
            if not folder.is_dir():
                raise AgentevalError("there is no such folder for a report", where=str(folder), mend="make it first")
            if Path(given).is_dir():
                raise AgentevalError("this is a folder, not a file for a report", where=given)
        if STDOUT in (self.junit_file, self.csv_file):
            raise AgentevalError("only --json can go to stdout", mend="name a file for the other reports")

    def write(self, out: Output, store: Store, execution: ExecutionRow) -> None:
        """Write them all."""
        if self.json_file is not None:
            from agenteval_tui.exchange.results_json import execution_document

            document = execution_document(store, execution)
            if self.json_file == STDOUT:
                out.json(document)
            else:
                _write(self.json_file, json_text(document) + "\n")
        if self.junit_file is not None:
            from agenteval_tui.exchange.junit import junit_xml

            _write(self.junit_file, junit_xml(store, execution))
        if self.csv_file is not None:
            from agenteval_tui.exchange.results_csv import results_csv

            _write(self.csv_file, results_csv(store, execution))


def _write(name: str, text: str) -> None:
    """Whole or not at all: a report that is read while it is written would be half of one."""
    import os
    import tempfile

    path = Path(name)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise AgentevalError(f"the report can't be written: {error.strerror}", where=name) from None
