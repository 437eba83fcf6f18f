"""Our JSON encoder writes and refuses what the standard library's does."""

from __future__ import annotations

import json
from datetime import date
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.core.quick_json import encoder

PAIRS = [
    (
        encoder(ensure_ascii=ascii_only, sort_keys=sort),
        json.JSONEncoder(ensure_ascii=ascii_only, sort_keys=sort, separators=(",", ":")).encode,
    )
    for ascii_only in (True, False)
    for sort in (True, False)
]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


class Colour(StrEnum):
    RED = "red"


@settings(max_examples=40)
@given(JSON)
def test_any_json(value: Any) -> None:
    for ours, theirs in PAIRS:
        assert ours(value) == theirs(value)


def _deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


def _within_itself() -> list[Any]:
    made: list[Any] = []
    made.append({"again": made})
    return made


@pytest.mark.parametrize(
    "value",
    [
        "\ud800 é",
        {"b": 1, "a": Colour.RED, "c": {1: 2.5, None: True, 2.5: "x"}},
        {1, 2},
        {"when": date(2026, 1, 2)},
        {(1, 2): 3},
        {"a": 1, 2: 3},
        float("nan"),
        [float("inf"), -float("inf")],
        _within_itself(),
        _deep(20_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_refused(value: Any) -> None:
    for ours, theirs in PAIRS:
        assert _outcome(ours, value) == _outcome(theirs, value)


def _outcome(does: Any, value: Any) -> Any:
    try:
        return does(value)
    except (TypeError, ValueError, RecursionError) as error:
        return type(error), str(error) if isinstance(error, TypeError | ValueError) else ""


def test_it_goes_on_after_a_refusal() -> None:
    for ours, theirs in PAIRS:
        shared = {"a": [1]}
        assert _outcome(ours, [shared, {1}]) == _outcome(theirs, [shared, {1}])
        assert ours([shared, shared]) == theirs([shared, shared])
