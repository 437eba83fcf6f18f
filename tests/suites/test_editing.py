"""Editing tests of a suite: the value changes, every other byte stays."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.editing import (
    CriterionEdit,
    TestEdit,
    _edited_whole,
    add_test,
    apply_edit,
    delete_tests,
    duplicate_tests,
    move_test,
    save_test,
    tag_tests,
)
from agenteval_tui.suites.load import load_suite, load_text
from agenteval_tui.suites.yaml.edit import YamlFragment, yaml_text
from agenteval_tui.suites.yaml.save import FileChanged, SaveFailed

SUITE = """\
# A suite by hand.
name: Shop   # the name
agent: shop/a
agents:
  shop/a: {kind: demo}

tests:
  # The first one.
  - id: one
    name: 'The first'
    # what is asked
    prompt: Say hello.   # politely
    tags: [a, b]  # two
    criteria:
      # greets
      - name: Greets
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "hello"}]}
      - {name: Short, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}
        # about Short
      # is long
      - name: Long
        weight: 2
        prototype_class: TextResponse
        config_uxon: '{"metrics": []}'

  # --- the others ---

  - name: Second Test
    prompt: >
      Folded
      text.
    criteria: [{name: A, prototype_class: TextResponse, config_uxon: "{}"}]
    # behind the second

  # three
  - id: three
    prompt: |
      Several
      lines.
    variables: {x: 1}
    criteria:
    - name: B
      prototype_class: TextResponse
      config_uxon: "{}"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "suites").mkdir()
    path = tmp_path / "suites" / "shop.suite.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def changed(before: str, after: str) -> list[str]:
    return [one for one in difflib.ndiff(before.splitlines(), after.splitlines()) if one[0] in "+-"]


def test_one_value_changes_and_nothing_else(suite: Path) -> None:
    saved = save_test(load_suite(suite), "one", TestEdit({"prompt": "Say goodbye."}))
    assert changed(SUITE, suite.read_text()) == [
        "-     prompt: Say hello.   # politely",
        "+     prompt: Say goodbye.   # politely",
    ]
    assert saved.suite is not None
    assert saved.suite.tests[0].prompt == "Say goodbye."


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        ({"tags": ["a", "c"]}, ["-     tags: [a, b]  # two", '+     tags: [a, c]  # two']),
        ({"repeat": 5}, ["+     repeat: 5"]),
        ({"category": "edge_case"}, ["+     category: edge_case"]),
        ({"description": "Über alles: #1"}, ['+     description: "Über alles: #1"']),
        ({"name": "It's new"}, ["-     name: 'The first'", "+     name: 'It''s new'"]),
        ({"tags": None}, ["-     tags: [a, b]  # two"]),
        ({"dataset": {"file": "a.csv", "limit": 3}}, ['+     dataset: {file: "a.csv", limit: 3}']),
        ({"prompt": "a\nb"},
         ["-     prompt: Say hello.   # politely", "+     prompt: |-   # politely", "+       a", "+       b"]),
        ({"variables": YamlFragment("a: 1  # one\nb:\n- x")},
         ["+     variables:", "+       a: 1  # one", "+       b:", "+       - x"]),
    ],
)  # fmt: skip
def test_fields(edit: dict[str, Any], lines: list[str]) -> None:
    loaded = load_text(SUITE, "shop.suite.yaml")
    text = apply_edit(loaded, "one", TestEdit(edit))
    assert changed(SUITE, text) == lines
    assert load_text(text, "shop.suite.yaml").ok


def test_a_key_without_its_id_keeps_the_id_when_the_name_changes() -> None:
    text = apply_edit(load_text(SUITE, "s.yaml"), "second-test", TestEdit({"name": "Renamed"}))
    assert "  - id: second-test\n    name: Renamed\n" in text


def test_the_first_key_of_a_test_is_taken_out() -> None:
    text = apply_edit(load_text(SUITE, "s.yaml"), "one", TestEdit({"id": None}))
    assert "  # The first one.\n  - name: 'The first'\n" in text


def test_criteria_are_changed_moved_copied_and_removed_with_their_comments() -> None:
    wanted = [
        CriterionEdit(2, {"weight": None, "negate": True}),
        CriterionEdit(0, {"config_uxon": '{"metrics": [{"type": "TextMatch", "contains": "ho"}]}'}),
        CriterionEdit(0, {"name": "Greets again"}),
        CriterionEdit(
            None, {"name": "New", "severity": "warning", "prototype_class": "ToolResponse", "config_uxon": "{\n}"}
        ),
    ]
    text = apply_edit(load_text(SUITE, "s.yaml"), "one", TestEdit(criteria=wanted))
    assert (
        """\
    criteria:
      # is long
      - name: Long
        negate: true
        prototype_class: TextResponse
        config_uxon: '{"metrics": []}'
      # greets
      - name: Greets
        prototype_class: TextResponse
        config_uxon: |-
          {"metrics": [{"type": "TextMatch", "contains": "ho"}]}
      # greets
      - name: Greets again
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "hello"}]}
      - name: New
        severity: warning
        prototype_class: ToolResponse
        config_uxon: |-
          {
          }

  # --- the others ---
"""
        in text
    )
    head, tail = SUITE.index("      # greets"), SUITE.index("\n  # --- the others")
    assert text.startswith(SUITE[:head])
    assert text.endswith(SUITE[tail:])


def test_a_criterion_in_a_flow_list() -> None:
    new = {"name": "N", "prototype_class": "ToolResponse", "config_uxon": "{}"}
    wanted = [CriterionEdit(None, new), CriterionEdit(0, {"weight": 3})]
    text = apply_edit(load_text(SUITE, "s.yaml"), "second-test", TestEdit(criteria=wanted))
    found = load_text(text, "s.yaml").suite
    assert found is not None
    assert [one.name for one in found.tests[1].criteria] == ["N", "A"]
    assert found.tests[1].criteria[1].weight == 3
    assert len(changed(SUITE, text)) == 2


def test_tests_move_with_their_comments(suite: Path) -> None:
    move_test(load_suite(suite), "three", -1)
    text = suite.read_text()
    third = SUITE[SUITE.index("  # three") :]
    second = SUITE[SUITE.index("  - name: Second") : SUITE.index("  # three")]
    assert text == SUITE[: SUITE.index("  - name: Second")] + third + "\n" + second.rstrip() + "\n"


def test_a_copy_of_a_test(suite: Path) -> None:
    saved, ids = duplicate_tests(load_suite(suite), ["one", "three"])
    assert ids == ["one-2", "three-2"]
    assert saved.suite is not None
    assert [one.id for one in saved.suite.tests] == [
        "one",
        "one-2",
        "second-test",
        "three",
        "three-2",
    ]
    assert saved.suite.tests[1].name == "The first (copy)"
    assert all(one.startswith("+") for one in changed(SUITE, suite.read_text()))


def test_tests_are_deleted_with_their_comments_and_headings_stay(suite: Path) -> None:
    delete_tests(load_suite(suite), ["second-test", "one"])
    text = suite.read_text()
    assert "# --- the others ---" in text
    assert "behind the second" not in text
    assert "The first one" not in text
    assert text.endswith(SUITE[SUITE.index("  # three") :])
    with pytest.raises(SaveFailed, match="last test"):
        delete_tests(load_suite(suite), ["three"])


def test_tags_of_several(suite: Path) -> None:
    saved = tag_tests(load_suite(suite), ["one", "three"], add=["smoke"], remove=["B"])
    assert saved.suite is not None
    assert [one.tags for one in saved.suite.tests] == [["a", "smoke"], [], ["smoke"]]


def test_a_new_test_is_added(suite: Path) -> None:
    saved = add_test(load_suite(suite), {"id": "new", "name": "New", "prompt": "x", "criteria": [
        {"name": "a", "prototype_class": "TextResponse", "config_uxon": "{}"}]})  # fmt: skip
    assert saved.suite is not None
    assert len(saved.suite.tests) == 4


def test_a_file_that_changed_is_left_alone(suite: Path) -> None:
    loaded = load_suite(suite)
    suite.write_text(SUITE.replace("Shop", "Store"), encoding="utf-8")
    for act in (
        lambda: save_test(loaded, "one", TestEdit({"prompt": "x"})),
        lambda: delete_tests(loaded, ["one"]),
        lambda: move_test(loaded, "one", 1),
        lambda: duplicate_tests(loaded, ["one"]),
    ):
        with pytest.raises(FileChanged) as caught:
            act()
        assert "Store" in caught.value.diff
    assert suite.read_text() == SUITE.replace("Shop", "Store")


def test_a_test_that_would_not_be_right_is_not_written(suite: Path) -> None:
    loaded = load_suite(suite)
    for wrong in ({"repeat": "often"}, {"id": "three"}, {"prompt": ""}, {"criteria_": 1}):
        with pytest.raises(AgentevalError):
            save_test(loaded, "one", TestEdit(wrong))
    with pytest.raises(SaveFailed, match="at least one criterion"):
        save_test(loaded, "one", TestEdit(criteria=[]))
    assert suite.read_text() == SUITE


ANCHORED = """\
name: Shared
tests:
  - id: a
    prompt: &p hello
    criteria: &c
      - {name: x, prototype_class: TextResponse, config_uxon: "{}"}
  - id: b
    prompt: *p
    criteria: *c
  - id: c
    prompt: own
    criteria: *c
"""


def test_what_an_anchor_shares_is_refused_with_the_reason() -> None:
    loaded = load_text(ANCHORED, "s.yaml")
    for test, edit in (
        ("a", TestEdit({"prompt": "other"})),
        ("b", TestEdit({"prompt": "other"})),
        ("b", TestEdit(criteria=[CriterionEdit(0, {"name": "y"})])),
        ("a", TestEdit(criteria=[CriterionEdit(0, {"name": "y"})])),
    ):
        with pytest.raises(SaveFailed, match="anchor"):
            apply_edit(loaded, test, edit)
    assert apply_edit(loaded, "c", TestEdit({"prompt": "new"})) == ANCHORED.replace("own", "new")


def test_windows_line_ends_a_byte_order_mark_and_the_mode_stay(suite: Path) -> None:
    suite.write_bytes(b"\xef\xbb\xbf" + SUITE.replace("\n", "\r\n").encode())
    suite.chmod(0o640)
    save_test(load_suite(suite), "three", TestEdit({"prompt": "a\nb", "context": YamlFragment("input_data:\n  x: 1")}))
    data = suite.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert data.count(b"\n") == data.count(b"\r\n")
    assert suite.stat().st_mode & 0o777 == 0o640
    saved = load_suite(suite).suite
    assert saved is not None
    assert saved.tests[2].context is not None
    assert saved.tests[2].context.input_data == {"x": 1}


def test_yaml_as_it_stands_goes_back_as_it_was() -> None:
    text = """\
tests:
  - id: a
    prompt: x
    context:   # about
      # the tools
      sample_tools:
        t: {sample_response: 1}   # one
      input_data: |
        several
          lines
    variations:
    - name: v
      config:
        a: 1
    criteria: [{name: A, prototype_class: TextResponse, config_uxon: "{}"}]
"""
    loaded = load_text(text, "s.yaml")
    node = loaded.node("a")
    for key in ("context", "variations", "criteria"):
        written = yaml_text(node.get(key), loaded.text)  # type: ignore[union-attr, arg-type]
        assert YamlFragment(written).value is not None
        again = apply_edit(loaded, "a", TestEdit({key: YamlFragment(written)}))
        # A list at its key's column is indented when it is written anew: nothing else is different.
        assert again == text or key == "variations"
    shown = yaml_text(node.get("context"), loaded.text)  # type: ignore[union-attr, arg-type]
    assert shown.startswith(
        "# the tools\nsample_tools:\n  t: {sample_response: 1}   # one\ninput_data: |\n  several\n    lines"
    )
    new = apply_edit(loaded, "a", TestEdit({"context": YamlFragment(shown.replace("lines", "rows"))}))
    assert load_text(new, "s.yaml").ok
    assert all(one in new for one in ("          rows\n", "# one", "# about", "# the tools"))


# Any edit of any suite

WORDS = st.text(st.sampled_from("abc #:-'\"{}[]é\n"), max_size=12)
NAMES = st.text(st.sampled_from("abcdef"), min_size=1, max_size=6)


@st.composite
def suites(draw: st.DrawFn) -> str:
    lines = ["name: s  # here", "tests:"]
    dash = draw(st.sampled_from(["", "  "]))
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            lines.append(f"{dash}# about {number}")
        quote = draw(st.sampled_from(["", "'", '"']))
        lines.append(f"{dash}- id: t{number}   # id {number}")
        lines.append(f"{dash}  prompt: {quote}ask {number}{quote}" + draw(st.sampled_from(["", "  # why"])))
        if draw(st.booleans()):
            lines += [f"{dash}  description: {draw(st.sampled_from(['|', '|-', '>', '|+']))}", f"{dash}    some", ""]
        if draw(st.booleans()):
            lines.append(f"{dash}  tags: [a, b]")
        lines.append(f"{dash}  criteria:")
        inner = dash + draw(st.sampled_from(["  ", "    "]))
        for place in range(draw(st.integers(1, 3))):
            if draw(st.booleans()):
                lines.append(f"{inner}# c{place}")
            if draw(st.booleans()):
                lines.append(f"{inner}- {{name: c{place}, prototype_class: TextResponse, config_uxon: '{{}}'}}")
            else:
                lines += [
                    f"{inner}- name: c{place}",
                    f"{inner}  prototype_class: TextResponse",
                    f"{inner}  config_uxon: |",
                    f"{inner}    {{}}",
                ]
            if draw(st.booleans()):
                lines.append(f"{inner}  # behind c{place}")
        if draw(st.booleans()):
            lines.append("")
    text = "\n".join(lines) + "\n"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def is_subsequence(small: list[str], big: list[str]) -> bool:
    rest = iter(big)
    return all(one in rest for one in small)


@settings(max_examples=50, deadline=None)
@given(suites(), st.data())
def test_a_field_changes_only_its_own_lines(text: str, data: st.DataObject) -> None:
    loaded = load_text(text, "s.yaml")
    assert loaded.ok
    assert loaded.suite is not None
    number = data.draw(st.integers(0, len(loaded.suite.tests) - 1))
    test = loaded.suite.tests[number]
    key = data.draw(st.sampled_from(["prompt", "description", "name", "repeat", "tags", "agent"]))
    value: Any = (
        data.draw(st.integers(1, 9)) if key == "repeat"
        else data.draw(st.lists(NAMES, max_size=3)) if key == "tags"
        else data.draw(WORDS.filter(lambda one: bool(one.strip())))
    )  # fmt: skip
    new = apply_edit(loaded, test.id, TestEdit({key: value}))
    again = load_text(new, "s.yaml")
    assert again.suite is not None
    # The short way (the test alone) and the long way say the same.
    whole = load_text(_edited_whole(loaded, test.id, TestEdit({key: value})), "s.yaml")
    assert whole.suite == again.suite
    wanted = [one.model_dump() for one in loaded.suite.tests]
    wanted[number][key] = value.strip() if key == "name" else value
    assert [one.model_dump() for one in again.suite.tests] == wanted
    mine = "some" if key == "description" else f"{key}:"
    node = loaded.node(test.id)
    lines = text[text.rfind("\n", 0, node.start) + 1 : node.end].splitlines()
    assert is_subsequence([one for one in lines if one.strip() and mine not in one and f"{key}:" not in one],
                          new.splitlines())  # fmt: skip
    assert new.endswith(text[node.end :])
    assert new.startswith(text[: loaded.node(test.id).start])


@settings(max_examples=50, deadline=None)
@given(suites(), st.data())
def test_criteria_in_any_order_copied_and_left_out(text: str, data: st.DataObject) -> None:
    loaded = load_text(text, "s.yaml")
    assert loaded.suite is not None
    test = data.draw(st.sampled_from(loaded.suite.tests))
    there = len(test.criteria)
    sources = data.draw(st.lists(st.one_of(st.none(), st.integers(0, there - 1)), min_size=1, max_size=4))
    fresh = {"name": "fresh", "prototype_class": "ToolResponse", "config_uxon": "{\n}"}
    wanted = [CriterionEdit(one, fresh if one is None else {}) for one in sources]
    new = apply_edit(loaded, test.id, TestEdit(criteria=wanted))
    again = load_text(new, "s.yaml")
    assert again.suite is not None
    found = again.suite.test(test.id)
    assert found is not None
    assert [one.name for one in found.criteria] == ["fresh" if s is None else test.criteria[s].name for s in sources]
    others = [one.model_dump() for one in loaded.suite.tests if one.id != test.id]
    assert [one.model_dump() for one in again.suite.tests if one.id != test.id] == others
    node = loaded.node(test.id).get("criteria")  # type: ignore[union-attr]
    assert node is not None
    assert new.startswith(text[: text.rfind(":", 0, node.start) + 1])


@settings(max_examples=40, deadline=None)
@given(suites(), st.data())
def test_tests_in_any_order_keep_their_lines(text: str, data: st.DataObject) -> None:
    from agenteval_tui.suites.editing import TreeEdit

    loaded = load_text(text, "s.yaml")
    assert loaded.suite is not None
    tree = TreeEdit(loaded.text, "s.yaml")
    order = data.draw(st.permutations(range(len(loaded.suite.tests))))
    tree.arrange(["tests"], order)
    assert sorted(filter(None, tree.text.splitlines())) == sorted(filter(None, text.splitlines()))
    again = load_text(tree.text, "s.yaml").suite
    assert again is not None
    assert [one.id for one in again.tests] == [loaded.suite.tests[one].id for one in order]
    if len(order) > 1:
        before = tree.text.splitlines()
        tree.delete(["tests"], data.draw(st.integers(0, len(order) - 1)))
        assert is_subsequence(tree.text.splitlines(), before)
