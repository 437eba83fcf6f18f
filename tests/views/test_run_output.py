"""What failed around an execution, as a line each."""

from __future__ import annotations

from agenteval_tui.runs.around.record import FAILED, AroundRecord, ServiceState
from agenteval_tui.transcripts.model import HookRun, Output, RunError, Transcript
from agenteval_tui.views.run_output import around_view, output_lines
from agenteval_tui.views.terminal import plain_text


def test_an_error_without_a_remedy_ends_with_its_message() -> None:
    hooks = (HookRun("after_all", "clean_up", 3.0, error=RunError.raised("KeyError: 'x'")),)
    service = ServiceState("db", "start-db", FAILED, error="it never was ready", fix="look at its output")
    assert plain_text(around_view(AroundRecord((service,), hooks))).splitlines() == [
        "service db: it never was ready (look at its output)",
        "after_all: KeyError: 'x'",
    ]


def test_what_colours_output_is_not_shown() -> None:
    coloured = "\x1b[1;31mERROR\x1b[0m no order\x1b[K\n\x1b[38:5:2mdone\x1b[m"
    transcript = Transcript(
        output=(Output(3.0, "stdout", coloured),), log=coloured, hooks=(HookRun("after", "clean", 1.0, coloured),)
    )
    lines = [line.text for line in output_lines(transcript) if not line.step]
    assert lines == ["ERROR no order", "done"] * 3
