"""What is wrong with an edit before it is saved: by field, as `validate` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.edit_validation import check_edit
from agenteval_tui.analysis.lint import check_suite
from agenteval_tui.suites.editing import CriterionEdit, TestEdit, id_now, rebase
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.suites.yaml.edit import YamlFragment
from agenteval_tui.suites.yaml.save import SaveFailed

MINE = lambda base, mine, theirs: mine  # noqa: E731
SUITE = """\
name: S
agent: a
agents: {a: {kind: demo}}
tests:
  - id: one
    prompt: Hi {{who}}
    variables: {who: you}
    criteria:
      - {name: A, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}
      - name: B
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "Json"}]}'
  - id: two
    prompt: Hi {{nobody}}
    criteria:
      - {name: A, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}
"""


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (TestEdit({"repeat": "often"}), ("repeat", None)),
        (TestEdit({"agent": "none"}), ("agent", None)),
        (TestEdit({"prompt": "Hi {{whom}}"}), ("prompt", None)),
        (TestEdit({"id": "two"}), ("id", None)),
        (TestEdit({"dataset": {"file": "no.csv"}}), ("dataset", None)),
        (TestEdit({"context": YamlFragment("sample_tool: {}")}), ("context", None)),
        (TestEdit(criteria=[CriterionEdit(0), CriterionEdit(1, {"weight": "much"})]), ("weight", 1)),
        (TestEdit(criteria=[CriterionEdit(1, {"config_uxon": "{"}), CriterionEdit(0)]), ("config_uxon", 0)),
        (TestEdit(criteria=[CriterionEdit(1), CriterionEdit(0, {"prototype_class": "Tex"})]), ("prototype_class", 1)),
    ],
)
def test_each_problem_is_said_of_its_field(edit: TestEdit, place: tuple[str, Any]) -> None:
    loaded = load_text(SUITE, Path("s.suite.yaml"))
    problems = check_edit(loaded, "one", edit, {})
    assert [(one.field, one.criterion) for one in problems if one.problem.severity == "error"] == [place]


def test_what_is_right_has_no_problems_and_the_others_tests_are_not_blamed_on_it() -> None:
    loaded = load_text(SUITE, Path("s.suite.yaml"))
    assert [one for one in check_suite(loaded, {}) if one.severity == "error"] != []
    assert check_edit(loaded, "one", TestEdit({"name": "New"}), {}) == []


def test_an_edit_is_made_anew_for_a_file_that_others_changed() -> None:
    before = load_text(SUITE, Path("s.suite.yaml"))
    new = "      - {name: New, prototype_class: TextResponse, config_uxon: '{}'}\n      - {name: A, "
    now = load_text(SUITE.replace("      - {name: A, ", new, 1), Path("s.suite.yaml"))
    edit = TestEdit({}, [CriterionEdit(1, {"weight": 2}), CriterionEdit(0), CriterionEdit(None, {"name": "Mine"})])
    again = rebase(edit, before, now, "one", MINE).criteria
    assert again is not None
    assert [one.source for one in again] == [2, 1, None, 0]
    assert again[0].changes == {"weight": 2}
    gone = load_text(SUITE.replace("name: B", "name: C"), Path("s.suite.yaml"))
    with pytest.raises(SaveFailed, match="`B`"):
        rebase(edit, before, gone, "one", MINE)
    with pytest.raises(SaveFailed, match="`one`"):
        rebase(edit, before, without_one(SUITE), "one", MINE)


def without_one(text: str) -> LoadedSuite:
    start, end = text.index("  - id: one"), text.index("  - id: two")
    return load_text(text[:start] + text[end:], Path("s.suite.yaml"))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([], "one"),
        ([("id: one", "id: other")], "other"),
        ([("id: one", "id: other\n    name: Another")], "other"),
        ([("id: one", "id: other"), ("name: B", "name: C")], "other"),  # it asks the same, and none else came or went
        ([("id: one", "id: other"), ("Hi {{who}}", "Bye {{who}}")], ""),
        ([("id: one", "id: other"), ("id: two", "id: third")], "other"),
        ([("id: one", "id: other"), ("name: B", "name: C"), ("id: two", "id: third")], ""),
    ],
)
def test_a_test_that_somebody_renamed_is_found_again(changes: list[tuple[str, str]], found: str) -> None:
    before, text = load_text(SUITE, Path("s.suite.yaml")), SUITE
    for old, new in changes:
        text = text.replace(old, new)
    assert id_now(before, load_text(text, Path("s.suite.yaml")), "one") == found
    assert id_now(before, without_one(SUITE), "one") == ""
