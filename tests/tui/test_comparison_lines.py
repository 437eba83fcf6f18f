"""A comparison on the screen: the caret stands under the character that differs, in any width."""

from __future__ import annotations

import pytest

from agenteval_tui.tui.presenters.evidence_pane import comparison_lines
from agenteval_tui.tui.styled_text import cell_len, plain, width_of
from agenteval_tui.views.evidence_comparison import Comparison

LONG = "\"SELECT name, city FROM customers WHERE country = 'DE' AND revenue > 5.000 ORDER BY revenue DESC\""


def shown(made: Comparison, width: int, indent: int = 0) -> list[str]:
    lines = comparison_lines([made], width, indent)
    assert all(width_of(line) <= width for line in lines), [plain(line) for line in lines]
    return [plain(line).rstrip() for line in lines]


def pointed(lines: list[str]) -> str:
    """The character above the caret."""
    at = next(number for number, line in enumerate(lines) if "^" in line)
    column, used = cell_len(lines[at][: lines[at].index("^")]), 0
    for char in lines[at - 1]:
        if used <= column < used + cell_len(char):
            return char
        used += cell_len(char)
    return ""


def test_expected_stands_above_got() -> None:
    made = Comparison("order_id", '"#W1042"', '"W1042"', 1, "'#' is missing")
    assert shown(made, 60, 4) == [
        '    order_id   expected  "#W1042"',
        '               got       "W1042"',
        "                          ^ '#' is missing",
    ]


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 20, 26, 31, 38, 60, 100])
@pytest.mark.parametrize(
    ("text", "char"), [(LONG, "5"), ('"Preis: 東京タウー ist nah bei 5.000 Leuten"', "ウ"), ('"a\tb\u202e\x1bcX"', "X")]
)
def test_the_caret_is_under_the_character_at_every_width(width: int, text: str, char: str) -> None:
    lines = shown(Comparison("", text, text, text.index(char), "it differs"), width)
    assert pointed(lines) == char
    assert "it differs" in " ".join(" ".join(lines).split())


def test_what_is_missing_at_the_end_is_pointed_at_behind_the_text() -> None:
    lines = shown(Comparison("", '"abc"', '"ab', 3, "'c' is missing"), 40)
    assert lines[1:] == ['got       "ab', "             ^ 'c' is missing"]


def test_a_long_text_shows_the_rows_around_the_difference() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    lines = shown(Comparison("", text, text, text.index("50"), "here"), 60)
    assert pointed(lines) == "5"
    # The row that differs and one on each side, so that both texts are in view together.
    assert [line[10:].split("  ")[0] for line in lines] == [
        "… 49 lines above", "line 49", "line 50", "line 51", "… 48 more lines",
        "… 49 lines above", "line 49", "line 50", "", "line 51", "… 48 more lines",
    ]  # fmt: skip


def test_a_tree_opens_only_what_differs() -> None:
    made = Comparison("filter", parts=(Comparison("country", '"DE"', '"AT"', 1, "'A' instead of 'D'"),), alike=3)
    assert shown(made, 60) == [
        "filter   3 alike",
        '  country   expected  "DE"',
        '            got       "AT"',
        "                       ^ 'A' instead of 'D'",
    ]


def test_short_lines_are_in_one_row_and_nothing_comes_between_them() -> None:
    made = Comparison("", '"SELECT"', '"sql\nSELECT"', 1, "the language tag 'sql' is before it", "line 2")
    assert shown(made, 80) == [
        'expected  "SELECT"',
        'nearest   "sql↵SELECT"   line 2',
        "           ^ the language tag 'sql' is before it",
    ]
    assert "sql↵" not in " ".join(shown(made, 10)), "where there is no room each line has a row"
