"""The way to the clipboard: what is between, and what is sent."""

from __future__ import annotations

import base64
import re

import pytest

from agenteval_tui.core.clipboard import SCREEN_PIECE, clipboard_sequence, way_to_clipboard

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
