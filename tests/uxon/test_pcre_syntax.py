"""Where PCRE's syntax differs from that of the `regex` package: read as PHP reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.uxon.php_regex import CompiledPattern, PatternError, compile_pattern, regex_syntax


def found(pattern: str, text: str) -> str | None:
    made = compile_pattern(pattern)
    assert isinstance(made, CompiledPattern), made
    match = made.search(text)
    return None if match is None else match.group()


# What preg_match of PHP finds; that without u a letter is several bytes to it is no part of this.
@pytest.mark.parametrize(("pattern", "text", "match"), [
    (r"/\Qa.b(c\E+/", "axb a.b(cc", "a.b(cc"),
    (r"/\Q1+1=2", "1+1=2", None),
    (r"\Q1+1=2", "so 1+1=2", "1+1=2"),
    (r"/[\Q^]\E]+/", "a^]]", "^]]"),
    (r"/(?<n>a|b)\k<n>/", "abb", "bb"),
    (r"/(?'n'a|b)\k'n'\k{n}/", "abbb", "bbb"),
    (r"/(a)(b)\g{-1}\g1\g{2}/", "abbab", "abbab"),
    (r"/(a\g<1>?b)/", "aabb", "aabb"),
    (r"/\x{1F600}\x{41}/u", "😀A", "😀A"),
    (r"/[\x{41}-\x{43}]+/", "zABCD", "ABC"),
    (r"/\o{101}\e/", "A\x1b", "A\x1b"),
    (r"/\cA\cb\c[/", "\x01\x02\x1b", "\x01\x02\x1b"),
    (r"/[\cA-\cC\c?]+/", "c\x01\x03\x7fA", "\x01\x03\x7f"),
    (r"\c\x", "\x1cx", "\x1cx"),
    (r"/\Q\cA\E/", "\\cA", "\\cA"),
    (r"/a.*b/U", "aXbXb", "aXb"),
    (r"/a.*?b/U", "aXbXb", "aXbXb"),
    (r"/a{1,3}/U", "aaa", "a"),
    (r"/a++b/U", "aab", "aab"),
    (r"/a$/", "a\n", "a"),
    (r"/a$/D", "a\n", None),
    (r"/a$/D", "a", "a"),
    (r"/a$/Dm", "a\nb", "a"),
    (r"/[$]/D", "$", "$"),
    (r"/\d+/", "١٢", None),
    (r"/\d+/u", "١٢", "١٢"),
    (r"\d+", "١٢", "١٢"),
    (r"/\w+/", "Müller", "M"),
    (r"/\w+/u", "Müller", "Müller"),
    (r"/[\W\d]+/", "aé-1b", "é-1"),
    (r"/[^\S]+/", "a\u00a0 b", " "),
    (r"/\bM\b/", "Mü M", "M"),
    (r"/\p{Lu}\X/", "Äü", "Äü"),
    (r"/ÄÖ/i", "äö", "äö"),
    (r"/(?:foo){e<=1}/", "fo", None),
    (r"(?:foo){e<=1}", "fo", None),
    (r"(?:foo){e<=1}", "foo{e<=1}", "foo{e<=1}"),
    (r"/(?:foo){i<=1,d}/", "fo", None),
    (r"/a{2}{x}/", "aa{x}", "aa{x}"),
    (r"/x(?#a{b)y/", "xy", "xy"),
    (r"/a # {e<=1} (/x", "a", "a"),
])  # fmt: skip
def test_as_php_reads_it(pattern: str, text: str, match: str | None) -> None:
    if pattern.startswith("/") and pattern.count("/") == 1:
        assert isinstance(compile_pattern(pattern), CompiledPattern)
        return
    assert found(pattern, text) == match


@pytest.mark.parametrize(("pattern", "position"), [
    (r"/foo(/", 4), (r"/\Qaa\E(/", 7), (r"/\x{41}(/", 7), (r"/\x{110000}/", 1), (r"/a\k<b>/", 2),
])  # fmt: skip
def test_an_error_is_at_its_character_as_it_was_written(pattern: str, position: int) -> None:
    made = compile_pattern(pattern)
    assert isinstance(made, PatternError)
    assert made.position == position


@pytest.mark.parametrize("pattern", [r"\c", r"/a\c/", r"\cé", "/[\\c\n]/"])
def test_a_control_character_without_its_letter_is_refused_with_a_remedy(pattern: str) -> None:
    refused = compile_pattern(pattern)
    assert isinstance(refused, PatternError)
    assert r"write \cA, or \\c for" in refused.message


@pytest.mark.parametrize("pattern", [r"\\c)", r"\cA)", r"c)"])
def test_another_error_near_a_control_character_keeps_its_own_remedy(pattern: str) -> None:
    refused = compile_pattern(pattern)
    assert isinstance(refused, PatternError)
    assert "this ) closes nothing" in refused.message


@given(st.text(alphabet="aZ1 .*+?()[]{}|^$\\#/-&~<>\n'é😀", max_size=12).filter(lambda text: "\\E" not in text))
def test_what_is_quoted_is_itself(text: str) -> None:
    if text.endswith("\\"):
        text += "a"
    assert found("\\Q" + text + "\\Eb", f"x{text}by") == text + "b"


pieces = st.sampled_from(
    ["a", "b", ".", "(", ")", "[", "]", "^", "a+", "b?", "*", "{", "}", "{1,2}", "{e<=1}", "\\d", "\\W", "\\Q", "\\E",
     "\\x{61}",     "\\k<n>", "(?<n>", "(?:", "|", "$", "\\", "#", "(?#", "\\g{-1}"]
)  # fmt: skip


@given(st.lists(pieces, max_size=10), st.sampled_from(["", "U", "D", "x", "n", "UDn"]))
def test_anything_is_read_and_each_character_has_its_origin(parts: list[str], flags: str) -> None:
    pattern = "".join(parts)
    syntax = regex_syntax(pattern, flags, is_bare=False)
    assert len(syntax.pattern) == len(syntax.origins)
    assert all(a <= b for a, b in zip(syntax.origins, syntax.origins[1:], strict=False))
    assert re.search(r"(?<!\\)\{[eisd]\b", syntax.pattern) is None or "[" in pattern or "#" in pattern
    compile_pattern(pattern)
