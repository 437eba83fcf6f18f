"""After an edit was saved: run its test again, from where it was edited."""

from __future__ import annotations

from agenteval_tui.core.display import one_line
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.actions import typing_key
from agenteval_tui.tui.screens.base_screen import FrameScreen


def run_again(screen: FrameScreen, loaded: LoadedSuite | None, test: str, *, edited: bool) -> None:
    """Run `test` as its file says and go to watch it; with an edit that is not `saved`, say to save it first.

    A run costs minutes and money: one that leaves out what was just edited is not what anybody wants.
    """
    app = screen.agenteval
    if loaded is None or loaded.suite is None or all(candidate.id != test for candidate in loaded.suite.tests):
        app.say(f"{one_line(test, 60)} is not in an open suite file, so it can't run again.")
    elif edited:
        app.say(
            f"The edit is not saved. Press {{edit.save}} to save, then {again_key(screen)} to run {one_line(test, 30)}."
        )
    else:
        app.start_run([loaded.path], PlanOptions(tests=(f"{loaded.key}::{test}",), title=test))


def again_key(screen: FrameScreen) -> str:
    """The key that runs the test again, also where letters are text."""
    return typing_key({"inspect": "inspect.run", "edit": "edit.start"}[screen.SCOPE], screen.agenteval.keymap)
