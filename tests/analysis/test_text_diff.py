"""Texts by lines and words, arguments by paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.analysis.text_diff import (
    ArgumentChange,
    compare_arguments,
    compare_texts,
    compare_words,
    in_order_of,
)

texts = st.text(st.sampled_from("ab1 ,\n\r\tÖ"), max_size=40)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "a", "1"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)


def marked(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in spans]


@given(texts, texts)
@settings(max_examples=100)
def test_stretches_hold_every_character_once_and_say_truly_what_is_the_same(left: str, right: str) -> None:
    stretches = compare_texts(left, right)
    assert "".join(left[slice(*one.left)] for one in stretches) == left
    assert "".join(right[slice(*one.right)] for one in stretches) == right
    for one in stretches:
        mine, theirs = left[slice(*one.left)], right[slice(*one.right)]
        if one.same:
            assert mine.splitlines() == theirs.splitlines()
        for (first, last), words in ((one.left, one.left_words), (one.right, one.right_words)):
            assert all(first <= start < end <= last for start, end in words)


@given(texts, texts)
@settings(max_examples=100)
def test_without_the_marked_words_both_texts_are_one(left: str, right: str) -> None:
    def rest(text: str, spans: tuple[tuple[int, int], ...]) -> str:
        for start, end in reversed(spans):
            text = text[:start] + text[end:]
        return text

    mine, theirs = compare_words(left, right)
    assert rest(left, mine) == rest(right, theirs)


def test_words_not_letters_are_marked() -> None:
    left, right = "Show the orders of #W1 please, now", "Show all orders of #W2, now"
    mine, theirs = compare_words(left, right)
    assert marked(left, mine) == ["the", "W1 please"]
    assert marked(right, theirs) == ["all", "W2"]


def test_texts_that_have_nothing_to_do_with_each_other_are_marked_as_a_whole() -> None:
    left, right = "I looked at the table of customers.", "Sorry, that is the wrong department!"
    assert marked(left, compare_words(left, right)[0]) == [left]


def test_one_changed_line_among_many_leaves_the_others_alone() -> None:
    left = "".join(f"line {n}\n" for n in range(50))
    right = left.replace("line 20\n", "line twenty\n")
    stretches = compare_texts(left, right)
    assert [one.same for one in stretches] == [True, False, True]
    assert marked(left, stretches[1].left_words) == ["20"]
    assert marked(right, stretches[1].right_words) == ["twenty"]


def test_a_very_long_text_is_compared_in_a_moment() -> None:
    # More lines than are compared one by one: the middle is one difference, and its ends are still the same.
    left = "head\n" + "".join(f"{n}\n" for n in range(9_000)) + "tail"
    right = "head\n" + "".join(f"{n}x\n" for n in range(9_000)) + "tail"
    assert [one.same for one in compare_texts(left, right)] == [True, False, True]


def test_arguments_differ_by_path() -> None:
    left = {"id": "#W1", "items": [{"sku": "A", "n": 1}], "gone": None}
    right = {"id": "#W1", "items": [{"sku": "A", "n": 2}, {"sku": "B"}], "new": True}
    assert compare_arguments(left, right) == (
        ArgumentChange("items.0.n", "changed", 1, 2),
        ArgumentChange("items.1", "right", None, {"sku": "B"}),
        ArgumentChange("gone", "left", None, None),
        ArgumentChange("new", "right", None, True),
    )


@pytest.mark.parametrize(("left", "right"), [(1, True), ("1", 1), ("{}", {}), ("null", None), ("", None)])
def test_what_looks_alike_but_is_not(left: Any, right: Any) -> None:
    assert compare_arguments({"a": left}, {"a": right}) == (ArgumentChange("a", "changed", left, right),)
    assert compare_arguments(left, right) == (ArgumentChange("", "changed", left, right),)


@given(json_values, json_values)
def test_equal_arguments_differ_in_nothing_and_only_they(left: Any, right: Any) -> None:
    assert compare_arguments(left, left) == ()
    if compare_arguments(left, right) == ():
        assert left == right
    assert in_order_of(left, right) == right


def test_arguments_as_deep_as_an_attack() -> None:
    deep: Any = "end"
    other: Any = "other end"
    for _ in range(400):
        deep, other = [deep], [other]
    ((path, state),) = [(one.path, one.state) for one in compare_arguments(deep, other)]
    assert state == "changed"
    assert path.startswith("0.0.0")


def test_keys_come_in_the_order_of_the_other_side() -> None:
    ordered = in_order_of({"b": 1, "a": {"y": 1, "x": 2}}, {"a": {"x": 2, "y": 1, "new": 0}, "b": 1})
    assert list(ordered) == ["b", "a"]
    assert list(ordered["a"]) == ["y", "x", "new"]
