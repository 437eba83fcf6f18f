"""What `run` and `resume` do: the work behind their options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.analysis.regression_gate import has_baseline
from agenteval_tui.cli.commands.validate import print_problem
from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.gate_options import BaselineOptions
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.named_tests import Named, concerns, named, refuse_both
from agenteval_tui.cli.notify import check_address, notify
from agenteval_tui.cli.report_files import check_reports
from agenteval_tui.cli.run_detached import begin, print_detached, watch_to_end
from agenteval_tui.cli.run_finish import RunReport, report
from agenteval_tui.cli.run_inline import execute_plan, plan_of
from agenteval_tui.cli.run_options import Ending, ReportFiles, runs_apart
from agenteval_tui.cli.standard_input import STDIN
from agenteval_tui.cli.suite_arguments import paths_given, suites_given
from agenteval_tui.cli.trust_prompt import ask_permission, plan_with_permission, text_with_permission
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history.baselines import lost_baselines
from agenteval_tui.history.execution_names import meta_of
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.preview import PlanPreview, preview_plan
from agenteval_tui.runs.program_code import agents_without_cache
from agenteval_tui.runs.resume import ResumePlan, resume_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.views.plan import plan_heading, plan_view, without_cache

_NAMED = 5
"""Tests that an error names."""


def run_suites(
    invocation: Invocation,
    paths: tuple[Path, ...],
    options: PlanOptions,
    ending: Ending,
    reports: ReportFiles,
    values: dict[str, Any],
) -> int:
    """Plan and run the suites at `paths`, or print the plan; gives the exit code. `values`: the options of `run` that
    are not in `options` yet."""
    named_tests = named(paths_given(paths))
    refuse_both(named_tests, values["tests"])
    paths = named_tests.paths
    if not values["plan"]:
        # Before anything runs: a report that can't be written would be known only at the end.
        check_reports(invocation, reports)
    with invocation.store() as store:
        loaded = load_for_run(invocation, paths, values["tests"], named_tests)
        values = {**values, "tests": values["tests"] or named_tests.chosen(loaded)}
        options = options_of(store, loaded, values, options)
        plan = plan_of(store, loaded, options)
        if values["plan"]:
            return _show_plan(invocation, store, plan, as_json=reports.on_stdout)
        check_address(invocation, ending.notify, trusted=options.trust)
        _check_baselines(store, ending.baseline, plan)
        plan = text_with_permission(plan) if STDIN in paths else plan_with_permission(invocation, plan)
        if invocation.out.is_terminal and not reports.on_stdout and not invocation.quiet:
            invocation.out.line((plan_heading(preview_plan(plan, store)), "dim"))
        _note_cache(invocation, plan)
        # Its own process could not read this input.
        if STDIN in paths:
            return _execute_here(invocation, store, plan, ending, reports)
        # Its process can't ask: the request carries what was permitted here, for this once.
        options = replace(options, trust=plan.trust)
        request = ExecutionRequest(tuple(map(str, paths)), options, *_places(invocation))
        return _execute(invocation, store, plan, request, ending, reports)


def resume(
    invocation: Invocation,
    reference: str,
    options: PlanOptions,
    ending: Ending,
    reports: ReportFiles,
    *,
    errors: bool = False,
) -> int:
    """Take an execution up again; gives the exit code."""
    # As in `run_suites`: what can't be written or told is known before anything costs.
    check_reports(invocation, reports)
    check_address(invocation, ending.notify, trusted=options.trust)
    with invocation.store() as store:
        resumed, options = _plan_to_resume(invocation, store, reference, options, errors)
        for notice in resumed.notices:
            invocation.note(notice)
        plan = resumed.plan
        if not reports.on_stdout and not invocation.quiet:
            left, total = len(plan.runs), len(plan.runs) + len(plan.earlier)
            invocation.out.line((f"{one_line(plan.title)}: {left:,} of {total:,} runs are missing", "dim"))
        _note_cache(invocation, plan)
        request = ExecutionRequest((), options, *_places(invocation), resume=plan.execution_id, errors=errors)
        return _execute(invocation, store, plan, request, ending, reports)


def _note_cache(invocation: Invocation, plan: Plan) -> None:
    if plan.cache:
        for line in without_cache(agents_without_cache(plan, os.environ)):
            invocation.note(line)


def _places(invocation: Invocation) -> tuple[str, str]:
    """The history and the folder of the user's configuration, for another process."""
    return str(directories.history_file(invocation.db)), str(directories.config_dir())


def _execute(
    invocation: Invocation, store: Store, plan: Plan, request: ExecutionRequest, ending: Ending, reports: ReportFiles
) -> int:
    """Run it in this process or in one of its own (`request`), and report."""
    if not runs_apart(invocation, detach=ending.detach):
        return _execute_here(invocation, store, plan, ending, reports)
    live = begin(invocation, request, quiet=reports.on_stdout or invocation.quiet)
    if ending.detach:
        print_detached(invocation, live, len(plan.runs))
        return 0
    watched = watch_to_end(invocation, store, live, quiet=reports.on_stdout)
    if watched is None:
        return INTERRUPTED
    return _report(invocation, store, watched, ending, reports)


def _execute_here(invocation: Invocation, store: Store, plan: Plan, ending: Ending, reports: ReportFiles) -> int:
    done = execute_plan(invocation, store, plan, quiet=reports.on_stdout)
    return _report(invocation, store, done, ending, reports)


def _report(invocation: Invocation, store: Store, done: RunReport, ending: Ending, reports: ReportFiles) -> int:
    code = report(invocation, store, done, reports, ending)
    notify(invocation, ending.notify, done.execution, done.pass_rate, code)
    return code


def _check_baselines(store: Store, options: BaselineOptions, plan: Plan) -> None:
    """Raise `AgentevalError` before anything runs when a gate has nothing to measure against.

    With `--set-baseline` that is the first time, and the baseline is what comes out.
    """
    if not options.gated or options.set_it or not plan.runs:
        return
    tests = {(run.suite_key, run.ref.test) for run in plan.runs}
    if lost := lost_baselines(store, tests):
        names = abridged([test for _, test in lost], _NAMED)
        raise AgentevalError(
            f"{options.first} can't be measured: the runs of the baseline of {names} are not in the history",
            fix="import the history that has them (`agenteval db import FILE`), or set the baseline again "
            "(`agenteval baseline set EXECUTION`)",
        )
    if not has_baseline(store, tests, {run.suite_key: run.suite_name for run in plan.runs}):
        raise AgentevalError(
            f"{options.first} has nothing to compare with: none of these tests has a baseline",
            fix="set one with `agenteval baseline set EXECUTION`, or give --set-baseline too",
        )


def _show_plan(invocation: Invocation, store: Store, plan: Plan, *, as_json: bool) -> int:
    previewed = preview_plan(plan, store)
    if as_json:
        invocation.out.json(extended(PlanPreview, previewed))
    else:
        invocation.out.view(plan_view(previewed))
    return 0


def options_of(store: Store, loaded: list[LoadedSuite], values: dict[str, Any], options: PlanOptions) -> PlanOptions:
    """The options of a run, with what was given beside them."""
    same = ("tests", "tags", "agent", "variation", "repeat", "timeout", "seed", "judge", "sample", "name", "note")
    return replace(
        options,
        failed_from=last_of(store, loaded) if values["failed"] else None,
        cache=values["cache"] or "",
        early_stop=not values["no_early_stop"],
        ab=tuple(values["ab"] or ()),
        meta=meta_of(values["meta"]),
        **{name: values[name] for name in same},
    )


_MOST_LISTED = 20
"""Problems that are printed before a run is refused: one mistake is often made in each test."""


def load_for_run(
    invocation: Invocation, paths: Sequence[Path], tests: Sequence[str], named_tests: Named | None = None
) -> list[LoadedSuite]:
    """The suites at `paths`. Problems go to stderr; raises `AgentevalError` when they must be fixed first. If tests are
    named, only their problems matter.
    """
    loaded, problems = suites_given(invocation, paths)
    tests = tests or (named_tests.chosen(loaded) if named_tests is not None else ())
    errors = [
        problem
        for problem in problems
        if problem.severity == "error" and (not tests or concerns(problem, loaded, tests))
    ]
    for problem in errors[:_MOST_LISTED]:
        print_problem(invocation.err, problem)
    if errors:
        many = f"{len(errors):,} errors" if len(errors) > 1 else "an error"
        more = "; `agenteval validate` prints the rest" if len(errors) > _MOST_LISTED else ""
        raise AgentevalError(f"nothing ran: the suites have {many}", fix=f"fix the problems listed above{more}")
    if not loaded:
        raise AgentevalError(
            "there are no suites",
            where=", ".join(map(str, paths)),
            fix="a suite is a file `*.suite.yaml`, or `suite.yaml`",
        )
    return loaded


def last_of(store: Store, loaded: Sequence[LoadedSuite]) -> str:
    """The id of the last execution that ran one of these suites. Raises `AgentevalError` when there is none."""
    newest = max(
        (ids[0] for suite in loaded if (ids := store.execution_ids(RunFilter(suite_key=suite.key, counted=True)))),
        default=None,
    )
    rows = store.execution_rows([newest]) if newest is not None else []
    if not rows:
        raise AgentevalError("these suites have never run", where="--failed", fix="run them without --failed first")
    return rows[0].id


def _plan_to_resume(
    invocation: Invocation, store: Store, reference: str, options: PlanOptions, errors: bool
) -> tuple[ResumePlan, PlanOptions]:
    """What is missing, permitted, and the options with which its process comes to the same plan."""
    execution = invocation.references(store).execution(reference).id
    resumed = ask_permission(
        invocation,
        lambda allowed: resume_plan(store, execution, replace(options, trust=options.trust or allowed), errors=errors),
    )
    return resumed, replace(options, trust=resumed.plan.trust)
