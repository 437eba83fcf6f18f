"""`agenteval attach`: watch an execution that runs in another process, from its beginning."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.exit_codes import read_rate
from agenteval_tui.cli.gate_options import FAIL_UNDER_OPTION, BaselineOptions, gate_options
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.notify import check_address
from agenteval_tui.cli.notify import notify as send_notification
from agenteval_tui.cli.run_detached import watch_to_end
from agenteval_tui.cli.run_finish import apply_gates
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.client import find
from agenteval_tui.runs.events import Event, encode


@click.command("attach")
@click.argument("execution", required=False, metavar="[ID]", shell_complete=shell_completion.running)
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON, the first a snapshot.")
@FAIL_UNDER_OPTION
@click.option("--notify", metavar="URL", help="Post the result to this web hook (JSON; Slack shows its `text`).")
@click.option("--trust", is_flag=True, help="With --notify: allow an address that is not on this machine.")
@gate_options
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    /,
    execution: str | None,
    as_json: bool,
    fail_under: str | None,
    notify: str | None,
    trust: bool,
    **options: Any,
) -> int:
    """Show what execution ID has done since its start, then follow it until it ends.

    Without ID: the only one that is running; `last` is the newest. Ctrl-C stops watching (exit code 0) and leaves the
    execution running; `agenteval cancel` stops it. When it ends, the exit code is that of `agenteval run`, with the
    gates of the tests it was started with.
    """
    gate = read_rate(fail_under) if fail_under is not None else None
    baseline = BaselineOptions.taken(options)
    check_address(invocation, notify, trusted=trust)
    live = find(execution or "")

    def print_event(event: Event) -> None:
        invocation.out.plain_line(encode(event))

    with invocation.store(to_look=True) as store:
        if not _is_in(store, live.execution):
            invocation.note("this execution is in another history file; name it with --db")
        done = watch_to_end(invocation, store, live, quiet=as_json, leaves=True, also=print_event if as_json else None)
        if done is None:
            if not as_json:
                invocation.out.line(
                    ("detached; it continues: ", "dim"),
                    f"agenteval attach {live.execution}{invocation.db_option}",
                    ("  to watch again", "dim"),
                )
            return 0
        code = apply_gates(invocation.err if as_json else invocation.out, store, done, gate, baseline)
        send_notification(invocation, notify, done.execution, done.pass_rate, code)
        return code


def _is_in(store: Store, execution: str) -> bool:
    try:
        store.execution(execution)
    except AgentevalError:
        return False
    return True
