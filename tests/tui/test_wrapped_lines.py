"""Lines in rows: nothing is lost, nothing is too wide, and a character and its cell find each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.tui.presenters.wrapped_lines import WrappedLines, shown_cells, shown_line
from agenteval_tui.tui.styled_text import cell_len

LINE = st.text(alphabet=st.sampled_from('ab ,"{\t日é\u0301\x1b\u202e👩\u200d\ufe0f❤x'), max_size=60)
TEXT = st.lists(LINE | st.text(alphabet='ab ,"{', max_size=60), min_size=1, max_size=6)
WIDTH = st.integers(0, 30)


def wrapped(lines: list[str], width: int) -> WrappedLines:
    made = WrappedLines()
    made.wrap(lines, width)
    return made


def rows_of(made: WrappedLines, lines: list[str]) -> list[str]:
    """The rows as they are painted."""
    found = []
    for row in range(made.height):
        line, part = made.at(row)
        found.append(" " * made.indent(line, part) + shown_line(lines[line][slice(*made.part(line, part))])[0])
    return found


@given(lines=TEXT, width=WIDTH)
def test_a_character_and_its_cell_find_each_other(lines: list[str], width: int) -> None:
    made = wrapped(lines, width)
    before = (-1, -1)
    for line, text in enumerate(lines):
        for column in range(len(text) + 1):
            cell, row = made.cell_of(line, column)
            assert (row, cell) >= before, "the cursor goes right and down"
            before = (row, cell)
            found = made.place_at(cell, row)
            assert found[0] == line
            assert made.cell_of(*found) == (cell, row)
            if column < len(text) and made.cell_of(line, column + 1) != (cell, row):
                assert found == (line, column)


@given(lines=TEXT, width=WIDTH)
def test_rows_hold_all_of_a_line_and_are_not_too_wide(lines: list[str], width: int) -> None:
    made = wrapped(lines, width)
    for line, text in enumerate(lines):
        parts = [made.part(line, part) for part in range(len(made.breaks(line)) + 1)]
        assert "".join(text[start:end] for start, end in parts) == text
        assert all(start < end for start, end in parts) or parts == [(0, 0)]
        assert made.row_of(line) == made.cell_of(line, 0)[1]
    if width:
        for row in rows_of(made, lines):
            # A space may take the cell that is there for the cursor. A wide character must have a place.
            assert cell_len(row) <= max(width, 2) or (row.endswith(" ") and cell_len(row) == max(width, 2) + 1)


@given(lines=TEXT, width=st.integers(1, 30), cell=st.integers(-3, 40), row=st.integers(-3, 40))
def test_each_cell_is_near_a_character(lines: list[str], width: int, cell: int, row: int) -> None:
    """Wherever one clicks: in the row that was hit, where there is one."""
    made = wrapped(lines, width)
    line, column = made.place_at(cell, row)
    assert 0 <= column <= len(lines[line])
    assert made.cell_of(line, column)[1] == min(max(row, 0), made.height - 1)


@given(lines=TEXT, other=TEXT, width=WIDTH)
def test_an_edit_wraps_as_if_all_were_new(lines: list[str], other: list[str], width: int) -> None:
    made, anew = wrapped(lines, width), wrapped(other, width)
    made.edit(other)
    assert [made.breaks(line) for line in range(len(other))] == [anew.breaks(line) for line in range(len(other))]
    assert made.height == anew.height
    assert [made.at(row) for row in range(made.height)] == [anew.at(row) for row in range(anew.height)]


@pytest.mark.parametrize(
    ("line", "width", "rows"),
    [
        ("one two three", 8, ["one two ", "  three"]),
        ("one two", 7, ["one two"]),
        ("one two ", 7, ["one two "]),
        ("one two  ", 7, ["one two ", "   "]),
        ('    "tools": [{"name": "get_order"}]', 22, ['    "tools": [{"name": ', '      "get_order"}]']),
        ('["a","b","c"]', 8, ['["a",', '  "b",', '  "c"]']),
        ("aaaaaaaaaaaa", 5, ["aaaaa", " aaaa", " aaa"]),
        ("      aaaaaa", 9, ["      aaa", "   aaa"]),
        ("日本語日本", 5, ["日本", " 語日", " 本"]),
        ("\t\tx yyyyyyyy", 12, ["    x ", "    yyyyyyyy"]),
        ("a\x1b日 b", 4, ["a␛日 ", " b"]),
    ],
)
def test_where_rows_end(line: str, width: int, rows: list[str]) -> None:
    assert rows_of(wrapped([line], width), [line]) == rows


def test_cells_of_tabs_and_of_what_is_not_shown_as_it_is() -> None:
    assert shown_cells("a\t日 \x1b", 5) == 7
    assert shown_line("a\tb") == ("a  b", (0, 1, 3, 4))


def test_one_line_of_100000_characters_and_5000_lines_are_found_quickly() -> None:
    """Counted, not timed: who asks for a row looks at that row only."""
    long = '{"a": "' + "word " * 20_000 + '"}'
    made = wrapped([long, *(f'"key{n}": {n},' for n in range(5000))], 60)
    assert made.height > 6_600
    line, part = made.at(1000)
    start, end = made.part(line, part)
    assert line == 0
    assert end - start <= 61
    assert made.at(made.height - 1) == (5000, 0)
    assert made.cell_of(5000, 3) == (3, made.height - 1)
