"""What a person types or pastes into a sheet, however odd, is answered with a sentence and breaks nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual.widgets import Input

from agenteval_tui.core.numbers import typed_whole
from agenteval_tui.extensions.otel.sheet import ListenScreen
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.recording_request import RecordingRequest
from agenteval_tui.runs.tapes import ReplayPrice
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.recordings import ReplayOffer
from agenteval_tui.tui.screens.editor.controller import DatasetFile
from agenteval_tui.tui.screens.fork import ForkScreen
from agenteval_tui.tui.screens.import_export_dialogs import ExportRunScreen
from agenteval_tui.tui.screens.plan import ResumeScreen, read_options
from agenteval_tui.tui.screens.record import RecordScreen, ReplayScreen
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Form

pytestmark = pytest.mark.xdist_group("sheets")

MANY_DIGITS = "9" * 5_000  # more than Python reads as a number
LONG, NOBODY, NULL = "x" * 5_000, "~nobody-has-this-name/file", "a\0b"


def test_a_whole_number_has_digits_only_and_not_too_many() -> None:
    said = [typed_whole(one) for one in ("5", "0", "", "-1", "1.5", "abc", MANY_DIGITS)]
    assert said == [5, 0, None, None, None, None, None]
    made, problems = read_options({"repeat": MANY_DIGITS}, PlanOptions(), "")
    assert (made, problems) == (None, {"repeat": "a whole number from 1 to 100,000"})
    assert DatasetFile(Path("/nowhere"), "rows.csv", MANY_DIGITS).first_rows()[0] == []


@pytest.mark.parametrize("limits", [{"max_seconds": 90.5}, {"max_seconds": 12345678.0}, {"max_cost": 1234.5678901}])
async def test_the_limits_of_an_execution_are_those_that_it_resumes_with(tmp_path: Path, limits: Any) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        asked: list[Any] = []
        app.push_screen(ResumeScreen(PlanOptions(**limits)), asked.append)
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert asked == [PlanOptions(**limits)]
        assert read_options({"max_seconds": "soon"}, PlanOptions(), "")[1] == {
            "max_seconds": "a number of seconds above 0"
        }


def recorded() -> RecordScreen:
    return RecordScreen(RecordingRequest("python agent.py"))


def replayed() -> ReplayScreen:
    return ReplayScreen(ReplayOffer("run", "test", "python agent.py", ReplayPrice(1, 0, None), False, Path()))


def forked() -> ForkScreen:
    return ForkScreen("run", Transcript((Message("user", "where?"),)), 0)


@pytest.mark.parametrize(
    ("made", "field"),
    [(recorded, "cassette"), (recorded, "mcp_config"), (replayed, "mcp_config"), (ListenScreen, "criteria")],
    ids=["cassette", "servers", "replayed", "criteria"],
)
async def test_a_name_that_no_file_has(tmp_path: Path, made: Callable[[], Sheet[Any]], field: str) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for name, said in (("long", LONG), ("nobody", NOBODY), ("null", NULL)):
            sheet = made()
            asked: list[Any] = []
            app.push_screen(sheet, asked.append)
            await settle(pilot)
            sheet.query_one(f"#field-{field}", Input).value = said
            await settle(pilot)
            assert app.screen is sheet, name
            await pilot.press("enter")
            await settle(pilot)
            if said == NOBODY and made is not ListenScreen:
                assert len(asked) == 1, name  # a file may have that name
            else:
                assert not asked, name
                assert "file name" in text_of(app) or "there is no such file" in text_of(app), name
                sheet.dismiss(None)
                await settle(pilot)


async def test_a_program_that_is_longer_than_its_field_is_shown_whole(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    program = f"python agent.py {'--quiet ' * 20} --and-delete-everything"
    offer = ReplayOffer("run", "test", program, ReplayPrice(1, 0, None), False, Path())
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        # The history may be somebody else's: who starts it sees all of what is started.
        app.push_screen(ReplayScreen(offer))
        await settle(pilot)
        assert "--and-delete-everything" in text_of(app)
        app.screen.query_one("#field-program", Input).value = "python agent.py"
        await settle(pilot)
        assert "--and-delete-everything" not in text_of(app)


async def test_what_cannot_be_forked(tmp_path: Path) -> None:
    refused: tuple[tuple[dict[str, str], str], ...] = (
        ({"n": MANY_DIGITS}, "the count must be a whole number from 1 to 1,000"),
        ({"n": "abc"}, "the count must be a whole number from 1 to 1,000"),
        ({"max_cost": "inf"}, "the max cost must be a number of US dollars above 0"),
        ({"max_cost": "nan"}, "the max cost must be a number of US dollars above 0"),
        ({"values": "file", "text": LONG}, "this file name is too long"),
        ({"values": "file", "text": NOBODY}, "there is no such file"),
        ({"values": "file", "text": NULL}, "null character"),
    )
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        for values, said in refused:
            sheet = forked()
            asked: list[Any] = []
            app.push_screen(sheet, asked.append)
            await settle(pilot)
            sheet.query_one(Form).fill(values)
            await pilot.press("ctrl+s")
            await settle(pilot)
            assert not asked, values
            assert said in text_of(app), values
            sheet.dismiss(None)
            await settle(pilot)


async def test_a_port_has_five_digits_at_most(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        sheet = ListenScreen()
        asked: list[Any] = []
        app.push_screen(sheet, asked.append)
        await settle(pilot)
        sheet.query_one("#field-port", Input).value = MANY_DIGITS
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert not asked
        assert "a port is a number from 1 to 65535" in text_of(app)


async def test_in_a_folder_that_was_deleted_sheets_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    suites = copy_samples(tmp_path)
    await asyncio.to_thread(run_samples, suites, tmp_path / "h.db", tests=("order-status",))
    app = app_on(suites, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        monkeypatch.chdir(gone)
        gone.rmdir()
        said = "the current folder does not exist any more"
        app.record()
        await settle(pilot)
        assert said in app.notices.all()[0].text
        run = app.session.store.runs_of_execution(app.session.store.execution("last").id)[0]
        export = ExportRunScreen(run)
        app.push_screen(export)
        await settle(pilot)
        assert "current folder does not exist any more" in text_of(app)
        await pilot.press("escape")
        # A suite of the samples is no place for a new one: that is the current folder.
        monkeypatch.setattr(app.session, "on_samples", lambda: True)
        app.new_suite()
        await until(pilot, lambda: said in text_of(app))
        await pilot.press("escape")
        await settle(pilot)
        monkeypatch.chdir(tmp_path)
