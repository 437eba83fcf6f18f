"""The sheet over Inspect that continues a run: what to change at a step, what was there, how often, and the price."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.worker import Worker

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.core.options import options_of
from agenteval_tui.core.typed_path import typed_path
from agenteval_tui.runs.fork.edits import changeable
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.plan import ForkPrice, questions_of
from agenteval_tui.runs.fork.sweep import blocks_of, lines_of, read_sweep
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.styled_text import Line, error_lines, fit, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.fork import gone_tools_text, price_text
from agenteval_tui.views.fork_origin import agent_label

QUIET_SECONDS = 0.15  # typing pauses so long before the fork is priced
READ_FIRST = "Read the price first, then press {fork.start} again."
_WORDS = {
    "tool_result": "the tool's result",
    "tool_error": "the tool fails with this",
    "arguments": "the call's arguments",
    "text": "the text",
    "system": "the system prompt",
    "without_tools": "tools to withhold",
    "insert": "add a user message after it",
    "drop": "leave it out",
    "": "nothing: ask again from here",
}
_WITHOUT_TEXT = ("drop", "")
_ONE, _LINES, _BLOCKS, _FILE = "one", "lines", "blocks", "file"
_VALUES = (
    (_ONE, "one text"),
    (_LINES, "a branch for each line"),
    (_BLOCKS, "a branch for each text between lines of ---"),
    (_FILE, "a file that lists the branches, as for --sweep"),
)
_OPTIONS = options_of(ForkRequest)
_LINE = 56  # characters in a row of the text, about


class ForkScreen(Sheet["tuple[ForkRequest, bool] | None"]):
    """Dismissed with what is to be asked, and whether anything is: not where all answers are stored already; or None.
    `step` counts from 0. `agent`: the run's."""

    SCOPE = "fork"
    BINDINGS: ClassVar[list[BindingType]] = bindings("fork")

    def __init__(self, run: str, transcript: Transcript, step: int, agent: str = "") -> None:
        super().__init__()
        self._agent = agent
        self._looked_at: str | None = None
        """The agent whose tools were looked at."""
        self._run = run
        self._transcript = transcript
        self._step = step
        self._role = transcript.messages[step].role
        self._there = changeable(transcript, step)
        self._what = next(iter(self._there))
        self._price: ForkPrice | None = None
        self._error: AgentevalError | None = None
        self._priced: ForkRequest | None = None
        """What the price or the error is of; the fields may ask for something else by now."""
        self._pricing: Worker[None] | None = None
        self._wanted = False
        """Somebody asked to start before the price was shown."""
        self._gone = ""

    def compose(self) -> ComposeResult:
        choices = tuple((name, _WORDS[name]) for name in (*self._there, ""))
        fields = [
            Field("what", "change", self._what, choices=choices),
            Field("text", "to", self._there[self._what], rows=self._rows()),
            Field("values", "that is", _ONE, choices=_VALUES),
            Field("agent", "agent", self._agent, hint="the run's, or another agent's name"),
            Field("n", "count", str(_OPTIONS["n"].default), hint="continuations"),
            Field("max_cost", "max cost $", "", hint="judges included; empty: no limit"),
        ]
        with SheetFrame(
            "Continue from this step", self._keys, subject=f"step {self._step + 1}, {self._role}", width="medium"
        ):
            yield Form(fields, below=True, id="fields")
            yield Section("price", id="price")
            yield LineBlock(self._price_lines, id="takes")

    def _rows(self) -> int:
        """Rows for the longest of the texts that can be changed, and for some more to be written."""
        longest = max(sum(1 + len(line) // _LINE for line in text.split("\n")) for text in self._there.values())
        return min(max(longest + 1, 3), 8)

    def on_mount(self) -> None:
        self.query_one(Form).query_one("#field-text").focus()
        self._look()

    def on_form_changed(self, event: Form.Changed) -> None:
        """Another thing to change has another current text."""
        what = self.query_one(Form).values()["what"]
        if event.name == "what" and what != self._what:
            self._what = what
            self.query_one(Form).fill({"text": self._there.get(what, "")})
        # What was asked to start was another request.
        self._wanted = False
        self._look()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter in a field of one line."""
        self.action_start()

    def action_start(self) -> None:
        """Ask, if that can be asked. What may cost something is asked when its price was shown."""
        try:
            request = self._asked()
        except AgentevalError as error:
            self._price, self._error = None, error
            self._retell()
            return
        # The price that a person reads now is of this request.
        if self._priced == request:
            self._start(request)
            return
        self._wanted = True
        if self._pricing is None or self._pricing.is_finished:
            self._look()
        if self._pricing is not None:
            self.agenteval.keys_wait_for(self._pricing)

    def _start(self, request: ForkRequest) -> None:
        if self._error is not None:
            self.agenteval.say_error(self._error)
        else:
            self.dismiss((request, not self._is_known))

    def _start_if_free(self, request: ForkRequest) -> None:
        """What somebody asked to start before the price was shown."""
        price = self._price
        if price is None or self._is_known or price.takes.whole_cost == 0:
            self._start(request)
        else:
            self.agenteval.say(READ_FIRST)

    @property
    def _is_known(self) -> bool:
        """Whether all that was priced is stored already."""
        return self._price is not None and not self._price.takes.runs

    def _keys(self) -> Keys:
        if self._error is not None:
            return self.edge(("tab", "field"))
        return self.edge(("start", "show them") if self._is_known else "start", ("tab", "field"))

    def _asked(self) -> ForkRequest:
        values = self.query_one(Form).values()
        what, text = values["what"], values["text"]
        changes: dict[str, object] = {}
        sweep: tuple[Mapping[str, Any], ...] = ()
        if what in _WITHOUT_TEXT or values["values"] == _ONE:
            changes = _changed(what, text)
        elif values["values"] == _FILE:
            sweep = tuple(read_sweep(typed_path(text)))
        else:
            texts = lines_of(text) if values["values"] == _LINES else blocks_of(text)
            sweep = tuple(_changed(what, prompt_text) for prompt_text in texts)
            if not sweep:
                raise AgentevalError("there is no text to try yet", fix="write one on each line")
        questions = questions_of(self._transcript, self._step + 1, changes, sweep)
        agent = values["agent"].strip()
        if agent in ("", self._agent):
            agent = ""
        else:
            labels = [agent_label(agent, question.edits, question.label) for question in questions]
            sweep = tuple({**entry, "label": label} for entry, label in zip(sweep or ({},), labels, strict=True))
        n = _OPTIONS["n"].read(values["n"], "the count")
        limit = _OPTIONS["max_cost"].read(values["max_cost"], "the max cost")
        return ForkRequest(self._run, self._step + 1, changes, n, sweep, agent, max_cost=limit)

    def _look(self) -> None:
        self._pricing = start_worker(self, self._show, group="price")

    async def _show(self) -> None:
        # While somebody types, nothing is priced.
        await asyncio.sleep(QUIET_SECONDS)
        request: ForkRequest | None = None
        price: ForkPrice | None = None
        error: AgentevalError | None = None
        try:
            request = self._asked()
            price = await asyncio.to_thread(partial(self.agenteval.session.workspace.price_of_fork, request))
        except AgentevalError as raised:
            error = raised
        self._price, self._error, self._priced = price, error, request
        self._retell()
        if request is not None and error is None and request.agent != self._looked_at:
            self._gone = ""
            work = partial(self.agenteval.session.workspace.gone_tools, self._run, self._step, request.agent)
            self._gone, self._looked_at = gone_tools_text(*await asyncio.to_thread(work)), request.agent
            if self._gone:
                self._retell()
        was_wanted, self._wanted = self._wanted, False
        if was_wanted and request is not None:
            self._start_if_free(request)

    def _retell(self) -> None:
        self.query_one(SheetFrame).retell()

    def _price_lines(self, width: int) -> list[Line]:
        if self._error is not None:
            return error_lines(self._error, width)
        price, priced = self._price, self._priced
        if price is None or priced is None:
            return [(("…", "dim"),)]
        lines: list[Line] = []
        if price.branches > 1:
            each = count(priced.n, "continuation")
            lines.append(fit(((f"{count(price.branches, 'branch')}, {each} each", "dim"),), width))
        if price.takes.runs:
            lines.append(fit(((price_text(price.takes, price.requests), ""),), width))
        if price.known:
            words = f"{count(price.known, 'continuation')} stored already: free, and not asked again"
            lines.append(fit(((words, "dim"),), width))
        return [*lines, *(paragraph(f"note: {self._gone}", width, "review") if self._gone else ())]


def _changed(what: str, text: str) -> dict[str, object]:
    if what == "insert":
        return {"insert": {"role": "user", "text": text}}
    return {what: True if what == "drop" else text} if what else {}
