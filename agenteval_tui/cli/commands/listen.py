"""`agenteval listen`: traces of running programs become runs as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.finite_number import FiniteNumber
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation


@click.command("listen", short_help="Receive OpenTelemetry traces, and store each as a run, live.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=4318,
    show_default=True,
    help="The port; 0 for any free one.",
)
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
@click.option("--runs", "most", type=click.IntRange(1), metavar="N", help="End after N runs (default: on Ctrl-C).")
@click.option(
    "--quiet-after",
    type=FiniteNumber(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="A trace with its first span is complete after this time without new spans.",
)
@click.option(
    "--patience",
    type=FiniteNumber(0.1, 86400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A trace without its first span is stored as it is after this time without new spans.",
)
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
def command(invocation: Invocation, /, **given: Any) -> int:
    """Receive OpenTelemetry traces (OTLP over HTTP), and store each trace as a run. Needs the extra `otel`.

    Point any program at it: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318. It reads spans in the GenAI conventions,
    as OpenInference and Traceloop send them, and as frameworks write them. The app shows the runs while they grow.
    Spans that have nothing to do with a model, an agent or a tool are left out.
    """
    # The options are read without what executes, as in `fork`: the help lists this verb.
    from agenteval_tui.cli.listen_run import ListenArguments, listen_run

    return listen_run(invocation, ListenArguments(**given))
