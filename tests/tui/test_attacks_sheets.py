"""Attacks in what people and other programs said of runs, through the screens and sheets that show and change it.

The walk in test_attacks.py and this one say which screens they come to: every screen of the program is in one of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import test_attacks
from hostile import (
    ENTER,
    ESCAPE,
    F6,
    F7,
    F9,
    TAB,
    Walk,
    assert_harmless,
    copies,
    hostile_texts,
    suite_of,
    walking,
)
from hostile_history import write_history
from walked import every_screen

from agenteval_tui.core import directories
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs.live_registry import Live, registration
from tests.sweeps import share

pytestmark = pytest.mark.e2e

SHOWN = {
    "through_comparing": {
        "triage_dialog.TriageScreen",
        "causes.CausesScreen",
        "select_dialog.SelectScreen",
        "screen.CompareScreen",
        "quarantine.QuarantineScreen",
        "json_viewer.JsonViewerScreen",
        "criterion_versions.CriterionVersionsScreen",
    },
    "through_reviewing": {
        "agreement.AgreementScreen",
        "label.LabelScreen",
        "review.ReviewScreen",
        "trends.TrendsScreen",
    },
    "through_history": {
        "add_dataset_row.AddRowScreen",
        "fork.ForkScreen",
        "judge_log.JudgeLogScreen",
        "file_conflict_dialog.FileConflictScreen",
        "import_export_dialogs.ExportRunScreen",
        "import_export_dialogs.ExportScreen",
        "import_export_dialogs.ImportScreen",
        "sheet.BlameScreen",
        "sheet.ShareScreen",
        "sheet.ShrinkScreen",
        "sheet.SuggestScreen",
        "verdict_changes.VerdictChangesScreen",
        "label.LabelScreen",
        "name.NameScreen",
        "prune.PruneScreen",
        "record.ReplayScreen",
        "relax.RelaxScreen",
        "plan.ResumeScreen",
        "criterion_versions.CriterionVersionsScreen",
    },
    "through_a_run": {
        "watch.WatchScreen",
        "executions.ExecutionsScreen",
        "notification_log.NotificationLogScreen",
        "sheet.ListenScreen",
        "record.RecordScreen",
        "run_errors.RunErrorsScreen",
    },
}
"""What each walk comes to, beside what those of test_attacks.py do."""


def suite_with(texts: list[str]) -> dict[str, Any]:
    """The suite of the other walk, asked of an agent that says the texts and breaks; it needs trust."""
    suite = suite_of(texts)
    words = shlex.quote("".join(texts).replace("\0", ""))
    # It ends when the walk has seen it running.
    script = f"until [ -e go ]; do sleep 0.05; done; printf %s {words} >&2; printf %s {words}; exit 3"
    suite["agents"]["breaks"] = {"kind": "command", "command": ["sh", "-c", script], "description": texts[0]}
    suite["agent"] = "breaks"
    return suite


@contextmanager
def two_run(folder: Path, texts: list[str]) -> Iterator[None]:
    """Two executions of other processes, as they show themselves."""
    live = directories.runtime_dir() / folder.name / "live"
    live.mkdir(mode=0o700, parents=True)
    with ExitStack() as both:
        for name in ("ONE", "TWO"):
            one = Live(name, 1, str(live / f"{name}.sock"), "live " + texts[0], now_ms(), ("notice " + texts[0],))
            both.enter_context(registration(one))
        yield


def through_comparing(on: Walk, folder: Path, tests: int) -> None:
    """What runs are held against, why they fail, and what was decided of that."""
    on.press("g", "j", "j")
    on.sheet("Q", "QuarantineScreen", "\x1b[B", "\x1b[B", holds="test-0")
    compare(on, tests)
    causes(on)


def through_reviewing(on: Walk, folder: Path, tests: int) -> None:
    """What people say of runs, and what becomes of runs in time."""
    on.to("CausesScreen", "9", holds="failures =")
    review(on)
    trends(on)


def through_history(on: Walk, folder: Path, tests: int) -> None:
    """What is kept, written and changed."""
    history(on, folder)
    inspect(on, folder)


def through_a_run(on: Walk, folder: Path, tests: int) -> None:
    """What is run; what was said on the way, and places by their names."""
    run(on, folder)
    on.to("SuitesScreen", "1")
    on.to("TrustScreen", "W")
    on.terminal.send("o")
    on.wait_for(lambda _: on.shown().endswith("WatchScreen"), what="WatchScreen")
    on.wait_for("recorded run")
    on.press("F", "j")
    on.to("SuitesScreen", "1")
    on.sheet("N", "NotificationLogScreen", "j", "j", "k")
    on.to("CommandSheet", "\x10", "31337")
    on.settle()
    on.to("SuitesScreen", ESCAPE)
    on.press(";", "a", ";", ESCAPE)


def compare(on: Walk, tests: int) -> None:
    on.to("CompareScreen", "6", holds="worse")
    for _ in range(tests):
        on.sheet("V", "CriterionVersionsScreen", "j", TAB, "j", holds="version")
        on.press(TAB, "j", TAB, "j", "j")
    on.sheet("h", "SelectScreen", "31337")
    on.sheet("l", "SelectScreen")
    on.sheet("b", "ConfirmScreen")
    on.copy("f", "y")
    on.press("/", "31337", ESCAPE)
    on.to("InspectScreen", "g", "j", ENTER, holds="[difference]")
    on.sheet("O", "JsonViewerScreen", "f", "j")
    on.to("CompareScreen", ESCAPE)


def causes(on: Walk) -> None:
    on.to("CausesScreen", "9", holds="failures =")
    on.press("j", "j", "n", "p", "k", TAB, "j", TAB)
    for key in ("b", "Q", "L", "I"):
        on.sheet(key, "TriageScreen", "31337")
    on.copy("y")
    # Decided, which is said; and taken back.
    on.to("TriageScreen", "I")
    on.to("CausesScreen", ENTER)
    on.settle()
    on.press("u", "w", "w", "/", "31337", ESCAPE)
    on.settle(0.1)


def review(on: Walk) -> None:
    on.to("ReviewScreen", "0", holds="[review]")
    on.press("F", "d")
    on.settle(0.2)
    on.press("e", "31337", ENTER, "n")
    on.settle(0.2)
    on.press("u")
    on.settle(0.2)
    on.sheet("L", "LabelScreen", "t", "3")
    on.sheet("c", "AgreementScreen", "j", holds="agree with people")
    on.press(TAB, "j", TAB, "]")
    on.to("CausesScreen", ESCAPE)


def trends(on: Walk) -> None:
    on.to("TrendsScreen", "7", holds="pass rate")
    on.press("]", "s", "s", "s", "s", "l", "h")
    on.settle(0.1)
    for _ in range(5):
        on.press(TAB, "j")
        on.settle(0.1)
    on.sheet("Z", "SelectScreen")
    on.press("/", "31337", ESCAPE)


def history(on: Walk, folder: Path) -> None:
    on.to("HistoryScreen", "5", holds="3 executions")
    on.press("G")
    on.sheet("R", "ResumeScreen")
    on.press("g")
    on.sheet("x", "ConfirmScreen", holds="Delete")
    on.sheet("Z", "PruneScreen")
    on.sheet("i", "ImportScreen", f"{folder}/")
    on.sheet("e", "NameScreen", "31337", holds="metadata")
    on.sheet("X", "ExportScreen", holds="transcripts")
    on.sheet("\x05", "ShareScreen", holds="Share")
    on.sheet("b", "ConfirmScreen")
    on.press(ENTER)
    on.settle()


def inspect(on: Walk, folder: Path) -> None:
    on.to("InspectScreen", "j", ENTER, holds="evidence")
    on.settle()
    on.sheet("L", "LabelScreen", "t", "y")
    on.sheet('"', "JudgeLogScreen", "n", "p", holds="Replies and failed attempts")
    on.sheet("a", "AddRowScreen", holds="row")
    on.sheet("F", "ForkScreen", holds="max cost")
    on.sheet("\x1bt", "ReplayScreen", holds="if the first one differs")
    on.sheet("X", "ExportRunScreen")
    on.sheet("V", "CriterionVersionsScreen", "j", TAB, "j")
    on.sheet("\x1bw", "BlameScreen", "j", "k", TAB, holds="Which step")
    on.sheet("\x1bk", "ShrinkScreen", "c", holds="smallest input")
    on.sheet("\x1bs", "SuggestScreen", "y", "]", holds="good or bad")
    on.copy("y")
    on.copy(TAB, "j", "Y")
    # Its config, relaxed until it passes; what flips then; and a file that was changed meanwhile.
    on.to("RelaxScreen", "e", F7)
    on.settle()
    on.to("InspectScreen", ENTER)
    on.settle()
    on.sheet(F9, "VerdictChangesScreen", "j")
    with (folder / "words.suite.yaml").open("a", encoding="utf-8") as file:
        file.write("# 31337\n")
    on.sheet("\x13", "FileConflictScreen", "j")
    on.press(F6, ESCAPE)
    on.settle()


def run(on: Walk, folder: Path) -> None:
    on.to("SuitesScreen", "1")
    on.press("g", "j", "j")
    on.to("TrustScreen", "r")
    # What runs is never quiet: its seconds are counted.
    on.terminal.send("o")
    on.wait_for("space pause")
    (folder / "go").touch()
    on.wait_for("finished")
    on.sheet("!", "RunErrorsScreen", "j")
    on.sheet("\x1bc", "RecordScreen", "31337", TAB, holds="Record a program")
    on.sheet("\x1bl", "ListenScreen", "31337", TAB, holds="Listen for traces")
    on.sheet("\x1bw", "ExecutionsScreen", "j")


@pytest.mark.parametrize("way", [through_comparing, through_reviewing, through_history, through_a_run])
def test_no_attack_reaches_the_terminal_through_what_was_said_and_decided(
    tmp_path: Path, way: Callable[[Walk, Path, int], None]
) -> None:
    # The keys of one walk are for the versions and labels that more runs have.
    folder, texts = tmp_path / "attacked", hostile_texts() if way is through_history else share(hostile_texts())
    written = [text.encode("utf-8", "ignore").decode() for text in texts]
    with two_run(folder, texts), walking(folder, texts, suite_with(written), write_history) as on:
        on.to("SuitesScreen", holds="test-0")
        way(on, folder, len(texts))
        on.leave()
        text = on.terminal.written.decode("utf-8")
        wanted = SHOWN[way.__name__]
        assert on.screens >= wanted, sorted(wanted - on.screens)
        assert len(copies(text)) == on.copied, "the clipboard is written by a person's key, and by nothing else"
        assert_harmless(text)


def test_every_screen_is_walked_through() -> None:
    walked = [*SHOWN.values(), *test_attacks.SHOWN.values()]
    assert every_screen() == set().union(*walked)
