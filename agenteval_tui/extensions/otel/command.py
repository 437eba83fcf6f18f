"""`agenteval listen`: traces of running programs become runs as they arrive."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from agenteval_tui.analysis.drafted_test import check_place, make_test, stored_runs
from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import outcome_sign
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.otel.document import HeardRunDocument
from agenteval_tui.extensions.otel.listener import HeardRun, Listener, ListenerSettings, ListeningOptions, loss_notes
from agenteval_tui.extensions.otel.protobuf import require_protobuf
from agenteval_tui.extensions.otel.receiver import Receiver
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria_file import read_criteria
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.handshake import Handshake, handshake
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.transcripts.observed import calls_phrase


@click.command("listen")
@declared(ListeningOptions, "port")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; with any other address, other machines can send too.",
)
@click.option(
    "--criteria",
    "criteria_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Grade each run with these criteria (YAML or JSON); no judge is asked.",
)
@declared(ListeningOptions, "most", "--runs")
@declared(ListeningOptions, "quiet_after")
@declared(ListeningOptions, "patience")
@click.option(
    "--save-test",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="At the end, add a test for each question to this suite, with suggested criteria, like make-test.",
)
@click.option("--title", default="", help="The title of the execution (default: the address).")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document per run.")
@click.option("--ready", type=int, default=-1, hidden=True)  # of `runs.client.start_verb`
@common_options
@pass_invocation
def command(invocation: Invocation, /, **options: Any) -> int:
    """Receive OpenTelemetry traces (OTLP over HTTP), and store each trace as a run. Needs the extra `otel`.

    Point any program at it: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318. It reads spans in the GenAI conventions,
    as OpenInference and Traceloop send them, and as frameworks write them. The app shows the runs while they grow.
    Spans that have nothing to do with a model, an agent or a tool are left out.
    """
    return _listen_until_stopped(invocation, ListenArguments(**options))


class ListenArguments(ListeningOptions, frozen=True, kw_only=True):
    """The options of `agenteval listen`."""

    host: str
    criteria_file: Path | None
    save_test: Path | None
    title: str
    as_json: bool
    ready: int = -1
    """The file descriptor for the message that this process listens; -1: the process that started it waits for none."""


def _listen_until_stopped(invocation: Invocation, arguments: ListenArguments) -> int:
    """Listen until somebody stops it. Returns the exit code."""
    with handshake(arguments.ready) as started:
        require_protobuf()
        if arguments.save_test is not None:
            check_place(arguments.save_test)
        criteria = tuple(read_criteria(arguments.criteria_file)) if arguments.criteria_file is not None else ()
        with invocation.store() as store:
            return run_to_end(_listen(invocation, store, arguments, criteria, started))


async def _listen(
    invocation: Invocation,
    store: Store,
    arguments: ListenArguments,
    criteria: tuple[CriterionSpec, ...],
    started: Handshake,
) -> int:
    def print_run(heard: HeardRun) -> None:
        if arguments.as_json:
            invocation.out.json_line(_document(heard))
        else:
            _print(invocation, heard)

    receiver = Receiver(lambda spans, events: listener.take(spans, events))
    await receiver.start(arguments.port, arguments.host)
    title = arguments.title or f"traces at {receiver.address.partition('://')[2]}"
    options = ListenerSettings(criteria, arguments.quiet_after, arguments.patience, arguments.most or 0, title)
    listener = Listener(store, options, print_run, handshake=started)
    try:
        invocation.note(
            f"listening at {receiver.address} (execution {short_id(listener.execution)}); "
            f"set OTEL_EXPORTER_OTLP_ENDPOINT={receiver.address} for your program. Ctrl-C ends it."
        )
        with handle_interrupt(asyncio.get_running_loop(), listener.stop):
            await listener.run(receiver.address)
    finally:
        await receiver.close()
    _print_end(invocation, listener, receiver)
    if arguments.save_test is not None:
        _save_tests(invocation, store, listener.execution, arguments.save_test)
    return 0


def _save_tests(invocation: Invocation, store: Store, execution: str, path: Path) -> None:
    """A test for each question that was answered, of all runs that went well."""
    user_agents = load_agents(directories.config_dir())
    by_test = grouped(
        ((row.suite_name, row.test_id), row)
        for row in store.runs_of_execution(execution)
        if row.status not in ("failed", "error")
    )
    if not by_test:
        invocation.note("no run was successful, so no test was made")
    for rows in by_test.values():
        try:
            drafted_test = make_test(stored_runs(store, rows), path, agents=user_agents)
        except AgentevalError as error:
            invocation.note(f"no test was made from {one_line(rows[0].test_name, 60)}: {error.what}")
            continue
        invocation.err.line(
            f"saved as test {drafted_test.id} of {one_line(str(drafted_test.path), 300)}, "
            f"from {count(len(rows), 'run')}"
        )


def _print(invocation: Invocation, heard: HeardRun) -> None:
    planned, transcript = heard.planned, heard.ended.transcript
    status = heard.ended.status
    again = " again, with more of it" if heard.again else ""
    size = f"{count(len(transcript.messages), 'message')}, {calls_phrase(transcript)}"
    invocation.out.line(
        outcome_sign(status),
        f" {short_id(planned.id)}  {one_line(planned.agent, 30)}: {one_line(planned.test_name, 60)}{again}",
        (f"  {size}", "dim"),
    )
    if status in ("failed", "error"):
        invocation.out.line("  ", one_line(heard.ended.why, 300))
    for note in heard.notes:
        invocation.out.line(("  ! ", "warn"), one_line(note, 300))


def _print_end(invocation: Invocation, listener: Listener, receiver: Receiver) -> None:
    skipped = dict(listener.skipped.most_common())
    for note in loss_notes(skipped, listener.late, receiver.refused, receiver.last_refusal):
        invocation.note(note)
    if listener.runs:
        invocation.note(
            f"{count(listener.runs, 'run')} stored. "
            f"`agenteval show {short_id(listener.execution)}{invocation.db_option}` lists them."
        )
    else:
        invocation.note("no run arrived")


def _document(heard: HeardRun) -> HeardRunDocument:
    planned, ended = heard.planned, heard.ended
    return HeardRunDocument(
        run=planned.id,
        execution=planned.execution_id,
        trace=heard.trace,
        again=heard.again,
        suite=planned.suite_name,
        test=planned.test_id,
        agent=planned.agent,
        status=ended.status,
        why=ended.why,
        messages=len(ended.transcript.messages),
        tool_calls=len(ended.transcript.tool_calls),
        notes=heard.notes,
    )
