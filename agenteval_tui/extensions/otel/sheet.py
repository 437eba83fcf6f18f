"""What is asked before traces are listened for, and what that does."""

from __future__ import annotations

import os

from msgspec import Struct
from textual.app import ComposeResult

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import typed_whole
from agenteval_tui.core.typed_path import typed_path
from agenteval_tui.extensions.otel.protobuf import require_protobuf
from agenteval_tui.runs.client import start_verb
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.screens.record import bad_names
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

PORT = 4318


class ListeningRequest(Struct, frozen=True):
    """What to listen for: traces that come to a port, graded by the criteria in a file ("": by none)."""

    port: int
    criteria: str = ""

    def command(self) -> list[str]:
        """The arguments of `agenteval` that listen."""
        graded = ["--criteria", str(typed_path(self.criteria))] if self.criteria else []
        return ["listen", "--port", str(self.port), *graded]


def listen(screen: FrameScreen) -> None:
    """Ask where to listen for traces, and listen in a process of its own, which is watched."""
    app = screen.agenteval

    def start(request: ListeningRequest) -> Live:
        require_protobuf()
        return start_verb(request.command(), app.session.db)

    def asked(request: ListeningRequest | None) -> None:
        if request is not None:
            app.start_live("Listening", lambda: start(request))

    screen.app.push_screen(ListenScreen(), asked)


class ListenScreen(FormSheet["ListeningRequest | None"]):
    """Dismissed with what is to be listened for, or None."""

    def compose(self) -> ComposeResult:
        fields = [
            Field("port", "port", str(PORT)),
            Field("criteria", "graded by", placeholder="a file with criteria; empty: runs are not graded"),
        ]
        with SheetFrame("Listen for traces", self.edge(("enter", "start"), ("↑ ↓", "field")), width="large"):
            yield Form(fields, below=True, id="fields")
            yield Note(self._note, id="note")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Start it."""
        values = event.form.values()
        problems = bad_names(values, "criteria")
        if values["criteria"] and not problems and not os.path.isfile(typed_path(values["criteria"])):  # noqa: PTH113
            problems["criteria"] = "there is no such file"
        port = typed_whole(values["port"])
        if port is None or not 0 < port < 65536:
            problems["port"] = "a port is a number from 1 to 65535"
        event.form.complain(problems)
        if port is not None and not problems:
            self.dismiss(ListeningRequest(port, values["criteria"]))

    def _note(self, width: int) -> list[Line]:
        values = self.values
        port = one_line(values.get("port") or str(PORT), 10)
        lines = paragraph(
            "Each OpenTelemetry trace from a program on this machine becomes a run when it arrives.", width, "dim"
        )
        lines += paragraph("Start your program with:", width, "dim")
        lines += paragraph(f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port}", width)
        return [*lines, *paragraph("Listening costs nothing and calls no model.", width)]
