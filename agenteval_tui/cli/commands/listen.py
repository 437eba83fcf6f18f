"""`agenteval listen`: traces of running programs become runs as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.formats.otlp.options import ListeningOptions


@click.command("listen", short_help="Receive OpenTelemetry traces, and store each as a run, live.")
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
    # The options are read without what executes, as in `fork`: the help lists this verb.
    from agenteval_tui.cli.listen_run import ListenArguments, listen_run

    return listen_run(invocation, ListenArguments(**options))
