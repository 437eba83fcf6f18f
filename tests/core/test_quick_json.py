"""Our JSON encoder writes and refuses what the standard library's does, and our decoder reads the same."""

from __future__ import annotations

import json
from datetime import date
from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.core.large_json import decoded
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


@settings(max_examples=200)
@given(JSON, st.booleans())
def test_any_json_is_read(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    assert repr(decoded(data)) == repr(json.loads(data))


SURROGATES = (r"\ud800", r"\udc00", r"\udfff", r"\ud83d\ude00", "a", r"\n", r"\\")


@pytest.mark.parametrize("escapes", product(SURROGATES, repeat=3), ids="".join)
def test_halves_of_characters_are_read(escapes: tuple[str, ...]) -> None:
    data = f'["{"".join(escapes)}"]'.encode()
    assert decoded(data) == json.loads(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"[", b'["a]', b"[1]x", b'{"a":1,"a":2}', b"[NaN,-Infinity,1e400]", b"-0", b"9" * 30, b"9" * 5_000,
     b'"\xff"', b'"\xc3"', b"\xef\xbb\xbf1", b'{"a"}', b"1.0e", b"01", b'"\t"', b"[" * 20_000],
)  # fmt: skip
def test_what_is_not_read(data: bytes) -> None:
    assert repr(_outcome(decoded, data)) == repr(_outcome(json.loads, data))
