"""Nothing that a terminal acts on gets through; offsets can be mapped."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from agenteval_tui.core.display import both_ends, displayable, displayable_map, end_of_path, one_line, stand_in
from agenteval_tui.tui.terminal.output_filters import sanitize

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)
# What hurts is rare in random text, so half of it is made of it.
HOSTILE = st.text(
    alphabet=st.sampled_from(
        "\u200cب\u034fक\u094d👩\U0001f3fd\x1b\x07\x9b\x9d\x00\x7f\r\n\t\u202e\u2066\u200b\u200d\ufeff\ufe0f\u0301\ud800aé日🙂"
    )
)


def harmless(char: str) -> bool:
    """A character that a terminal only draws, or newline, tab or a joiner. Unassigned ones may become letters."""
    return char in "\n\t\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


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


@pytest.mark.parametrize(
    "char",
    [
        "\u034f", "\u17b4", "\u17b5", "\u180b", "\u180c", "\u180d", "\u180e", "\u180f", "\u2065", "\ufff0",
        "\ufff8", "\u115f", "\u1160", "\u3164", "\uffa0", "\u200b", "\u200c", "\u200d", "\u2060", "\u2064", "\u061c",
        "\ufeff", "\ufe00", "\ufe0d", "\U000e0001", "\U000e0041", "\U000e007f", "\U000e0100", "\U000e01ef",
        "\U000e0fff",
        "\U0001d173", "\U0001bca0", "\U000f0000", "\U0010fffd", "\u0378", "\ufdd0", "\U0001fffe", "\u206f", "\xad",
        "\u2028", "\u0600", "\u08e2", "\U000110bd", "\U00013430", "\ud800", "\x85", "\x9b", "\u1680",
    ],
)  # fmt: skip
def test_what_is_hidden_has_a_stand_in(char: str) -> None:
    shown = displayable(f"a{char}b")
    assert char not in shown
    assert len(shown) == 3
    assert len(displayable(f"a{char * 2000}b")) == 2002


def test_hidden_is_decided_by_unicode_property() -> None:
    """Of all code points: the table was made from these properties, perhaps by an older Unicode."""
    import regex

    hidden = regex.compile(
        r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]"
    )
    for code in range(0x110000):
        char = chr(code)
        if char not in "\n\t" and hidden.match(char) is not None:
            assert stand_in(char) != char, hex(code)
            assert len(stand_in(char)) <= 1


@pytest.mark.parametrize(
    "flood",
    ["\u0301", "\u0300\u0323", "\u0e31", "\u0e48\u0e31", "\u20dd", "\u0903", "\u093e\u0903", "\u0f90", "\u05b0\u05c1",
     "\u0301\ufe0f", "\u0e31\ufe0e", "\u1dc0", "\ua9bc", "\u302a", "\U0001e8d0", "\U0001d165"],
)  # fmt: skip
def test_a_flood_of_marks_is_cut(flood: str) -> None:
    for start in ("a", "", "\n", " "):
        shown = displayable(start + flood * 1967 + "b")
        marks = sum(unicodedata.category(char).startswith("M") for char in shown)
        assert marks <= 4, flood
        assert displayable(shown) == shown


@pytest.mark.parametrize(
    "text",
    ["Tiếng Việt", unicodedata.normalize("NFD", "Tiếng Việt"), "हिन्दी", "नि\u093c", "ภาษาไทยที่นี่", "עִבְרִית", "العَرَبِيَّة",
     "தமிழ்", "မြန်မာ", "ខ្មែរ", "བོད་ཡིག", "🙂", "日本語　です", "10\xa0km"],
)  # fmt: skip
def test_scripts_stay_readable(text: str) -> None:
    assert displayable(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم", "نمی\u200cشود", "بَ\u200cبَ", "क\u094d\u200dष", "क\u094d\u200cष", "ක\u0dca\u200dය",
        "ന\u0d4d\u200d", "👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "👩🏽\u200d🤝\u200d👨🏿", "❤\u200d🔥",
        "🏴\u200d☠", "two 🧑\u200d🦰, three",
    ],
)  # fmt: skip
def test_joiners_stay_where_writing_needs_them(text: str) -> None:
    assert displayable(text) == text
    assert displayable_map(text) == (text, None)
    assert one_line(f"  {text}  ") == text
    assert "·" not in sanitize(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200dpal", "pay·pal"), ("pay\u200cpal", "pay·pal"), ("\u200d👩", "·👩"),
        ("👩\u200d", "👩·"), ("👩\u200dx", "👩·x"),
        ("👩\u200c💻", "👩·💻"), ("ب\u200dب", "ب·ب"), ("ب\u200c", "ب·"), ("ا\u200cب", "ا·ب"), ("ب\u200c x", "ب· x"),
        ("ب\u200c\u200cب", "ب··ب"), ("क\u200dष", "क·ष"), ("क\u094d\u200d\u200dष", "क\u094d\u200d·ष"),
        ("❤\ufe0f\u200d🔥", "❤\u200d🔥"), ("\u200d", "·"), ("日\u200d本", "日·本"), ("a\ufe0f\u0301", "a\u0301"),
        ("👩\u200d💻\u202e", "👩\u200d💻↔"), ("ب\u200c\u034fب", "ب··ب"),
    ],
)  # fmt: skip
def test_elsewhere_joiners_are_seen(text: str, shown: str) -> None:
    """RFC 5892, A.1 and A.2; Unicode's annex 29, GB11."""
    assert displayable(text) == shown


def test_a_chain_of_pictographs_has_an_end() -> None:
    """A width counts a chain as its first pictograph, however long it is."""
    shown = displayable("👩\u200d" * 2000)
    assert max(map(len, shown.split("·"))) == 7


@given(
    st.text(alphabet=st.sampled_from("क\u094d\u200d\u200cषबِب👩💻🏽\u034f\ufe0f ax·"), max_size=40), st.integers(1, 20)
)
def test_what_is_cut_ends_in_no_joiner(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert not line.endswith(("\u200d…", "\u200c…"))


@given(
    st.text(alphabet=st.sampled_from("कष\u094d\u200d\u200cبآ👩💻🏽\u034f\ufe0f\u0301\x1b\x85\u2028 a日"), max_size=30)
)
@example("a\u0301\u0301\u094d\u200c")  # a mark that is too many, and a joiner that only it lets stand
def test_the_last_filter_keeps_the_cells(text: str) -> None:
    line = sanitize(text)
    assert cell_len(line) == cell_len(text)
    assert displayable(line) == line


def test_ordinary_text_is_returned_as_it_is() -> None:
    for text in ("Größe: 日本 🙂 “quoted” – 5 €", "plain", "two\nlines\twith tab"):
        assert displayable(text) is text


def test_a_long_path_keeps_its_last_folders() -> None:
    path = Path("/home/kim/projects/shop/suites")
    assert end_of_path(path, 40) == str(path)
    assert end_of_path(path, 20) == "…/shop/suites"
    assert end_of_path(path, 14) == "…/shop/suites"
    assert end_of_path(path, 5) == "…ites"
    assert end_of_path(Path("/a\x1b[31mb"), 40) == "/a␛[31mb"


@given(st.text(max_size=80), st.integers(3, 60))
def test_a_long_text_may_keep_both_ends(text: str, width: int) -> None:
    shown = both_ends(text, width)
    assert len(shown) <= width
    whole = one_line(text)
    if len(whole) > width:
        start, _, end = shown.rpartition("…")
        assert whole.startswith(start)
        assert whole.endswith(end)
    else:
        assert shown == whole
