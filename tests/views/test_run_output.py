"""What failed around an execution, as a line each."""

from __future__ import annotations

from agenteval_tui.runs.around.record import FAILED, AroundRecord, ServiceState
from agenteval_tui.transcripts.model import HookRun, RunError
from agenteval_tui.views.run_output import around_view
from agenteval_tui.views.terminal import plain_text


def test_an_error_without_a_remedy_ends_with_its_message() -> None:
    hooks = (HookRun("after_all", "clean_up", 3.0, error=RunError.raised("KeyError: 'x'")),)
    service = ServiceState("db", "start-db", FAILED, error="it never was ready", fix="look at its output")
    assert plain_text(around_view(AroundRecord((service,), hooks))).splitlines() == [
        "service db: it never was ready (look at its output)",
        "after_all: KeyError: 'x'",
    ]
