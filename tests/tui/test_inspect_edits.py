"""Inspect on a failed run, and edits of a config there: judged, counted, saved in place, never over somebody else's."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from sampled import fresh, go_to, open_editor, samples
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual.pilot import Pilot

from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.verdict_changes import VerdictChangesScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("screens")


async def test_a_failed_run_its_evidence_and_edits_that_are_not_saved(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        for step in (
            a_failed_run_shows_why,
            evidence_that_is_nowhere_is_said_in_the_transcript_too,
            a_broken_edit_is_an_error_with_a_fix_that_one_key_applies,
            a_draft_follows_its_criterion_through_runs_and_criteria,
            the_smallest_edits_that_pass_are_one_key_away,
            a_test_is_made_of_the_run,
        ):
            await settle(pilot)
            await step(pilot, app)
            app.go("suites")


async def test_a_run_that_is_opened_while_it_runs_is_read_again(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        bench = app.screen.controller.bench  # type: ignore[attr-defined]
        bench.run = replace(bench.run, status="running")
        app.navigation.tell_new_runs()
        await until(pilot, lambda: app.screen.controller.bench.run.status == "failed")  # type: ignore[attr-defined]
        same = app.screen.controller.bench  # type: ignore[attr-defined]
        app.navigation.tell_new_runs()
        await settle(pilot)
        assert app.screen.controller.bench is same  # type: ignore[attr-defined]


async def a_failed_run_shows_why(pilot: Pilot[int], app: AgentevalApp) -> None:
    await go_to(pilot, "order-status")
    await pilot.press("enter")
    await settle(pilot)
    assert isinstance(app.screen, InspectScreen)
    shown = text_of(app)
    assert "Where is my order #W1042?" in shown
    assert "get_order" in shown
    assert "differs only in" in shown or "order_id" in shown
    assert "failure 1 of 3" in shown
    assert '"ToolCheck"' in shown
    await pilot.press("t")
    await settle(pilot)
    assert "Toolname:" in text_of(app)
    await pilot.press("n")
    await settle(pilot)
    assert "failure 2 of 3" in text_of(app)


async def evidence_that_is_nowhere_is_said_in_the_transcript_too(pilot: Pilot[int], app: AgentevalApp) -> None:
    await go_to(pilot, "kunden-deutschland")
    await pilot.press("enter")
    await settle(pilot)
    view = app.screen.query_one("#transcript", TranscriptView)
    assert view.has_focus
    view.set_marks(())
    await pilot.press("full_stop")
    await settle(pilot)
    assert any("does not point to" in note.message for note in app._notifications)


async def a_broken_edit_is_an_error_with_a_fix_that_one_key_applies(pilot: Pilot[int], app: AgentevalApp) -> None:
    await go_to(pilot, "kunden-deutschland")
    await pilot.press("e")
    await settle(pilot)
    editor = app.screen.query_one("#config", ConfigEditor)
    good = editor.text
    editor.replace_all(good.replace('"contains_all"', '"contains_al"'))
    await settle(pilot)
    assert "problems 1" in text_of(app)
    assert re.search(r"then !!!!! +0 % ", text_of(app))
    # Before an edit is checked there is no fix: those of the text before it are for other places.
    bad = editor.text
    editor.insert("    ", (0, 0))
    app.screen.action_apply_fix()  # type: ignore[attr-defined]
    assert editor.text == "    " + bad
    editor.replace_all(bad)
    await settle(pilot)
    await pilot.press("f4")
    await settle(pilot)
    assert editor.text == good
    assert "problems 0" in text_of(app)


async def a_draft_follows_its_criterion_through_runs_and_criteria(pilot: Pilot[int], app: AgentevalApp) -> None:
    editor = await open_editor(pilot)
    saved = editor.text
    edited = saved.replace("country = '{{country}}'", "country")
    editor.replace_all(edited)
    # Gone elsewhere before the message of the edit arrived: it belongs to the criterion it was made in.
    app.screen.action_next_criterion()  # type: ignore[attr-defined]
    await settle(pilot)
    assert editor.text != edited
    assert "edited" not in text_of(app)
    app.screen.action_previous_criterion()  # type: ignore[attr-defined]
    await settle(pilot)
    assert editor.text == edited
    app.screen.action_next_run()  # type: ignore[attr-defined]
    await settle(pilot)
    assert editor.text == edited
    assert "edited" in text_of(app)
    await pilot.press("f6")
    await settle(pilot)
    assert editor.text == saved


async def the_smallest_edits_that_pass_are_one_key_away(pilot: Pilot[int], app: AgentevalApp) -> None:
    await open_editor(pilot, "order-status")
    await pilot.press("f7")
    await until(pilot, lambda: re.search(r"\+\d+ of \d+ runs", text_of(app)) and "counted" not in text_of(app))
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, InspectScreen))
    await settle(pilot)
    assert "graded with your edit: passed" in text_of(app)
    assert "problems 0" in text_of(app)


async def a_test_is_made_of_the_run(pilot: Pilot[int], app: AgentevalApp) -> None:
    await go_to(pilot, "order-status")
    await pilot.press("enter")
    await settle(pilot)
    await pilot.press("alt+m")
    await until(pilot, lambda: "Make a test from this run" in text_of(app) and "· Calls get_order" in text_of(app))
    assert "The run did not pass, and these criteria expect what it did. Change them." in text_of(app)
    await pilot.press("enter")
    path = app.session.suite_paths()[0] / "support.suite.yaml"
    await until(pilot, lambda: "id: where-is-my-order-w1042" in path.read_text())


async def test_an_edit_is_saved_in_its_place_and_never_over_what_somebody_else_wrote(tmp_path: Path) -> None:
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    file = suites / "tabellen.suite.yaml"
    app = app_on(suites, db)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        editor = await open_editor(pilot)
        await an_edit_is_judged_counted_saved_and_nothing_else_changes(pilot, app, editor, file)
        await a_save_keeps_the_cursor_and_what_was_typed_meanwhile(pilot, app, editor, file)
        await pilot.press("f6")
        await settle(pilot)
        await a_file_that_changed_meanwhile_is_not_overwritten_without_asking(pilot, app, editor, file)
        await an_edit_goes_to_its_criterion_although_the_file_was_rearranged(pilot, app, editor, file)


async def an_edit_is_judged_counted_saved_and_nothing_else_changes(
    pilot: Pilot[int], app: AgentevalApp, editor: ConfigEditor, file: Path
) -> None:
    before = file.read_text(encoding="utf-8")
    at = editor.text.index("country = '")
    editor.go_to(at + len("country"))
    await pilot.press(*["delete"] * len(" = '{{country}}'"))
    await settle(pilot)
    shown = text_of(app)
    assert "edited" in shown
    assert "graded with your edit: passed" in shown
    assert re.search(r"then ✓+ 100 %  \+3  F9 list", shown)
    await pilot.press("f9")
    await settle(pilot)
    assert isinstance(app.screen, VerdictChangesScreen)
    assert "3 runs would flip" in text_of(app)
    await pilot.press("escape")
    await settle(pilot)
    await pilot.press("escape")
    await settle(pilot)
    assert text_of(app).splitlines()[-1].startswith(" ^s save"), "an edit is to be saved, wherever the keys go"
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert "saved" in text_of(app)
    assert text_of(app).splitlines()[-1].startswith(" r run again"), "and then its test to be run"
    await pilot.press("e")
    await settle(pilot)
    after = file.read_text(encoding="utf-8")
    assert after == before.replace("\"country = '{{country}}'\"", '"country"')


async def a_save_keeps_the_cursor_and_what_was_typed_meanwhile(
    pilot: Pilot[int], app: AgentevalApp, editor: ConfigEditor, file: Path
) -> None:
    edited = editor.text + "// kept\n"
    editor.replace_all(edited)
    await settle(pilot)
    editor.go_to(30)
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert editor.cursor_offset == 30
    assert "saved" in text_of(app)
    editor.replace_all(edited + "// one")
    await settle(pilot)
    app.screen.action_save()  # type: ignore[attr-defined]
    editor.replace_all(edited + "// one, two")
    await settle(pilot)
    assert editor.text == edited + "// one, two"
    assert "edited" in text_of(app)
    assert "// one" in file.read_text(encoding="utf-8")
    assert ", two" not in file.read_text(encoding="utf-8")


async def a_file_that_changed_meanwhile_is_not_overwritten_without_asking(
    pilot: Pilot[int], app: AgentevalApp, editor: ConfigEditor, file: Path
) -> None:
    editor.replace_all(editor.text.replace('"country"', '"countr"'))
    file.write_text("# somebody was here\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    await settle(pilot)
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert "Changed on disk since it was loaded" in text_of(app)
    assert "+# somebody was here" in text_of(app)
    assert '"country"' in file.read_text(encoding="utf-8")
    await pilot.press("y")
    await settle(pilot)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# somebody was here\n")
    assert '"countr"' in text.split("contains_all")[1].splitlines()[0]
    assert '"country"' not in text
    assert editor.text.count('"countr"') == 1
    # A second save, with nothing edited and then with an edit, takes nothing of theirs back.
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert file.read_text(encoding="utf-8") == text
    editor.replace_all(editor.text + "// again")
    await settle(pilot)
    await pilot.press("ctrl+s")
    await settle(pilot)
    second = file.read_text(encoding="utf-8")
    assert second.startswith("# somebody was here\n")
    assert second.replace("// again", "") == text
    editor.replace_all(editor.text.replace("// again", ""))
    await settle(pilot)
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert file.read_text(encoding="utf-8") == text


async def an_edit_goes_to_its_criterion_although_the_file_was_rearranged(
    pilot: Pilot[int], app: AgentevalApp, editor: ConfigEditor, file: Path
) -> None:
    editor.replace_all(editor.text.replace('"countr"', '"count"'))
    await settle(pilot)
    before = file.read_text(encoding="utf-8")
    first = "      - name: Der richtige Filter"
    assert before.count(first) >= 1
    other = (
        "      - name: Somebody's new one\n        prototype_class: TextResponse\n"
        "        config_uxon: '{\"metrics\": []}'\n"
    )
    changed = before.replace(first, other + first, 1)
    file.write_text(changed, encoding="utf-8")
    await pilot.press("ctrl+s")
    await settle(pilot)
    await pilot.press("y")
    await settle(pilot)
    assert file.read_text(encoding="utf-8") == changed.replace('"countr"', '"count"', 1)
    # And when the criterion is gone, nothing is written and the edit is kept.
    editor.replace_all(editor.text + "// more")
    await settle(pilot)
    gone = file.read_text(encoding="utf-8").replace("name: Der richtige Filter", "name: Another name")
    file.write_text(gone, encoding="utf-8")
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert file.read_text(encoding="utf-8") == gone
    assert editor.text.endswith("// more")
    assert any("is no longer in the file" in note.message for note in app._notifications)


async def test_an_agent_that_cannot_be_reached_is_an_error_with_its_remedy_and_no_verdict(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "net.suite.yaml").write_text(
        "name: Net\nagent: a\nagents:\n"
        '  a: {kind: openai, base_url: "http://127.0.0.1:9/v1", model: x, max_attempts: 1}\n'
        "tests:\n  - id: t\n    prompt: hi\n    criteria:\n      - name: c\n        prototype_class: TextResponse\n"
        '        config_uxon: \'{"metrics": [{"type": "TextMatch", "contains": "x"}]}\'\n'
    )
    await asyncio.to_thread(run_samples, suites, tmp_path / "history.db")
    app = app_on(suites, tmp_path / "history.db")
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "t")
        await pilot.press("enter")
        await settle(pilot)
        shown = text_of(app)
        assert "nothing listens there" in shown
        assert "is the server running?" in shown
        assert "The agent failed on this run" in shown
        assert "✗" not in shown


async def test_saving_asks_where_the_suite_could_not_be_run_then(tmp_path: Path) -> None:
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("order-status",))
    file = suites / "support.suite.yaml"
    before = file.read_bytes()
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        editor = await open_editor(pilot, "order-status")
        good = editor.text
        editor.replace_all(good.replace('"ToolCheck"', '"ToolCheque"'))
        await settle(pilot)
        for key, text in (("escape", None), ("f4", good)):
            await pilot.press("ctrl+s")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            assert "1 error: the suite can't run" in text_of(app)
            assert "y save anyway" in text_of(app)
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, InspectScreen)
            assert file.read_bytes() == before
            assert text in (None, editor.text), "F4 fixes it"
        editor.replace_all(good + "nonsense")
        await settle(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await settle(pilot)
        assert b"nonsense" in file.read_bytes()
