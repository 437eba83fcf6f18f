"""Recording programs from Python, and replaying them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace as replaced

from agenteval_tui.agents.permission import Permission, allowed_once_by
from agenteval_tui.agents.recording.cassette import Cassette, read
from agenteval_tui.api.runs import Execution, File, Run, execution_of
from agenteval_tui.api.suites import Source, Suite, suites_of
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs import recorded_program as programs
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.tapes import tape_of
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.projects import projects_open


@allowed_once_by("trust=True")
def record(
    program: Sequence[str],
    *,
    suites: Source | Suite | Sequence[Source | Suite] = ".",
    test: str = "",
    cassette: File | None = None,
    replay: bool = False,
    live_after_miss: bool = False,
    calibrate: bool = False,
    max_cost: float | None = None,
    judge: str | None = None,
    mcp_config: File | None = None,
    trust: bool = False,
    db: File | None = None,
) -> Execution:
    """Run a program behind a proxy that keeps what it asks of models; its one run is in the history.

    `program`: the words of its command; it has this process' terminal, and runs in the current folder. `test`: the test
    of `suites` whose criteria grade it; "": nothing does. `cassette`: where requests and answers are kept; with
    `replay` it answers them, and no server is asked, but with `live_after_miss` from the first request on that is not
    in it. `max_cost`: US dollars, judges included. `calibrate`: the program runs a second time on the recorded answers,
    to find what varies. `mcp_config`: the file in which a word of `program` names its MCP servers; they are recorded,
    too. `trust`: functions of the suite's folder may grade, and the program gets the
    variables of the folder's `.env`.

    Raises `AgentevalError`: the program can't be started, there is no such test, a cassette can't be read.
    """
    path = None if cassette is None else Path(cassette)
    if replay and path is None:
        raise AgentevalError("there is no cassette to replay", fix="give cassette=FILE")
    started = _program(program, max_cost, mcp_config)
    before = read(path) if replay and path is not None else None
    if before is not None:
        started = replaced(started, cassette=before, on_miss="live" if live_after_miss else "error")
    return recorded(
        started,
        programs.permission_of(started, trusted=trust),
        suites_of(suites) if test else (),
        test=test,
        cassette=path,
        before=before,
        calibrate=calibrate,
        judge=judge,
        trust=trust,
        place=directories.history_file(db),
    )


def recorded(
    started: programs.Program,
    permission: Permission,
    suites: Sequence[Suite],
    *,
    place: Path,
    test: str = "",
    cassette: Path | None = None,
    before: Cassette | None = None,
    calibrate: bool = False,
    judge: str | None = None,
    trust: bool = False,
) -> Execution:
    """As `record`, of a program that was permitted. `before`: what the `cassette` had. `place`: the history's file."""
    loaded = [suite.loaded for suite in suites]
    with Store.open(place) as store:
        plan = None
        if test:
            agents = load_agents(directories.config_dir())
            plan = programs.plan_for(loaded, test, started, user_agents=agents, judge=judge, trust=trust)
            plan = replaced(plan, permission=check_trust(plan))
        recording = run_in_thread(lambda: programs.record(started, permission))
        # What goes wrong from here on is raised last: the answers were paid for, and are kept first.
        failed: AgentevalError | None = None
        try:
            if calibrate and recording.exchanges and not recording.cut_off:
                first = recording
                recording = run_in_thread(lambda: programs.calibrated(started, permission, first))
        except AgentevalError as error:
            failed = error
        try:
            if cassette is not None:
                programs.keep_cassette(cassette, before, recording)
        except AgentevalError as error:
            failed = error
        if plan is None:
            execution = programs.store_ungraded(store, started, recording)
        else:
            graded, final = plan, recording
            run_in_thread(lambda: programs.store_graded(store, graded, final, started.max_cost))
            execution = plan.execution_id
        if failed is not None:
            raise failed
        return execution_of(store, store.execution(execution), place)


@allowed_once_by("trust=True")
def replay(
    run: Run | str,
    program: Sequence[str],
    *,
    max_cost: float | None = None,
    mcp_config: File | None = None,
    trust: bool = False,
    db: File | None = None,
) -> Execution:
    """Run a program on the recording of a run (`run` can be a name or an id). The recording answers until the first
    request that differs; from there, requests go to the servers, until `max_cost` US dollars are spent (judges
    included).

    The result is a fork of the run: it is graded by the same criteria, and no statistics count it. Raises
    `AgentevalError` if there is no such run, or if its requests were not kept.
    """
    started = _program(program, max_cost, mcp_config)
    place = run.db if isinstance(run, Run) else directories.history_file(db)
    return replayed(run, started, programs.permission_of(started, trusted=trust), trust=trust, place=place)


def replayed(
    run: Run | str, started: programs.Program, permission: Permission, *, place: Path, trust: bool = False
) -> Execution:
    """Like `replay`, for a program that has its permission already. `place`: the history's file."""
    with Store.open(place) as store:
        row = store.run(run.id) if isinstance(run, Run) else References(store, projects_open()).run(run)
        tape = tape_of(store, row)
        # Live behind the first request that differs: what the program does then is the question.
        started = programs.with_input(replaced(started, cassette=tape, on_miss="live"), store, row)
        agents = load_agents(directories.config_dir())
        # Before the program runs: what needs trust is asked before anything is paid for.
        plan = programs.replay_plan(store, row, started, user_agents=agents, trust=trust)
        recording = run_in_thread(lambda: programs.record(started, permission))
        origin = programs.origin_of(row, recording)
        if plan is None:
            execution = programs.store_ungraded(store, started, recording, origin=origin, of=row)
        else:
            graded = programs.as_fork(plan, origin)
            run_in_thread(lambda: programs.store_graded(store, graded, recording, started.max_cost))
            execution = plan.execution_id
        return execution_of(store, store.execution(execution), place)


def _program(words: Sequence[str], max_cost: float | None, mcp_config: File | None) -> programs.Program:
    if isinstance(words, str) or not words:
        raise AgentevalError("a program is a list of words", fix='write ["python", "agent.py"]')
    servers = None if mcp_config is None else Path(mcp_config)
    return replaced(programs.program_in(Path.cwd(), words), max_cost=max_cost, mcp_config=servers)
