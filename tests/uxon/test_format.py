"""The formatter keeps what a text means and says."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.uxon.format import format_text
from agenteval_tui.uxon.parse import parse

CASES = [
    ('{"a":1,"b":[1,2,],}', '{"a": 1, "b": [1, 2]}'),
    ('{\n"a":1,\n\n\n"b":{"c":\n2}}', '{\n  "a": 1,\n\n  "b": {"c": 2}\n}'),
    ("[\n]", "[]"),
    ("{ }\n", "{}\n"),
    ('{"a":1 // one\n,"b":2 // two\n}', '{\n  "a": 1, // one\n  "b": 2 // two\n}'),
    ('// head\n{"a":1} // tail\n// end', '// head\n{"a": 1} // tail\n// end'),
    ('{\n// first\n"a": /* in */ 1\n// last\n}', '{\n  // first\n  /* in */\n  "a": 1\n  // last\n}'),
    ('{\r\n"a": 1\r\n}\r\n', '{\r\n  "a": 1\r\n}\r\n'),
    ('{"a": "' + "x" * 90 + '", "b": 1}', '{\n  "a": "' + "x" * 90 + '",\n  "b": 1\n}'),
    ('{"a": [1, 2', '{"a": [1, 2'),
    ("// nothing", "// nothing"),
]


@pytest.mark.parametrize(("text", "laid_out"), CASES)
def test_layout(text: str, laid_out: str) -> None:
    assert format_text(text) == laid_out
    assert format_text(laid_out) == laid_out


GAPS = ["", " ", "\n", "\n\n\n", "  // line\n", "/* block */", "\n  // own\n", "\n/* two\n lines */\n", "// a\n// b\n"]


@st.composite
def commented(draw: st.DrawFn) -> str:
    """JSON with comments and white space wherever they may stand."""
    inner = st.recursive(
        st.sampled_from([1, True, None, "x", "// no comment", -0.5]),
        lambda some: st.lists(some, max_size=3) | st.dictionaries(st.sampled_from("abc"), some, max_size=3),
        max_leaves=8,
    )
    text = json.dumps(draw(inner), separators=(",", ":"))
    pieces = [text[t.start : t.end] for t in parse(text).tokens]
    return "".join(draw(st.sampled_from(GAPS)) + piece for piece in pieces) + draw(st.sampled_from(GAPS))


def _comments(text: str) -> Counter[str]:
    return Counter(text[t.start : t.end].rstrip() for t in parse(text).tokens if t.kind == "comment")


@given(commented())
def test_formatting_loses_nothing_and_settles(text: str) -> None:
    laid_out = format_text(text)
    assert parse(laid_out).value == parse(text).value
    assert parse(laid_out).diagnostics == ()
    assert _comments(laid_out) == _comments(text)
    assert format_text(laid_out) == laid_out
