"""What `record` does: the work behind its options."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.agents.recording.capture import NOTHING_SEEN
from agenteval_tui.agents.recording.cassette import Cassette, Volatile, read
from agenteval_tui.agents.recording.journal import Journal, Journals, journals_of
from agenteval_tui.agents.recording.mcp_config import servers_over_http
from agenteval_tui.agents.recording.playback import PaidAnswers
from agenteval_tui.analysis.drafted_test import GoodRuns, make_test
from agenteval_tui.cli.exit_codes import INTERRUPTED, exit_code
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.run_suites import load_for_run
from agenteval_tui.cli.trust_prompt import ask_permission, plan_with_permission
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, dollars
from agenteval_tui.core.phrasing import listed
from agenteval_tui.formats.documents.recording import RecordedProgram, VolatilePart, miss_document
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.fork.model import ForkOrigin
from agenteval_tui.runs.handshake import Handshake, handshake
from agenteval_tui.runs.live_recording import LiveRecording
from agenteval_tui.runs.recorded_program import (
    STOPPED,
    Program,
    Recording,
    Surroundings,
    agent_config,
    as_fork,
    calibrated,
    keep_cassette,
    live_recording,
    origin_of,
    permission_of,
    plan_for,
    program_in,
    record,
    replay_plan,
    requests_in,
    store_graded,
    store_ungraded,
    surroundings_of,
    ungraded,
    with_input,
)
from agenteval_tui.runs.tapes import tape_of
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.transcripts.observed import ASKED_PAST
from agenteval_tui.views.cost import judges_view
from agenteval_tui.views.execution import ended_view, next_view
from agenteval_tui.views.model_request import changes_text

_STDERR = 2
T = TypeVar("T")
_MISSES = 3  # that are printed


class _Written(Struct, frozen=True):
    """What was written into files, and what it is a replay of."""

    cassette: Path | None = None
    volatile: tuple[Volatile, ...] = ()
    suite: Path | None = None
    test: str | None = None
    fork_of: RunRow | None = None
    """The run that was replayed, and the last `step` of it that came from its recording."""
    step: int | None = None
    recorded: int = 0
    """How many requests of models its recording has."""


def record_program(invocation: Invocation, options: Mapping[str, Any]) -> int:
    """Record or replay a program; gives the exit code."""
    with handshake(options["ready"]) as started:
        return _record_program(invocation, options, started)


def _record_program(invocation: Invocation, options: Mapping[str, Any], started: Handshake) -> int:
    _check(options)
    loaded: Sequence[LoadedSuite] = ()
    if options["test"] is not None:
        loaded = load_for_run(invocation, () if options["suite"] is None else (options["suite"],), (options["test"],))
    before, left = _earlier_recording(invocation, options)
    paid = left.exchanges
    cassette = None if before is None else _with_volatile(before, options)
    program = _program(options, cassette, live=options["live_after_miss"] or not options["replay"])
    _name_servers_over_http(invocation, program)
    find_program(program.argv[0], program.cwd, program.env)  # before anything says that it runs
    permission = _permission(invocation, options, program)
    with invocation.store() as store, ExitStack() as stack:
        plan = None
        if options["test"] is not None:
            agents = load_agents(directories.config_dir())
            plan = plan_for(
                loaded, options["test"], program, user_agents=agents, judge=options["judge"], trust=options["trust"]
            )
            plan = plan_with_permission(invocation, plan)
        writes = options["cassette"] is not None and (not options["replay"] or options["live_after_miss"])
        journal = None
        if writes:
            kept = before or Cassette()
            # With what was paid for before: should this one be cut off, too, the next has it still.
            journal = Journal(options["cassette"], replace(kept, exchanges=(*kept.exchanges, *paid)), left.left)
            stack.callback(journal.close)

        async def recorded(live: LiveRecording) -> tuple[Recording, _Written]:
            recording = await record(
                program, permission, journal=journal, paid=PaidAnswers(paid, program.varies), live=live
            )
            failed: AgentevalError | None = None
            # A second run of the program is compared with a whole one.
            if options["calibrate"] and recording.exchanges and not recording.cut_off:
                try:
                    recording = await calibrated(program, permission, recording)
                except AgentevalError as error:
                    failed = error
            written, kept = _Written(volatile=recording.volatile if options["calibrate"] else ()), True
            try:
                if options["cassette"] is not None and keep_cassette(options["cassette"], before, recording):
                    written = replace(written, cassette=options["cassette"])
            except AgentevalError as error:
                failed, kept = error, False
            if plan is None:
                store_ungraded(store, program, recording, ids=(live.execution, live.run))
                outcome = ungraded(recording)
            else:
                outcome = await store_graded(store, plan, recording, options["max_cost"])
            live.end(recording.transcript, outcome, recording.duration_ms)
            # A journal that is left is where the next recording finds what was paid for.
            if journal is not None and kept and not recording.cut_off:
                journal.done()
            # What was paid for is stored first: whatever can't be made of it is said then.
            try:
                if failed is not None:
                    raise failed
                if options["new"]:
                    suite, test = _write_test(options["suite"], program, recording)
                    written = replace(written, suite=suite, test=test)
            except AgentevalError:
                invocation.note(
                    f"the recording is stored: agenteval show {short_id(live.execution)}{invocation.db_option} shows it"
                )
                raise
            return recording, written

        live = live_recording(program, plan, handshake=started)
        recording, written = run_to_end(_record_watched(live, recorded))
        return _report(invocation, store, live.execution, recording, written, as_json=options["as_json"])


async def _record_watched(live: LiveRecording, recorded: Callable[[LiveRecording], Awaitable[T]]) -> T:
    """What `recorded` gives; whoever watches the recording sees it, until it is stored."""
    async with live:
        return await recorded(live)


def _earlier_recording(invocation: Invocation, options: Mapping[str, Any]) -> tuple[Cassette | None, Journals]:
    """The cassette that is replayed, and what servers answered beyond it when such a recording was cut off (it was
    killed, say): what was paid for is not asked for again."""
    path: Path | None = options["cassette"]
    if path is None:
        return None, Journals()
    if path.is_dir():
        raise AgentevalError("this is a folder", where=str(path), fix="name a file in it")
    before = read(path) if options["replay"] else None
    if options["replay"] and not options["live_after_miss"]:
        return before, Journals()
    journals = journals_of(path)
    if journals.running and before is None:
        raise AgentevalError(
            "another recording into this cassette is running, and would overwrite this one's",
            where=str(path),
            fix="wait until it has ended, or name another file",
        )
    if journals.running:
        others = count(journals.running, "other recording")
        verb = "adds" if journals.running == 1 else "add"
        invocation.note(f"{others} {verb} to {one_line(path.name, 100)} now: its answers are not used yet")
    rest = list(journals.exchanges)
    for exchange in () if before is None else before.exchanges:
        # A journal begins with the exchanges of its cassette. One is taken out for each: two alike were answered twice.
        if exchange in rest:
            rest.remove(exchange)
    return before, replace(journals, exchanges=tuple(rest))


def replay_program(invocation: Invocation, options: Mapping[str, Any]) -> int:
    """Replay a stored run with a program, live from its first changed request; gives the exit code."""
    with handshake(options["ready"]) as started, invocation.store() as store:
        row = invocation.references(store).run(options["run"])
        tape = tape_of(store, row)
        program = with_input(_program(options, _with_volatile(tape, options), live=True), store, row)
        agents = load_agents(directories.config_dir())
        around = _surroundings(store, row, agents) if options["as_agent"] else None
        program = program if around is None else around.around(program)
        _name_servers_over_http(invocation, program)
        # As in `_record_program`.
        find_program(program.argv[0], program.cwd, program.env)
        permission = _permission(invocation, options, program)
        plan = ask_permission(
            invocation,
            lambda allowed: replay_plan(
                store, row, program, user_agents=agents, trust=options["trust"] or allowed, around=around
            ),
        )

        async def recorded(live: LiveRecording) -> tuple[Recording, ForkOrigin]:
            recording = await record(program, permission, live=live)
            origin = origin_of(row, recording)
            if plan is None:
                store_ungraded(store, program, recording, origin=origin, of=row, ids=(live.execution, live.run))
                outcome = ungraded(recording)
            else:
                outcome = await store_graded(store, as_fork(plan, origin), recording, options["max_cost"])
            live.end(recording.transcript, outcome, recording.duration_ms)
            return recording, origin

        live = live_recording(program, plan, of=row, handshake=started)
        recording, origin = run_to_end(_record_watched(live, recorded))
        written = _Written(fork_of=row, step=origin.step, recorded=requests_in(tape))
        return _report(invocation, store, live.execution, recording, written, as_json=options["as_json"])


def _surroundings(store: Store, row: RunRow, agents: Mapping[str, AgentConfig]) -> Surroundings:
    surroundings = surroundings_of(store, row, agents)
    if surroundings is None:
        raise AgentevalError(
            f"the folder of the program of run {short_id(row.id)} is unknown or gone",
            where=f"run {row.id}",
            fix="leave out --as-agent, and start the program in its folder",
        )
    return surroundings


def _with_volatile(cassette: Cassette, options: Mapping[str, Any]) -> Cassette:
    """The cassette with what was said to vary."""
    more = tuple([Volatile("*", name) for name in options["volatile"]])
    return replace(cassette, volatile=(*cassette.volatile, *more))


def _check(options: Mapping[str, Any]) -> None:
    """Raise if options contradict each other."""
    if options["replay"] and options["cassette"] is None:
        raise click.UsageError("--replay needs --cassette FILE")
    for name in ("live_after_miss", "ignore_system", "pace", "volatile"):
        if options[name] and not options["replay"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --replay")
    if options["calibrate"] and options["replay"]:
        raise click.UsageError("--calibrate needs a new recording: leave out --replay")
    if options["new"] and options["test"] is not None:
        raise click.UsageError("give --test for an existing test, or --new for a new one")
    if options["suite"] is not None and not options["new"] and options["test"] is None:
        raise click.UsageError("--suite needs --test or --new")


def _program(options: Mapping[str, Any], cassette: Cassette | None, *, live: bool) -> Program:
    """The program to start. `live`: from the first request that is not in the cassette, servers answer."""
    servers = {}
    for upstream in options["upstream"]:
        name, equals, address = upstream.partition("=")
        if not equals or not address:
            raise click.UsageError(f"--upstream {upstream}: write NAME=URL")
        servers[name] = address
    return replace(
        program_in(Path.cwd(), options["program"], given_upstreams=servers),
        port=options["port"],
        cassette=cassette,
        on_miss="live" if live else "error",
        system=not options["ignore_system"],
        pace=options["pace"],
        max_cost=options["max_cost"],
        stdout=_STDERR if options["as_json"] else None,
        mcp_config=options["mcp_config"],
    )


def _permission(invocation: Invocation, options: Mapping[str, Any], program: Program) -> Permission:
    """The permission to start it, for which the user may be asked at the terminal. Raises `NotTrustedError`."""
    if program.brought.refused:
        names = one_line(listed(program.brought.refused), 200)
        file = one_line(listed([str(brought_file) for brought_file in program.brought.files]), 200)
        invocation.note(f"not taken from {file}, because programs load code through it: {names}")
    return ask_permission(invocation, lambda trusted: permission_of(program, trusted=trusted or options["trust"]))


def _name_servers_over_http(invocation: Invocation, program: Program) -> None:
    if program.mcp_config is not None and (others := servers_over_http(program.cwd / program.mcp_config)):
        invocation.note(
            f"{listed(others)} {'is' if len(others) == 1 else 'are'} asked over HTTP: only MCP servers over stdio "
            "are recorded; for others, the transcript has the results that the model gets"
        )


def _write_test(path: Path | None, program: Program, recording: Recording) -> tuple[Path, str]:
    """Add a test of the recording to the suite at `path`, which is made where it is not there. Raises `AgentevalError`
    where nothing was asked."""
    if not recording.prompt:
        raise AgentevalError("no test was made: the program asked no model", fix=NOTHING_SEEN.what)
    drafted_test = make_test(GoodRuns((recording.transcript,)), path, new_agents={"program": agent_config(program)})
    return drafted_test.path, drafted_test.id


def _report(
    invocation: Invocation, store: Store, execution: str, recording: Recording, written: _Written, *, as_json: bool
) -> int:
    row = store.execution(execution)
    # A recording is one run, whatever its program asked.
    (run,) = store.runs_of_execution(execution)
    replies, judged = store.judge_usage(execution)
    out = invocation.out
    if as_json:
        cost = store.transcript(run.id).usage.cost
        out.json(
            RecordedProgram(
                execution=execution,
                run=run.id,
                outcome=run.status,
                score=run.score,
                exit_code=recording.exit_code,
                requests=recording.requests,
                served=recording.served,
                live=recording.live,
                cost=cost,
                judge_cost=judged.cost if replies else 0.0,
                cassette=None if written.cassette is None else str(written.cassette),
                misses=tuple(map(miss_document, recording.misses)),
                volatile=tuple([extended(VolatilePart, part) for part in written.volatile]),
                suite=None if written.suite is None else str(written.suite),
                test=written.test,
                fork_of=None if written.fork_of is None else written.fork_of.id,
                step=written.step,
            )
        )
        return _code(run.status, recording)
    sys.stdout.flush()
    requests, calls = recording.requests, len(recording.transcript.tool_calls)
    through = f" ({recording.served:,} through MCP servers)" if recording.served else ""
    parts = [count(requests, "request"), count(calls, "tool call") + through]
    if from_cassette := sum(
        not (exchange.live or exchange.refused or exchange.answer.error) for exchange in recording.exchanges
    ):
        parts.append(f"{from_cassette} answered from the cassette")
    if recording.spent:
        least = "at least " if recording.unpriced or recording.uncounted else ""
        parts.append(f"{least}{dollars(recording.spent)}")
    out.line()
    out.line(("recorded ", "dim"), ", ".join(parts))
    if written.fork_of is not None:
        _report_fork(invocation, written.fork_of, run, recording, written.recorded)
    for miss in recording.misses[:_MISSES] if written.fork_of is None else ():
        out.line((one_line(miss.description, 600), "warn"))
    if len(recording.misses) > _MISSES:
        out.line((f"and {len(recording.misses) - _MISSES} more", "dim"))
    if not requests:
        out.line(("no request arrived: ", "warn"), NOTHING_SEEN.what)
    for note in recording.transcript.notes:
        if note.code in ("unrecorded", ASKED_PAST):
            out.line((one_line(note.description, 200), "warn"))
    if recording.continued:
        kept_answers = f"{count(recording.continued, 'answer')} kept from a recording that was cut off"
        invocation.note(f"{kept_answers}: not paid for again")
    if recording.unpriced:
        invocation.note(f"the price of {one_line(', '.join(recording.unpriced), 200)} is not known")
    for model, times in sorted(recording.uncounted.items()):
        answers = count(times, "answer")
        invocation.note(f"the cost of {answers} of {one_line(model, 100)} is unknown: no count of tokens came")
    for part in written.volatile:
        out.line(("varies: ", "dim"), one_line(part.at, 120), (f" ({part.like})", "dim"))
    if written.cassette is not None:
        out.line(("wrote ", "dim"), one_line(str(written.cassette)))
    if written.suite is not None:
        out.line(("new test ", "dim"), f"{one_line(str(written.test))} in {one_line(str(written.suite))}")
    if run.status != "skipped":
        out.view(ended_view(row, [run]))
        out.view(judges_view(replies, judged))
        out.view(next_view(row, invocation.db_option))
    elif written.fork_of is None:
        out.view(ended_view(row, [run]))
        out.line(
            (f"agenteval show {short_id(run.id)}{invocation.db_option}", "bold"),
            " shows it",
            ("; --test grades it", "dim"),
        )
    return _code(run.status, recording)


def _report_fork(invocation: Invocation, was: RunRow, run: RunRow, recording: Recording, recorded: int) -> None:
    """Print the first request of a replay that is not in its recording (`recorded` requests), and the run's outcome."""
    out = invocation.out
    requests, served = recording.requests, sum(exchange.live for exchange in recording.exchanges)
    if recording.missed_at is None:
        if requests and requests < recorded:
            out.line(
                f"it ended after {requests} of {count(recorded, 'recorded request')}, all answered from the recording"
            )
        elif requests and served:
            calls = count(served, "request")
            out.line(f"the model was not asked: only MCP servers that are not in the recording answered {calls}")
        elif requests:
            out.line("nothing changed: every request was answered from the recording")
    else:
        changed = recording.misses[0]
        out.line(f"request {recording.missed_at + 1} is different: ", ("live from here on", "bold"))
        if changed.context:
            out.line("  the model is given another context: ", changes_text(changed.context))
        for difference in changed.differences[:_MISSES]:
            out.line("  ", one_line(difference.description, 300))
        if len(changed.differences) > _MISSES:
            out.line((f"  and {len(changed.differences) - _MISSES} more", "dim"))
    if run.status != "skipped":
        out.line(f"the run was {was.status}; now it is {run.status}")
    out.line(
        (f"agenteval show {short_id(was.id)} --diff {short_id(run.id)}{invocation.db_option}", "bold"),
        " compares the two",
    )


def _code(status: str, recording: Recording) -> int:
    if recording.exit_code == STOPPED:
        return INTERRUPTED
    # What the cassette does not have was answered with an error: what a program makes of that is no verdict.
    if recording.misses and not recording.went_live:
        status = "error"
    return exit_code({status: 1}, None)
