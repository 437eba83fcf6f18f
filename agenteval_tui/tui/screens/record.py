"""What is asked before a program is recorded or replayed: what will be done, and its price."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from textual.app import ComposeResult

from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.agents.recording.providers import PROVIDERS, upstreams
from agenteval_tui.core.display import end_of_path, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, dollars
from agenteval_tui.core.options import OptionError, options_of
from agenteval_tui.core.phrasing import listed
from agenteval_tui.core.typed_path import current_folder, typed_path
from agenteval_tui.runs.recording_request import ProxyOptions, RecordingRequest, ReplayRequest
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.tui.recordings import ReplayOffer
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, cell_len, paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import Note
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

_MAX_COST = options_of(ProxyOptions)["max_cost"]
_KEYS = (("enter", "start"), ("↑ ↓", "field"))
_SHORT = 48  # cells of a program that its field shows at every width


class RecordScreen(FormSheet["RecordingRequest | None"]):
    """Dismissed with what is to be recorded, or None."""

    def __init__(self, before: RecordingRequest) -> None:
        """`before`: what was asked for the last time. Raises `AgentevalError`: the current folder was deleted."""
        super().__init__()
        self._before = before
        self._folder = current_folder()
        self._sets = _variables(self._folder)

    def compose(self) -> ComposeResult:
        before = self._before
        fields = [
            Field("program", "program", before.program, placeholder="python agent.py 'Where is my order?'"),
            Field("test", "graded by", before.test, placeholder="a test's id; empty: the run is not graded"),
            Field("cassette", "cassette", before.cassette, placeholder="a file that stores requests and answers"),
            Field(
                "mcp_config",
                "MCP servers",
                before.mcp_config,
                placeholder="the configuration file that the program reads",
            ),
        ]
        with SheetFrame("Record a program", self.edge(*_KEYS), subject=end_of_path(self._folder, 44), width="large"):
            yield Form(fields, below=True, id="fields")
            yield Note(self._note, id="note")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Start it."""
        values = event.form.values()
        request = RecordingRequest(**values)
        problems = bad_names(values, "cassette", "mcp_config")
        try:
            find_program(request.argv[0], self._folder, environment_for(self._folder, os.environ))
        except AgentevalError as error:
            problems["program"] = f"{error.what} ({error.fix})" if error.fix else error.what
        event.form.complain(problems)
        if not problems:
            self.dismiss(request)

    def _note(self, width: int) -> list[Line]:
        values = self.values
        lines = paragraph(
            "The program runs in this folder, without input. Its output goes to a log. A proxy on 127.0.0.1 forwards "
            "its requests:",
            width,
            "dim",
        )
        for variable, host in self._sets:
            lines += paragraph(f"{variable} → {host}", width, "dim")
        lines += paragraph("Recording costs nothing. The program pays for its model calls with its own keys.", width)
        if values and not bad_names(values, "cassette") and RecordingRequest(**values).continues:
            lines += paragraph(
                "Requests in the cassette get its answers, at no cost. New requests are added to it.", width
            )
        return lines


class ReplayScreen(FormSheet["ReplayRequest | None"]):
    """Dismissed with what is to be replayed, or None."""

    def __init__(self, offer: ReplayOffer) -> None:
        super().__init__()
        self._offer = offer

    def compose(self) -> ComposeResult:
        fields = [
            Field("program", "program", self._offer.program, placeholder="python agent.py 'Where is my order?'"),
            Field("mcp_config", "MCP servers", placeholder="the configuration file that the program reads"),
            Field("max_cost", "max cost $", hint="empty: no limit"),
        ]
        subject = f"{one_line(self._offer.name, 40)}, run {short_id(self._offer.run)}"
        with SheetFrame("Replay with changed code", self.edge(*_KEYS), subject=subject, width="large"):
            yield Form(fields, below=True, id="fields")
            yield Note(self._note, id="note")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Start it."""
        values = event.form.values()
        problems = bad_names(values, "mcp_config")
        limit = None
        try:
            limit = _MAX_COST.read(values["max_cost"])
        except OptionError:
            problems["max_cost"] = "write US dollars, such as 0.50; 0: ask no server"
        request = ReplayRequest(self._offer.run, values["program"], values["mcp_config"], limit, self._offer.as_agent)
        try:
            # To read it is to check it.
            assert request.argv
        except AgentevalError as error:
            problems["program"] = error.what
        event.form.complain(problems)
        if not problems:
            self.dismiss(request)

    def _note(self, width: int) -> list[Line]:
        price, inputs = self._offer.price, ["the run's input" if self._offer.reads else "no input"]
        if self._offer.variables:
            inputs.append(f"the agent's {listed([one_line(name, 30) for name in self._offer.variables], 4)}")
        where = one_line(str(self._offer.folder), 60)
        program = self.values.get("program", self._offer.program)
        # Whole: it may come from somebody else's history, and the field shows a part of it.
        whole = paragraph(f"It starts: {program}", width) if cell_len(program) > _SHORT else []
        lines = whole + paragraph(
            "Change the code or the prompt, then start the program. It runs in "
            f"{where}, with {' and '.join(inputs)}. Requests that match the recording get the recorded answer. The "
            "first one that differs, and all after it, go to the model server. The result is a fork of the run. It is "
            "graded like the run, and never counts in rates, trends or gates.",
            width,
            "dim",
        )
        if not price.requests:
            return [*lines, *paragraph("The run made no model calls.", width)]
        words = f"At most about {count(price.requests, 'request')}, if the first one differs"
        if price.tokens:
            words += f" · about {price.tokens:,} tokens"
        cost = price.cost
        words += " · cost unknown" if cost is None else f" · about {dollars(cost)}" if cost else " · free"
        return [*lines, *paragraph(words, width), *paragraph("Requests that match the recording are free.", width)]


def bad_names(values: Mapping[str, str], *names: str) -> dict[str, str]:
    """Which of these fields hold a name that no file can have, and why."""
    problems = {}
    for name in names:
        try:
            typed_path(values[name])
        except AgentevalError as error:
            problems[name] = error.what
    return problems


def _variables(folder: Path) -> list[tuple[str, str]]:
    """The variables that the program gets, and where what it sends there goes."""
    try:
        servers = upstreams(environment_for(folder, os.environ))
    except AgentevalError as error:
        return [("", error.what)]
    return [
        # Without the name and password that an address may have.
        (provider.variables[0], one_line(urlsplit(servers[provider.name]).netloc.rpartition("@")[2], 60))
        for provider in PROVIDERS
        if provider.name in servers
    ]
