"""`agenteval cancel`, `pause` and `continue`: what can be said to an execution that runs in another process."""

from __future__ import annotations

import click

from agenteval_tui.cli import attach_client, shell_completion
from agenteval_tui.cli.attach_client import steer
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.client import find, live_executions
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.live_registry import Live


@click.command("cancel")
@click.argument("execution", required=False, metavar="[ID]", shell_complete=shell_completion.running)
@click.option("--all", "everything", is_flag=True, help="All running executions.")
@common_options
@pass_invocation
def cancel(invocation: Invocation, execution: str | None, everything: bool) -> int:
    """Cancel execution ID at once; without ID, the only one that is running. Finished runs stay in the history.

    Runs in progress are recorded as cancelled; `agenteval resume ID` runs them again. The command returns when the
    execution has ended.
    """
    if everything and execution is not None:
        raise AgentevalError("give an execution or --all, not both")
    if everything:
        executions = live_executions()
        if not executions:
            invocation.out.line("no execution is running")
        for live in executions:
            _cancel(invocation, live)
        return 0
    _cancel(invocation, find(execution or ""))
    return 0


def _cancel(invocation: Invocation, live: Live) -> None:
    view = attach_client.cancel(live)
    cancelled, status = view.count("cancelled"), view.ended.status if view.ended is not None else ""
    saved = view.done - cancelled
    if view.listens:
        invocation.out.line(
            ("stopped ", "warn"),
            f"{one_line(live.title)}: {count(view.done, 'run')} stored",
            (f"  {live.execution}", "dim"),
        )
        return
    if status != "cancelled":
        invocation.out.line(f"{one_line(live.title)}: it has already ended ({status})", (f"  {live.execution}", "dim"))
        return
    invocation.out.line(
        ("cancelled ", "warn"),
        f"{one_line(live.title)}: {saved:,} of {count(view.total, 'run')} saved",
        (f"  agenteval resume {live.execution}{invocation.db_option}", "dim"),
    )


@click.command("pause")
@click.argument("execution", required=False, metavar="[ID]", shell_complete=shell_completion.running)
@common_options
@pass_invocation
def pause(invocation: Invocation, execution: str | None) -> int:
    """Start no new runs of execution ID until `agenteval continue`; runs in progress finish."""
    return _set_paused(invocation, execution, True)


@click.command("continue")
@click.argument("execution", required=False, metavar="[ID]", shell_complete=shell_completion.running)
@common_options
@pass_invocation
def resume(invocation: Invocation, execution: str | None) -> int:
    """Continue execution ID after `agenteval pause`."""
    return _set_paused(invocation, execution, False)


def _set_paused(invocation: Invocation, reference: str | None, wanted: bool) -> int:
    live = find(reference or "")
    # A snapshot in the first moments has no figures: then nothing is known yet, and the command is sent.
    view = steer(
        live,
        Command("pause" if wanted else "resume"),
        lambda view: view.ended is not None or view.listens or (view.progress is not None and view.paused == wanted),
    )
    if view.listens:
        raise AgentevalError(
            "other programs send the runs of this execution, so it can't be paused",
            where=live.execution,
            fix=f"agenteval cancel {live.execution}{invocation.db_option} ends it",
        )
    if view.ended is not None:
        raise AgentevalError(
            "this execution has ended",
            where=live.execution,
            fix=f"agenteval show {live.execution}{invocation.db_option}",
        )
    state = "paused" if wanted else "running"
    invocation.out.line(
        (state, "warn" if wanted else "good"),
        f" {one_line(live.title)}: {view.done:,} of {count(view.total, 'run')} ended",
        (f"  {live.execution}", "dim"),
    )
    return 0
