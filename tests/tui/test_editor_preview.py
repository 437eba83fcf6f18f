"""The Editor beside a recorded run: verdict and flips on every keystroke, other runs, Inspect and back; the mouse; and
what was typed when the program is killed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from shop import app_on, run_samples, settle, text_of, until
from terminal import Terminal
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.analysis.criterion_preview import spec_from
from agenteval_tui.core import directories
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.presenters.evidence_pane import NO_EDIT
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.verdict_changes import VerdictChangesScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import ChoiceField
from agenteval_tui.tui.widgets.virtual_list import VirtualList

SUITE = """\
name: Shop
agent: shop/a
agents:
  shop/a: {kind: demo, pace: 0}
tests:
  - id: hello
    name: Hello
    prompt: Where is order W1001 #now?
    repeat: 2
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "e"}]}'
      - name: Never
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "zzz9"}]}'
  - id: other
    name: Other
    prompt: Hello.
    criteria: [{name: A, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "shop.suite.yaml").write_text(SUITE, encoding="utf-8")
    return folder


async def opened(pilot: Pilot[int], file: Path, criterion: str = "") -> EditorScreen:
    app = pilot.app
    assert isinstance(app, AgentevalApp)
    await settle(pilot)
    app.edit_test(str(file.resolve()), "hello", criterion=criterion)
    await until(pilot, lambda: isinstance(app.screen, EditorScreen) and bool(app.screen.controller.doc))
    await settle(pilot)
    assert isinstance(app.screen, EditorScreen)
    return app.screen


async def test_the_editor_and_inspect_name_the_persons_own_keys(shop: Path) -> None:
    folder = directories.config_dir()
    folder.mkdir(parents=True, exist_ok=True)
    own = "edit.relax: f5\nedit.start: ctrl+y\ninspect.fix: f6\ninspect.revert: f4\nhelp: question_mark,f2\n"
    (folder / "keys.yaml").write_text(own + "config.complete: f10\ninspect.relax: f8\n", "utf-8")
    file, db = shop / "shop.suite.yaml", shop.parent / "history.db"
    app = app_on(shop, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot, file, "Never")
        screen.query_one("#config", ConfigEditor).focus()
        await settle(pilot)
        assert "F10 complete" in text_of(app)
        assert "F2 help" in text_of(app)
        assert "(^y)" in text_of(app)
    await asyncio.to_thread(run_samples, shop, db, tests=("hello",))
    app = app_on(shop, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot, file, "Never")
        config = screen.query_one("#config", ConfigEditor)
        config.focus()
        config.replace_all(config.text.replace('"contains": "zzz9"', '"contains_all": ["e", "zzz9"]'))
        await settle(pilot)
        assert "F5 smallest edits  A the first" in text_of(app)
        screen.action_on_a_run()
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run != "")
        await settle(pilot)
        assert re.search("│ F8 smallest edits  A (the )?first", text_of(app))
        assert "F2 help" in text_of(app)
        editor = app.screen.query_one("#config", ConfigEditor)
        editor.replace_all(editor.text.replace("contains_all", "contain_all"))
        await settle(pilot)
        assert re.search(r"│ +F6 (?!fix)", text_of(app)), "the fix of the problem below the config"


async def test_the_verdict_of_a_run_and_what_flips_stand_beside_the_config(shop: Path) -> None:
    file, db = shop / "shop.suite.yaml", shop.parent / "history.db"
    await asyncio.to_thread(run_samples, shop, db, tests=("hello",))
    app = app_on(shop, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot, file, "Never")
        await until(pilot, lambda: screen.controller.preview.impact is not None)
        shown = text_of(app)
        assert "on a run" in shown
        assert "run 1 of 2" in shown
        assert "✗ Never" in shown
        assert "stored: 2 runs of 1 test" in shown
        assert "F7" not in shown
        assert NO_EDIT in shown, "keys that lead to nothing are not offered"
        # An edit: this run's verdict, and how many of the stored ones flip.
        editor = screen.query_one("#config", ConfigEditor)
        editor.focus()
        editor.replace_all(editor.text.replace("zzz9", "e"))
        await settle(pilot)
        shown = text_of(app)
        assert "✓ Never" in shown
        assert "now  ✗✗   0 %" in shown
        assert "then ✓✓ 100 %  +2  F9 list" in shown
        assert "if saved 2 → passed  F9" in shown
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, VerdictChangesScreen))
        await settle(pilot)
        await pilot.press("G", "enter")
        await settle(pilot)
        assert "run 2 of 2" in text_of(app)
        await pilot.press("alt+p")
        await settle(pilot)
        assert "run 1 of 2" in text_of(app)
        # Inspect gets the edit, unsaved as it is; and it is here again afterwards.
        edited = editor.text
        await pilot.press("f10")
        # What is waited for is what it shows: on a busy machine a screen that is still to be mounted looks quiet.
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run != "")
        assert app.screen.query_one("#config", ConfigEditor).text == edited
        app.go("editor")
        await settle(pilot)
        assert editor.text == edited
        assert file.read_text() == SUITE
        # A new criterion is judged, too, before it is anywhere; what it would be is no flip.
        screen.query_one("#criteria", VirtualList).focus()
        await pilot.press("a")
        await until(pilot, lambda: app.screen is not screen)
        await settle(pilot)
        await pilot.press(*"latency", "enter")
        await until(pilot, lambda: "Fast enough" in text_of(app) and screen.controller.preview.spec is not None)
        await until(
            pilot,
            lambda: (
                screen.controller.preview.impact is not None
                and sum(screen.controller.preview.impact.then.values()) == 2
            ),
        )
        assert screen.controller.preview.impact is not None
        assert screen.controller.preview.impact.now == {}
        # Inspect tries it, too, beside the others; what is edited there is in the form afterwards.
        await pilot.press("f10")
        awaited = ("✓ Fast enough", "● new", "if saved: 2 runs of 1 test   ✓")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: all(one in text_of(app) for one in awaited))
        assert isinstance(app.screen, InspectScreen)
        tried = app.screen.query_one("#config", ConfigEditor)
        tried.replace_all(tried.text.replace('"metrics"', '"metrixx"'))
        await settle(pilot)
        before = app.screen.shown_run
        await pilot.press("escape", "left_square_bracket", "right_square_bracket")
        await settle(pilot)
        assert app.screen.shown_run != before
        assert "metrixx" in tried.text
        await pilot.press("e", "ctrl+s")
        await until(pilot, lambda: app.screen is screen)
        await settle(pilot)
        assert "metrixx" in editor.text
        assert "Fast enough" not in file.read_text()
        await pilot.press("ctrl+z")
        # A change of another field counts as well.
        await pilot.press("ctrl+z", "ctrl+z")
        await settle(pilot)
        screen.query_one("#criterion #field-negate", ChoiceField).choose("true", tell=True)
        await settle(pilot)
        assert screen.controller.preview.result is not None
        assert screen.controller.preview.result.negate


async def test_the_mouse_does_what_keys_do_and_a_cut_text_is_put_in_quotes(shop: Path) -> None:
    file = shop / "shop.suite.yaml"
    app = app_on(shop, shop.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot, file)
        assert screen.controller.doc is not None
        choice = screen.query_one("#fields #field-category", ChoiceField)
        before = choice.value
        await pilot.click(choice, offset=(3, 0))
        await settle(pilot)
        assert screen.controller.doc.form.values["category"] == choice.value != before
        # One click on a key of the last line is one step.
        choice.focus()
        for value in ("edge_case", "negative"):
            choice.choose(value, tell=True)
            screen.controller.doc.step("")
            await settle(pilot)
        keys = screen._key_lines(140)[0]
        column = sum(len(text) for text, _ in keys[: next(i for i, one in enumerate(keys) if "undo" in one[0])])
        await pilot.click("#keys", offset=(column + 2, 0))
        await settle(pilot)
        assert screen.controller.doc.form.values["category"] == "edge_case"
        await pilot.click("#criteria", offset=(5, 1))
        await settle(pilot)
        assert screen.query_one("#criterion #field-name", Input).value == "Never"
        screen._focus_pane("test")
        await settle(pilot)
        await pilot.press("f6")
        await settle(pilot)
        # The prompt is cut by its own `#`: F4 in the field fixes the file.
        assert "the prompt ends before `#now?`" in text_of(app)
        screen.query_one("#field-prompt").focus()
        await pilot.press("f4")
        await until(pilot, lambda: file.read_text() != SUITE)
        await settle(pilot)
        assert "#now?" in text_of(app)
    assert file.read_text() == SUITE.replace("Where is order W1001 #now?", '"Where is order W1001 #now?"')


def test_what_was_typed_when_the_program_was_killed_is_offered_at_the_next_start(shop: Path) -> None:
    argv = [sys.executable, "-m", "agenteval_tui", str(shop)]
    file = shop / "shop.suite.yaml"
    with Terminal(argv) as terminal:
        terminal.wait_for("hello")
        terminal.settle()
        terminal.send("2")
        terminal.wait_for("prompt")
        terminal.settle()
        terminal.send("\r")
        terminal.settle()
        terminal.send("\t\t")
        terminal.settle()
        terminal.send("typed ")
        terminal.wait_for("typed Where")
        terminal.settle(0.6)
        # Over a slow line: a letter in a text of several lines sends some hundreds of bytes.
        assert terminal.bytes_for("x") < 4000
        drafts = Path(os.environ["AGENTEVAL_DATA_DIR"]) / "drafts"
        terminal.wait_for(lambda _: any("typed x" in one.read_text() for one in drafts.glob("test-*.json")))
        os.kill(terminal.pid, signal.SIGKILL)
    assert file.read_text() == SUITE
    with Terminal(argv) as terminal:
        terminal.wait_for("was not saved")
        terminal.wait_for("+prompt: typed xWhere is order W1001")
        terminal.settle()
        terminal.send("r")
        terminal.wait_for(lambda one: "+prompt" not in one.text and "typed xWhere" in one.text)
    assert file.read_text() == SUITE


def test_a_form_of_texts_makes_a_criterion() -> None:
    spec = spec_from({"name": "n", "prototype_class": "TextResponse", "config_uxon": "{}", "weight": "x", "negate": ""})
    assert (spec.weight, spec.severity, spec.negate, spec.expected_value) == (1.0, "error", False, None)
    spec = spec_from({"name": "n", "weight": "0", "negate": "true", "pass_threshold": "0.5", "expected_value": "5"})
    assert (spec.weight, spec.negate, spec.pass_threshold, spec.expected_value) == (0.0, True, 0.5, "5")
