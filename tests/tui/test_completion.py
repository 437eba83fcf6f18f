"""Completion and hover in the config editor: offered while typing, taken with one key, never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop import app_on, copy_samples, run_samples, screen_of, settle, text_of, until
from textual.pilot import Pilot

from agenteval_tui.tui.widgets.config_editor import ConfigEditor, Popup

TEST = "orders-of-customer"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("completion")
    suites = copy_samples(folder)
    run_samples(suites, folder / "history.db", tests=(TEST,))
    return suites, folder / "history.db"


async def editing(pilot: Pilot[int], text: str, offset: int) -> ConfigEditor:
    """The Inspect screen, its editor focused and holding `text`, the cursor at `offset`."""
    app = pilot.app
    await settle(pilot)
    run = next(iter(app.session.store.runs_of_execution(app.session.store.executions()[0].id)))  # type: ignore[attr-defined]
    app.inspect(run.id)  # type: ignore[attr-defined]
    await settle(pilot)
    editor = screen_of(app).query_one("#config", ConfigEditor)  # type: ignore[arg-type]
    await pilot.press("e")
    await until(pilot, lambda: editor.has_focus)
    editor.replace_all(text)
    await settle(pilot)
    editor.go_to(offset)
    await pilot.pause()
    return editor


def popup(pilot: Pilot[int]) -> Popup | None:
    found = [one for one in pilot.app.screen.query(Popup) if one.display]
    return found[0] if found else None


async def test_names_are_offered_while_typing_and_tab_takes_the_first(history: tuple[Path, Path]) -> None:
    text = '{"metrics": [{"type": "TextMatch", }]}'
    async with app_on(*history).run_test(size=(140, 45)) as pilot:
        editor = await editing(pilot, text, text.index("}]}"))
        await pilot.press(*"contains_a")
        await until(pilot, lambda: popup(pilot) is not None and "contains_any" in text_of(pilot.app))  # type: ignore[arg-type]
        assert editor.has_focus
        await pilot.press("down", "tab")
        await pilot.pause()
        assert popup(pilot) is None
        assert "contains_a" in editor.text
        assert '"contains_a' in editor.text, "the name is written as JSON has it"
        before = editor.text
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert editor.text != before, "taking it can be undone"


@pytest.mark.parametrize("key", ["tab", "enter"])
async def test_tab_and_enter_take_what_is_used_most(history: tuple[Path, Path], key: str) -> None:
    text = '{"metrics": [{"type": ""}]}'
    async with app_on(*history).run_test(size=(80, 24)) as pilot:
        editor = await editing(pilot, text, text.index('""') + 1)
        await pilot.press(*"To")
        await until(pilot, lambda: popup(pilot) is not None)
        await pilot.press(key)
        await pilot.pause()
        assert editor.text == '{"metrics": [{"type": "ToolCheck"}]}', "more suites use it than Tokens"
        assert popup(pilot) is None


async def test_enter_behind_a_number_or_a_whole_word_is_a_new_line(history: tuple[Path, Path]) -> None:
    text = '{"metrics": [{"type": "TextMatch", "weight": }]}'
    async with app_on(*history).run_test(size=(80, 24)) as pilot:
        editor = await editing(pilot, text, text.index("}]}"))
        await pilot.press("2")
        await settle(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert '"weight": 2\n' in editor.text


async def test_escape_leaves_what_was_typed_alone(history: tuple[Path, Path]) -> None:
    text = '{"metrics": [{"type": "TextMatch", }]}'
    async with app_on(*history).run_test(size=(80, 24)) as pilot:
        editor = await editing(pilot, text, text.index("}]}"))
        await pilot.press(*"cont")
        await until(pilot, lambda: popup(pilot) is not None)
        await pilot.press("escape")
        await pilot.pause()
        assert popup(pilot) is None
        assert editor.has_focus, "escape closes the list first, not the editor"
        assert "cont}" in editor.text


async def test_what_recordings_know_is_offered(history: tuple[Path, Path]) -> None:
    text = '{"metrics": [{"type": "ToolCheck", "tools": [{"name": ""}]}]}'
    async with app_on(*history).run_test(size=(140, 45)) as pilot:
        editor = await editing(pilot, text, text.index('""') + 1)
        await pilot.press("ctrl+@")
        await until(pilot, lambda: popup(pilot) is not None and "seen tool" in text_of(pilot.app))  # type: ignore[arg-type]
        await pilot.press("enter")
        await pilot.pause()
        name = editor.text.partition('"name": "')[2].partition('"')[0]
        assert name
        assert f'"{name}"' in editor.text


async def test_f3_says_what_a_word_means_and_f5_lays_out(history: tuple[Path, Path]) -> None:
    text = '{"metrics": [{"type": "TextMatch", /* why */ "contains": "x"}]}'
    async with app_on(*history).run_test(size=(140, 45)) as pilot:
        editor = await editing(pilot, text, text.index("contains") + 2)
        await pilot.press("f3")
        await until(pilot, lambda: popup(pilot) is not None and "contains:" in text_of(pilot.app))  # type: ignore[arg-type]
        await pilot.press("left")
        await pilot.pause()
        assert popup(pilot) is None
        await pilot.press("f5")
        await pilot.pause()
        assert "/* why */" in editor.text
