"""Jump mode, notifications, themes while choosing, the palette's places, help of the pane, and what a start keeps."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, as_they_were, copy_samples, run_samples, screen_of, settle, text_of, until
from textual.color import Color
from textual.css import stylesheet
from textual.css.model import RuleSet
from textual.css.parse import parse
from textual.css.types import CSSLocation
from textual.notifications import Notification
from textual.widgets import Input
from textual.widgets._toast import Toast

from agenteval_tui.core import directories
from agenteval_tui.tui import command_providers, notifications
from agenteval_tui.tui.action import EVERYWHERE
from agenteval_tui.tui.actions import ACTIONS, BY_ID, footer, named_keys
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.command_providers import listed_places, runs_named
from agenteval_tui.tui.jump_mode import LETTERS, MOST, JumpLabel, codes
from agenteval_tui.tui.keymap import collisions, read_keymap
from agenteval_tui.tui.notifications import MOST as MOST_NOTICES
from agenteval_tui.tui.notifications import Notices, NotificationSource
from agenteval_tui.tui.screens.help import PARTS, SCREENS, help_lines, introduction
from agenteval_tui.tui.screens.history.screen import HistoryScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.notification_log import NotificationLogScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.state import MOST_STARTS, State, name_of_start, read
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.terminal.output_filters import displayable_note
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

pytestmark = pytest.mark.xdist_group("screens")


@pytest.fixture(scope="module")
def samples(recorded_ran: tuple[Path, Path]) -> Iterator[tuple[Path, Path]]:
    """(folder with the recorded suite, history in which it ran once)."""
    yield from as_they_were(*recorded_ran)


def labels(app: AgentevalApp) -> dict[str, JumpLabel]:
    """The letters that are shown now."""
    return {label.code: label for label in app.screen.query(JumpLabel) if label.display}


def tree_of(app: AgentevalApp) -> VirtualList:
    return app.screen.query_one("#tree", VirtualList)


# Jump mode


@pytest.mark.parametrize("count", [0, 1, 25, 26, 27, 60, 400, MOST, MOST + 9])
def test_letters_are_never_the_beginning_of_others(count: int) -> None:
    found = codes(count)
    assert len(set(found)) == len(found) == min(count, MOST)
    assert not [(a, b) for a in found if len(a) == 1 for b in found if len(b) == 2 and b[0] == a]
    assert count > len(LETTERS) or all(len(one) == 1 for one in found)


async def test_letters_lead_to_panes_rows_fields_and_over_sheets(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        tree = tree_of(app)
        await pilot.press("semicolon")
        await settle(pilot)
        shown = labels(app)
        assert len(shown) == tree.count + 2  # the rows, and two panes
        third = next(code for code, one in shown.items() if one.target.y == tree.region.y + 2)
        await pilot.press(third)
        assert tree.cursor == 2
        assert not labels(app)
        # Another key, a click, nothing to match: the letters go, and nothing else happens.
        for key in ("escape", "1", "ctrl+o"):
            await pilot.press("ctrl+o")
            await settle(pilot)
            assert labels(app)
            await pilot.press(key)
            assert not labels(app)
            assert tree.cursor == 2
        await pilot.press("ctrl+o")
        await settle(pilot)
        detail = next(code for code, one in labels(app).items() if one.target.x > tree.region.right)
        await pilot.press(detail)
        assert app.focused is app.screen.query_one("#detail")
        # Out of a text field, where a letter would be text.
        await pilot.press("tab", "slash", "c", "ctrl+o")
        await settle(pilot)
        assert labels(app)
        await pilot.press(next(code for code, one in labels(app).items() if one.target.go and one.target.open))
        assert app.focused is tree
        assert app.screen.query_one("#filter", Input).value == "c"
        # A capital opens what it leads to.
        await pilot.press("escape", "semicolon")
        await settle(pilot)
        first = next(code for code, one in labels(app).items() if one.target.y == tree_of(app).region.y + 1)
        await pilot.press(first.upper())
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)
        # The program's name lists the screens, for the mouse.
        await pilot.click("#title", offset=(4, 0))
        assert isinstance(app.screen, SelectScreen)
        await until(pilot, lambda: "Go to the run history" in text_of(app))
        await pilot.press("escape")
        # Blocks of the transcript, and more targets than letters.
        await pilot.press("semicolon")
        await settle(pilot)
        assert {len(code) for code in labels(app)} <= {1, 2}
        view = app.screen.transcript.view
        where = [one for one in labels(app).values() if view.region.contains(one.target.x, one.target.y)]
        assert len(where) > 2
        await pilot.press("escape", "f2")
        assert isinstance(app.screen, SelectScreen)
        await pilot.press("ctrl+o")
        await settle(pilot)
        assert labels(app)
        await pilot.press("escape")
        assert isinstance(app.screen, SelectScreen)  # escape was for the letters


HEADS = ("Used most on Suites", "Screens", "Also on Suites")


def test_the_help_cuts_nothing() -> None:
    for scope in {one.scope for one in ACTIONS}:
        lines = [plain(line) for line in help_lines(scope, {}, 74, with_ids=True)]
        assert max(map(len, lines)) <= 74
        together = " ".join(" ".join(lines).split())
        for one in ACTIONS:
            assert one.scope != scope or not one.keys or f"{one.description} {one.id}" in together


def test_the_help_begins_with_what_is_used_most_then_the_screens_and_has_no_names_of_actions() -> None:
    own_key = " ".join(plain(line) for line in help_lines("suites", {"help.ids": "ctrl+k"}, 74))
    assert "Press ^k to see the names of the actions." in " ".join(own_key.split())
    lines = [plain(line) for line in help_lines("suites", {}, 74)]
    heads = [at for at, line in enumerate(lines) if line and not line.startswith(" ")]
    first, most, screens, also = heads[0], *(at for at in heads if lines[at] in HEADS)
    assert (first, lines[0][:10]) == (0, "Your suite")
    assert lines[most - 1] == ""
    assert screens - most <= 10
    assert also - screens == 12
    assert not [one.id for one in ACTIONS if one.id in " ".join(lines) and "." in one.id]


def test_each_screen_and_each_pane_is_introduced_with_keys_that_the_person_has() -> None:
    scopes = {one.scope for one in ACTIONS} - {EVERYWHERE, "config"}
    assert set(SCREENS) == set(PARTS) == scopes
    for scope in scopes:
        said = introduction(scope, {})
        assert said.count(". ") >= 1, scope
        assert "{" not in said
        for action in re.findall(r"{([^}]+)}", SCREENS[scope]):
            assert BY_ID[action].scope == scope
    assert "Press ^x to run" in introduction("suites", {"suites.run": "ctrl+x"})
    assert "the tree has suites" in " ".join(plain(line) for line in help_lines("suites", {}, 74, part="tree"))


def test_while_letters_are_typed_help_begins_with_the_keys_that_work() -> None:
    lines = [
        plain(line).strip()
        for line in help_lines("inspect", {"inspect.save": "s,f12"}, 74, typing=("inspect", "config"))
    ]
    first, used = lines.index("While you type"), lines.index("Used most on Inspect")
    shown = lines[first + 1 : used]
    keys = [line.split()[0] for line in shown if line]
    assert keys[-1] == "esc"
    assert {"F12", "^t", "F7", "^space"} <= set(keys), "a person's own key too"
    assert not [key for key in keys if len(key) == 1], "a letter would be written"
    assert "In the config editor" not in lines
    assert "While you type" not in [plain(line).strip() for line in help_lines("inspect", {}, 74)]


async def test_the_help_names_the_part_that_has_the_focus_and_fits_small_terminals(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("tab", "question_mark")
        await settle(pilot)
        assert "You are here: the details of what is selected" in text_of(app)
        for width, height in ((20, 5), (140, 45), (80, 24)):
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            shown = [line for line in text_of(app).splitlines() if line.strip()]
            frame = app.screen.query_one("#sheet").region
            assert (frame.right <= width, frame.bottom <= height) == (True, True)
            assert ("Help" in shown[frame.y], "esc close" in shown[-1]) == (True, True)
        # No row of it is cut where each takes several.
        assert all(width_of(line) <= 15 for line in help_lines("suites", {}, 15, with_ids=True))


async def test_the_palette_has_a_line_each_with_groups_and_the_key_at_the_right(samples: tuple[Path, Path]) -> None:
    for width in (140, 80):
        app = app_on(*samples)
        async with app.run_test(size=(width, 45)) as pilot:
            await settle(pilot)
            await pilot.press("colon")
            await until(pilot, lambda app=app: "this screen" in text_of(app))  # type: ignore[misc]
            await settle(pilot)
            lines = [line[(width - 80) // 2 : (width + 80) // 2].strip() for line in text_of(app).splitlines()]
            first = next(at for at, line in enumerate(lines) if "this screen" in line)
            assert lines[first].strip("│ ").endswith(" r")
            assert lines[first + 1].strip("│ ").endswith(" R")
            assert lines[first - 2].startswith("╭─ Commands ─")
            assert any(line.startswith("╰─ enter do it   ↑ ↓ move   esc close ─") for line in lines)
            await pilot.press(*"history", "down")
            await until(pilot, lambda app=app: "go to        Go to the run history" in text_of(app))  # type: ignore[misc]
            # What another screen does is found too, and leads there.
            await pilot.press(*("backspace",) * 7, *"prune")
            await until(pilot, lambda app=app: "on history   Prune old runs, by" in text_of(app))  # type: ignore[misc]
            await settle(pilot)  # with the cursor on it
            await pilot.press("enter")
            await until(pilot, lambda app=app: app.screen.SCOPE == "history")  # type: ignore[misc]
            await pilot.press("1")


# Notifications


def test_the_last_notices_are_kept_newest_first() -> None:
    notices = Notices()
    for number in range(MOST_NOTICES + 5):
        notices.add(f"note {number}", "information", NotificationSource("run", str(number)) if number == 7 else None)
    notices.add(f"note {MOST_NOTICES + 4}", "information", None)
    kept = notices.all()
    assert len(kept) == MOST_NOTICES
    assert [one.times for one in kept[:2]] == [2, 1]
    assert [one.text for one in kept[:2]] == [f"note {MOST_NOTICES + 4}", f"note {MOST_NOTICES + 3}"]
    assert notices.last_place() == NotificationSource("run", "7")


async def test_a_notification_leads_to_what_it_is_about_and_is_listed(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    db = tmp_path / "history.db"
    execution = await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    app = app_on(suites, db)
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+g")
        assert "leads anywhere" in app.notices.all()[0].text
        # The same once more stands once, and is counted; and few stand at once.
        for _ in range(2):
            app.say("No notification leads anywhere yet.")
        await until(pilot, lambda: "yet.  ×3" in text_of(app))
        assert text_of(app).count("leads anywhere") == 1
        for number in range(5):
            app.say(f"note {number}")
        await until(pilot, lambda: "note 4" in text_of(app))
        shown = text_of(app)
        assert [f"note {number}" in shown for number in range(5)] == [False, False, False, True, True]
        assert "leads anywhere" not in shown
        row = app.session.store.execution(execution)
        # An execution that was running and is not any more, and one of another history.
        from agenteval_tui.runs.live_registry import Live

        app.live_executions._live = {
            one: Live(one, 1, "", "samples", 0) for one in (execution, "01JZZZZZZZZZZZZZZZZZZZZZZZ")
        }
        await app.live_executions.take({})
        said = app.notices.all()[0]
        assert (said.place, f"{row.passed} of {row.runs} passed" in said.text) == (
            NotificationSource("execution", execution),
            True,
        )
        assert app.live_executions._live == {}
        # What still runs and has met a failure: said once.
        live = {execution: Live(execution, 1, "", "samples", 0)}
        await app.live_executions.take(live)
        await app.live_executions.take(live)
        app.live_executions._live.clear()
        about = [one for one in app.notices.all() if one.place is not None and one.place.kind == "run"]
        assert len(about) == 1
        assert about[0].text.startswith("kunden-deutschland run")
        await pilot.pause()
        assert "^g: go there" in text_of(app)
        await pilot.press("N")
        assert isinstance(app.screen, NotificationLogScreen)
        await pilot.pause()
        assert "kunden-deutschland run" in text_of(app)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        await pilot.press("ctrl+g")
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)
        assert about[0].place is not None
        assert app.screen.shown_run == about[0].place.ref
        # A suite that another program writes is said; one that this app writes is not.
        await pilot.press("1")
        await settle(pilot)
        path = next(suites.glob("tabellen*.yaml"))
        loaded = next(one for one in app.session.workspace.suites() if one.path.name == path.name)
        app.session.workspace.duplicate_tests(loaded, ["tausenderpunkt"])
        assert app.session.is_own(path)
        path.write_text(path.read_text(encoding="utf-8") + "\n# touched\n", encoding="utf-8")
        assert not app.session.is_own(path)
        await until(pilot, lambda: any("changed on disk" in one.text for one in app.notices.all()))
        assert app.notices.all()[0].place == NotificationSource("suite", loaded.key)


# Themes, help, palette


async def test_a_start_reads_each_stylesheet_once(samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[CSSLocation] = Counter()

    def counted(scope: str, css: str, read_from: CSSLocation, **named: Any) -> Iterable[RuleSet]:
        read[read_from] += 1
        return parse(scope, css, read_from, **named)

    monkeypatch.setattr(stylesheet, "parse", counted)
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        # (Textual reads its own of a base class anew where a widget of another depth inherits it.)
        ours = {Path(file).name: times for (file, _), times in read.items() if file.endswith(".tcss")}
        assert ours == dict.fromkeys((Path(file).name for file in app.css_path), 1)
        # The colours are those of the app's theme, and of the next one.
        for theme in (app.theme, "textual-light"):
            app.theme = theme
            await settle(pilot)
            assert app.screen.styles.background == Color.parse(app.theme_variables["background"])


async def test_a_theme_is_seen_while_choosing_and_kept_when_chosen(samples: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "config" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: mine\ndark: false\ncolours: {accent: '#aa0000'}")
    (folder / "broken.yaml").write_text("name: broken\ncolours: {accent: reddish}")
    (folder / "worse.yaml").write_text("[")
    app = app_on(*samples)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        wrong = [one for one in app.notices.all() if one.severity == "error"]
        assert len(wrong) == 1
        assert "reddish" in wrong[0].text
        assert "worse.yaml" in wrong[0].text
        before = app.theme
        await pilot.press("f2", "p", "a", "p")
        assert app.theme == "paper"
        await pilot.press("escape")
        assert app.theme == before
        assert app.state.theme(True) != "paper"
        await pilot.press("f2", *"mine", "enter")
        assert app.theme == "mine" in (app.state.theme(True), app.state.theme(False))
        await pilot.press("question_mark")
        said = [plain(line) for line in app.screen.query_one("#help", LinesView)._lines]
        pane = said.index("In the pane with the focus")
        assert said.index("Used most on Suites") < pane < said.index("Everywhere")
        assert any("Next row" in line and "down j" in line for line in said[pane:])
        assert not any("Scroll Left" in line for line in said)
        assert app.screen.query_one("#help", LinesView).max_scroll_y > 0
        await pilot.press("escape", "ctrl+p", *"reviews-k")
        await until(pilot, lambda: "test of Recordings" in text_of(app))
        await pilot.press("enter")
        await settle(pilot)
        assert (tree_of(app).cursor_key or "").endswith("reviews-kettle")


async def test_the_palette_lists_its_commands_before_suites_and_history_are_read(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = threading.Event()
    monkeypatch.setattr(command_providers, "listed_places", lambda session: read.wait(250) and listed_places(session))
    app = app_on(*samples)
    async with app.run_test(size=(120, 40)) as pilot:
        try:
            await until(pilot, lambda: "reviews-kettle" in text_of(app))
            await pilot.press("ctrl+p")
            await until(pilot, lambda: "plan a run" in text_of(app).lower())
            await pilot.press("r", "e")  # the second letter ends the search for the first one, and not the reading
        finally:
            read.set()
        await pilot.press(*"views-k")
        await until(pilot, lambda: "test of Recordings" in text_of(app))


def test_the_palette_knows_suites_tests_executions_and_runs(samples: tuple[Path, Path]) -> None:
    session = app_on(*samples).session
    try:
        found = listed_places(session)
        assert {one.place.kind for one in found} == {"suite", "test", "execution"}
        run = session.store.run_rows(session.store.run_ids()[:1])[0]
        assert runs_named(session, run.id)[0].place == NotificationSource("run", run.id)
        assert runs_named(session, "kettle")[0].place.kind == "run"
        assert runs_named(session, 'nobody said "this') == []
    finally:
        session.close()


# Keys of one's own


def test_what_is_wrong_in_keys_yaml_is_said_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    assert read_keymap(path) == ({}, [])
    path.write_text(
        "suites.run: ctrl+r\nsuites.rnu: x\njump: ctrl+m\nhelp: ?, F1\nlist.down: n\ngo.suites: 1\nquit: []\nback: {}\n"
    )
    keymap, problems = read_keymap(path)
    assert keymap == {"suites.run": "ctrl+r", "help": "question_mark,f1", "list.down": "n", "go.suites": "1"}
    assert ["did you mean `suites.run`" in problems[0], "terminals send" in problems[1], len(problems)] == [
        True,
        True,
        4,
    ]
    for text, said in (("- a", "map actions to keys"), ("a: [", "line"), ("\xff", "can't be read")):
        path.write_bytes(text.encode("latin-1"))
        assert said in read_keymap(path)[1][0]
    path.write_text("")
    assert read_keymap(path) == ({}, [])


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("ctrl+fnord", "there is no key `fnord`"),
        ("pagdown", "did you mean `pagedown`?"),
        ("contrl+r", "did you mean `ctrl`?"),
        ("^rx", "write keys such as `ctrl+r`"),
        ("shift+x", "write that, such as `X`"),
        ("alt+f", "terminals send alt+f as ctrl+right"),
        ("ä", ""), ("^R", ""), ("ctrl+pgdn", ""), ("shift+f5", ""),
        ("section_sign", ""), ("alt+enter", ""), ("F12", ""), ("§", ""),
    ],
)  # fmt: skip
def test_a_key_that_no_terminal_sends_is_refused(tmp_path: Path, key: str, said: str) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(f"suites.run: {key}\n", "utf-8")
    keymap, problems = read_keymap(path)
    assert bool(keymap) == (not said)
    assert said in "".join(problems)
    assert problems or not said


@pytest.mark.parametrize(
    ("keys", "collision"),
    [
        ("context.older: f9", "F9 is `context.older` and `inspect.flips` on context"),
        ("inspect.flips: plus", "+ is `context.older` and `inspect.flips` on context"),
        ("config.tidy: ctrl+s", "^s is `config.tidy` and `edit.save` and `inspect.save` on config"),
        ("context.older: x", ""),
        ("context.older: r", ""),
    ],
)
def test_a_pane_s_key_that_its_screen_takes_first_is_told(tmp_path: Path, keys: str, collision: str) -> None:
    """A key that the screen takes only where the pane does not want it is no collision."""
    path = tmp_path / "keys.yaml"
    path.write_text(keys, "utf-8")
    assert read_keymap(path)[1] == ([collision] if collision else [])


async def test_notes_on_the_files_of_keys_and_themes_begin_with_what_is_wrong(tmp_path: Path) -> None:
    folder = directories.config_dir()
    (folder / "themes").mkdir(parents=True)
    (folder / "keys.yaml").write_text("suites.fly: z\n", "utf-8")
    (folder / "themes" / "mine.yaml").write_text("name: mine\ncolours: {accent: bleu, muted: 5}\n", "utf-8")
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        await until(pilot, lambda: "themes/mine.yaml: this theme has 2 mistakes" in text_of(app))
        assert "▌ keys.yaml: there is no action `suites.fly`" in text_of(app)
        notes = [one.text for one in app.notifier.notices.all()]
        assert all(one.endswith(f"\nin {folder}") for one in notes), "where the files are"


async def test_a_chosen_theme_that_is_gone_is_told_and_no_note_loses_its_end(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "state.json").write_text('{"theme": "chalk", "theme of 16 colours": "chalk"}', "utf-8")
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(60, 24), notifications=True) as pilot:
        await settle(pilot)
        assert app.theme == "dusk"
        await until(pilot, lambda: "Theme chalk can't be loaded: dusk is" in text_of(app))
        # A note is one row; what has no room in it is read in the list of notices.
        for length in range(54, 63):
            app.clear_notifications()
            app.notifier.forget_standing()
            app.notifier.say("w" * (length - 4) + " END")
            await until(pilot, lambda: "www" in text_of(app))
            await settle(pilot)
            assert sum("www" in row for row in text_of(app).split("\n")) == 1, "one row"
            assert ("END" if length <= 57 else "…  N: the rest") in text_of(app), length
            assert app.notifier.notices.all()[0].text.endswith("END")


def test_keys_that_collide_are_said() -> None:
    assert collisions({}) == []  # what ships is no person's collision
    assert collisions({"suites.run": "e"}) == ["e is `suites.run` and `suites.edit` on suites"]
    assert collisions({"suites.run": "e", "suites.edit": "r"}) == []  # swapped
    assert collisions({"suites.run": "q"}) == ["q is `suites.run` and `quit` on suites"]
    assert collisions({"quit": "f2"}) == ["F2 is `theme` and `quit` everywhere"]


# What is kept


async def test_the_editor_begins_on_the_test_that_suites_has_selected(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        tree = tree_of(app)
        tree.move_to_key(
            next(key for key in map(tree.source.key, range(tree.count)) if key.endswith("cancel-delivered"))
        )
        await pilot.press("2")
        await until(pilot, lambda: "cancel-delivered   saved" in text_of(app))
        # What was opened there stays open, whatever is selected later.
        await pilot.press("escape", "escape", "1")
        await settle(pilot)
        await pilot.press("g", "2")
        await until(pilot, lambda: "cancel-delivered   saved" in text_of(app))


async def test_the_next_start_begins_where_the_last_one_ended(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"re", "enter", "down", "l", "down")
        here = tree_of(app).cursor_key
        assert here
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("tab", "F")
        await settle(pilot)
        await pilot.press("down", "down")
        row = app.screen.query_one("#list", VirtualList).cursor_key
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)
        run = app.screen.shown_run
        await pilot.press("tab", "q")
    again = app_on(*samples)
    async with again.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        screen = again.screen
        assert isinstance(screen, InspectScreen)
        assert (screen.shown_run, screen.pane) == (run, "looked")
        await pilot.press("1")
        await settle(pilot)
        assert tree_of(again).cursor_key == here
        assert again.screen.query_one("#filter", Input).value == "re"
        await pilot.press("5")
        await settle(pilot)
        history = again.screen
        assert isinstance(history, HistoryScreen)
        assert history.controller.failed_only
        assert history.controller.runs_of_all
        assert history.query_one("#list", VirtualList).cursor_key == row
    # A run that is named wins; a run that is gone is no error; another folder begins at its beginning.
    data = read(directories.data_dir() / "state.json")
    for place in data["starts"].values():
        place["screens"]["inspect"]["run"] = "01JGONE"
        place["screens"]["suites"] = ["no mapping"]
        place["screens"]["history"] = {"cursor": 7, "failed": "yes", "search": None, "execution": "01JGONE"}
    (directories.data_dir() / "state.json").write_text(json.dumps(data))
    gone = app_on(*samples)
    async with gone.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        shown = gone.screen
        assert isinstance(shown, InspectScreen)
        newest = gone.session.store.executions(1)[0].id
        assert gone.session.store.run(shown.shown_run).execution_id == newest, "instead of nothing"
        await pilot.press("1")
        await settle(pilot)
        assert isinstance(gone.screen, SuitesScreen)
        assert gone.notices.all() == ()
        before = shown.shown_run
        gone.inspect("01JNEVERWAS")
        await settle(pilot)
        assert shown.shown_run == before, "what is not there changes nothing"


async def test_inspect_opens_the_newest_failure_and_says_where_runs_come_from_while_there_is_none(
    samples: tuple[Path, Path], tmp_path: Path
) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        assert app.session.store.run(screen.shown_run).status == "failed"
        assert "failure 1 of" in text_of(app)
    (directories.config_dir()).mkdir(parents=True, exist_ok=True)
    (directories.config_dir() / "keys.yaml").write_text(
        "suites.run: ctrl+x\ngo.history: 'ctrl+y'\nback: f12,escape\n", "utf-8"
    )
    empty = app_on(samples[0], tmp_path / "empty.db")
    async with empty.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        shown = " ".join(text_of(empty).split())
        assert "No run is open." in shown
        assert "^x to run a test" in shown
        assert "press ^y to go to the history" in shown
        # Empty states of other screens name the person's keys, too.
        for key, said in (
            ("6", "Press 1 to go to the suites"),
            ("9", "Press 1 to go to the suites"),
            ("ctrl+y", "then ^x to run what is"),
        ):
            await pilot.press(key)
            await settle(pilot)
            assert said in " ".join(text_of(empty).split())
            assert "{" not in text_of(empty)
        # What leads back, too.
        await pilot.press("8", "slash", *"nobody")
        await settle(pilot)
        assert "Press F12 to clear the filter." in text_of(empty)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"starts": [1], "theme": 3}', '{"starts": {"x": 7}}', "\x00\xff", "[" * 9999]
)
def test_a_broken_state_file_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content.encode("latin-1"))
    state = State(path, "x")
    assert (state.theme(False), state.screen, state.of("suites")) == ("", "", {})
    state.keep_place("history", {"history": {"search": "a"}})
    assert State(path, "x").of("history") == {"search": "a"}


def test_two_apps_at_once_keep_both_and_the_oldest_starts_go(tmp_path: Path) -> None:
    path = tmp_path / "data" / "state.json"
    one, other = State(path, "one"), State(path, "other")
    one.keep_theme("paper")
    other.keep_place("history", {"history": {"runs": True}})
    one.keep_place("suites", {"suites": {"filter": "x"}})
    assert State(path, "other").theme(False) == "paper"
    assert State(path, "other").of("history") == {"runs": True}
    assert State(path, "one").of("suites") == {"filter": "x"}
    for number in range(MOST_STARTS + 5):
        State(path, f"start {number}").keep_place("suites", {})
    assert len(read(path)["starts"]) == MOST_STARTS
    assert name_of_start((), tmp_path / "h.db") != name_of_start((tmp_path,), tmp_path / "h.db")
    path.parent.chmod(0o500)  # root writes all the same; whoever can't goes on without
    State(path, "x").keep_theme("dusk")
    path.parent.chmod(0o700)


def test_a_footer_names_only_what_has_a_key() -> None:
    scopes = {action.scope for action in ACTIONS}
    assert all(key for scope in scopes for key, _, _ in footer(scope, {}))
    assert "check all" not in [label for _, label, _ in footer("agents", {})]
    assert "check all" in [label for _, label, _ in footer("agents", {"agents.check_all": "C"})], (
        "a keymap gives it one"
    )
    assert named_keys("agents", ["check_all"], {}) == []


async def test_letters_lead_to_what_they_stood_on_although_the_list_has_changed(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        tree = tree_of(app)
        await pilot.press("semicolon")
        row = 3
        wanted = tree.source.key(row)
        code = next(code for code, one in labels(app).items() if one.target.y == tree.region.y + row)
        # Somebody else's run has ended, and the rows are in another order.
        assert isinstance(app.screen, SuitesScreen)
        app.screen.action_sort()
        assert tree.source.key(row) != wanted
        await pilot.press(*code)
        await settle(pilot)
        assert tree.cursor_key == wanted


async def test_letters_of_a_screen_that_is_gone_take_no_key(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("semicolon")
        assert labels(app)
        app.go("history")  # as an answer that comes late does
        await settle(pilot)
        await pilot.press("tab")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        assert app.screen.controller.runs_of_all
        app.go("suites")
        await settle(pilot)
        assert not labels(app)


# Notes that stay


def notes_on(app: AgentevalApp) -> int:
    return len(app.screen.query(Toast))


async def test_a_note_goes_also_where_the_timer_of_its_toast_never_fires(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(message: str, **options: Any) -> Notification:
        return replace(displayable_note(message, **options), timeout=0.02)

    monkeypatch.setattr(notifications, "displayable_note", short)
    app = app_on(*samples)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settle(pilot)
        app.say("one")
        await until(pilot, lambda: not app.notifier.is_standing and not notes_on(app))
        app.say("one")
        monkeypatch.setattr(notifications, "displayable_note", displayable_note)
        app.say("another")
        await until(pilot, lambda: notes_on(app) == 1)
        assert "another" in text_of(app)
        assert app.notifier.is_standing


async def test_a_key_takes_a_note_away_whose_time_is_over(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settle(pilot)
        app.say("one")
        await until(pilot, lambda: notes_on(app) == 1)
        monkeypatch.setattr(Notification, "time_left", 0.0)
        await pilot.press("j")
        await until(pilot, lambda: not notes_on(app))


# Coming back


TEXTS = (
    {
        "suites": "slash k",
        "editor": "slash k",
        "inspect": "e",
        "history": "slash k",
        "compare": "slash k",
        "trends": "slash k",
        "agents": "slash k",
        "causes": "slash k",
        "review": "e",
    },
    {"editor": "enter", "inspect": "slash t", "agents": "enter"},
    {"editor": "ctrl+n ctrl+n enter"},
)
"""The keys after which one types in a text of a screen: one text of a screen in each app."""


@pytest.mark.sweep
@pytest.mark.parametrize(("texts", "size"), zip(TEXTS, [(80, 24), (140, 45), (80, 24)], strict=True))
async def test_who_comes_back_from_another_screen_has_its_keys(
    samples: tuple[Path, Path], size: tuple[int, int], texts: dict[str, str]
) -> None:
    app = app_on(*samples)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for name, keys in texts.items():
            if name == "review":
                await pilot.press("0", "F")
                await settle(pilot)
            for come_back in (app.navigation.back, partial(app.go, name)):
                app.go(name)
                await settle(pilot)
                screen = screen_of(app)
                assert not screen.is_typing, name
                await pilot.press(*keys.split())
                await settle(pilot)
                assert screen.is_typing, name
                app.go("run")
                await settle(pilot)
                come_back()
                await settle(pilot)
                assert app.screen is screen, name
                assert not screen.is_typing, name
                app.go("run")
            await settle(pilot)
