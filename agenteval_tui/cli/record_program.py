"""What `record` does: the work behind its options."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.recording.cassette import Cassette, read, write
from agenteval_tui.agents.recording.matching import Volatile, volatile_parts
from agenteval_tui.agents.recording.providers import upstreams
from agenteval_tui.cli.exit_codes import exit_code
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.run_suites import load_for_run
from agenteval_tui.cli.trust_prompt import plan_with_permission
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.documents.recording import RecordedProgram, miss_document, volatile_document
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.recorded_program import (
    NOT_SEEN,
    Program,
    Recording,
    permission_of,
    plan_for,
    record,
    record_again,
    store_graded,
    store_ungraded,
    test_of,
)
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.editing import add_test, free_id
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.new_suite import write_suite
from agenteval_tui.views.execution import ended_view, next_view

NEW_SUITE = Path("recorded.suite.yaml")
_STDERR = 2
_MISSES = 3  # that are printed


class _Written(Struct, frozen=True):
    """What was written into files."""

    cassette: Path | None = None
    volatile: tuple[Volatile, ...] = ()
    suite: Path | None = None
    test: str | None = None


def record_program(invocation: Invocation, given: Mapping[str, Any]) -> int:
    """Record or replay a program; gives the exit code."""
    _check(given)
    loaded: Sequence[LoadedSuite] = ()
    if given["test"] is not None:
        loaded = load_for_run(invocation, () if given["suite"] is None else (given["suite"],), (given["test"],))
    program = _program(given)
    permission = permission_of(program)
    with invocation.store() as store:
        plan = None
        if given["test"] is not None:
            agents = load_agents(directories.config_dir())
            plan = plan_for(
                loaded, given["test"], program, user_agents=agents, judge=given["judge"], trust=given["trust"]
            )
            plan = plan_with_permission(invocation, plan)
        recording = run_to_end(record(program, permission))
        volatile = program.cassette.volatile if program.cassette is not None else ()
        if given["calibrate"] and recording.exchanges:
            volatile = volatile_parts(run_to_end(record_again(program, permission, recording)).pairs)
        written = _write(given, program, recording, volatile)
        execution = _store(store, program, plan, recording)
        return _report(invocation, store, execution, recording, written, as_json=given["as_json"])


def _check(given: Mapping[str, Any]) -> None:
    """Raise where options do not go together."""
    if given["replay"] and given["cassette"] is None:
        raise click.UsageError("--replay needs --cassette FILE")
    for name in ("live_after_miss", "ignore_system", "pace"):
        if given[name] and not given["replay"]:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --replay")
    if given["calibrate"] and (given["replay"] or given["cassette"] is None):
        raise click.UsageError(
            "--calibrate writes into the cassette that is recorded: give --cassette FILE, no --replay"
        )
    if given["new"] and given["test"] is not None:
        raise click.UsageError("give --test for a test that is there, or --new for another one")
    if given["suite"] is not None and not given["new"] and given["test"] is None:
        raise click.UsageError("--suite goes with --test or --new")


def _program(given: Mapping[str, Any]) -> Program:
    env = environment_for(Path.cwd(), os.environ)
    servers = {}
    for one in given["upstream"]:
        name, equals, address = one.partition("=")
        if not equals or not address:
            raise click.UsageError(f"--upstream {one}: write NAME=URL")
        servers[name] = address
    return Program(
        argv=tuple(given["program"]),
        cwd=Path.cwd(),
        env=env,
        upstreams=upstreams(env, servers),
        port=given["port"],
        cassette=read(given["cassette"]) if given["replay"] else None,
        on_miss="live" if given["live_after_miss"] else "error",
        system=not given["ignore_system"],
        pace=given["pace"],
        max_cost=given["max_cost"],
        stdout=_STDERR if given["as_json"] else None,
    )


def _write(
    given: Mapping[str, Any], program: Program, recording: Recording, volatile: tuple[Volatile, ...]
) -> _Written:
    """The cassette and the test, where they are wanted."""
    written = _Written(volatile=volatile if given["calibrate"] else ())
    path = given["cassette"]
    if path is not None and recording.exchanges and (program.cassette is None or recording.live):
        before = () if program.cassette is None else program.cassette.exchanges
        new = tuple([one for one in recording.exchanges if one.live])
        write(path, Cassette((*before, *new), volatile))
        written = replace(written, cassette=path)
    if given["new"]:
        suite, test = _write_test(given["suite"] or NEW_SUITE, program, recording)
        written = replace(written, suite=suite, test=test)
    return written


def _write_test(path: Path, program: Program, recording: Recording) -> tuple[Path, str]:
    """Add a test of the recording to the suite at `path`, which is made where it is not there."""
    test = test_of(recording, "")
    if path.exists():
        loaded = load_suite(path)
        if loaded.suite is None:
            raise AgentevalError("this suite can't be read", where=str(path), mend="agenteval validate lists why")
        test["id"] = free_id(loaded, str(test["id"]))
        add_test(loaded, test)
    else:
        agent = {"kind": "command", "command": list(program.argv)}
        write_suite(path, path.name.removesuffix(".suite.yaml"), "program", {"program": agent}, test)
    return path, str(test["id"])


def _store(store: Store, program: Program, plan: Plan | None, recording: Recording) -> str:
    if plan is None:
        return store_ungraded(store, program, recording)
    run_to_end(store_graded(store, plan, recording))
    return plan.execution_id


def _report(
    invocation: Invocation, store: Store, execution: str, recording: Recording, written: _Written, *, as_json: bool
) -> int:
    row = store.execution(execution)
    (run,) = store.runs_of_execution(execution)
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
                requests=len(recording.exchanges),
                live=recording.live,
                cost=cost,
                cassette=None if written.cassette is None else str(written.cassette),
                misses=tuple(map(miss_document, recording.misses)),
                volatile=tuple(map(volatile_document, written.volatile)),
                suite=None if written.suite is None else str(written.suite),
                test=written.test,
            )
        )
        return _code(run.status, recording)
    sys.stdout.flush()
    asked, calls = len(recording.exchanges), len(recording.transcript.tool_calls)
    parts = [count(asked, "request"), count(calls, "tool call")]
    if from_cassette := asked - recording.live - (len(recording.misses) if not recording.live else 0):
        parts.append(f"{from_cassette} answered from the cassette")
    if recording.spent:
        parts.append(f"${recording.spent:.4f}")
    out.line()
    out.line(("recorded ", "dim"), ", ".join(parts))
    for miss in recording.misses[:_MISSES]:
        out.line((one_line(miss.said, 600), "warn"))
    if len(recording.misses) > _MISSES:
        out.line((f"and {len(recording.misses) - _MISSES} more", "dim"))
    if not asked:
        out.line(("no request was seen: ", "warn"), NOT_SEEN)
    if recording.unpriced:
        invocation.note(f"the price of {one_line(', '.join(recording.unpriced), 200)} is not known")
    for part in written.volatile:
        out.line(("varies: ", "dim"), one_line(part.at, 120), (f" ({part.like})", "dim"))
    if written.cassette is not None:
        out.line(("wrote ", "dim"), one_line(str(written.cassette)))
    if written.suite is not None:
        out.line(("new test ", "dim"), f"{one_line(str(written.test))} in {one_line(str(written.suite))}")
    out.view(ended_view(row, [run]))
    if run.status == "skipped":
        out.line((f"agenteval show {short_id(run.id)}", "bold"), " shows it", ("; --test grades it", "dim"))
    else:
        out.view(next_view(row))
    return _code(run.status, recording)


def _code(status: str, recording: Recording) -> int:
    if recording.misses and not recording.live:
        status = "error"
    return exit_code({status: 1}, None)
