"""Edits of config texts by the path of a value: the value changes, everything else stays as it is written."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import Fix
from agenteval_tui.uxon.edit import append, edits_between, node_of, remove, rename, set_value
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.serialize import to_text

TEXT = """\
{
  // what the answer must have
  "metrics": [
    {
      "type": "TextMatch",
      "contains_all": ["a", /* the second */ "b", "c"],  // all
      "max": 3 // three
    }
  ]
}
"""
METRIC = ("metrics", 0)


def applied(fix: Fix | None, text: str = TEXT) -> str:
    assert fix is not None
    new = fix.apply(text)
    assert not parse(new).broken, new
    return new


def test_a_value_is_replaced_alone() -> None:
    document = parse(TEXT)
    assert applied(set_value(document, (*METRIC, "max"), 4)) == TEXT.replace("3 //", "4 //")
    new = applied(set_value(document, (*METRIC, "contains_all", 1), "x\ny"))
    assert new == TEXT.replace('"b"', '"x\\ny"')


def test_a_property_is_added_and_comments_stay_where_they_are() -> None:
    new = applied(set_value(parse(TEXT), (*METRIC, "ignore_case"), True))
    assert new == TEXT.replace('"max": 3 // three', '"max": 3, "ignore_case": true // three')
    alone = TEXT.replace(" // three", "")
    new = applied(set_value(parse(alone), (*METRIC, "ignore_case"), True), alone)
    assert new == alone.replace('"max": 3', '"max": 3,\n      "ignore_case": true')
    assert applied(set_value(parse("{}"), ("a",), [1]), "{}") == '{"a": [1]}'


def test_entries_are_removed_with_their_comma() -> None:
    document = parse(TEXT)
    for number, left in ((0, ["b", "c"]), (1, ["a", "c"]), (2, ["a", "b"])):
        new = applied(remove(document, (*METRIC, "contains_all", number)))
        assert parse(new).value["metrics"][0]["contains_all"] == left
        assert "// all" in new
    new = applied(remove(document, (*METRIC, "max")))
    assert parse(new).value["metrics"][0] == {"type": "TextMatch", "contains_all": ["a", "b", "c"]}
    assert applied(remove(parse('["a"]'), (0,)), '["a"]') == "[]"


def test_renamed_and_appended() -> None:
    document = parse(TEXT)
    assert applied(rename(document, (*METRIC, "max"), "min")) == TEXT.replace('"max"', '"min"')
    new = applied(append(document, (*METRIC, "contains_all"), "d"))
    assert new == TEXT.replace('"c"]', '"c", "d"]')
    assert applied(append(parse("[]"), (), 1), "[]") == "[1]"


def test_what_is_not_there_gives_nothing() -> None:
    document = parse(TEXT)
    assert set_value(document, ("nothing", "here"), 1) is None
    assert remove(document, (*METRIC, "nothing")) is None
    assert remove(document, (*METRIC, "contains_all", 9)) is None
    assert rename(document, (*METRIC, "nothing"), "x") is None
    assert append(document, (*METRIC, "max"), 1) is None
    assert node_of(parse(""), ("a",)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner),
    max_leaves=12,
)


def paths(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += paths(item, (*at, key))
    return found


def inside(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON, min_size=1), st.data())
def test_edits_do_to_the_text_what_they_do_to_the_value(value: Any, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([to_text(value), str(to_text(value)).replace("\n", " ")]))
    document = parse(text)
    path = data.draw(st.sampled_from(paths(value)))
    wanted = copy.deepcopy(value)
    del inside(wanted, path[:-1])[path[-1]]
    fix = remove(document, path)
    assert fix is not None
    assert parse(fix.apply(text)).value == wanted
    wanted = copy.deepcopy(value)
    inside(wanted, path[:-1])[path[-1]] = {"new": [1, "x"]}
    fix = set_value(document, path, {"new": [1, "x"]})
    assert fix is not None
    assert parse(fix.apply(text)).value == wanted


@given(st.text("ab\n", max_size=40), st.text("ab\n", max_size=40))
def test_edits_between_two_texts(old: str, new: str) -> None:
    edits = edits_between(old, new)
    assert Fix("", edits).apply(old) == new
    assert all(left.end <= right.start for left, right in pairwise(edits))


@pytest.mark.parametrize("text", ["{'a': 1, b: 2,}", '{"a": 1, "a": 2}', "{a: [1,,2]}", '"x"', "", "{"])
def test_odd_texts_never_raise(text: str) -> None:
    document = parse(text)
    for path in ((), ("a",), ("a", 0), ("b",)):
        for fix in (set_value(document, path, 1), remove(document, path), append(document, path, 1)):
            assert fix is None or isinstance(fix.apply(text), str)
