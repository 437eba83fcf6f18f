"""What is done when an execution has ended and no one is looking: the terminal notifies, and a web hook is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.analysis.test_gates import outcome_now
from agenteval_tui.cli.exit_codes import exit_code
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError
from agenteval_tui.core.terminal_sequences import notification_sequence
from agenteval_tui.formats.web_hook import check_web_hook, tell_web_hook
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.suites.notify_file import load_notify_settings
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.views.execution import end_text

_BROKEN = ("failed", "interrupted", "running")


class ExecutionEnds:
    """Tells the person, by the settings of notify.yaml: a person who left the terminal, or did not look at an execution
    that took long. `send` gives the terminal a sequence; `is_away` says whether it has lost the focus.
    """

    def __init__(
        self,
        session: Session,
        notifier: Notifier,
        send: Callable[[str], None],
        is_away: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._session = session
        self._notifier = notifier
        self._send = send
        self._is_away = is_away
        self._environment = os.environ if environment is None else environment
        self._last_problem = ""

    async def tell(self, row: ExecutionRow, *, started_here: bool, looked_at: bool) -> None:
        """An execution has ended. `started_here`: this app started it; `looked_at`: it is on the screen."""
        try:
            settings = await asyncio.to_thread(load_notify_settings, config_dir(), self._environment)
            sequence = settings.sequence(self._environment)
            text, failed = await asyncio.to_thread(self._told, row, settings.webhook if started_here else "")
        except AgentevalError as error:
            if str(error) != self._last_problem:  # once, and not at every end
                self._last_problem = str(error)
                self._notifier.say_error(error)
            return
        took_s = (row.finished_ms - row.started_ms) / 1000 if row.finished_ms else 0.0
        if self._is_away() or (took_s >= settings.after and not looked_at):
            self._send(notification_sequence(text, sequence, self._environment))
        if failed:
            self._notifier.say(failed, severity="warning")

    def _told(self, row: ExecutionRow, address: str) -> tuple[str, str]:
        """What is to be said, and why the web hook (""; none) could not be told."""
        store = self._session.store
        runs = store.runs_of_execution(row.id)
        outcome = outcome_now(store, row, runs, execution_stats(runs).overall.pass_rate)
        code = INFRASTRUCTURE
        if row.status not in _BROKEN:
            code = exit_code(outcome.counts, outcome.pass_rate, status=row.status, gate_missed=outcome.gates.fails)
        failed = ""
        if address:
            check_web_hook(address, "`webhook` of notify.yaml")
            failed = tell_web_hook(address, row, outcome.pass_rate, code)
        return end_text(row, outcome.pass_rate, code), failed
