"""Telling a person that an execution has ended: `--notify URL`, and the terminal's own notification.

That somebody can't be told is said, and fails nothing.
"""

from __future__ import annotations

import os

from agenteval_tui.cli.exit_codes import INTERRUPTED
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.trust_prompt import ask_permission
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.terminal_sequences import notification_sequence
from agenteval_tui.formats.web_hook import check_telling, check_web_hook, tell_web_hook
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.suites.notify_file import load_notify_settings
from agenteval_tui.views.execution import end_text

SHORT_S = 1.0
"""Nobody goes elsewhere for that long, whatever the settings say: they are not even read."""


def check_address(invocation: Invocation, address: str | None, *, trusted: bool) -> None:
    """Before anything runs: whether something may be sent there. Raises `AgentevalError`."""
    if address is None:
        return
    check_web_hook(address, "--notify")
    ask_permission(invocation, lambda allowed: check_telling(address, trusted=trusted or allowed))


def notify(invocation: Invocation, address: str | None, row: ExecutionRow, pass_rate: float | None, code: int) -> None:
    """Tell the web hook at `address`, and the terminal where the run took long."""
    if address is not None and (failed := tell_web_hook(address, row, pass_rate, code)):
        invocation.note(failed)
    _notify_terminal(invocation, row, pass_rate, code)


def _notify_terminal(invocation: Invocation, row: ExecutionRow, pass_rate: float | None, code: int) -> None:
    """Somebody who waited for long may have gone elsewhere. Only to a terminal, never into a pipe."""
    took_s = (row.finished_ms - row.started_ms) / 1000 if row.finished_ms else 0.0
    if not invocation.err.live or invocation.quiet or took_s < SHORT_S or code == INTERRUPTED:
        return
    try:
        settings = load_notify_settings(config_dir(), os.environ)
        sequence = settings.sequence(os.environ)
    except AgentevalError as error:
        invocation.note(str(error))
        return
    if took_s >= settings.after:
        invocation.err.control(notification_sequence(end_text(row, pass_rate, code), sequence, os.environ))
