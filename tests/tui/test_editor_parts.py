"""The parts of the Editor without a screen: a test as texts, steps back, drafts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from textual.app import App, ComposeResult

from agenteval_tui.analysis.edit_validation import FieldProblem
from agenteval_tui.analysis.overview import Overview, SuiteOverview
from agenteval_tui.core.errors import Problem
from agenteval_tui.suites.editing import apply_edit
from agenteval_tui.suites.load import load_text
from agenteval_tui.suites.yaml.edit import YamlFragment
from agenteval_tui.tui.draft_store import MOST, Drafts
from agenteval_tui.tui.presenters.editor_rows import TestRows, dataset_lines, problem_height, problem_rows
from agenteval_tui.tui.presenters.test_form import edit_of, new_criterion, read_form
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.tui.widgets.form import TextField

SUITE = """\
name: S
tests:
  - id: one
    name: One
    prompt: |
      Several
      lines
    tags: [a, b]
    repeat: 3
    dataset: {file: a.csv, limit: 5}
    variables:   # of the prompt
      who: you
    criteria:
      - name: A
        negate: yes
        weight: 2
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Json}]}
      - {name: B, prototype_class: TextResponse, config_uxon: "{}"}
  - id: broken
    repeat: often
    criteria: []
"""


def doc(text: str = SUITE) -> SuiteDocument:
    loaded = load_text(text, Path("s.suite.yaml"))
    base = read_form(loaded, "one")
    return SuiteDocument(loaded, "one", base, base.copy())


def test_a_form_holds_what_stands_in_the_file() -> None:
    form = doc().form
    assert form.values["prompt"] == "Several\nlines\n"
    assert form.values["tags"] == "a, b"
    assert (form.values["dataset_file"], form.values["dataset_limit"]) == ("a.csv", "5")
    assert form.values["variables"] == "who: you"
    assert form.criteria[0].values["negate"] == "true"
    assert form.criteria[1].values["severity"] == "error"
    assert not doc().edited


def test_a_test_that_is_not_right_has_a_form_too() -> None:
    form = read_form(load_text(SUITE.replace("id: broken", "id: broken\n    name: B"), Path("s.yaml")), "broken")
    assert form.values["repeat"] == "often"
    assert form.criteria == []


def test_only_what_was_changed_is_an_edit() -> None:
    one = doc()
    one.form.values.update(repeat="4", tags="a", variables="who: me", dataset_limit="", timeout="soon", name="")
    one.form.criteria[0].values.update(negate="", weight="0.5")
    edit = one.edit
    assert edit.changes == {
        "repeat": 4, "tags": ["a"], "variables": YamlFragment("who: me"), "dataset": {"file": "a.csv"},
        "timeout": "soon", "name": None,
    }  # fmt: skip
    assert edit.criteria is not None
    assert [dict(entry.changes) for entry in edit.criteria] == [{"negate": None, "weight": 0.5}, {}]
    assert edit_of(one.base, one.base.copy()).criteria is None


def test_an_edit_of_the_dataset_keeps_its_keys_without_a_field() -> None:
    one = doc(SUITE.replace("dataset: {file: a.csv,", "dataset: {file: a.csv, row_id: no, split: test,"))
    one.form.values.update(dataset_limit="7")
    assert one.edit.changes == {"dataset": {"file": "a.csv", "limit": 7, "row_id": "no", "split": "test"}}


def test_a_gate_is_a_number_in_the_form_and_an_object_in_the_file() -> None:
    text = SUITE.replace("- id: one", "- id: one\n    gate: {pass_rate: 0.6}  # flaky", 1)
    one = doc(text)
    assert one.form.values["gate"] == "0.6"
    one.form.values["gate"] = "0.75"
    assert one.edit.changes == {"gate": {"pass_rate": 0.75}}
    saved = apply_edit(one.loaded, "one", one.edit)
    assert saved == text.replace("0.6", "0.75")
    one.form.values["gate"] = ""
    assert "gate: {" not in apply_edit(one.loaded, "one", one.edit)
    new = doc()
    new.form.values["gate"] = "often"
    written = yaml.safe_load(apply_edit(new.loaded, "one", new.edit))
    assert written["tests"][0]["gate"] == {"pass_rate": "often"}, "the check reports it"
    assert doc(SUITE.replace("- id: one", "- id: one\n    gate: 0.8", 1)).form.values["gate"] == "0.8"


def test_steps_go_back_one_by_one_and_typing_is_one_step() -> None:
    one = doc()
    for text in ("O", "On", "Onl"):
        one.step("name")
        one.form.values["name"] = text
    one.step("")
    one.form.criteria.append(new_criterion("N", "TextResponse", "{}"))
    assert one.undo()
    assert len(one.form.criteria) == 2
    assert one.undo()
    assert one.form == one.base
    assert not one.undo()


def test_a_draft_is_put_into_a_file_that_has_changed_since() -> None:
    one = doc()
    one.form.values["name"] = "Mine"
    one.form.criteria[1].values["weight"] = "7"
    one.form.criteria.append(new_criterion("New", "TextResponse", "{}"))
    drafts = Drafts()
    assert drafts.keep("test", "s", "one", "", one.as_data())
    kept = drafts.find("test", "s", "one")
    assert kept is not None
    theirs = "      - {name: Theirs, prototype_class: TextResponse, config_uxon: '{}'}\n"
    changed = SUITE.replace("repeat: 3", "repeat: 9").replace("      - name: A\n", theirs + "      - name: A\n")
    again = doc(changed)
    again.restore(kept.data)
    assert again.form.values["name"] == "Mine"
    assert again.form.values["repeat"] == "9"
    assert [(c.source, c.values["name"]) for c in again.form.criteria] == [
        (1, "A"),
        (2, "B"),
        (None, "New"),
        (0, "Theirs"),
    ]
    assert again.form.criteria[1].values["weight"] == "7"
    bad: list[dict[str, Any]] = [{}, {"form": []}, {"base": {"values": 3}, "form": {"criteria": [{"source": "x"}, 4]}}]
    for broken in bad:
        doc().restore(broken)


def test_drafts_survive_bad_files_and_are_private_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = Drafts()
    assert drafts.keep("config", "s\ud800", "t", "p", {"text": "\ud800"})
    path = next(drafts.folder.glob("config-*.json"))
    assert path.stat().st_mode & 0o777 == 0o600
    found = drafts.find("config", "s\ud800", "t", "p")
    assert found is not None
    assert found.data == {"text": "\ud800"}
    for bad in (b"", b"[]", b'{"version": 1}', b'{"version": 2, "data": {}}', b"\xff"):
        path.write_bytes(bad)
        assert drafts.find("config", "s\ud800", "t", "p") is None
        assert drafts.listed("config") == []
    monkeypatch.setattr("agenteval_tui.tui.draft_store.MOST", 3)
    assert MOST > 3
    for number in range(5):
        drafts.keep("test", "s", str(number), "", {})
        os.utime(drafts._path("test", "s", str(number), ""), (number, number))
    assert len(list(drafts.folder.glob("*.json"))) == 3
    drafts.drop("test", "s", "4")
    assert drafts.find("test", "s", "4") is None
    nowhere = Drafts(drafts.folder / path.name / "below a file")
    assert not nowhere.keep("test", "s", "t", "", {})
    assert nowhere.listed("test") == []


def test_of_each_draft_the_newest_state_is_written_and_none_after_it_was_dropped() -> None:
    drafts = Drafts()
    assert drafts.put("test", "s", "one", "", {"name": "M"})
    for state in ({"name": "Mi"}, {"name": "Mine"}):
        drafts.put("test", "s", "one", "", state)
    assert not drafts.put("test", "s", "two", "", {})
    assert not drafts.put("test", "s", "three", "", {})
    drafts.drop("test", "s", "three")
    drafts.write()
    assert {one.test: one.data for one in drafts.listed("test")} == {"one": {"name": "Mine"}, "two": {}}
    assert drafts.put("test", "s", "one", "", None), "nothing waits any more"
    drafts.write()
    assert [one.test for one in drafts.listed("test")] == ["two"]


def test_rows_show_hostile_words_and_fit() -> None:
    hostile = SUITE.replace("name: S", 'name: "S\\e[2J\\u202e"')
    overview = Overview((SuiteOverview(load_text(hostile, Path("s.yaml")), (), {}),))
    rows = TestRows(overview, (), "one")
    shown = [plain(rows.line(index, 30, focused=False)) for index in range(rows.count())]
    assert len(shown) == 2
    assert all(char.isprintable() for line in shown for char in line)
    lines = dataset_lines([{"a\x1b": "x\x1b[1m", "b": {"c": 1}}, {"a\x1b": None}], "", 24)
    assert all(char.isprintable() for line in lines for char in plain(line))


def test_a_problem_stands_whole_with_how_it_is_put_right() -> None:
    problem = Problem(
        "f", 1, 1, 1, 1, "error", "x", 'TextMatch has no property "contains_al"', "rename it to contains_all"
    )
    one = FieldProblem(problem, "config_uxon", 0)
    lines = [plain(line) for line in problem_rows([one], "", ["The right filter"], 60, 2).lines]
    assert len(lines) == 2
    assert " ".join(" ".join(lines).split()) == (
        '! The right filter.config_uxon TextMatch has no property "contains_al" (rename it to contains_all)'
    )
    words = [replace(problem, line=number, message=f"{number}: " + "word " * 20) for number in (1, 2, 3)]
    three = [FieldProblem(one, "", 0) for one in words]
    whole = problem_rows(three, "", ["A"], 60, 9)
    assert len(whole.lines) == 9 == problem_height(three, "", ["A"], 60)
    assert whole.owners == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for most, selected, owners in (
        (5, 0, [0, 0, 0, 1, 2]), (5, 2, [0, 1, 2, 2, 2]), (4, 1, [1, 1, 1, -1]), (3, 2, [2, 2, -1]), (2, 1, [1, -1]),
        (7, 1, [0, 0, 0, 1, 1, 1, 2]),
    ):  # fmt: skip
        shown = problem_rows(three, "", ["A"], 60, most, selected)
        assert shown.owners == owners, (most, selected)
        assert len(shown.lines) == most
    assert plain(problem_rows(three, "", ["A"], 60, 5, 2).lines[-1]).endswith("contains_all)")
    assert "2 more problems" in plain(problem_rows(three, "", ["A"], 60, 4, 1).lines[-1])


async def test_a_field_says_that_there_is_more_of_its_text_while_something_else_has_the_keys() -> None:
    class Harness(App[None]):
        def compose(self) -> ComposeResult:
            yield TextField("short", compact=True)
            yield TextField("a long text " * 9, compact=True)

    app = Harness()
    async with app.run_test(size=(40, 10)) as pilot:
        one, two = app.query(TextField)
        one.focus()
        await pilot.pause()
        assert two.render_line(0).text == ("a long text " * 9)[: two.size.width - 1] + "…"
        assert one.render_line(0).text.rstrip() == "short"
        two.focus()
        await pilot.pause()
        assert "…" not in two.render_line(0).text
        assert two.render_line(0).text.rstrip().endswith("long text"), "the cursor is at its end"
