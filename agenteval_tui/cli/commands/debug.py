"""`agenteval debug`: one run in the foreground, with the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from agenteval_tui.agents.recording.cassette import Cassette
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.run_suites import load_for_run
from agenteval_tui.cli.trust_prompt import plan_with_permission
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.debug import make_run, program_for
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_untrusted_plan
from agenteval_tui.runs.recorded_program import requests_in
from agenteval_tui.runs.tapes import tape_of
from agenteval_tui.suites.agents_file import load_agents

_NO_TERMINAL = "a debugger needs a terminal"


@click.command("debug")
@click.argument("what", metavar="TEST[#N]|RUN", shell_complete=shell_completion.runs)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--listen",
    type=click.IntRange(0, 65_535),
    is_flag=False,
    flag_value=5678,
    metavar="[PORT]",
    help="Wait until an editor attaches with debugpy (default: port 5678), instead of pdb in this terminal.",
)
@click.option(
    "--agent", metavar="NAME", help="Use this agent instead of the test's.", shell_complete=shell_completion.agents
)
@click.option("--live", is_flag=True, help="Of a recorded run: ask the model servers, not its recording.")
@click.option("--trust", is_flag=True, help="Allow the programs and Python functions of the suite's folder.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    what: str,
    paths: tuple[Path, ...],
    listen: int | None,
    agent: str | None,
    live: bool,
    trust: bool,
) -> int:
    """Run a test once in this terminal, in the project's environment, to debug the agent's own code.

    `breakpoint()` stops there, and an exception opens pdb where it was raised, or the debugger that PYTHONBREAKPOINT
    names. TEST#N is the N-th repetition (its seed). With the id of a run that was recorded, the recorded answers of its
    models are served, so a session costs nothing and repeats exactly; from the first request that differs, the servers
    are asked. The run isn't graded or stored: what a debugger changes says nothing about the agent.

    An agent of the kind `command` gets its task on standard input, and keeps the terminal for its output. Hooks and
    services of the suite are not started. The exit code is 0 if the agent ended, 1 if it raised.
    """
    if listen is None and not sys.stdin.isatty():
        raise AgentevalError(_NO_TERMINAL, fix="use --listen, and attach your editor; or start this in a terminal")
    row, tape = _recorded(invocation, what)
    test, repetition = (row.test_id, row.repetition) if row is not None else _split(what)
    if row is not None:
        paths = (Path(row.suite_key),)
        agent = agent or row.agent or None
    loaded = load_for_run(invocation, paths, (test,))
    options = PlanOptions(
        tests=(test,),
        agent=agent,
        variation=row.variation or None if row is not None else None,
        repeat=repetition,
        trust=trust,
    )
    plan = make_untrusted_plan(loaded, options, user_agents=load_agents(directories.config_dir()))
    run = _run_to_debug(plan.runs, repetition, row)
    plan = plan_with_permission(invocation, replace(plan, runs=(run,)))
    program = program_for(run, plan.permission, tape=None if live else tape, listen=listen)
    if tape is not None and not live and row is not None:
        requests = count(requests_in(tape), "request")
        invocation.note(f"the recording of run {short_id(row.id)} answers ({requests}); --live asks the servers")
    if run.around is not None:
        invocation.note("hooks and services of the suite are not started: start what the agent needs by hand")
    invocation.out.flush()
    code, session = run_to_end(make_run(program, plan.permission))
    if session.went_live and program.cassette is not None:
        invocation.note(f"the servers were asked from request {(session.missed_at or 0) + 1} on")
    # The program's own code could be taken for one of ours: 2 is wrong use.
    return code if code in (0, 1, 3) else 1


def _recorded(invocation: Invocation, what: str) -> tuple[RunRow | None, Cassette | None]:
    """The run that this is the id of, and its recording if it has one."""
    with invocation.store() as store:
        try:
            row = store.run(what)
        except AgentevalError:
            return None, None
        try:
            return row, tape_of(store, row)
        except AgentevalError:
            # Nothing was recorded of it: the model servers are asked.
            return row, None


def _split(what: str) -> tuple[str, int]:
    test, mark, number = what.rpartition("#")
    if not mark:
        return what, 1
    if not test or not number.isdecimal() or not int(number):
        raise AgentevalError(f"{what!r} is not a test", fix="write TEST or TEST#N, N from 1, or the id of a run")
    return test, int(number)


def _run_to_debug(runs: Sequence[RunPlan], repetition: int, row: RunRow | None) -> RunPlan:
    for run in runs:
        if run.ref.repetition == repetition and (row is None or run.ref.row == row.row):
            return run
    raise AgentevalError(f"repetition {repetition} is not among the {count(len(runs), 'run')} of this test")
