"""Attacks in everything that comes from elsewhere, through every screen of the real program in a real terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile import (
    ENTER,
    ESCAPE,
    F1,
    F2,
    F4,
    F6,
    F7,
    F9,
    TAB,
    Walk,
    assert_harmless,
    hostile_texts,
    suite_of,
    transcript_of,
    walking,
)

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.grade import foreign_result, grade
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict

pytestmark = pytest.mark.e2e

SHOWN = {
    "through_runs": {
        "run_picker.RunPickerScreen",
        "help.HelpScreen",
        "screen.InspectScreen",
        "screen.SuitesScreen",
        "theme.ThemeScreen",
    },
    "through_agents_and_the_editor": {
        "agents.AgentsScreen",
        "screen.EditorScreen",
        "screen.HistoryScreen",
        "new_test.MakeTestScreen",
        "new_test.NewSuiteScreen",
        "new_test.NewTestScreen",
        "new_test.TagsScreen",
        "plan.PlanScreen",
        "confirm_dialog.ConfirmScreen",
        "screen.RunScreen",
        "screen.SuitesScreen",
        "trust.TrustScreen",
    },
}
"""What each walk comes to; those of test_attacks_sheets.py come to the rest."""


def write_history(db: Path, suite: Path, texts: list[str]) -> None:
    """Runs of the suite, of which every third ended in an error, and with another tool's verdict."""
    store = Store.open(db)

    def runs() -> Iterator[tuple[PlannedRun, RunEnded]]:
        for number, text in enumerate(texts):
            for again in range(3):
                config = {"metrics": [{"type": "TextMatch", "contains_all": [text, "no " + text]}]}
                spec = CriterionSpec("Criterion " + text, "TextResponse", config, expected_value=text)
                transcript = transcript_of(text, broken=again == 2)
                verdict = grade(transcript, [spec], {})
                foreign = foreign_result("theirs " + text, passed=False, source="tool " + text, reason=text)
                planned = PlannedRun(
                    f"RUN-{number:04}-{again}",
                    "EXECUTION",
                    number * 3 + again,
                    str(suite.resolve()),
                    "Suite " + text,
                    f"test-{number}" + (text if again == 2 else ""),
                    "Name " + text,
                    "variation " + text,
                    repetition=again + 1,
                    agent="agent " + text,
                    prompt="prompt " + text,
                    tags=(text,),
                    variables={text: text},
                    criteria=(spec.hash,),
                    specs=(spec_to_dict(spec),),
                )
                status = "error" if again == 2 else str(verdict.outcome)
                results = () if again == 2 else (*verdict.results, foreign)
                yield planned, RunEnded(planned.id, status, 0.0, 1, 1.0, 1, transcript, results, why="why " + text)

    title = "title " + " ".join(texts)
    record = ExecutionRecord("EXECUTION", title, "import", "source " + texts[0], (str(suite.resolve()),), now_ms())
    store.import_runs(record, runs())
    store.close()


def through_runs(on: Walk, texts: list[str]) -> None:
    """Suites with their sheets; and for each of the texts its runs, what they differ in, and their config."""
    terminal, press = on.terminal, on.press
    press(F1, ESCAPE, F2)
    terminal.settle()
    press(ESCAPE, "\x10")
    terminal.settle()
    press(ESCAPE)
    for number in range(len(texts)):
        press("g", *["j"] * (2 + number), "f", "j", TAB, TAB, "k", "f")
        on.to("InspectScreen", ENTER, holds="evidence")
        terminal.settle()
        press(">", ">", "t", "t", "O", "O", ".", ",", "\x1bf", "\x1bf", "/", "3133", ENTER, ESCAPE)
        on.to("RunPickerScreen", "\x1bd", holds="Compare run")
        on.to("InspectScreen", ESCAPE)
        on.to("InspectScreen", "d", holds="[difference]")
        terminal.settle()
        press("n", "f", "\x1bf")
        on.to("InspectScreen", "v", holds="[where runs diverge]")
        terminal.settle()
        press("g", "j", "f", "t", "w", "j", "d", "y")
        press("e", "\x1b[B", " ", F4, F7)
        terminal.settle()
        press(ESCAPE, F9, ESCAPE, F6, ESCAPE, "]", "]", "n", "p")
        on.to("SuitesScreen", "1")


def through_agents_and_the_editor(on: Walk, texts: list[str]) -> None:
    """What can be listed, searched, talked to, planned and written."""
    terminal, press = on.terminal, on.press
    press("G", "/", "3133", ESCAPE)
    on.to("HistoryScreen", "5", holds="1 execution")
    press(ENTER, "j", "f", "f", TAB, "G", "/", "31337")
    terminal.settle()
    press(ESCAPE, ESCAPE, ESCAPE)
    on.to("SuitesScreen", "1")
    press("g", "r")
    terminal.settle(1.0)
    press("3", "l", "n", TAB, TAB)
    on.to("HistoryScreen", "5", holds="execution")
    on.to("AgentsScreen", "8", holds="conversation")
    terminal.wait_for("bundled")
    # A conversation in which the words are sent and come back, and the test that is made of it.
    press(ENTER, "31337 of customers", ENTER)
    terminal.settle(0.5)
    press(ESCAPE, "m")
    terminal.settle(0.5)
    press("\x1b[C", "\x1b[B", ESCAPE, "G")
    on.to("TrustScreen", "r", holds="needs your trust")
    on.to("SuitesScreen", "j", ESCAPE, "/", "31337", ESCAPE, TAB, TAB, TAB, ESCAPE, "1")
    on.to("PlanScreen", "g", "P", holds="Plan a run")
    terminal.settle(0.5)
    press("\x1b[B", "\x1b[C", "\x1b[C", ESCAPE)
    on.sheet("Z", "NewSuiteScreen", "31337")
    on.to("SuitesScreen", "3", "!", ESCAPE, "W", ESCAPE, "1")
    # The Editor: all fields of a test, its criteria, an edit, and the questions of both screens.
    press("g", "j", "j", " ", "#", ESCAPE, "x", ESCAPE, "a", ESCAPE)
    on.to("EditorScreen", "E", holds="config_uxon")
    terminal.settle()
    press("x", TAB, "x", TAB, "x", TAB, "\x1b[C", ENTER, ESCAPE, "\x1b[19~")
    press("\x0e", "j", "d", "K", "a", ESCAPE, ENTER)
    terminal.settle(0.5)
    press("x", "\x1a", "\x0e", "/", "31337", ESCAPE, F6, ESCAPE)
    terminal.settle()  # out of the field, however busy the machine: in it a 1 is a 1
    on.to("SuitesScreen", "1")


TEXTS = hostile_texts()


@pytest.mark.sweep("way")
@pytest.mark.parametrize(
    ("way", "texts"),
    [*((through_runs, [text]) for text in TEXTS), (through_agents_and_the_editor, TEXTS)],
    ids=[*(f"runs-{number}" for number in range(len(TEXTS))), "agents and the editor"],
)
def test_no_attack_reaches_the_terminal_through_any_screen(
    tmp_path: Path, way: Callable[[Walk, list[str]], None], texts: list[str]
) -> None:
    written = [text.encode("utf-8", "ignore").decode() for text in texts]
    with walking(tmp_path / "attacked", texts, suite_of(written), write_history) as on:
        on.to("SuitesScreen", holds="test-0")
        way(on, texts)
        on.leave()
        wanted = SHOWN[way.__name__]
        assert on.screens >= wanted, sorted(wanted - on.screens)
        assert_harmless(on.terminal.written.decode("utf-8"))
