"""The difference of two runs and the branches of a test's repetitions, driven by keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from attacks import ATTACKS
from shop import app_on, run_samples, screen_of, settle, text_of, until
from textual.pilot import Pilot

from agenteval_tui.analysis.trajectory_alignment import Alignment, align
from agenteval_tui.core import directories
from agenteval_tui.core.display import displayable
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.presenters.difference import DifferenceDocument
from agenteval_tui.tui.screens.inspect.controller import Place, Places
from agenteval_tui.tui.screens.inspect.run_views import DifferenceView
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.run_picker import RunPickerScreen
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

pytestmark = pytest.mark.xdist_group("screens")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The recorded suite, run once."""
    folder = tmp_path_factory.mktemp("recorded")
    shutil.copytree(directories.bundled("sample_suites") / "recorded", folder / "suites")
    run_samples(folder / "suites", folder / "history.db", tests=("customers-austria", "send-back-notebook"))
    return folder / "suites", folder / "history.db"


async def inspect(pilot: Pilot[int], test: str) -> InspectScreen:
    """Open the latest failure of a test, or a run that passed."""
    await settle(pilot)
    view = pilot.app.screen.query_one("#tree", VirtualList)
    view.cursor = next(i for i in range(view.source.count()) if view.source.key(i).endswith("\x1f" + test))
    await settle(pilot)
    await pilot.press("enter")
    await settle(pilot)
    assert isinstance(pilot.app.screen, InspectScreen)
    return pilot.app.screen


def view_of(app: AgentevalApp) -> str:
    """What stands in the place of Inspect's transcript."""
    assert isinstance(app.screen, InspectScreen)
    return app.screen.view


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    await settle(pilot)
    return text_of(pilot.app)  # type: ignore[arg-type]


async def test_a_failed_run_beside_the_nearest_that_passed(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await inspect(pilot, "customers-austria")
        shown = await press(pilot, "d")
        assert view_of(app) == "difference"
        assert "- ✗ run 3  failed" in shown
        assert "+ ✓ run 4  passed" in shown
        assert "1 of 6   6 differences" in shown
        assert "evidence ─" in shown, "beside it stays what the criterion looked at"
        shown = await press(pilot, "z")
        changed = next(line for line in shown.splitlines() if "'AT'" in line)
        assert "'Österreich'" in changed, "side by side, on the same row"
        await press(pilot, "z")
        view = app.screen.query_one(DifferenceView)
        shown = await press(pilot, "n", "n", "n")
        assert "4 of 6   6 differences" in shown
        assert view.document.pair(view.cursor).step.name == "query"
        assert "3 of 6   6 differences" in await press(pilot, "p")
        assert "6 of 6   6 differences" in await press(pilot, "p", "p", "p")
        # Enter: this run at that step; escape: back to the difference; o: the other run.
        await press(pilot, "p", "p", "enter")
        assert isinstance(app.screen, InspectScreen)
        transcript = app.screen.query_one("#transcript", TranscriptView)
        assert transcript.cursor_key == ("call", 0)
        await press(pilot, "escape")
        assert view_of(app) == "difference"
        await screen_of(app).do("open_right")
        shown = await press(pilot)
        assert app.screen.query_one("#transcript", TranscriptView).cursor_key == ("call", 1)
        assert "run 4" in shown


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The suite that looks at a database, run once; not in this checkout, which would all be read for its code."""
    folder = tmp_path_factory.mktemp("orders")
    suites = shutil.copytree(directories.bundled("sample_suites") / "orders", folder / "suites")
    run_samples(suites, folder / "history.db", tests=("cancel",), trust=True)
    return suites, folder / "history.db"


async def test_what_two_runs_left_behind_differs_below_their_steps(orders: tuple[Path, Path]) -> None:
    app = app_on(*orders)
    async with app.run_test(size=(140, 45)) as pilot:
        await inspect(pilot, "cancel")
        shown = await press(pilot, "d", "z")
        assert "3 differences" in shown
        changed = next(line for line in shown.splitlines() if "W1044" in line and "49.0" in line)
        assert "pending" in changed
        assert "cancelled" in changed, "side by side, on the same row"
        await press(pilot, "enter")
        assert view_of(app) == "state"


async def test_one_above_the_other_where_it_is_narrow_and_other_runs_by_choice(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(80, 24)) as pilot:
        await inspect(pilot, "customers-austria")
        await press(pilot, "d")
        shown = await press(pilot, "n", "n", "n", "f", "f")
        lines = [line.rstrip() for line in shown.splitlines()]
        removed = next(number for number, line in enumerate(lines) if "'AT'" in line)
        assert lines[removed].lstrip(" ▌").startswith("-")
        assert "'Österreich'" in lines[removed + 1]
        assert lines[removed + 1].lstrip(" ▌").startswith("+")
        await press(pilot, "alt+d")
        assert isinstance(app.screen, RunPickerScreen)
        assert "same execution" in text_of(app)
        assert "+ ✓ run 6" in await press(pilot, "enter")
        await screen_of(app).do("swap")
        shown = await press(pilot)
        assert "- ✓ run 6" in shown
        assert "+ ✗ run 3" in shown
        await press(pilot, "y")
        assert app.clipboard.startswith("agenteval show ")
        assert " --diff " in app.clipboard
        assert app.clipboard.endswith(f" --db {app.session.db}"), "it is found from another folder, and in the demo"
        # From Inspect a run can be chosen at once.
        await press(pilot, "escape", "alt+d")
        assert isinstance(app.screen, RunPickerScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, InspectScreen)


async def test_the_branches_lead_to_runs_and_to_their_difference(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await inspect(pilot, "customers-austria")
        shown = await press(pilot, "v")
        assert view_of(app) == "branches"
        assert "step 1: 5 of 6 call describe_table (5/5 pass), 1 calls query (0/1 pass)" in shown
        assert "6 runs in this execution" in shown
        assert "WHERE country = 'AT'" in shown, "the branch of this run, in full"
        tree = app.screen.query_one("#branches", VirtualList)
        here = tree.cursor
        await press(pilot, "g")
        assert tree.cursor == 0
        await press(pilot, "n")
        assert tree.cursor == here
        assert "arguments are ignored" in await press(pilot, "t")
        assert "in all executions" in await press(pilot, "w")
        await press(pilot, "t", "w", "d")
        shown = text_of(app)
        assert view_of(app) == "difference"
        assert "- ✗ run 3" in shown
        await press(pilot, "escape", "g", "enter")
        assert isinstance(app.screen, InspectScreen)
        assert "✓ customers-austria" in text_of(app)


async def test_nothing_to_compare_says_so(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    import sqlite3

    db = tmp_path / "history.db"
    shutil.copy(recorded[1], db)
    with sqlite3.connect(db) as connection:
        connection.execute("DELETE FROM runs WHERE repetition > 1")
    app = app_on(recorded[0], db)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await inspect(pilot, "customers-austria")
        assert "No other run of this test" in await press(pilot, "d"), "in the tab itself"
        await press(pilot, "n", "O", "y", "enter", "O")
        await press(pilot, "alt+d")
        await until(pilot, lambda: "No other run of this test" in text_of(app))
        assert "no other finished run" in await press(pilot, "v")
        await press(pilot, "n", "d", "f", "enter")


async def test_evidence_and_config_stay_beside_the_other_views(recorded: tuple[Path, Path]) -> None:
    """The views follow the run that is open; esc goes the way one came, and to the screen that asked."""
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await inspect(pilot, "customers-austria")
        first = screen.shown_run
        await press(pilot, "d", "e")
        assert screen.query_one("#config").has_focus
        assert "[difference]" in await press(pilot, "escape"), "from typing back to the view"
        await press(pilot, "tab")
        assert screen.query_one("#looked").has_focus
        # Another run, from the evidence: the view shows that one.
        shown = await press(pilot, "right_square_bracket")
        assert screen.shown_run != first
        assert screen.difference.pair is not None
        assert screen.difference.pair.left.id == screen.shown_run
        assert screen.query_one("#looked").has_focus
        assert "[difference]" in shown
        # What is shown in the transcript brings it back.
        await press(pilot, "left_square_bracket", "full_stop")
        assert view_of(app) == "transcript"
        await press(pilot, "v", "g", "enter")
        assert view_of(app) == "transcript"
        await press(pilot, "escape")
        assert view_of(app) == "branches", "the way one came"
        assert "On where runs diverge" in await press(pilot, "question_mark")
        await press(pilot, "escape", "escape")
        assert view_of(app) == "transcript"
        await press(pilot, "escape")
        assert not isinstance(app.screen, InspectScreen)
        await press(pilot, "4")
        assert view_of(app) == "transcript"


def test_the_way_through_inspect_is_gone_back() -> None:
    places = Places()
    transcript, difference = Place("a", "transcript"), Place("a", "difference", "b")
    places.turn(transcript, "difference")
    places.turn(difference, "transcript")
    assert places.back() is None, "a tab and back again is no way"
    places.turn(transcript, "difference")
    places.visit(difference)
    assert [places.back(), places.back(), places.back()] == [difference, transcript, None]
    places.turn(transcript, "difference")
    places.visit(difference)
    places.step_run("c")
    assert [places.back(), places.back()] == [Place("c", "transcript"), None]
    for _ in range(30):
        places.visit(difference)
    places.forget()
    assert places.back() is None


def attacked(text: str) -> Transcript:
    return Transcript(
        (Message("user", text), Message("assistant", "", text, (0,)), Message("assistant", f"1\n2\n3\n{text}\n")),
        (ToolCall("a", "tool" + text, {"key" + text: text, "in": [{text: [text]}]}, text, message=1),),
        error=RunError("kind" + text, text),
    )


@pytest.mark.sweep
@pytest.mark.parametrize("width", [20, 80, 138])
def test_hostile_texts_stay_displayable_and_within_their_columns(width: int) -> None:
    left = attacked("plain " + "".join(ATTACKS.values()))
    right = attacked("other " + "".join(reversed(ATTACKS.values())) + "\u4f60\u597d" * 40)
    for alignment in (align(left, right), align(left, left), align(left, Transcript()), Alignment(())):
        document = DifferenceDocument(alignment, width)
        document.fold_all(folded=False)
        for block in range(len(document.blocks)):
            document.fold(block, folded=False)
        document.settle(0, 10_000)
        for row in range(document.height):
            line = document.line(row)
            assert width_of(line) <= width
            assert displayable(plain(line)) == plain(line)
            assert "\n" not in plain(line)


def long_pair() -> Alignment:
    """Thirty turns, of which the fifth and the twenty-fifth differ."""

    def made(**answers: str) -> Transcript:
        messages: list[Any] = []
        for number in range(30):
            messages += [Message("user", f"ask {number}"), Message("assistant", answers.get(f"a{number}", "fine"))]
        return Transcript(tuple(messages))

    return align(made(a4="x\ny", a24="no"), made(a4="x\nz", a24="yes"))


def test_what_is_alike_is_one_line_with_its_number() -> None:
    document = DifferenceDocument(long_pair(), 80)
    document.settle(0, 1_000)
    shown = [plain(document.line(row)) for row in range(document.height)]
    assert [line.strip() for line in shown if "alike" in line] == [
        "⋯ 8 steps alike", "⋯ 37 steps alike", "⋯ 9 steps alike",
    ]  # fmt: skip
    assert document.differences == [9, 49]
    assert len(shown) < 20
    first = document.next_difference(-1, 1)
    assert first is not None
    second = document.next_difference(first, 1)
    assert second is not None
    assert document.next_difference(second, 1) == first
    assert document.next_difference(first, -1) == second
    assert [document.number_of(block) for block in (first, second, first + 1)] == [1, 2, 0]


def test_folds_open_and_close_and_say_where_a_row_went() -> None:
    document = DifferenceDocument(long_pair(), 80)
    fold = document.index_of(("pair", 20))
    assert fold is not None
    assert document.blocks[fold].is_fold
    before = len(document.blocks)
    document.fold(fold, folded=False)
    assert len(document.blocks) == before + 36
    inside = document.block_of(20)
    assert not document.blocks[inside].is_fold
    anchor = document.anchor(document.top(inside))
    document.fold(inside, folded=True)
    assert len(document.blocks) == before
    assert anchor is not None
    assert document.row_of(anchor) == document.top(fold)


def test_heights_are_exact_where_they_were_asked_for() -> None:
    document = DifferenceDocument(long_pair(), 30)
    for width in (30, 140, 60):
        document.set_width(width)
        document.settle(0, 1_000)
        total = sum(document.bottom(n) - document.top(n) for n in range(len(document.blocks)))
        assert total == document.height
        assert document.line(document.height) == ()
        assert document.block_at(document.height + 5) == len(document.blocks) - 1


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(140, 45), (80, 24)])
async def test_difference_and_divergence_are_tabs_of_inspect(
    recorded: tuple[Path, Path], size: tuple[int, int]
) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=size) as pilot:
        await inspect(pilot, "customers-austria")

        async def click(name: str) -> str:
            lines = text_of(app).splitlines()
            row = next(number for number, line in enumerate(lines) if "difference" in line and "where runs" in line)
            await pilot.click(offset=(lines[row].index(name) + 1, row))
            await settle(pilot)
            return text_of(app)

        assert "[difference]" in await click("difference")
        assert view_of(app) == "difference"
        assert "[where runs diverge]" in await click("where runs diverge")
        assert view_of(app) == "branches"
        assert "[difference]" in await click("difference")
        shown = await click("transcript")
        assert isinstance(app.screen, InspectScreen)
        assert "[transcript]" in shown
        await click("where runs diverge")
        shown = await click("transcript")
        assert isinstance(app.screen, InspectScreen)
