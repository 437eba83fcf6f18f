"""Nothing that a terminal acts on gets through; offsets can be mapped."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.text.display import displayable, displayable_map, one_line

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)
# What hurts is rare in random text, so half of it is made of it.
HOSTILE = st.text(
    alphabet=st.sampled_from("\x1b\x07\x9b\x9d\x00\x7f\r\n\t\u202e\u2066\u200b\u200d\ufeff\ufe0f\u0301\ud800aé日🙂")
)


def harmless(char: str) -> bool:
    """A character that a terminal only draws (or newline and tab). Unassigned ones may be next year's letters."""
    return char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(ANY_TEXT | HOSTILE)
def test_the_result_only_holds_what_a_terminal_draws(text: str) -> None:
    shown = displayable(text)
    assert all(harmless(char) or char == "\ufffd" for char in shown)


@given(ANY_TEXT | HOSTILE)
def test_no_character_carries_more_than_two_marks(text: str) -> None:
    run = 0
    for char in displayable(text):
        run = run + 1 if unicodedata.combining(char) else 0
        assert run <= 2


@given(ANY_TEXT | HOSTILE)
def test_the_map_leads_from_each_character_to_its_place(text: str) -> None:
    shown, places = displayable_map(text)
    assert shown == displayable(text)
    if places is None:
        assert shown == text
        return
    assert len(places) == len(text) + 1
    assert places[-1] == len(shown)
    assert places == sorted(places)
    for index, char in enumerate(text):
        if char.isascii() and char.isprintable():
            assert shown[places[index]] == char


@given(ANY_TEXT | HOSTILE)
def test_displayable_is_idempotent(text: str) -> None:
    assert displayable(displayable(text)) == displayable(text)


@given(ANY_TEXT | HOSTILE, st.integers(1, 40))
def test_one_line_is_one_line_of_at_most_the_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert "\t" not in line
    assert len(line) <= width


def test_the_stand_ins_are_visible() -> None:
    assert displayable("a\x1b]52;c;QQ==\x07b") == "a␛]52;c;QQ==␇b"
    assert displayable("user\u202etxt.exe") == "user↔txt.exe"
    assert displayable("pay\u200bpal") == "pay·pal"
    assert displayable("⚠\ufe0f ok\r\nnext") == "⚠ ok\nnext"
    assert displayable("del\x7f c1\x9b") == "del␡ c1\ufffd"
    assert displayable("\ud800") == "\ufffd"


def test_ordinary_text_is_returned_as_it_is() -> None:
    for text in ("Größe: 日本 🙂 “quoted” – 5 €", "plain", "two\nlines\twith tab"):
        assert displayable(text) is text
