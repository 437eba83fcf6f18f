"""What comes when an execution has ended: the summary, the reports, what a builder wants to know, the exit code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.analysis.ab import compare_ab
from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.code_changes import passed_before
from agenteval_tui.analysis.costs import costs_of
from agenteval_tui.analysis.quarantine_gate import gating_now
from agenteval_tui.analysis.regression_gate import (
    BaselineResult,
    compare_to_baseline,
    with_cached_comparison,
)
from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.analysis.test_gates import TestGates, gates_now, outcome_now
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.analysis.umbraco_metrics import umbraco_figures
from agenteval_tui.cli.exit_codes import FAILED, INTERRUPTED, exit_code
from agenteval_tui.cli.gate_options import BaselineOptions
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.report_files import write_reports
from agenteval_tui.cli.run_options import Ending, ReportFiles
from agenteval_tui.cli.run_progress import RunProgress
from agenteval_tui.core.directories import db_option
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.github import annotation_lines, baseline_annotations, summary_md
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import load_suite
from agenteval_tui.views.ab import ab_view
from agenteval_tui.views.baseline import against_view, gate_view, kept_text, missed_gates
from agenteval_tui.views.causes import causes_in_short
from agenteval_tui.views.comparison import comparison_view, was_and_now
from agenteval_tui.views.cost import judges_view, spent_view
from agenteval_tui.views.execution import ended_view, next_view, rate_view, startup_text
from agenteval_tui.views.file_changes import passed_before_view
from agenteval_tui.views.gates import gates_view
from agenteval_tui.views.model import View, paragraphs, text
from agenteval_tui.views.quarantine import left_out_view
from agenteval_tui.views.stats import umbraco_view

TestLines = Mapping[tuple[str, str], tuple[str, int]]
"""(suite's key, test's id) -> file and line of the test."""


class RunReport(Struct, frozen=True):
    """An execution that has ended: its row, how many runs ended how, the mean pass rate; `interrupted`: from here.

    Counts and rate are of the runs that gate: what is in quarantine is left out; the counts are without what the gates
    of tests excuse, too. `all_left_out`: no run gates.
    """

    execution: ExecutionRow
    counts: dict[str, int]
    pass_rate: float | None
    interrupted: bool
    all_left_out: bool = False
    gates: TestGates = TestGates()
    """How the tests that have a gate did; of the others every run must pass."""
    against: BaselineResult | None = None
    """The comparison with the baseline; None: there is none."""
    broke: str = ""
    """Why it broke off, as it said itself, where the history could not take that (a full disk)."""
    db_option: str = ""
    """What commands need to find the history that has it."""

    def code(self, gate: float | None = None, *, gated: bool = False) -> int:
        """The exit code. `gated`: other gates decide what failed.

        Raises `AgentevalError` when the execution broke off, or its process died.
        """
        row = self.execution
        if self.interrupted:
            return INTERRUPTED
        if row.status == "failed" or self.broke:
            why = self.broke or row.message or "no reason given"
            raise InfrastructureError(f"the execution broke off: {why}; {_saved_text(row)}", fix=self._resume())
        # Still running, and its watcher saw no end: its process died before it could say so.
        if row.status in ("interrupted", "running"):
            raise InfrastructureError(
                f"the execution stopped unexpectedly: its process died; {_saved_text(row)}", fix=self._resume()
            )
        # Where nothing is left that gates, no rate can be too low: else it would be an error that there is none.
        if gated and gate is None:
            gate = 0.0
        return exit_code(
            self.counts,
            self.pass_rate,
            None if self.all_left_out else gate,
            status=row.status,
            gate_missed=self.gates.fails,
        )

    def _resume(self) -> str:
        return f"agenteval resume {short_id(self.execution.id)}{self.db_option} runs what is missing"


def _saved_text(row: ExecutionRow) -> str:
    """How much of it is in the history."""
    ended = row.ended - row.cancelled
    return f"{ended:,} of {count(row.runs, 'run')} ended and {'is' if ended == 1 else 'are'} saved"


def finish(store: Store, execution: str, progress: RunProgress, *, interrupted: bool) -> RunReport:
    """Print the last lines of an execution that has ended, and say how it did."""
    progress.close()
    out = progress.out
    # An execution that one attaches to may write into the history of another data folder.
    try:
        row = store.execution(execution)
    except AgentevalError as error:
        ended = progress.view.ended
        how = ended.status if ended is not None else "its process died"
        raise AgentevalError(
            f"the execution has ended ({how}), and its results are in another history file",
            where=f"execution {execution}",
            fix="name that file with --db",
        ) from error
    end = progress.view.ended
    # The history may have been too full to take the end in, too.
    broke = end.message if end is not None and end.status == "failed" and row.status != "failed" else ""
    runs = store.runs_of_execution(row.id)
    overall = execution_stats(runs).overall
    if not progress.quiet:
        out.line()
    out.view(ended_view(row, runs, progress.errors(), progress.not_observed(), progress.problems_around()))
    if not progress.quiet:
        out.view(causes_in_short(*causes_of_execution(store, row.id), row.id, db_option(store.path)))
        out.view(passed_before_view(passed_before(store, runs)))
        out.view(rate_view(row, overall, progress.retries))
        out.view(umbraco_view(umbraco_figures(row.options, runs)))
    # Asked for by name: `--quiet` does not leave it out.
    out.view(_ab(row, runs))
    if not progress.quiet:
        out.view(spent_view(costs_of(store.costs(row.id), runs)))
        remark = row.message if row.status == "finished" else ""
        out.view(paragraphs([startup_text(row), text((remark, "warn"))]))
        out.view(judges_view(*store.judge_usage(row.id)))
        out.view(next_view(row, db_option(store.path)))
    outcome = outcome_now(store, row, runs, overall.pass_rate)
    out.view(left_out_view(outcome.gating.left_out))
    out.view(gates_view(outcome.gates, missed_only=progress.quiet))
    against = compare_to_baseline(store, row)
    if against is not None:
        out.view(against_view(against, db_option(store.path)))
    return RunReport(
        row,
        counts=dict(outcome.counts),
        pass_rate=outcome.pass_rate,
        interrupted=interrupted,
        all_left_out=outcome.all_left_out,
        gates=outcome.gates,
        against=against,
        broke=broke,
        db_option=db_option(store.path),
    )


def _ab(row: ExecutionRow, runs: Sequence[RunRow]) -> View:
    """Both sides of an A/B comparison, or why they can't be compared."""
    if not row.options.get("ab"):
        return ()
    try:
        return ab_view(compare_ab(runs))
    except AgentevalError as error:
        return paragraphs([text(("A/B: ", "warn"), str(error))])


def report(invocation: Invocation, store: Store, done: RunReport, reports: ReportFiles, ending: Ending) -> int:
    """Write the reports, tell GitHub if it is there, and measure it against the gates; gives the exit code.

    The baseline is set last: whatever is written before is against the one that was.
    """
    with with_cached_comparison(done.execution.id, done.against):
        write_reports(invocation, store, reports, done.execution)
        if os.environ.get("GITHUB_ACTIONS"):
            write_github_annotations(invocation, store, done.execution, done.against)
    # stdout may be one JSON document.
    out = invocation.err if reports.on_stdout else invocation.out
    return apply_gates(out, store, done, ending.gate, ending.baseline)


def apply_gates(out: Output, store: Store, done: RunReport, gate: float | None, baseline: BaselineOptions) -> int:
    """The exit code with the gates against the baseline; prints what they say, and sets the baseline on success."""
    if baseline.whole:
        _print_comparison(out, store, done.against)
    # First, as it raises where the execution broke off: then there is nothing to measure.
    code = done.code(gate, gated=baseline.gated)
    if baseline.gated and code != INTERRUPTED and not _print_gates(out, done.against, baseline):
        code = FAILED
    if baseline.set_it:
        _set_baseline(out, store, done, success=code == 0)
    return code


def write_github_annotations(
    invocation: Invocation, store: Store, execution: ExecutionRow, against: BaselineResult | None = None
) -> None:
    """Annotations at the tests that did not pass, and the report on the job's page.

    They go to stderr, which the runner reads as well: stdout may be one JSON document. A page that can't be written
    is said, and fails nothing.
    """
    lines = lines_of_tests(execution.suite_keys)
    regressed = {
        (test.suite_key, test.test): was_and_now(test) for test in (against.regressed if against is not None else ())
    }

    def place_of(run: RunRow) -> tuple[str, int] | None:
        line = lines.get((run.suite_key, run.test_id))
        return (_in_workspace(line[0]), line[1]) if line is not None else None

    runs = store.runs_of_execution(execution.id)
    held = gating_now(store, runs)
    gates = gates_now(store, execution, runs, held)
    for line in annotation_lines(runs, place_of, regressed, held, gates):
        invocation.err.workflow_command(line)
    for line in baseline_annotations(against) if against is not None else ():
        invocation.err.workflow_command(line)
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        try:
            with Path(page).open("a", encoding="utf-8", errors="replace") as file:
                file.write(summary_md(store, execution) + "\n")
        except (OSError, AgentevalError) as error:
            invocation.note(f"the job's summary can't be written: {error}")


def _in_workspace(file: str) -> str:
    """A file as GitHub names it: from the top of the checkout, if it is in there."""
    path = Path(file).resolve()
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def lines_of_tests(suite_keys: Iterable[str]) -> TestLines:
    """Where the tests of these suites are in their present files; nothing for files that can't be read."""
    lines = {}
    for key in suite_keys:
        try:
            suite = load_suite(Path(key))
        except AgentevalError:
            continue
        for test in suite.suite.tests if suite.suite is not None else ():
            lines[key, test.id] = (str(suite.path), suite.line_of(test.id))
    return lines


# The last lines of a run: how it did against its baseline

_ATTRIBUTED = 100


def _print_comparison(out: Output, store: Store, result: BaselineResult | None) -> None:
    """The whole comparison, with who changed what."""
    if result is None:
        out.line("no test of this execution has a baseline; agenteval baseline set EXECUTION sets one")
        return
    flipped = [test for test in result.shown.tests if test.pairs][:_ATTRIBUTED]
    out.line()
    out.view(
        comparison_view(
            result.shown,
            {change.key: attribute(store, change.pairs) for change in flipped},
            options=db_option(store.path),
        )
    )


def _print_gates(out: Output, result: BaselineResult | None, baseline: BaselineOptions) -> bool:
    """Whether the gates are reached, in words; gives the answer. Without a baseline there is nothing to miss only where
    this execution is to become it."""
    if result is None:
        if baseline.set_it:
            out.line(("gates: ", "bold"), "there is no baseline yet to compare with")
        else:
            out.line(("gate not reached: ", "bad"), f"{baseline.first}: no test of this execution has a baseline")
        return baseline.set_it
    out.view(gate_view(result, baseline.gates))
    return not missed_gates(result, baseline.gates)


def _set_baseline(out: Output, store: Store, done: RunReport, *, success: bool) -> None:
    """Make a successful execution the baseline of its tests, and say so. A test that passes less often keeps its
    baseline, even within chance: else a baseline would follow each fall."""
    if not success:
        out.line(("the baseline stays unchanged: ", "warn"), "it is only set after a success")
        out.line(("set it anyway: ", "dim"), f"agenteval baseline set last{db_option(store.path)}")
        return
    worse = done.against.keeps_baseline() if done.against is not None else ()
    regressed = {(test.suite_key, test.test) for test in worse}
    tests = {(run.suite_key, run.test_id) for run in store.runs_of_execution(done.execution.id)}
    if tests - regressed:
        baseline_set = set_baseline(store, done.execution.id, tests=tests - regressed, who=current_user())
        execution = short_id(done.execution.id)
        out.line(("baseline set ", "good"), f"for {count(len(baseline_set.tests), 'test')}: execution {execution}")
        if baseline_set.left_out:
            left_out = f"{count(len(baseline_set.left_out), 'test')} without a run that has a verdict"
            out.line((f"{left_out}: the old baseline stays", "warn"))
    if ran := [test for test in worse if (test.suite_key, test.test) in tests]:
        named = one_line(kept_text(ran), 400)
        out.line(("kept the better baseline ", "warn"), f"of {count(len(ran), 'test')}: {named}")
        out.line(("set it anyway: ", "dim"), f"agenteval baseline set last{db_option(store.path)}")
