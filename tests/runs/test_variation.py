"""Laying a variation's configuration over an agent's."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.plan.variation import deep_merge

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def test_objects_merge_and_everything_else_replaces() -> None:
    base = {"model": "big", "options": {"temperature": 1, "stop": ["a", "b"]}, "tools": [{"name": "x"}]}
    over = {"options": {"temperature": 0, "stop": []}, "tools": [{"name": "y"}]}
    assert deep_merge(base, over) == {
        "model": "big",
        "options": {"temperature": 0, "stop": []},
        "tools": [{"name": "y"}],
    }


def test_a_nested_null_sets_null() -> None:
    assert deep_merge({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}) == {"a": {"b": None, "c": 2}}


def test_an_object_replaces_what_is_none() -> None:
    assert deep_merge({"a": [1]}, {"a": {"b": 1}}) == {"a": {"b": 1}}


@given(OBJECTS, OBJECTS)
def test_what_is_laid_over_wins_and_the_rest_is_inherited(base: dict[str, Any], over: dict[str, Any]) -> None:
    kept = copy.deepcopy((base, over))
    merged = deep_merge(base, over)
    assert (base, over) == kept
    assert deep_merge(merged, over) == merged
    for key in base.keys() - over.keys():
        assert merged[key] == base[key]
    for key, value in over.items():
        if not isinstance(value, dict):
            assert merged[key] == value
    assert deep_merge(base, {}) == base
