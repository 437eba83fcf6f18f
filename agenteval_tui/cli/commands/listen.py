"""`agenteval listen`: traces of running programs become runs as they arrive."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from msgspec.structs import replace

from agenteval_tui.agents.recording.options import require_otlp
from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import SIGNS, STYLES
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.documents.listen import HeardRunDocument
from agenteval_tui.formats.otlp.listener import PATIENCE_S, QUIET_S, HeardRun, Listener, ListenOptions
from agenteval_tui.formats.otlp.receiver import HOST, PORT, Receiver
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria_file import read_criteria
from agenteval_tui.runs.event_loop import run_to_end


@click.command("listen", short_help="Receive OpenTelemetry traces, and store each as a run, live.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--host", default=HOST, show_default=True, help="The address to listen at; others can send to any other.")
@click.option(
    "--criteria",
    "criteria_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Grade each run with these criteria (YAML or JSON); no judge is asked.",
)
@click.option("--runs", "most", type=click.IntRange(1), metavar="N", help="End after N runs (default: on Ctrl-C).")
@click.option(
    "--quiet-after",
    type=click.FloatRange(0.1, 3600),
    default=QUIET_S,
    show_default=True,
    metavar="SECONDS",
    help="A trace whose first span has come is complete after this time without news.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0.1, 86400),
    default=PATIENCE_S,
    show_default=True,
    metavar="SECONDS",
    help="A trace without its first span is taken as it is after this time without news.",
)
@click.option("--title", default="", help="The title of the execution (default: the address).")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document per run.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    port: int,
    host: str,
    criteria_file: Path | None,
    most: int | None,
    quiet_after: float,
    patience: float,
    title: str,
    as_json: bool,
) -> int:
    """Receive OpenTelemetry traces (OTLP over HTTP), and store each trace as a run. Needs the extra `otel`.

    Point any program at it: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318. Spans are read in the GenAI conventions,
    as OpenInference and Traceloop send them, and as frameworks write them. The app shows the runs while they grow.
    Spans that are not about a model, an agent or a tool are left out.
    """
    require_otlp()
    criteria = tuple(read_criteria(criteria_file)) if criteria_file is not None else ()
    options = ListenOptions(criteria, quiet_after, patience, most or 0, title)
    with invocation.store() as store:
        return run_to_end(_listen(invocation, store, options, host, port, as_json))


async def _listen(
    invocation: Invocation, store: Store, options: ListenOptions, host: str, port: int, as_json: bool
) -> int:
    def print_run(heard: HeardRun) -> None:
        if as_json:
            invocation.out.json_line(_document(heard))
        else:
            _print(invocation, heard)

    receiver = Receiver(lambda spans, events: listener.take(spans, events))
    await receiver.start(port, host)
    title = options.title or f"traces at {receiver.address.partition('://')[2]}"
    listener = Listener(store, replace(options, title=title), print_run)
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
    return 0


def _print(invocation: Invocation, heard: HeardRun) -> None:
    planned, transcript = heard.planned, heard.ended.transcript
    status = heard.ended.status
    again = " again, with more of it" if heard.again else ""
    size = f"{count(len(transcript.messages), 'message')}, {count(len(transcript.tool_calls), 'call')}"
    invocation.out.line(
        (SIGNS.get(status, "·"), STYLES.get(status, "dim")),
        f" {short_id(planned.id)}  {one_line(planned.agent, 30)}: {one_line(planned.test_name, 60)}{again}",
        (f"  {size}", "dim"),
    )
    if status in ("failed", "error"):
        invocation.out.line("  ", one_line(heard.ended.why, 300))
    for note in heard.notes:
        invocation.out.line(("  ! ", "warn"), one_line(note, 300))


def _print_end(invocation: Invocation, listener: Listener, receiver: Receiver) -> None:
    for reason, times in listener.skipped.most_common():
        invocation.note(f"{count(times, 'trace')} left out: {reason}")
    if listener.late:
        invocation.note(f"{count(listener.late, 'span')} came too late and were left out; raise --quiet-after")
    if receiver.refused:
        invocation.note(f"{count(receiver.refused, 'request')} could not be read; the last: {receiver.last_refusal}")
    if listener.runs:
        invocation.note(
            f"{count(listener.runs, 'run')} stored. `agenteval show {short_id(listener.execution)}` lists them."
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
