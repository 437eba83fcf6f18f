"""The way to the clipboard and to notifications: what is between, and what is sent."""

from __future__ import annotations

import base64
import re

import pytest

from agenteval_tui.core.terminal_sequences import (
    LONGEST,
    SCREEN_PIECE,
    SEQUENCES,
    clipboard_sequence,
    known_sequence,
    notification_sequence,
    way_to_clipboard,
)

HOSTILE = "a\x1b]0;owned\x07b\x9c;c\nd\x1b\\\u202e9;4;1"


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "osc9"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "osc9"),  # over ssh
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "osc9"),
        ({"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, "osc9"),
        ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, "osc99"),
        ({"TERM": "foot-extra"}, "osc777"),
        ({"TERM": "rxvt-unicode-256color"}, "osc777"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "osc777"),
        # Inside tmux, TERM and TERM_PROGRAM are tmux's; what the terminal left is still there.
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, "osc99"),
        ({"TERM": "screen", "STY": "1", "GHOSTTY_RESOURCES_DIR": "/x"}, "osc9"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, "bell"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, "bell"),
        ({"TERM": "xterm-256color"}, "bell"),
        ({"TERM": "linux"}, "bell"),
        ({"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, "off"),
        ({}, "off"),
    ],
)
def test_a_sequence_goes_to_terminals_that_are_known_to_take_it(environment: dict[str, str], sequence: str) -> None:
    assert known_sequence(environment) == sequence


def test_what_is_sent() -> None:
    assert notification_sequence("Orders: passed", "osc9", {}) == "\x1b]9;agenteval: Orders: passed\x1b\\"
    assert notification_sequence("a; b", "osc777", {}) == "\x1b]777;notify;agenteval;a, b\x1b\\"
    assert notification_sequence("a", "bell", {"TMUX": "x"}) == "\a"
    assert notification_sequence("a", "off", {}) == ""
    parts = re.findall(r"\x1b\]99;([^;]*);([^\x1b]*)\x1b\\", notification_sequence("Größe", "osc99", {}))
    assert [(head, base64.b64decode(text).decode()) for head, text in parts] == [
        ("i=agenteval:o=unfocused:e=1:d=0", "agenteval"),
        ("i=agenteval:e=1:d=1:p=body", "Größe"),
    ]


def test_tmux_and_screen_hand_it_on_and_mark_the_window() -> None:
    through = notification_sequence("done", "osc9", {"TMUX": "/tmp/x,1,0"})
    assert through == "\x1bPtmux;\x1b\x1b]9;agenteval: done\x1b\x1b\\\x1b\\\a"
    through = notification_sequence("x" * 100, "osc777", {"STY": "1.pts"})
    pieces = re.findall(r"\x1bP([^\x1b]*(?:\x1b\][^\x1b]*)?)\x1b\\", through)
    assert "".join(pieces) == f"\x1b]777;notify;agenteval;{'x' * 100}\a"
    assert all(len(piece) <= 76 for piece in pieces)
    assert through.endswith("\x1b\\\a")


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("environment", [{}, {"TMUX": "x"}])
def test_nothing_foreign_acts_on_the_terminal(sequence: str, environment: dict[str, str]) -> None:
    made = notification_sequence(HOSTILE * 50, sequence, environment)  # type: ignore[arg-type]
    harmless = notification_sequence("a" * LONGEST, sequence, environment)  # type: ignore[arg-type]
    controls = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]")
    assert controls.findall(made) == controls.findall(harmless)
    assert len(made) < 2_000


TEXTS = ["", "a", "agenteval open 01M82", "Grüße aus Köln " * 300]


def test_what_is_between_a_program_and_its_terminal() -> None:
    assert way_to_clipboard({}) == "terminal"
    assert way_to_clipboard({"STY": "123.pts"}) == "screen"
    assert way_to_clipboard({"TMUX": "/tmp/tmux-0/default,1,0", "STY": "123.pts"}) == "tmux"
    assert way_to_clipboard({"TMUX": "", "STY": ""}) == "terminal"


@pytest.mark.parametrize("text", TEXTS)
def test_a_terminal_gets_it_as_osc_52(text: str) -> None:
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", clipboard_sequence(text, "terminal"))
    assert found is not None
    assert base64.b64decode(found[1]).decode() == text


@pytest.mark.parametrize("text", TEXTS)
def test_screen_gets_it_in_wrapped_pieces_that_are_short_enough(text: str) -> None:
    sent = clipboard_sequence(text, "screen")
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sent, re.DOTALL)
    assert "".join(f"\x1bP{piece}\x1b\\" for piece in pieces) == sent
    assert max(map(len, pieces)) <= SCREEN_PIECE
    assert "".join(pieces) == clipboard_sequence(text, "terminal")
