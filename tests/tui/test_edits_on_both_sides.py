"""A test is edited in the Editor and on disk at the same time: no save loses what either side changed."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from shop import app_on, settle, until
from textual.widgets import Input, TextArea

from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.test_form import read_form
from agenteval_tui.tui.screens.editor.controller import EditorController, OpenRequest
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.file_conflict_dialog import FileConflictScreen, diff_lines
from agenteval_tui.tui.styled_text import cell_len

CONFIG = json.dumps({"metrics": [{"type": "TextMatch", "contains": "e"}]})
OTHER = json.dumps({"metrics": [{"type": "TextMatch", "not_contains_any": ["sorry"]}]})


def suite(**changed: Any) -> dict[str, Any]:
    test: dict[str, Any] = {
        "id": "one", "name": "First", "description": "d", "prompt": "Where?", "repeat": 2,
        "tags": ["a"], "dataset": {"file": "rows.csv", "limit": 1},
        "criteria": [
            {"name": "A", "weight": 1, "prototype_class": "TextResponse", "config_uxon": CONFIG},
            {"name": "B", "weight": 1, "prototype_class": "TextResponse", "config_uxon": CONFIG},
        ],
    }  # fmt: skip
    return {"name": "Shop", "agents": {"x": {"kind": "demo"}}, "agent": "x", "tests": [{**test, **changed}]}


# (criterion, or None for the test; field of the form) and two other values of it.
FIELDS: dict[tuple[int | None, str], tuple[str, str]] = {
    (None, "name"): ("Mine", "Theirs"),
    (None, "description"): ("mine", "theirs"),
    (None, "prompt"): ("My prompt?", "Their prompt?"),
    (None, "repeat"): ("3", "4"),
    (None, "tags"): ("a, mine", "a, theirs"),
    (None, "dataset_file"): ("mine.csv", "theirs.csv"),
    (None, "dataset_limit"): ("2", "3"),
    (0, "weight"): ("2", "3"),
    (0, "config_uxon"): (OTHER, OTHER.replace("sorry", "no")),
    (1, "weight"): ("2", "3"),
    (1, "severity"): ("warning", "info"),
}
NUMBERS = ("repeat", "weight", "limit")


def put(test: dict[str, Any], place: tuple[int | None, str], value: str) -> None:
    """What another editor writes into the file."""
    number, name = place
    target = test if number is None else next(one for one in test["criteria"] if one["name"] == "AB"[number])
    if name.startswith("dataset_"):
        target, name = test["dataset"], name.removeprefix("dataset_")
    target[name] = yaml.safe_load(value) if name in NUMBERS else value.split(", ") if name == "tags" else value


def form_values(path: Path) -> dict[tuple[int | None, str], str]:
    form = read_form(load_suite(path), "one")
    criteria = {criterion.values["name"]: criterion.values for criterion in form.criteria}
    return {
        (number, name): form.values[name] if number is None else criteria["AB"[number]][name] for number, name in FIELDS
    }


def save(editor: EditorController, session: Session) -> None:
    """As the screen does: `^s`, and `y` where the file has changed."""
    doc = editor.doc
    assert doc is not None
    edit = editor.edit_to_save()
    if edit is None:
        return
    form = doc.form.copy()
    try:
        written = session.workspace.save_test(doc.loaded, doc.test_id, edit)
        renamed = ""
    except FileChanged:
        fresh, edit, renamed = editor.rebased(doc)
        written = session.workspace.save_test(fresh, renamed or doc.test_id, edit)
    editor.saved(doc, form, renamed, written)


step = st.tuples(
    st.dictionaries(st.sampled_from(sorted(FIELDS, key=str)), st.sampled_from(["form", "disk"]), max_size=6),
    st.sampled_from(["", "reorder", "insert"]),
    st.integers(1, 3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(step, min_size=1, max_size=3))
def test_any_edits_on_both_sides_and_any_number_of_saves_lose_nothing(
    steps: list[tuple[dict[tuple[int | None, str], str], str, int]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "shop.suite.yaml"
        for name in ("rows", "mine", "theirs"):
            (path.parent / f"{name}.csv").write_text("input\na\nb\nc\n", encoding="utf-8")
        path.write_text(yaml.safe_dump(suite(), sort_keys=False), encoding="utf-8")
        session = Session((path.parent,), path.parent / "history.db")
        editor = EditorController()
        editor.request(OpenRequest(f"{load_suite(path).key}", "one"))
        request = editor.take(editor.read(session))
        assert request is not None
        editor.open(request)
        expected = form_values(path)
        inserted = 0
        for sides, structure, saves in steps:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
            test = data["tests"][0]
            for place, side in sides.items():
                mine, theirs = FIELDS[place]
                assert editor.doc is not None
                if side == "disk":
                    put(test, place, theirs)
                    expected[place] = theirs
                    continue
                names = [criterion.values["name"] for criterion in editor.doc.form.criteria]
                if place[0] is not None:
                    editor.doc.criterion = names.index("AB"[place[0]])
                if editor.edit(place[1], mine, of_criterion=place[0] is not None):
                    expected[place] = mine
            if structure == "reorder":
                test["criteria"].reverse()
            if structure == "insert":
                inserted += 1
                test["criteria"].insert(0, {**test["criteria"][0], "name": f"New {inserted}"})
            order = [one["name"] for one in test["criteria"]]
            path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
            for _ in range(saves):
                save(editor, session)
            assert form_values(path) == expected
            now = yaml.safe_load(path.read_text(encoding="utf-8"))["tests"][0]["criteria"]
            assert [one["name"] for one in now] == order


async def test_a_second_save_takes_nothing_back_that_the_first_question_let_in(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    path = folder / "shop.suite.yaml"
    (folder / "rows.csv").write_text("input\na\n", encoding="utf-8")
    path.write_text(yaml.safe_dump(suite(), sort_keys=False, width=1000), encoding="utf-8")
    app = app_on(folder, tmp_path / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.edit_test(str(path.resolve()), "one")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen) and app.screen.controller.doc is not None)
        await settle(pilot)
        screen = app.screen
        screen.query_one("#fields #field-name", Input).value = "Mine"
        await settle(pilot)
        theirs = path.read_text().replace("repeat: 2", "repeat: 5").replace("description: d", "description: theirs")
        theirs = theirs.replace(CONFIG, OTHER, 1)
        path.write_text(theirs, encoding="utf-8")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, FileConflictScreen))
        await pilot.press("y")
        await settle(pilot)
        merged = theirs.replace("name: First", "name: Mine")
        assert path.read_text() == merged
        assert screen.query_one("#fields #field-description", TextArea).text == "theirs"
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert path.read_text() == merged
        screen.query_one("#fields #field-name", Input).value = "Mine too"
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert path.read_text() == merged.replace("name: Mine", "name: Mine too")


texts = st.text(alphabet="ab{}\"': é漢", max_size=200)


@settings(max_examples=150, deadline=None)
@given(texts, texts, texts, texts, st.integers(10, 90))
def test_the_question_shows_what_differs_in_lines_of_any_length(
    start: str, old: str, new: str, end: str, width: int
) -> None:
    diff = f"--- a\n+++ b\n@@ -1 +1 @@\n-{start}{old}{end}\n+{start}{new}{end}\n"
    lines = ["".join(piece[0] for piece in line).rstrip() for line in diff_lines(diff, width)]
    assert all(cell_len(line) <= width for line in lines)
    for sign, other, text in (("-", new, old), ("+", old, new)):
        shown = "".join(line[1:] for line in lines[2:] if line.startswith(sign))
        whole, others = f"{start}{text}{end}", f"{start}{other}{end}"
        common = 0
        while common < min(len(whole), len(others)) and whole[common] == others[common]:
            common += 1
        tail = 0
        while tail < min(len(whole), len(others)) - common and whole[-1 - tail] == others[-1 - tail]:
            tail += 1
        differs = whole[common : len(whole) - tail]
        assert differs.replace(" ", "") in shown.replace(" ", "")


def test_a_condition_added_at_the_end_of_a_long_line_is_shown() -> None:
    config = '{"metrics": [{"type": "TextMatch", "contains": "' + "x" * 300 + '"'
    diff = f'--- a\n+++ b\n@@ -1 +1 @@\n-  c: {config}}}]}}\n+  c: {config}, "not_contains_any": ["sorry"]}}]}}\n'
    shown = ["".join(piece[0] for piece in line) for line in diff_lines(diff, 80)]
    assert any("not_contains_any" in line and "sorry" in line for line in shown)
    assert len(shown) == 5


async def test_one_config_edited_on_both_sides_has_both_edits_and_one_value_is_asked_about(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    path = folder / "shop.suite.yaml"
    (folder / "rows.csv").write_text("input\na\n", encoding="utf-8")
    path.write_text(yaml.safe_dump(suite(), sort_keys=False, width=1000), encoding="utf-8")
    app = app_on(folder, tmp_path / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.edit_test(str(path.resolve()), "one")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen) and app.screen.controller.doc is not None)
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, EditorScreen)
        doc = screen.controller.doc
        assert doc is not None
        doc.form.criteria[0].values["config_uxon"] = CONFIG.replace('"e"', '"mine"')
        doc.form.criteria[1].values["config_uxon"] = CONFIG.replace('"e"', '"mine"')
        theirs = path.read_text()
        added = CONFIG.replace('"e"', '"e", "weight": 3')
        theirs = theirs.replace(CONFIG, added, 1).replace(CONFIG, CONFIG.replace('"e"', '"theirs"'), 1)
        path.write_text(theirs, encoding="utf-8")
        both = screen.controller.changed_by_both(doc)
        assert both == [("B: metrics.0.contains", "mine", "theirs")]
        fresh, edit, renamed = screen.controller.rebased(doc)
        assert not renamed
        app.session.workspace.save_test(fresh, "one", edit)
        saved = yaml.safe_load(path.read_text())["tests"][0]["criteria"]
        first, second = (json.loads(one["config_uxon"])["metrics"][0] for one in saved)
        assert (first["contains"], first["weight"]) == ("mine", 3)
        assert second["contains"] == "mine"
        app.push_screen(FileConflictScreen("shop.suite.yaml", "--- a\n+++ b\n", both=both))
        await until(pilot, lambda: isinstance(app.screen, FileConflictScreen))
        await settle(pilot)
        shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "B: metrics.0.contains" in shown
        assert "+ yours       mine" in shown
        assert "- the file's  theirs" in shown
