"""What holds for every text: tokens cover it, reading never fails, JSON means what it means, fixes fix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.tokens import tokenize

Diagnose = Callable[[str], tuple[Diagnostic, ...]]

PIECES = [
    *"{}[]:,\"'/\\ \n\t`“”",
    *(
        "//",
        "/*",
        "*/",
        "true",
        "null",
        "NaN",
        "1",
        "-0.5",
        "01",
        "word",
        "ä",
        "\ud800",
        "\0",
        "\ufeff",
        "\r\n",
        "{{x}}",
    ),
    *(
        '"type"',
        '"TextMatch"',
        '"metrics"',
        '"contains_all"',
        '"a"',
        '"b":',
        "'c'",
        '"\\d"',
        '"//"',
        '"/*"',
        '"*/"',
        "[]",
    ),
    *('"extract_by_regex": "/(/"', '"extract_code_block"', '"// Multiline text delimited by `\\n`"', "=", "..."),
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)


def _is_plain(key: str) -> bool:
    return key[:2] not in ("//", "/*", "*/")


values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6).filter(_is_plain), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(texts)
@example("/*/*/*")
@example('{"a": "\\')
def test_tokens_cover_the_text(text: str) -> None:
    position = 0
    for token in tokenize(text):
        assert token.start >= position
        assert token.end > token.start
        assert text[position : token.start].strip("\ufeff \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0").strip() == ""
        position = token.end
    assert text[position:].replace("\ufeff", "").strip() == ""


@given(texts)
def test_reading_never_fails_and_places_are_in_the_text(diagnose: Diagnose, text: str) -> None:
    document = parse(text)
    for diagnostic in diagnose(text):
        assert 0 <= diagnostic.start <= diagnostic.end <= len(text)
        assert diagnostic.start < diagnostic.end or not text
        assert diagnostic.message.endswith((".", "?"))
        assert "\n" not in diagnostic.message or "\n" in text
    for offset in range(0, len(text) + 1, 3):
        path = document.path_at(offset)
        node = document.node_at(offset)
        assert (node is None) <= (path == ())


@given(values)
def test_json_means_what_it_means(value: object) -> None:
    document = parse(json.dumps(value))
    assert document.diagnostics == ()
    assert document.value == value
    assert repr(document.value) == repr(value)
    assert parse(json.dumps(value, ensure_ascii=False, indent=1)).value == value


@given(values)
def test_written_values_are_read_back(value: object) -> None:
    document = parse(to_text(value))
    assert document.value == value
    assert document.diagnostics == ()


CONFIGS = [
    '{\n  "extract_code_block": 1,\n  // x\n  "metrics": [\n    {"type": "TextMatch", "contains_all": ["a"]}\n  ]\n}',
    '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "search", "min_calls": 1, "arguments": {"q": "x"}}]}]}',
    '{"extract_by_regex": "/a(b)/i", "with_block": true, "metrics": [{"type": "TextMatch", "equals": "x y"}]}',
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good config with one to three places damaged."""
    text = draw(st.sampled_from(CONFIGS))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text) - 1))
        much = draw(st.integers(0, 2))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[at + much :]
    return text


def _kinds(diagnostics: tuple[Diagnostic, ...]) -> Counter[tuple[str, str]]:
    return Counter((d.code, d.message) for d in diagnostics)


@settings(max_examples=150)
@given(st.one_of(damaged(), texts))
@example('{"a": 1, "b{{x}}\n": true, "c: [{"d": "T", "e": "x y"}]}')
@example('{"metrics": [{"type": "T"`, "tools":{"name": "search", "min_calls": 1,arguments": {"q": "x"}}]}]}')
@example('{"\nxtract_by_regex": "/a(b)/i", "ith_block": true, "m\netrics": [{"type": "TextMatch", "equals": "x y"}]}')
def test_every_fix_does_what_it_is_for(diagnose: Diagnose, text: str) -> None:
    found = diagnose(text)
    before = _kinds(found)
    for diagnostic in found:
        if diagnostic.fix is None:
            continue
        fixed = diagnostic.fix.apply(text)
        assert fixed != text
        after = _kinds(diagnose(fixed))
        kind = (diagnostic.code, diagnostic.message)
        assert after[kind] < before[kind], (diagnostic, fixed, after)
