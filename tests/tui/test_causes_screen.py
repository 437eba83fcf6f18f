"""The Causes screen, the sheet of a label, the review queue and the agreement with people, by their keys."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from failing import make
from pictures import SIZES, Pictures, pictures
from shop import app_on, copy_samples, settle, text_of
from textual.pilot import Pilot

from agenteval_tui.history import quarantines, triage
from agenteval_tui.history.store import Store
from agenteval_tui.tui.presenters.cause_rows import CauseRow, cause_lines
from agenteval_tui.tui.screens.agreement import AgreementScreen
from agenteval_tui.tui.screens.causes import CausesScreen
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.label import LabelScreen
from agenteval_tui.tui.screens.review import ReviewScreen
from agenteval_tui.tui.screens.triage_dialog import TriageScreen
from agenteval_tui.tui.widgets.virtual_list import VirtualList

__all__ = ["pictures"]  # a fixture

NOON = 1_795_262_400_000  # 2026-11-21 12:00 UTC


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty folder of suites, and a history of two executions."""
    monkeypatch.setenv("AGENTEVAL_WHO", "kim")
    (tmp_path / "suites").mkdir()
    db = tmp_path / "made.db"
    with Store.open(db) as store:
        make(store, "E1", started_ms=NOON - 86_400_000, smoke=["text", ""], refund=["tool"])
        make(store, "E2", started_ms=NOON, smoke=["text", "text", ""], refund=["text", "down", "down"],
             mood=["person", "person", "person"])  # fmt: skip
    return tmp_path / "suites", db


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    await settle(pilot)
    return text_of(pilot.app)  # type: ignore[arg-type]


async def test_a_cause_is_decided_about_once(failed: tuple[Path, Path]) -> None:
    app = app_on(*failed)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await settle(pilot)
        shown = await press(pilot, "9")
        assert isinstance(app.screen, CausesScreen)
        for part in ("5 failures = 2 causes", "the newest runs of each test, compared with the execution before",
                     "2 open",
                     '60 %   The filter: "5000" is not in the text', "40 % ! the agent failed (timeout)",
                     "60 % of the failures, 3 of 6 runs of", "1 run had it before", "example 1 of 3",
                     'nearest   "5.000"', "gone"):  # fmt: skip
            assert part in shown, part
        assert "example 2 of 3" in await press(pilot, "n")
        assert "the last of its runs" in await press(pilot, "n", "n")
        # Enter opens the example that is shown; next and previous go on within the cause.
        shown = await press(pilot, "p", "enter")
        assert isinstance(app.screen, InspectScreen)
        assert "failure 2 of 3" in shown
        assert "failure 3 of 3" in await press(pilot, "n")

        await press(pilot, "9", "I")
        assert isinstance(app.screen, TriageScreen)
        assert "not a time" in await press(pilot, "o", "l", "d", "down", "s", "o", "o", "n", "enter")
        shown = await press(pilot, "backspace", "backspace", "backspace", "backspace", "9", "d", "enter")
        assert "ignored" in shown
        assert "1 open" in shown
        store = app.session.store
        (decision,) = triage.decisions(store)
        assert (decision.decision, decision.note, decision.who) == ("ignore", "old", "kim")
        assert decision.until_ms is not None
        # The cursor went on to what is open still.
        (row,) = [line for line in shown.splitlines() if line.startswith("▌")]
        assert "the agent failed (timeout)" in row
        # Only what is open; the next one goes into quarantine; then all is decided.
        await press(pilot, "F", "Q")
        shown = await press(pilot, "enter")
        assert "Every cause has a decision." in shown
        assert [one.test_id for one in quarantines.active(store)] == ["refund"]
        assert "0 open" in await press(pilot, "escape")
        await press(pilot, "g", "u")
        assert len(triage.decisions(store)) == 1
        # What is gone is not decided about; a filter finds causes by their tests.
        assert "This cause is gone" in await press(pilot, "G", "b")
        assert "No cause matches these words" in await press(pilot, "slash", *"nobody")
        shown = await press(pilot, "escape", "w")
        assert "execution E2" in shown
        shown = await press(pilot, "w")
        assert "7 failures = 3 causes" in shown
        assert app.screen.query_one("#causes", VirtualList).cursor == 0, "other runs: from the worst on"
        again = app_on(*failed)
    async with again.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        assert "7 failures = 3 causes   all runs" in text_of(again), (
            "the screen and its scope are those of the last time"
        )
    app = app_on(*failed)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        # From the history and from the suites there is a way here.
        await press(pilot, "5")
        assert "execution E2" in await press(pilot, "C")
        await press(pilot, "1")
        assert "the newest runs of each test" in await press(pilot, "C")
        # The criterion is to be fixed: its config is where the cursor is.
        await press(pilot, "g", "e")
        await press(pilot, "enter")
        assert isinstance(app.screen, InspectScreen)
        assert app.focused is not None
        assert app.focused.id == "config"


async def test_labels_are_given_one_after_the_other_and_taken_back(failed: tuple[Path, Path]) -> None:
    app = app_on(*failed)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        shown = await press(pilot, "0")
        assert isinstance(app.screen, ReviewScreen)
        for part in ("1 of 3", "mood", "Is it kind?", "waits for a person", "0 labelled"):
            assert part in shown, part
        store = app.session.store
        assert "2 of 3" in await press(pilot, "y")
        assert store.run("E2-008").status == "passed"
        assert "rude" in await press(pilot, "e", *"rude 1", "enter")
        assert "3 of 3" in await press(pilot, "2")
        (label,) = store.labels(["E2-007"])
        assert (label.rating, label.passed, label.comment, label.who) == (2, None, "rude 1", "kim")
        assert store.run("E2-007").status == "failed"
        assert "All done: 2 labelled, 1 skipped." in await press(pilot, "right_square_bracket")
        await press(pilot, "u")
        assert "2 of 3" in await press(pilot, "u")
        assert store.run("E2-007").status == "needs_review"
        assert store.labels(["E2-007"]) == []
        # In the sheet: a rating and a verdict, for the run instead of the criterion.
        await press(pilot, "L")
        assert isinstance(app.screen, LabelScreen)
        assert "no verdict yet" in await press(pilot, "enter")
        shown = await press(pilot, "3", "n", "t")
        assert "Label ─" in shown
        assert "the run as a whole ─" in shown
        shown = await press(pilot, "4", "y", "c", *"fine", "enter")
        assert isinstance(app.screen, ReviewScreen)
        (label,) = store.labels(["E2-007"])
        assert (label.rating, label.passed, label.whole, label.comment) == (4, True, True, "fine")
        # Three criteria decide this run: what was said of it was said of none of them.
        assert store.run("E2-007").status == "needs_review"
        # Failures that nobody has labelled come behind what waits.
        assert "3 of 8" in await press(pilot, "F")
        await press(pilot, "n")
        await press(pilot, "y")
        await press(pilot, "n")
        # Digits are ratings in their field only: in a pane they lead to other screens.
        await press(pilot, "tab", "9")
        assert isinstance(app.screen, CausesScreen)
        assert "6 of 8" in await press(pilot, "0")
        shown = await press(pilot, "c")
        assert isinstance(app.screen, AgreementScreen)
        for part in ("The filter", "They agree on 1 of 2", "both failed 1"):
            assert part in shown, part
        shown = await press(pilot, "enter")
        assert isinstance(app.screen, InspectScreen)


async def test_a_digit_rates_only_after_somebody_went_to_the_rating(failed: tuple[Path, Path]) -> None:
    app = app_on(*failed)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "0")
        await press(pilot, "2")
        assert isinstance(app.screen, EditorScreen)
        assert app.session.store.labels(["E2-008"]) == []
        # With the rating, digits are ratings, one run after the other.
        await press(pilot, "0")
        await press(pilot, "tab", "4")
        assert "3 of 3" in await press(pilot, "2")
        assert [label.rating for label in app.session.store.labels(["E2-008", "E2-007"])] == [4, 2]
        # Who comes back from another screen has not gone to it again.
        await press(pilot, "9")
        await press(pilot, "0")
        await press(pilot, "2")
        assert isinstance(app.screen, EditorScreen)


async def test_empty_histories_say_what_to_do(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "none.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "Press 1 to go to the suites" in await press(pilot, "9")
        assert "Nothing is waiting for a person." in await press(pilot, "0")
        assert "label some runs first" in await press(pilot, "c")


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal, time zone and time of day everywhere."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for module in ("causes", "review"):
        monkeypatch.setattr(f"agenteval_tui.tui.screens.{module}.now_ms", lambda: NOON + 120_000)


async def test_what_they_look_like(pictures: Pictures, failed: tuple[Path, Path], still: None) -> None:
    with Store.open(failed[1]) as store:
        (gone,) = [one for one in _signatures(store) if "timeout" in one]
        context = triage.Context(failed=2, runs=6, tests=(("/suites/shop.suite.yaml", "refund"),))
        triage.decide(store, triage.Decision(gone, "ignore", "the server is slow", "kim", NOON + 60_000, None, context))
    async with pictures.of(app_on(*failed)) as pilot:
        for name, key in (("causes", "9"), ("review", "0")):
            await press(pilot, key)
            await pictures.take(f"test_what_they_look_like[{name}-{{size}}]", *SIZES, (200, 60))


def _signatures(store: Store) -> list[str]:
    from agenteval_tui.history.causes import failures

    return sorted({one.signature for one in failures(store)})


@pytest.mark.sweep
@pytest.mark.parametrize("width", [20, 38, 78])
def test_a_cause_stays_within_its_pane(width: int) -> None:
    from attacks import ATTACKS

    from agenteval_tui.analysis.causes import CauseGroup
    from agenteval_tui.core.display import displayable
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.grading.results import CriterionResult, Outcome
    from agenteval_tui.tui.presenters.cause_rows import CauseRows
    from agenteval_tui.tui.styled_text import plain, width_of

    text = "".join(ATTACKS.values())
    cause = Cause("failed", text, "X", text, text, text, text)
    group = CauseGroup(cause, (1,), ("r" + text,), (("s", text),), (text,), (0,), ("",), expected=text)
    result = CriterionResult(text, "", Outcome.FAILED, 0.0, 1.0, prototype_class=text, value=text)
    lines = [*cause_lines(CauseRow(group), width, 0, None, result)]
    lines.append(CauseRows([CauseRow(group)]).line(0, width, focused=True))
    for line in lines:
        assert width_of(line) <= width
        assert displayable(plain(line)) == plain(line)
        assert "\n" not in plain(line)


def test_the_next_open_cause_is_found_also_if_the_causes_were_read_again() -> None:
    from agenteval_tui.analysis.causes import CauseGroup
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.tui.presenters.cause_rows import CauseRows

    def read() -> list[CauseRow]:
        causes = [Cause("failed", title, "X", "a", "a", "a", title) for title in ("one", "two", "three")]
        return [CauseRow(CauseGroup(one, (1,), ("r",), (("s", "t"),), ("",), (0,), ("",))) for one in causes]

    rows, (one, two, three) = CauseRows(read()), read()
    keys = [rows.key(index) for index in range(3)]
    assert len(set(keys)) == 3
    assert [rows.open_after(row) for row in (one, two, three)] == [keys[1], keys[2], keys[0]]
    assert CauseRows(read()[:1]).open_after(one) == keys[0]
    assert CauseRows(read()[1:]).open_after(one) == keys[1], "it is gone: the first"


def test_a_share_of_100_percent_does_not_touch_its_bar() -> None:
    from agenteval_tui.analysis.causes import CauseGroup, Trend
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.tui.presenters.cause_rows import CauseRows
    from agenteval_tui.tui.styled_text import plain

    def group(share: float, trend: Trend = "") -> CauseGroup:
        cause = Cause("failed", "a", "X", "a", "a", "a", "Title")
        return CauseGroup(cause, (1,), ("r",), (("s", "t"),), ("",), (0,), ("",), share=share, trend=trend)

    for shares in ((1.0,), (1.0, 0.4), (0.6, 0.4)):
        rows = CauseRows([CauseRow(group(share)) for share in shares] + [CauseRow(group(0.0, "gone"))])
        lines = [plain(rows.line(index, 90, focused=False)) for index in range(rows.count())]
        assert all(f" {round(share * 100)} %" in line for share, line in zip(shares, lines, strict=False))
        assert len({line.index("Title") for line in lines}) == 1


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, "Gives nothing away: issue_voucher was called, which is forbidden"),
        (82, "Gives not…: issue_voucher was called, which is forbidden"),
        (80, "Gives not…: issue_vouc… was called, which is forbidden"),
        (76, "issue_voucher was called, which is forbidden"),
        (70, "issue_voucher was called, which is forbidden"),
    ],
)
def test_a_title_without_room_keeps_what_decides(width: int, shown: str) -> None:
    """The criterion's name is cut first, then the tool's, never the verb or a figure."""
    from agenteval_tui.analysis.causes import CauseGroup
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.tui.presenters.cause_rows import CauseRows
    from agenteval_tui.tui.styled_text import plain

    cause = Cause("failed", "Gives nothing away", "", "ToolCheck", "forbidden_tools", "issue_voucher")
    group = CauseGroup(cause, (1, 2), ("r", "q"), (("s", "t"),), ("",), (0,), ("",), share=0.19)
    line = plain(CauseRows([CauseRow(group)]).line(0, width, focused=False))
    assert line.replace("▆", "").split() == ["2", "19", "%", *shown.split(), "1", "test"]


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (80, """The right filter: "country = 'Deutschland'" is not in the text"""),
        (60, """The right fil…: "country = 'Deutschland'" is not in the text"""),
        (50, """The right…: "country = 'Deuts…" is not in the text"""),
        (34, """"country = 'D…" is not in the text"""),
    ],
)
def test_a_text_is_cut_inside_its_quotes(room: int, shown: str) -> None:
    from agenteval_tui.analysis.causes import CauseGroup
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.tui.presenters.cause_rows import title_in

    cause = Cause("failed", "The right filter", "", "TextMatch", "contains")
    wanted = """"country = 'Deutschland'\""""
    group = CauseGroup(cause, (1,), ("r",), (("s", "t"),), ("",), (0,), ("",), expected=wanted)
    assert title_in(group, room) == shown


@pytest.mark.sweep
@pytest.mark.parametrize("width", [60, 80, 100, 120, 140])
@pytest.mark.parametrize("reason", ["an answer that is polite enough for a customer who has waited for a week", "x"])
@pytest.mark.parametrize(
    "name",
    [
        "Names the status of order {} that the customer asked for",
        "Every answer to a customer about a delayed order names the date and the carrier of order {}",
        "{} is named",
    ],
)
def test_rows_of_different_causes_never_look_alike(width: int, name: str, reason: str) -> None:
    from agenteval_tui.analysis.causes import CauseGroup
    from agenteval_tui.grading.causes import Cause
    from agenteval_tui.tui.presenters.cause_rows import CauseRow, CauseRows
    from agenteval_tui.tui.styled_text import plain, width_of

    def group(number: int) -> CauseGroup:
        cause = Cause("failed", name.format(f"#W10{number}"), "", "TextMatch", "contains")
        return CauseGroup(cause, (1,), ("r",), (("s", "t"),), ("",), (0,), ("",), share=0.1, expected=f'"{reason}"')

    rows = CauseRows([CauseRow(group(number)) for number in range(11, 16)])
    lines = [rows.line(index, width, focused=False) for index in range(rows.count())]
    assert len({plain(line) for line in lines}) == len(lines), [plain(line) for line in lines]
    assert all(f"#W10{number}" in plain(line) for number, line in zip(range(11, 16), lines, strict=True))
    assert all(width_of(line) <= width for line in lines)


async def test_a_key_that_needs_a_cause_or_a_result_says_so_where_there_is_none(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    app = app_on(suites, tmp_path / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "9", "n", "p", "0", "y", "e", "right_square_bracket", "L")
        said = [(one.text, one.times) for one in app.notices.all()]
        assert said == [
            ("Nothing waits here. Press F to add failures without a label.", 4),
            ("Choose a cause first.", 2),
        ]


async def test_the_agreement_with_people_looks_like_this(
    pictures: Pictures, failed: tuple[Path, Path], still: None
) -> None:
    async with pictures.of(app_on(*failed)) as pilot:
        await press(pilot, "0")
        await press(pilot, "y")
        await press(pilot, "tab", "2")
        await press(pilot, "F")
        await press(pilot, "n")
        await press(pilot, "y")
        await press(pilot, "c")
        assert isinstance(pilot.app.screen, AgreementScreen)
        await pictures.take("test_agreement[{size}]", *SIZES, (200, 60))
