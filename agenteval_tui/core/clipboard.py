"""The way from a program in a terminal to the clipboard of the person who sits there.

A terminal takes a text for its clipboard in an escape sequence (OSC 52), and doesn't say whether it did. tmux and
screen stand between: tmux hands on only what it was given itself, screen only what is wrapped.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal

Way = Literal["tmux", "screen", "terminal"]

TMUX_COMMAND = ("tmux", "load-buffer", "-w", "-")
"""Puts its standard input into tmux's buffer and, where tmux may, into the terminal's clipboard."""

SCREEN_PIECE = 76  # characters of one wrapped string, which screen limits


def way_to_clipboard(environment: Mapping[str, str]) -> Way:
    """What is between a program and its terminal."""
    return "tmux" if environment.get("TMUX") else "screen" if environment.get("STY") else "terminal"


def clipboard_sequence(text: str, way: Way) -> str:
    """The escape sequence that gives `text` to the terminal's clipboard, wrapped for screen where that is between."""
    coded = base64.b64encode(text.encode("utf-8")).decode("ascii")
    whole = f"\x1b]52;c;{coded}\x07"
    if way != "screen":
        return whole
    pieces = [whole[start : start + SCREEN_PIECE] for start in range(0, len(whole), SCREEN_PIECE)]
    return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)


def said_of_copy(way: Way) -> str:
    """What is true of a text that went this way, before what it is: "Copied to …: the address"."""
    return {
        "tmux": "Copied to tmux's buffer",
        "screen": "Sent to the clipboard through screen",
        "terminal": "Sent to the terminal's clipboard",
    }[way]
