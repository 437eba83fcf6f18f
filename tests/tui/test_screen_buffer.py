"""What is sent of a picture shows the same as all of it: cell by cell, colours too."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from terminal import ROOT, Terminal
from textual.strip import Strip

from agenteval_tui.tui.terminal.output_flow import ON_ITS_WAY, PATIENCE_S, WHERE
from agenteval_tui.tui.terminal.screen_buffer import Mirror, Piece

WIDTH, HEIGHT = 16, 3
CONSOLE = Console(color_system="truecolor", force_terminal=True)
STYLES = [
    Style(), Style(color="#ff0000"), Style(color="#ff0000", bgcolor="#000044"), Style(bgcolor="#000044", bold=True),
    Style(color="#00ff00", bgcolor="#000044", underline=True), Style(reverse=True), Style(bold=True, italic=True),
]  # fmt: skip
TEXTS = st.text(alphabet="ab  ─é漢", min_size=1, max_size=6)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[int, list[Piece]]:
    """A piece of one row, of any width that fits."""
    y, x = draw(st.integers(0, HEIGHT - 1)), draw(st.sampled_from([0, 0, 3, 7]))
    parts = draw(st.lists(st.tuples(TEXTS, st.sampled_from(STYLES)), min_size=1, max_size=4))
    strip = Strip([Segment(text, style) for text, style in parts])
    width = min(strip.cell_length, WIDTH - x)
    return y, [(x, strip.adjust_cell_length(width, Style()), width)]


def whole(rows: Iterable[tuple[int, list[Piece]]]) -> str:
    """The pieces as the toolkit writes them."""
    return "".join(
        f"\x1b[{y + 1};{x + 1}H" + strip.render(CONSOLE) for y, pieces in rows for x, strip, _ in pieces
    )  # fmt: skip


def seen(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """What can be seen of each cell: of a space, only its background."""
    found = []
    for y in range(HEIGHT):
        row: list[tuple[object, ...]] = []
        for x in range(WIDTH):
            cell = screen.buffer[y][x]
            lined = (cell.underscore, cell.reverse)
            look = (cell.fg, cell.bold, cell.italics) if cell.data != " " or any(lined) else ()
            row.append((cell.data, cell.bg, lined, *look))
        found.append(row)
    return found


@settings(max_examples=60)
@given(st.lists(st.lists(pieces(), min_size=1, max_size=4), min_size=1, max_size=6), st.booleans())
def test_the_difference_shows_what_the_whole_would(updates: list[list[tuple[int, list[Piece]]]], erases: bool) -> None:
    plain, ours = pyte.Screen(WIDTH, HEIGHT), pyte.Screen(WIDTH, HEIGHT)
    plain_stream, our_stream = pyte.Stream(plain), pyte.Stream(ours)
    mirror = Mirror(WIDTH, HEIGHT, erases=erases)
    blank = [(y, [(0, Strip.blank(WIDTH), WIDTH)]) for y in range(HEIGHT)]
    for update in [blank, *updates]:
        plain_stream.feed(whole(update))
        our_stream.feed(mirror.paint(update, CONSOLE))
        assert seen(plain) == seen(ours)
        assert mirror.paint(update[-1:], CONSOLE) == ""  # what is there already costs nothing


def test_many_spaces_are_erased_and_gone_past_in_one_go() -> None:
    """A row that gets another background, with gaps between its words, at its begin and at its end."""
    gap = " " * 20
    for text in (f"a{gap}b", f"{gap}b{gap}", gap * 2, f"a {gap}"):
        screen, sent = pyte.Screen(60, 2), []
        mirror = Mirror(60, 2, erases=True)
        for style in STYLES:
            strip = Strip([Segment(text, style)])
            sent.append(mirror.paint([(0, [(3, strip, strip.cell_length), (50, Strip([Segment("|")]), 1)])], CONSOLE))
            pyte.Stream(screen).feed(sent[-1])
            assert screen.display[0][3:51] == text.ljust(47) + "|"
            background = style.bgcolor.triplet.hex[1:] if style.bgcolor and style.bgcolor.triplet else "default"
            if not style.reverse:
                assert {screen.buffer[0][x].bg for x in range(3, 3 + len(text))} == {background}
        assert any("X" in one for one in sent)


@pytest.mark.parametrize("text", ["🙂", "👩‍💻", "e\u0301"])
def test_a_row_that_terminals_disagree_about_is_written_as_the_toolkit_does(text: str) -> None:
    def row(text: str, x: int = 0) -> tuple[int, list[Piece]]:
        strip = Strip([Segment(text, STYLES[1])])
        return 1, [(x, strip, strip.cell_length)]

    mirror = Mirror(WIDTH, HEIGHT)
    mirror.paint([row("a" * WIDTH)], CONSOLE)
    assert mirror.paint([row("aab")], CONSOLE) == "\x1b[2;3H\x1b[38;2;255;0;0mb\x1b[0m"
    doubtful = row(text)
    assert mirror.paint([doubtful], CONSOLE) == whole([doubtful])
    # Nothing in that row is taken for shown, until all of it was written without such characters.
    for part in (doubtful, row("a", 9), row("a", 9)):
        assert mirror.paint([part], CONSOLE) == whole([part])
    full = row("a" * WIDTH)
    assert mirror.paint([full], CONSOLE) == whole([full])
    assert mirror.paint([full], CONSOLE) == ""


@pytest.mark.e2e
def test_after_all_that_one_does_the_screen_is_what_it_would_be_painted_anew(tmp_path: Path) -> None:
    class Coloured(Terminal):
        def read(self, wait: float = 0.05) -> bytes:
            got = super().read(wait)
            stream.feed(got)
            return got

    whole_screen = pyte.Screen(100, 30)
    stream = pyte.ByteStream(whole_screen)

    def looks() -> list[list[Any]]:
        return [[whole_screen.buffer[y][x] for x in range(100)] for y in range(30)]

    command = [sys.executable, "-m", "agenteval_tui", str(ROOT / "sample_suites" / "recorded")]
    folders = {f"AGENTEVAL_{name}_DIR": str(tmp_path) for name in ("DATA", "CONFIG", "RUNTIME")}
    with Coloured(command, columns=100, rows=30, env=folders) as it:
        it.wait_for("customers-austria")
        it.wait_for("help")
        it.press("l", "j", "j", "E")
        it.wait_for("threshold")
        it.press("?", "\x1b", "1", "\x10", "t", "h", "\x1b", "8", "j", "1", "/", "s", "p")
        it.settle()
        before, text, written = looks(), it.text, len(it.written)
        # Idle, and what is painted again as it was: nothing.
        it.press("\x0c")
        it.settle()
        assert len(it.written) - written > 1500, "it was not painted anew"
        assert it.text == text
        differ = [
            (x, y)
            for y, row in enumerate(zip(before, looks(), strict=True))
            for x, (old, new) in enumerate(zip(*row, strict=True))
            if (old.data, old.bg, old.reverse) != (new.data, new.bg, new.reverse)
            or (old.data.strip() and (old.fg, old.bold) != (new.fg, new.bold))
        ]
        assert not differ


@pytest.mark.e2e
def test_a_terminal_that_takes_nothing_keeps_no_key_waiting(tmp_path: Path) -> None:
    def shown() -> object:
        try:
            return json.loads((tmp_path / "state.json").read_text("utf-8"))["starts"].popitem()[1]["screen"]
        except (OSError, ValueError, KeyError):
            return None

    def answered(told: int = 0) -> int:
        """Give each question its answer: all is there; how many there were."""
        while told < it.written.count(WHERE.encode()):
            it.say_where()
            told += 1
            it.settle(0.1)
        return told

    command = [sys.executable, "-m", "agenteval_tui", str(ROOT / "sample_suites" / "recorded")]
    folders = {f"AGENTEVAL_{name}_DIR": str(tmp_path) for name in ("DATA", "CONFIG", "RUNTIME")}
    with Terminal(command, columns=200, rows=60, env=folders) as it:
        it.says_where = False
        it.wait_for("customers-austria")
        it.wait_for("help")
        end = time.monotonic() + 250
        # Far more than what lies between the program and its terminal can hold, and nobody reads it.
        for key in "58215821582158217":
            it.send(key)
            time.sleep(0.02)
        while shown() != "trends":
            assert time.monotonic() < end, f"it waits for its terminal, at {shown()}"
            time.sleep(0.05)
        written = len(it.written)
        it.wait_for("trends")
        it.settle()
        # What was shown in between is gone: the terminal gets the last picture, and what was on its way.
        assert len(it.written) - written < 120_000
        it.press("\x0c")
        it.wait_for("trends")
        # A line that swallows everything and is slow behind that: while the terminal has not said that a picture is
        # there, no other one is sent after it; then the last.
        told = answered()
        it.press("5")
        it.wait_for(" 5 history ")
        told = answered(told)
        assert it.bytes_for("\x0c") > ON_ITS_WAY  # one that it says nothing about
        began = time.monotonic()
        for key in "8217":
            it.send(key)
        while shown() != "trends":
            assert time.monotonic() < end + 60, f"it waits for its terminal, at {shown()}"
            time.sleep(0.05)
        it.settle(0.1)
        if time.monotonic() - began < PATIENCE_S / 2:  # an answer that is lost does not hold it up for ever
            assert " 5 history " in it.text
        answered(told)
        it.wait_for(" 7 trends ")


def test_marks_that_a_sheet_cut_off_their_letter_are_not_sent() -> None:
    cut = Strip([Segment("\u0300\u0301Z\u0300 end")])  # what lies over the row took the letter and left its marks
    sent = Mirror(WIDTH, HEIGHT).paint([(0, [(0, Strip([Segment("│")]), 1), (1, cut, cut.cell_length)])], CONSOLE)
    assert "│\x1b[1;2HZ\u0300 end" in sent


def test_a_row_of_many_styles_is_sent_style_by_style() -> None:
    """A colour is set once in a row, not at each change, and gaps of a row with one background are gone past."""
    good, bad, plain = (Style(color=name, bgcolor="#14161b") for name in ("#7fcf8b", "#f27a83", "#d6d9e0"))
    row = [("order-status", plain), (" " * 8, plain), ("3/5", plain), (" " * 9, plain), *[("✓", good), ("✗", bad)] * 4]
    cursor = Style(bgcolor="#39435c")
    mirror, screen = Mirror(60, 2, erases=True), pyte.Screen(60, 2)
    for style in (Style(), cursor, Style()):
        strip = Strip([Segment(text, look + style) for text, look in row])
        sent = mirror.paint([(0, [(0, strip, strip.cell_length)])], CONSOLE)
        pyte.Stream(screen).feed(sent)
        assert screen.display[0].rstrip() == "".join(text for text, _ in row)
        assert [screen.buffer[0][x].fg for x in (32, 33, 38, 39)] == ["7fcf8b", "f27a83"] * 2
        assert [sent.count(look) for look in ("127;207;139", "242;122;131", "214;217;224")] == [1, 1, 1]
        assert len(sent.encode()) < 200


def test_the_style_that_a_row_ends_with_is_one_that_the_next_row_begins_with() -> None:
    """As where a cursor moves: what is pale is paler on the bar of the cursor, other colours are the same on both."""
    good, bad, pale, paler = (Style(color=name) for name in ("#7fcf8b", "#f27a83", "#8b91a0", "#adb2bc"))
    ground, cursor = Style(bgcolor="#14161b"), Style(bgcolor="#39435c")
    rows = []
    for y, (dim, under) in enumerate([(pale, ground), (paler, cursor)]):
        row = [("1/2 of the runs", dim), (" " * 6, dim), *[("✓", good), ("✗", bad)] * 3]
        strip = Strip([Segment(text, look + under) for text, look in row])
        rows.append((y, [(0, strip, strip.cell_length)]))
    screen = pyte.Screen(60, 2)
    sent = Mirror(60, 2, erases=True).paint(rows, CONSOLE)
    pyte.Stream(screen).feed(sent)
    assert [[screen.buffer[y][x].fg for x in (0, 21, 22)] for y in (0, 1)] == [
        ["8b91a0", "7fcf8b", "f27a83"], ["adb2bc", "7fcf8b", "f27a83"],
    ]  # fmt: skip
    assert sorted(sent.count(look) for look in ("127;207;139", "242;122;131")) == [1, 2]
