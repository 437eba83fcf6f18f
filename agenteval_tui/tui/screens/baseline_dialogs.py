"""Setting and clearing baselines from a screen; both are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval_tui.analysis.comparison_model import Side
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, moment
from agenteval_tui.history.baselines import Baseline, BaselineSet, baselines_of, clear_baselines, set_baseline
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.styled_text import Line, paragraph
from agenteval_tui.tui.terminal.sheet import if_answered


def ask_for_baseline(screen: FrameScreen, side: Side) -> None:
    """Ask whether an execution becomes the baseline of its tests."""
    if len(side.executions) != 1:
        screen.agenteval.say("Only one execution can be set as a baseline; this side has several.")
        return
    execution = side.executions[0]
    ask_to_set_baseline(screen, execution, side.name, len({(run.suite_key, run.test_id) for run in side.runs}))


def ask_to_set_baseline(
    screen: FrameScreen, execution: str, name: str, tests: int, then: Callable[[], None] | None = None
) -> None:
    """The same by the execution's id and name; `then` is called when it did."""
    words = (
        f"{one_line(name, 80)} becomes the baseline of its {count(tests, 'test')}: later executions are compared with"
        " it automatically. A baseline that a test already has is replaced; a test without a verdict in this execution,"
        " because its runs ended in errors, is left out. The old runs stay."
    )
    store = screen.agenteval.session.store

    def done(baseline_set: BaselineSet) -> None:
        message = f"{one_line(name, 60)} is the baseline of {count(len(baseline_set.tests), 'test')} now."
        if baseline_set.left_out:
            left_out = count(len(baseline_set.left_out), "test")
            message += f" {left_out} without a run that has a verdict: nothing changes for them."
        screen.agenteval.say(message)
        if then is not None:
            then()

    def answered(answer: str) -> None:
        screen.ask(lambda: set_baseline(store, execution, who=current_user()), done, group="baseline")

    def ask(row: ExecutionRow) -> None:
        # As `run --set-baseline` has it: after a success by itself, else only where a person says so.
        bad = not_all_passed(row)

        def lines(width: int) -> list[Line]:
            return [*(paragraph(bad, width, "failed") if bad else ()), *paragraph(words, width)]

        label = "set it anyway" if bad else "set it"
        screen.app.push_screen(
            ConfirmScreen("Set the baseline?", lines, [("y", "yes", label)], leave="keep it as it is"),
            if_answered(answered),
        )

    screen.ask(lambda: store.execution(execution), ask, group="baseline")


def not_all_passed(row: ExecutionRow) -> str:
    """A sentence that an execution is not a success; "" if it is."""
    # Also what waits for a person, was cancelled or never ran: nobody knows yet that it passes.
    bad = row.runs - row.passed - row.skipped
    if not bad:
        return ""
    what = f"{bad:,} of {count(row.runs, 'run')} did not pass"
    return f"{what}. Later executions would be compared with these results."


def ask_to_clear(screen: FrameScreen, suite_key: str, test: str, then: Callable[[], None] | None = None) -> None:
    """Ask whether a test's baseline goes; `then` is called when it did. Says so where it has none."""
    store, key = screen.agenteval.session.store, (suite_key, test)

    def gone(number: int) -> None:
        screen.agenteval.say(f"{one_line(test, 60)} no longer has a baseline." if number else "It was already cleared.")
        if then is not None:
            then()

    def show(baselines: dict[tuple[str, str], Baseline]) -> None:
        if key not in baselines:
            screen.agenteval.say(f"{one_line(test, 60)} has no baseline.")
            return
        sentences = _about(baselines[key])

        def answered(answer: str) -> None:
            screen.ask(lambda: clear_baselines(store, [key]), gone, group="baseline")

        question = ConfirmScreen(
            f"Clear the baseline of {one_line(test, 60)}?",
            lambda width: [line for sentence in sentences for line in paragraph(sentence, width)],
            [("y", "yes", "clear it")],
        )
        screen.app.push_screen(question, if_answered(answered))

    screen.ask(lambda: baselines_of(store, [key]), show, group="baseline")


def _about(baseline: Baseline) -> Sequence[str]:
    by = f" by {one_line(baseline.who, 40)}" if baseline.who else ""
    return (
        f"It was set {moment(baseline.at_ms)}{by}: {count(baseline.runs, 'run')}, {baseline.passed} passed.",
        "Its runs stay, but pruning may remove them. Later executions are no longer compared with them.",
    )
