"""The Compare screen driven by keys, and what it looks like at 80x24 and 140x45: looked at pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks import ATTACKS
from compared import BEFORE, NEW, NOON, OLD, Planned, answered, keep, text, two_executions, write_suite
from msgspec.structs import replace
from pictures import SIZES, Pictures, pictures, resized
from shop import app_on, screen_of, settle, text_of
from test_snapshots import still
from textual.pilot import Pilot

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.comparison import compare
from agenteval_tui.analysis.comparison_sides import Sides, sides_of
from agenteval_tui.core.display import displayable
from agenteval_tui.history.baselines import baselines, set_baseline
from agenteval_tui.history.records import RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.tui.presenters.comparison import CompareRows, detail_lines, head_lines, rows_of
from agenteval_tui.tui.screens.causes import CausesScreen
from agenteval_tui.tui.screens.compare.screen import CompareScreen
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.criterion_versions import CriterionVersionsScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.quarantine import QuarantineScreen
from agenteval_tui.tui.screens.run.controller import baseline_changes
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.styled_text import plain, width_of

__all__ = ["pictures", "still"]  # fixtures

pytestmark = pytest.mark.xdist_group("snapshots")


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """The suite, and a history with both executions; the old one is the baseline."""
    suite = write_suite(tmp_path / "suites")
    with Store.open(tmp_path / "history.db") as store:
        two_executions(store, str(suite))
        set_baseline(store, OLD, who="ada", at_ms=NOON)
    return suite.parent, tmp_path / "history.db"


async def test_what_needs_a_comparison_says_so_where_there_is_none(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suites")
    app = app_on(suite.parent, tmp_path / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        for screen in ("6", "7", "9"):
            shown = await press(pilot, screen)
            assert shown.rstrip().splitlines()[-1].split("  ") == [" 1 suites", "? help"], "no key that leads nowhere"
        await press(pilot, "6", "b", "y")
        (said,) = app.notices.all()
        assert said.text == "Nothing is compared yet. Press h or l to choose an execution."
        assert said.times == 2
        await press(pilot, "h")
        assert isinstance(app.screen, CompareScreen), "no sheet with nothing to choose in it"
        assert "No execution has ended yet." in [notice.text for notice in app.notices.all()]


async def press(pilot: Pilot[int], *keys: str) -> str:
    """One after another, each when the screen has what it asked for; movements need no waiting."""
    for key in keys:
        await pilot.press(key)
        if key not in ("j", "k"):
            await settle(pilot)
    await settle(pilot)
    return text_of(pilot.app)  # type: ignore[arg-type]


def on_row(shown: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith("▌"))


async def test_from_the_suites_to_what_regressed_and_into_the_runs(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        shown = await press(pilot, "g", "c")
        assert isinstance(app.screen, CompareScreen)
        assert "3 tests worse   1 test better" in shown
        assert "baseline  2025-11-19 11:00  →  smoke v2  2025-11-20 11:00" in shown
        assert "pass  90 % ━━━━━━━━━─ → 57 % ━━━━━━────   −33 (−83 … +33)" in shown
        assert "judge noise" in on_row(shown), "the cursor is on the first change"
        shown = await press(pilot, "j", "j")
        assert "step 1: it called search_docs, now it answers at once" in on_row(shown)
        assert "Fisher's exact test: p = 0.17" in shown
        assert "TextMatch" in shown, "the metrics of the chosen criterion"
        await press(pilot, "enter")
        assert isinstance(app.screen, InspectScreen)
        assert app.screen.view == "difference"
        await press(pilot, "escape")
        await screen_of(app).do("inspect")
        assert "Soon." in await press(pilot)
        assert isinstance(app.screen, InspectScreen)
        # From Inspect to the versions of its criterion.
        shown = await press(pilot, "V")
        assert "1 version" in shown
        assert isinstance(app.screen, CriterionVersionsScreen)
        assert "restore this version" not in shown, "it is the one in the file"
        assert "compare over the runs" not in shown, "there is no other"
        await press(pilot, "escape", "escape")
        shown = await press(pilot, "F")
        assert "1 unchanged" in shown
        assert "top-products" in shown
        await pilot.press("slash", *"germany")
        shown = await press(pilot)
        assert "refund-policy /" not in shown
        assert "customers-germany / right filter" in shown
        await press(pilot, "escape")
        await press(pilot, "y")
        assert app.clipboard == f"agenteval compare baseline {NEW} --db {recorded[1]}"
        # What now: the causes, the criterion's config, or a quarantine.
        await press(pilot, "C")
        assert isinstance(app.screen, CausesScreen)
        await press(pilot, "escape", "e")
        assert isinstance(app.screen, InspectScreen)
        assert app.screen.query_one("#config").has_focus_within
        await press(pilot, "escape", "escape", "Q")
        assert isinstance(app.screen, QuarantineScreen)
        assert app.screen.values["what"] == "right filter", "the row is this criterion's"
        await press(pilot, "escape")
        # Another left side, swapped, and back to the baseline.
        await press(pilot, "h")
        assert isinstance(app.screen, SelectScreen)
        await pilot.press(*"11-19")
        shown = await press(pilot, "enter")
        assert "gone" in shown, "the execution has tests that the new one has not"
        await screen_of(app).do("swap")
        shown = await press(pilot)
        assert "1 test worse   3 tests better" in shown
        # What an execution says by itself when it has ended.
        said = baseline_changes(app.session.store, NEW)
        assert said == (
            "Against the baseline: 2 tests regressed; 3 tests worse; 1 test better; 1 fall within chance;"
            " in the baseline, and did not run: gone.",
            "warning",
        )


async def test_baselines_and_versions_from_the_screen(recorded: tuple[Path, Path]) -> None:
    folder, db = recorded
    app = app_on(folder, db)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        shown = await press(pilot, "6", "j", "j", "j", "j", "j")
        assert "customers-germany / right filter" in on_row(shown)
        assert "restore this version" not in await press(pilot, "V")
        shown = await press(pilot, "j")
        assert isinstance(app.screen, CriterionVersionsScreen)
        assert "in the file now" in shown
        assert "r restore this version   c compare over the runs" in shown
        # Over the stored runs, without calling anybody: the old version fails what the new one passes.
        shown = await press(pilot, "c")
        assert "1 test worse" in shown
        assert "McNemar" in shown
        assert "10/10" in on_row(shown)
        assert "4/10" in on_row(shown)
        assert "criterion" in on_row(shown), "both judge the same outputs"
        await screen_of(app).do("swap")
        assert "1 test better" in await press(pilot)
        await press(pilot, "y")
        assert app.clipboard.startswith("agenteval criterion 'customers-germany/right filter' --compare ")
        shown = await press(pilot, "escape")
        assert "3 tests worse" in shown, "back to what was compared before"
        assert "customers-germany / right filter" in on_row(shown)
        await press(pilot, "V", "j", "r")
        assert '"contains": "5000"' in (folder / "support.suite.yaml").read_text("utf-8")
        assert app.session.is_own(folder / "support.suite.yaml"), "what the app wrote itself is not news"
        await press(pilot, "B")
        assert isinstance(app.screen, ConfirmScreen)
        await press(pilot, "y")
        store = app.session.store
        assert "customers-germany" not in {one.test_id for one in baselines(store)}
        await press(pilot, "h", "enter")
        await press(pilot, "b", "y")
        assert {one.execution_id for one in baselines(store) if one.test_id == "fresh"} == {NEW}
        broken = next(one for one in baselines(store) if one.test_id == "broken")
        assert broken.execution_id == OLD, "it had only errors and kept what it had"


async def test_without_a_baseline_it_says_what_to_do(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        keep(store, OLD, BEFORE)
    app = app_on(write_suite(tmp_path / "s").parent, tmp_path / "h.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        shown = await press(pilot, "6")
        assert "No execution before has a verdict on these tests" in shown
        assert "run the tests again" in shown
        assert "Press h to choose the left side" in shown
        assert "agenteval baseline" not in shown, "a screen names keys, not commands"


async def test_sides_that_cannot_be_compared_name_the_keys_that_choose_others(recorded: tuple[Path, Path]) -> None:
    folder, db = recorded
    with Store.open(db) as store:
        other = replace(BEFORE[2], test="another")
        keep(store, "01KB2000000000000000OTHERS", [other], suite=str(folder / "other.suite.yaml"), title="others")
    app = app_on(folder, db)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await settle(pilot)
        app.compare("baseline", NEW)
        await press(pilot)

        async def choose(side: str, *words: str) -> str:
            await press(pilot, side)
            await press(pilot, *words)
            await press(pilot, "enter")
            return app.notices.all()[0].text

        keys = "(press h to choose another left side, or l another right one)"
        assert f"has a baseline {keys}" in await choose("l", *"others")
        assert f"have no test in common {keys}" in await choose("h", *"others")
        assert f"both sides have the same runs (smoke v2) {keys}" in await choose("h", *"v2")


async def test_runs_that_end_meanwhile_count_and_the_key_leads_to_the_newest(recorded: tuple[Path, Path]) -> None:
    folder, db = recorded
    newest = "01KB2000000000000000NEWEST"
    with Store.open(db) as store:
        store.resume_execution(NEW, again=["NEW-top-products-0-1"]).result()
        app = app_on(folder, db)
        async with app.run_test(size=(140, 45)) as pilot:
            await settle(pilot)
            assert "1 of 20 runs of smoke v2 has not ended" in await press(pilot, "6")
            store.run_ended(RunEnded("NEW-top-products-0-1", "passed", 1.0, NOON, 1.0, 1, answered("ten"))).result()
            app.navigation.tell_new_runs()
            assert "not ended" not in await press(pilot)
            # Back to it is back to what was compared; its key asks for what is newest by now.
            await press(pilot, "enter")
            keep(store, newest, BEFORE[2:3], suite=str(folder / "support.suite.yaml"), title="one test")
            assert "→  smoke v2" in await press(pilot, "escape")
            await press(pilot, "1")
            assert "→  one test" in await press(pilot, "6")
            # So it is too where the newest was compared from another screen, which chose the sides.
            await press(pilot, "1", "g", "c")
            keep(
                store, "01KB300000000000000000LAST", BEFORE[2:3], suite=str(folder / "support.suite.yaml"), title="two"
            )
            app.navigation.tell_new_runs()
            await press(pilot, "1")
            assert "→  two" in await press(pilot, "6")


async def test_its_key_compares_again_only_what_changed(recorded: tuple[Path, Path]) -> None:
    app = app_on(*recorded)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        shown = await press(pilot, "6", "j", "j")
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        found = screen.controller.comparison
        await press(pilot, "1")
        assert await press(pilot, "6") == shown
        assert screen.controller.comparison is found
        with Store.open(recorded[1]) as store:
            set_baseline(store, NEW, at_ms=NOON)
        await press(pilot, "1")
        await press(pilot, "6")
        assert screen.controller.comparison is not found


async def test_a_baseline_is_offered_where_there_is_one(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    folder, db = recorded
    for history, is_offered in ((db, True), (tmp_path / "without.db", False)):
        if not is_offered:
            with Store.open(history) as store:
                two_executions(store, suite=str(folder / "support.suite.yaml"))
        app = app_on(folder, history)
        async with app.run_test(size=(140, 45)) as pilot:
            await settle(pilot)
            shown = await press(pilot, "6", "h")
            assert isinstance(app.screen, SelectScreen)
            assert "smoke v2" in shown
            assert ("the baseline runs of these tests" in shown) == is_offered


async def test_what_could_not_be_compared_is_asked_for_again(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    db = tmp_path / "empty.db"
    app = app_on(recorded[0], db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        assert "tests worse" not in await press(pilot, "6")
        await press(pilot, "1")
        with Store.open(db) as store:
            two_executions(store, suite=str(recorded[0] / "support.suite.yaml"))
        assert "3 tests worse" in await press(pilot, "6")


def test_rows_fit_and_foreign_text_is_harmless(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        for execution, said in ((OLD, "yes"), (NEW, "no")):
            tests = [
                Planned(f"t{n}-{attack}", [answered(f"{said} {attack}")], [text("yes", name=attack)], variation=attack)
                for n, attack in enumerate(ATTACKS.values())
            ]
            keep(store, execution, tests, at_ms=NOON + (execution == NEW), title=next(iter(ATTACKS.values())))
        found = compare(store, *sides_of(store, Sides(OLD, NEW)))
        attributed = {one.key: attribute(store, one.pairs) for one in found.tests}
    rows = CompareRows(rows_of(found, everything=True), attributed)
    for width in (30, 79, 80, 140):
        lines = [*head_lines(found, width), *(rows.line(n, width, focused=False) for n in range(rows.count()))]
        for row in rows.rows:
            known = attributed.get(row.change.key) if row.change is not None else None
            lines += detail_lines(row, width, known, {})
        for line in lines:
            assert width_of(line) <= width
            assert plain(line) == displayable(plain(line)), "nothing raw"


async def test_pictures(pictures: Pictures, recorded: tuple[Path, Path]) -> None:
    async with pictures.of(app_on(*recorded)) as pilot:
        for size in (*SIZES, (200, 60)):
            await resized(pilot, size)
            await press(pilot, "6", "g", "j", "j", "j")
            await pictures.take("test_compare[{size}]", size)
            await press(pilot, "j", "j", "j", "V", "j")
            await pictures.take("test_versions_at_{size}", size)
            await press(pilot, "escape", "1")
