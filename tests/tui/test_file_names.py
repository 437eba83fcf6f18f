"""Names of files that people type, and that no file can have: said in the form, and nothing breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampled import fresh, samples
from shop import app_on, settle, until
from textual.widgets import Input

from agenteval_tui.tui.screens.import_export_dialogs import ExportScreen, ImportScreen
from agenteval_tui.tui.widgets.form import Form

__all__ = ["fresh", "samples"]  # fixtures
pytestmark = pytest.mark.xdist_group("sheets")


@pytest.mark.parametrize("dialog", ["import", "export"])
async def test_a_name_that_no_file_can_have_is_said(fresh: tuple[Path, Path], dialog: str) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        [row, *_] = app.session.store.runs_of_execution(app.session.store.executions()[0].id)
        sheet = ImportScreen() if dialog == "import" else ExportScreen([row])
        app.push_screen(sheet)
        await settle(pilot)
        form, box = sheet.query_one(Form), sheet.query_one("#field-path", Input)

        def said() -> str:
            return "\n".join(str(strip.text) for strip in app.screen._compositor.render_strips())

        for text, words in (("a" * 5000, "too long"), ("b" * 300, "too long")):
            box.value = text
            await settle(pilot)
            form.post_message(Form.Submitted(form, "path"))
            await until(pilot, lambda words=words: words in said())  # type: ignore[misc]
            await pilot.press("tab")
            await settle(pilot)
        assert app.screen is sheet
        assert app._exception is None
        assert not [one for one in app.notices.all() if "program" in one.text]
