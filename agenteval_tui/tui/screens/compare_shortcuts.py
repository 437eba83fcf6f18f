"""What an execution that has ended changed against its baseline."""

from __future__ import annotations

from agenteval_tui.analysis.regression_gate import BaselineResult, compare_to_baseline
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.views.comparison import section_text


def say_what_regressed(screen: FrameScreen, execution: str) -> None:
    """Compare an execution that has ended with its baseline by itself, and say what changed; nothing where nothing did,
    or there is no baseline."""
    store = screen.agenteval.session.store

    def work() -> BaselineResult | None:
        return compare_to_baseline(store, store.execution(execution))

    def then(result: BaselineResult | None) -> None:
        if result is None or not (result.shown.in_state("worse", "better")):
            return

        counts = result.shown.counts()
        said = [section_text(state, counts[state]) for state in ("worse", "better") if counts.get(state)]
        if result.by_chance:
            said.append(f"{count(len(result.by_chance), 'fall')} within chance")
        severity = "warning" if result.regressed else "information"
        hint = "v compares." if screen.is_current else "6 compares."
        screen.agenteval.say(f"Against the baseline: {', '.join(said)}. {hint}", severity=severity)

    screen.ask(work, then, group="baseline")
