"""Lines never take more cells than they may, whatever characters they hold."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

import agenteval_tui
from agenteval_tui.core.display import displayable
from agenteval_tui.tui.styled_text import (
    _ONE_CELL,
    fit,
    fit_reason,
    fit_text,
    fold,
    pad,
    plain,
    right,
    set_cell_size,
    split_lines,
    spread,
    width_of,
    wrap,
)

SHOWN = st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]), max_size=60).map(displayable)
ONE_LINE = SHOWN.map(lambda text: " ".join(text.split()))
LINES = st.lists(st.tuples(ONE_LINE, st.sampled_from(["", "dim", "bold passed"])), max_size=5).map(tuple)


@given(LINES, st.integers(0, 50))
@example((("\N{EMOJI MODIFIER FITZPATRICK TYPE-1-2}", ""),), 0)
def test_fit_never_takes_more_and_says_when_it_cut(line: tuple[tuple[str, str], ...], width: int) -> None:
    cut = fit(line, width)
    assert width_of(cut) <= width
    if width == 0:
        # Also what takes no cell: it would change the character that stands before.
        assert plain(cut) == ""
    elif width_of(line) <= width:
        assert plain(cut) == plain(line)
    else:
        assert plain(cut).endswith("…")


def test_an_empty_cell_at_the_edge_does_not_make_a_line_longer() -> None:
    assert fit((("0", ""), ("", ""), ("0", "")), 1) == (("…", ""),)


@given(LINES, LINES, st.integers(1, 60))
def test_pad_and_spread_fill_exactly(
    first: tuple[tuple[str, str], ...], second: tuple[tuple[str, str], ...], width: int
) -> None:
    assert width_of(pad(first, width)) == width
    assert width_of(spread(first, second, width)) <= width


@given(LINES, st.integers(1, 60), st.integers(0, 60))
def test_a_row_in_two_pieces_fills_exactly_and_is_cut_as_a_whole_one(
    line: tuple[tuple[str, str], ...], width: int, at: int
) -> None:
    at = min(at, width)
    head, tail = split_lines(line, width, at)
    assert (width_of(head), width_of(tail)) == (at, width - at)
    whole, seen = plain(pad(line, width)), plain(head) + plain(tail)
    assert seen == whole or "  " in seen, "only a wide character on the border is not what it was"


@given(ONE_LINE, st.integers(0, 30))
def test_a_text_in_so_many_cells(text: str, width: int) -> None:
    assert cell_len(set_cell_size(text * 5, width)) == width


def test_what_counts_as_one_cell_without_looking_takes_one() -> None:
    assert {cell_len(char) for char in _ONE_CELL} == {1}


@given(SHOWN.map(lambda text: text.replace("\t", " ")), st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_only_spaces_and_newlines(text: str, width: int) -> None:
    spans = wrap(text, width)
    assert all(cell_len(text[start:end]) <= width for start, end in spans)
    covered = 0
    for start, end in spans:
        assert text[covered:start].strip(" \n") == ""
        covered = end
    assert text[covered:].strip(" \n") == ""


@given(LINES, st.integers(2, 30))
def test_a_folded_line_loses_nothing_and_fits(line: tuple[tuple[str, str], ...], width: int) -> None:
    lines = fold(line, width)
    assert "".join(map(plain, lines)) == plain(line)
    assert all(width_of(one) <= width for one in lines)


def test_words_stay_whole_where_they_can() -> None:
    text = "nobody breaks a word in two"
    assert [text[a:b] for a, b in wrap(text, 10)] == ["nobody", "breaks a", "word in", "two"]


def test_numbers_stand_right() -> None:
    assert right("12", 5) == "   12"
    assert right("123456", 5) == "1234…"


@given(ONE_LINE, st.integers(0, 70))
def test_a_reason_never_takes_more_and_says_that_it_is_cut(text: str, width: int) -> None:
    shown = fit_reason(text, width)
    assert cell_len(shown) <= width
    if cell_len(text) <= width:
        assert shown == text
    elif width > 1:
        start, end = shown.split("…")[0], shown.rpartition("…")[2]
        assert text.startswith(start)
        assert text.endswith(end)
        assert "…" in shown


def test_a_reason_is_cut_in_the_middle_between_words() -> None:
    reason = 'Asks for the right order: the call of get_order differs only in order_id: expected "#W1042", got "W1042"'
    assert fit_reason(reason, 66) == 'Asks for the right order:… expected "#W1042", got "W1042"'
    assert fit_reason(reason, 44) == 'Asks for the… expected "#W1042", got "W1042"'
    assert fit_reason(reason, 30) == '… "#W1042", got "W1042"'


def test_what_decides_of_a_reason_stays_and_remarks_go_first() -> None:
    missed = (
        'Names both ways: "Standard Shipping" is not in the text; nearest "standard shipping" (line 1): would match '
        "ignoring case (and 1 more)"
    )
    assert fit_reason(missed, 66) == 'Names both ways: "Standard Shipping" is not in the text…'
    assert fit_reason(missed, 50) == 'Names… "Standard Shipping" is not in the text…'
    assert fit_reason(missed, 28) == '… "Standard Shipping" is no…', "never from the middle of what was looked for"
    forbidden = "Gives nothing away: issue_voucher must not be called, but was called once (and 1 more)"
    assert fit_reason(forbidden, 80) == "Gives nothing away: issue_voucher must not be called, but was called once…"
    assert fit_reason(forbidden, 28) == "… but was called once…"
    quoted = 'Says it: "a; b (c)" is not in the text'
    assert fit_reason(quoted, 30) == '… "a; b (c)" is not in the te…'


def test_what_was_cut_before_is_not_cut_twice() -> None:
    assert plain(fit((("one two…", ""), (" three", "")), 8)) == "one two…"
    assert plain(fit((("one two… ", ""), ("three", "")), 9)) == "one two…"
    assert fit_text("one two… three", 9) == "one two…"
    assert "……" not in plain(fit((('"You can send it bac…', ""), ('", "You have', "dim")), 22))


OF_VIEWS = {"good", "bad", "broken", "warn", "near"}
"""Tokens of views that are not colours of a theme: `view_lines.style` turns them into some."""


def styles_in(source: str) -> set[str]:
    """The words that stand where a line has a style: behind a text, or in a call that makes lines of one."""
    words: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Tuple(elts=[ast.Constant() | ast.JoinedStr(), ast.Constant(value=str(style))]):
                words.add(style)
            case ast.Call(func=ast.Name(id="paragraph" | "labelled"), args=args, keywords=keywords):
                values = [*args[2:], *(keyword.value for keyword in keywords)]
                words |= {
                    part.value for part in values if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    return {word for style in words for word in style.split()}


def test_lines_of_screens_have_colours_of_themes_and_no_tokens_of_views() -> None:
    assert styles_in('x = [("a", "warn bold"), *paragraph(text, 80, "bad")]') == {"warn", "bold", "bad"}
    tui = Path(agenteval_tui.__file__).parent / "tui"
    files = [*tui.rglob("*.py"), *(tui.parent / "extensions").rglob("sheet.py")]
    assert len(files) > 100
    wrong = {str(file): found for file in files if (found := styles_in(file.read_text("utf-8")) & OF_VIEWS)}
    assert wrong == {}


def test_a_mark_stays_with_its_character_where_that_is_wider_than_the_line() -> None:
    assert wrap("\U00020000\uaa29a", 1) == [(0, 2), (2, 3)]
