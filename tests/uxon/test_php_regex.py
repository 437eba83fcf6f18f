"""Patterns with and without delimiters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.uxon.php_regex import CompiledPattern, PatternError, compile_pattern, split_pattern


@pytest.mark.parametrize(
    ("text", "pattern", "flags"),
    [
        ("abc", "abc", ""),
        ("", "", ""),
        ("/abc/", "abc", ""),
        ("/abc/ims", "abc", "ims"),
        ("#a/b#i", "a/b", "i"),
        ("~x~u", "x", "u"),
        ("{a{2}}i", "a{2}", "i"),
        ("(abc)", "abc", ""),
        ("/a\\/b/", "a\\/b", ""),
        ("/a/b/i", "a/b", "i"),
        ("/```([\\s\\S]*?)```/", "```([\\s\\S]*?)```", ""),
        ("\\d+", "\\d+", ""),
        ("(a)(b)", "(a)(b)", ""),
        ("[0-9]", "[0-9]", ""),
        ("[a-z]+", "[a-z]+", ""),
        ("^abc$", "^abc$", ""),
        (".*foo.*", ".*foo.*", ""),
        ("/orders/[0-9]+", "/orders/[0-9]+", ""),
        ("/foo", "/foo", ""),
        ("<b>(.*)</b>", "<b>(.*)</b>", ""),
        ('"name": "(.*)"', '"name": "(.*)"', ""),
    ],
)
def test_split(text: str, pattern: str, flags: str) -> None:
    parts = split_pattern(text)
    assert not isinstance(parts, PatternError)
    assert (parts.pattern, parts.flags) == (pattern, flags)
    assert text[parts.start :].startswith(pattern)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("/foo/g", 5, "flag g"),
        ("/foo/y", 5, "flag y"),
        ("/a(b/", 2, "never closed"),
        ("a(b[c)]", 1, "never closed"),
        ("[ab", 0, "set is never closed"),
        ("a)", 1, "closes nothing"),
        ("*a", 0, "nothing before it"),
        ("a{3,1}", 2, "first number"),
        ("(" * 3000, 0, "simplify"),
    ],
)
def test_errors_say_where(text: str, position: int, words: str) -> None:
    found = compile_pattern(text)
    assert isinstance(found, PatternError)
    assert found.position == position
    assert words in found.message


def test_flags_count() -> None:
    upper = compile_pattern("/^b$/im")
    assert isinstance(upper, CompiledPattern)
    assert upper.search("a\nB\nc")
    anchored = compile_pattern("/b/A")
    assert isinstance(anchored, CompiledPattern)
    assert anchored.search("ab") is None
    assert compile_pattern("/b/A") is anchored


def test_a_slow_pattern_ends_in_time() -> None:
    slow = compile_pattern("(?:(?:a|aa)+)+$")
    assert isinstance(slow, CompiledPattern)
    with pytest.raises(TimeoutError):
        slow.search("a" * 60 + "b", timeout=0.05)


@given(st.text(alphabet=st.characters() | st.sampled_from("()[]{}*+?|\\/^$.#~ims"), max_size=30))
def test_never_raises(text: str) -> None:
    found = compile_pattern(text)
    if isinstance(found, PatternError):
        assert 0 <= found.position <= len(text)
        assert found.message.endswith(".")
