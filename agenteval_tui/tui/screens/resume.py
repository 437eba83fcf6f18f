"""Resuming an execution that has limits: they are for all of it, so what stopped it must be raised."""

from __future__ import annotations

from msgspec.structs import replace
from textual.app import ComposeResult

from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.screens.plan import read_options
from agenteval_tui.tui.styled_text import paragraph
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

_SAID = "Finished runs are not paid for again. Raise the limit that stopped it:"


class ResumeScreen(FormSheet["PlanOptions | None"]):
    """Dismissed with the new limits, or None."""

    def __init__(self, limits: PlanOptions) -> None:
        """`limits`: those that it was started with."""
        super().__init__()
        self._limits = limits

    def compose(self) -> ComposeResult:
        limits = self._limits
        fields = [Field("concurrency", "concurrency", placeholder="as before", hint="parallel runs")]
        if limits.max_cost is not None:
            fields.insert(0, Field("max_cost", "max cost $", f"{limits.max_cost:.15g}", hint="in all, judges included"))
        if limits.max_tokens is not None:
            fields.insert(0, Field("max_tokens", "max tokens", str(limits.max_tokens), hint="in all"))
        if limits.max_seconds is not None:
            fields.insert(0, Field("max_seconds", "max time", f"{limits.max_seconds:.15g}", hint="seconds"))
        with SheetFrame("Resume the execution", self.edge(("enter", "resume"))):
            yield LineBlock(lambda width: paragraph(_SAID, width, "dim"), id="about")
            yield Form(fields, id="fields")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Go on, unless something is wrong."""
        form = self.query_one(Form)
        plan_options, problems = read_options(form.values(), replace(self._limits), "")
        form.complain(problems)
        if plan_options is not None:
            self.dismiss(plan_options)
