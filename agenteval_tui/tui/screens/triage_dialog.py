"""Deciding about a cause: a note, a date where it has one, a verdict where its runs are labelled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from textual.app import ComposeResult

from agenteval_tui.analysis.causes import CauseGroup
from agenteval_tui.analysis.triage import DecisionResult, decide
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.core.timespan import moment_from
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.triage import UndecidedError, reopen
from agenteval_tui.tui.presenters.cause_rows import CauseRow
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.form_sheet import FormSheet
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

_TITLES = {
    "accept": "Accept it: this is the baseline",
    "fix": "Fix the criterion",
    "quarantine": "Put it in quarantine",
    "label": "Label its runs",
    "ignore": "Ignore it until something changes",
}
_VERDICTS = (("failed", "failed: the agent was wrong"), ("passed", "passed: the criterion is wrong"))


class TriageScreen(FormSheet["dict[str, str] | None"]):
    """Dismissed with the texts of its fields (`note`, and `until` or `verdict`), or None."""

    def __init__(self, group: CauseGroup, decision: str, note: str = "") -> None:
        super().__init__()
        self._group = group
        self._decision = decision
        self._note = note

    def compose(self) -> ComposeResult:
        fields = [Field("note", "note", self._note, placeholder="why, in a few words")]
        if self._decision == "quarantine":
            fields.append(Field("until", "until", "14d", hint="14d, 2w, or a day (2026-12-24)"))
        elif self._decision in ("accept", "ignore"):
            fields.append(Field("until", "until", placeholder="no date", hint="14d, 2w, a day; or nothing"))
        elif self._decision == "label":
            fields.insert(0, Field("verdict", "verdict", "failed", choices=_VERDICTS))
        keys = self.edge(("enter", "decide"), ("↑ ↓", "field"))
        with SheetFrame(_TITLES[self._decision], keys):
            yield LineBlock(self._about, id="about")
            yield Form(fields, below=True, id="fields")

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Done, unless the date is none."""
        values = event.form.values()
        try:
            if values.get("until") and moment_from(values["until"], now_ms()) <= now_ms():
                raise ValueError("it must be in the future")
        except ValueError as wrong:
            event.form.complain({"until": str(wrong)})
            return
        if self._decision == "quarantine" and not values["until"]:
            event.form.complain({"until": "a quarantine needs an end"})
            return
        self.dismiss(values)

    def _about(self, width: int) -> list[Line]:
        group = self._group
        return [
            *paragraph(group.title, width, "accent"),
            *paragraph(effect_of(self._decision, group), width, "dim"),
            (),
        ]


def effect_of(decision: str, group: CauseGroup) -> str:
    """What deciding does, in a sentence."""
    tests, runs, single = count(len(group.tests), "test"), count(group.count, "run"), len(group.tests) == 1
    name = f"{group.cause.criterion} of " if group.cause.kind in ("failed", "error") else ""
    return {
        "accept": f"{'Their' if len(group.tests) > 1 else 'Its'} newest runs become the baseline of {tests}.",
        "fix": "Its config opens in Inspect. The cause reopens if it still fails after the config changed.",
        "quarantine": f"{name}{tests} still {'runs, but does' if single else 'run, but do'} not gate until the date.",
        "label": f"{runs} {'gets' if group.count == 1 else 'get'} this verdict, unless already labelled.",
        "ignore": "It reopens when the criterion changes, when it appears in other tests, or when it grows by more "
        "than chance.",
    }[decision]


def ask_to_decide(
    screen: FrameScreen, row: CauseRow, decision: str, execution_id: str, then: Callable[[], None]
) -> None:
    """Ask over `screen`, decide, say what was done; `then` is called when it is written."""
    app, store = screen.agenteval, screen.agenteval.session.store
    earlier = row.standing.decision if row.standing is not None else None

    def done(decision_result: DecisionResult) -> None:
        app.say(f"{decision_result.effect[:1].upper()}{decision_result.effect[1:]}.")
        then()

    def answered(values: dict[str, str]) -> None:
        def work() -> DecisionResult:
            return decide(
                store,
                row.group,
                decision,
                note=values["note"],
                who=current_user(),
                until_ms=moment_from(values["until"], now_ms()) if values.get("until") else None,
                execution_id=execution_id,
                passed=values.get("verdict") == "passed",
            )

        screen.ask(work, done, group="decide")

    note = earlier.note if earlier is not None and earlier.decision == decision else ""
    screen.app.push_screen(TriageScreen(row.group, decision, note), if_answered(answered))


def ask_to_reopen(screen: FrameScreen, row: CauseRow, then: Callable[[], None]) -> None:
    """Take a decision back; nothing is asked, as it can be decided again."""
    app, store = screen.agenteval, screen.agenteval.session.store
    if row.standing is None:
        app.say("This cause has no decision yet.")
        return
    signature, was = row.standing.decision.signature, row.standing.decision.decision

    def work() -> None:
        with suppress(UndecidedError):  # somebody else took it back in the meantime
            reopen(store, signature)

    def done(_: None) -> None:
        app.say("The cause is open again." + (" Its quarantines stay." if was == "quarantine" else ""))
        then()

    screen.ask(work, done, group="decide")
