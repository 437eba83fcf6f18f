"""What is stored is read as the standard library reads it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.history.blobs import decoded_json

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


def _outcome(does: Any, value: Any) -> Any:
    try:
        return does(value)
    except (TypeError, ValueError, RecursionError) as error:
        return type(error), str(error) if isinstance(error, TypeError | ValueError) else ""


@settings(max_examples=200)
@given(JSON, st.booleans())
def test_any_json_is_read(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    assert repr(decoded_json(data)) == repr(json.loads(data))


SURROGATES = (r"\ud800", r"\udc00", r"\udfff", r"\ud83d\ude00", "a", r"\n", r"\\")


@pytest.mark.sweep
@pytest.mark.parametrize("escapes", product(SURROGATES, repeat=3), ids="".join)
def test_halves_of_characters_are_read(escapes: tuple[str, ...]) -> None:
    data = f'["{"".join(escapes)}"]'.encode()
    assert decoded_json(data) == json.loads(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"[", b'["a]', b"[1]x", b'{"a":1,"a":2}', b"[NaN,-Infinity,1e400]", b"-0", b"9" * 30, b"9" * 5_000,
     b'"\xff"', b'"\xc3"', b"\xef\xbb\xbf1", b'{"a"}', b"1.0e", b"01", b'"\t"', b"[" * 20_000],
)  # fmt: skip
def test_what_is_not_read(data: bytes) -> None:
    assert repr(_outcome(decoded_json, data)) == repr(_outcome(json.loads, data))
