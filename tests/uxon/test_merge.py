"""A config that was edited on both sides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.uxon.merge import merge
from agenteval_tui.uxon.parse import parse

BASE = '{"metrics": [{"type": "TextMatch", "contains": "a", "weight": 1}], // mine\n "pass_threshold": 0.5}'


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        (('"a"', '"b"'), ("0.5", "0.7"), []),
        (('"a"', '"b"'), ('"weight": 1', '"weight": 2, "not_contains_any": ["x"]'), []),
        (('"a"', '["a", "b"]'), ("// mine", "// theirs"), []),
        ((', "weight": 1', ""), ('"a"', '"c"'), []),
        (('"a"', '"b"'), ('"a"', '"b"'), []),
        (('"a"', '"b"'), ('"a"', '"c"'), [(("metrics", 0, "contains"), "b", "c")]),
        (("0.5", "0.6"), ('"pass_threshold"', '"other"'), [(("pass_threshold",), 0.6, None)]),
        ((', "weight": 1', ""), ('"weight": 1', '"weight": 3'), [(("metrics", 0, "weight"), None, 3)]),
    ],
)
def test_what_each_side_changed_is_in_the_text(
    mine: tuple[str, str], theirs: tuple[str, str], both: list[tuple[Any, ...]]
) -> None:
    base = BASE.replace(",// mine", ", // mine")
    mine_text, their_text = base.replace(*mine), base.replace(*theirs)
    assert mine_text != base
    assert their_text != base
    merged = merge(base, mine_text, their_text)
    assert [(one.path, one.mine, one.theirs) for one in merged.both] == both
    assert not parse(merged.text).broken
    if not both:
        assert parse(merged.text).value == parse(base.replace(*mine).replace(*theirs)).value
        assert "// mine" in merged.text or "// theirs" in merged.text


@pytest.mark.parametrize("theirs", ["{", '{"metrics": [{"type": "Length"}, {"type": "TextMatch"}]}', "[]"])
def test_where_places_can_not_be_told_all_of_it_differs(theirs: str) -> None:
    merged = merge(BASE, BASE.replace('"a"', '"b"'), theirs)
    assert merged.text == BASE.replace('"a"', '"b"')
    assert [one.path for one in merged.both] == [()]


trees = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from("pqr"), trees, min_size=1, max_size=3)


@given(objects, objects, objects)
def test_nothing_of_either_side_is_lost_without_a_word(base: Any, mine: Any, theirs: Any) -> None:
    merged = merge(json.dumps(base), json.dumps(mine), json.dumps(theirs))
    value = parse(merged.text).value
    told = [one.path for one in merged.both]
    for key in {*base, *mine, *theirs}:
        was, own, other = (one.get(key) for one in (base, mine, theirs))
        if () in told or any(path[0] == key for path in told if path):
            continue
        if own == was:
            assert value.get(key) == other
        elif other == was:
            assert value.get(key) == own
