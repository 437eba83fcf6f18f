"""The way from a program in a terminal to the clipboard and the notifications of the person who sits there.

A terminal takes a text for its clipboard in an escape sequence (OSC 52), and doesn't say whether it did. It shows a
notification when it gets OSC 9 (iTerm2's), OSC 777 (urxvt's) or OSC 99 (kitty's). There is no way to ask which of these
it knows, and some print what they don't know: so a sequence goes only to terminals that are known to take it, and to
all others the bell. tmux and screen stand between: both hand on what is wrapped (tmux with `allow-passthrough on`), and
take the bell for themselves: a window that rang is marked.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal, get_args

from agenteval_tui.core.display import one_line

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
    return _wrapped_for_screen(whole) if way == "screen" else whole


def _wrapped_for_screen(sequence: str) -> str:
    pieces = [sequence[start : start + SCREEN_PIECE] for start in range(0, len(sequence), SCREEN_PIECE)]
    return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)


def said_of_copy(way: Way) -> str:
    """What is true of a text that went this way, before what it is: "Copied to …: the address"."""
    return {
        "tmux": "Copied to tmux's buffer",
        "screen": "Sent to the clipboard through screen",
        "terminal": "Sent to the terminal's clipboard",
    }[way]


Sequence = Literal["osc9", "osc777", "osc99", "bell", "off"]
SEQUENCES: tuple[str, ...] = get_args(Sequence)
TITLE = "agenteval"
LONGEST = 200
"""Characters of a text: notifications are short, and a terminal may cut a long sequence."""

# What terminals call themselves, in TERM_PROGRAM, or where that is not set (or is tmux's own) in TERM.
_PROGRAMS: dict[str, Sequence] = {
    "iterm.app": "osc9",
    "iterm2": "osc9",
    "wezterm": "osc9",
    "ghostty": "osc9",
    "warpterminal": "osc9",
    "kitty": "osc99",
    "foot": "osc777",
}
_TERMS: tuple[tuple[str, Sequence], ...] = (
    ("xterm-kitty", "osc99"),
    ("xterm-ghostty", "osc9"),
    ("wezterm", "osc9"),
    ("foot", "osc777"),
    ("rxvt", "osc777"),
)
# What terminals leave in the environment; it is still there inside tmux.
_MARKS: tuple[tuple[str, Sequence], ...] = (
    ("KITTY_WINDOW_ID", "osc99"),
    ("GHOSTTY_RESOURCES_DIR", "osc9"),
    ("WEZTERM_PANE", "osc9"),
    ("ITERM_SESSION_ID", "osc9"),
    ("VTE_VERSION", "osc777"),
)


def known_sequence(environment: Mapping[str, str]) -> Sequence:
    """What the terminal takes, as far as its environment tells: "bell" for one that is not known, "off" for none."""
    term = environment.get("TERM", "").casefold()
    if term in ("", "dumb", "linux"):
        return "bell" if term == "linux" else "off"
    program = environment.get("LC_TERMINAL") or environment.get("TERM_PROGRAM", "")
    if (named := _PROGRAMS.get(program.casefold())) is not None:
        return named
    for start, sequence in _TERMS:
        if term.startswith(start):
            return sequence
    return next((sequence for name, sequence in _MARKS if environment.get(name)), "bell")


def notification_sequence(text: str, sequence: Sequence, environment: Mapping[str, str]) -> str:
    """What to write to the terminal for a notification with this text, which may be foreign; "" for nothing."""
    if sequence == "off":
        return ""
    if sequence == "bell":
        return "\a"
    line = one_line(text, LONGEST)
    if sequence == "osc9":
        # Behind OSC 9, ConEmu and others take a number for a command of theirs: the text never begins with one.
        return _through(f"\x1b]9;{TITLE}: {line}\x1b\\", environment)
    if sequence == "osc777":
        return _through(f"\x1b]777;notify;{TITLE};{line.replace(';', ',')}\x1b\\", environment)
    # `o=unfocused`: kitty shows nothing to a person who looks at it. Two parts, in base64 (`e=1`).
    head = f"\x1b]99;i={TITLE}:o=unfocused:e=1:d=0;{_coded(TITLE)}\x1b\\"
    return _through(head, environment) + _through(f"\x1b]99;i={TITLE}:e=1:d=1:p=body;{_coded(line)}\x1b\\", environment)


def _through(sequence: str, environment: Mapping[str, str]) -> str:
    """The sequence as it gets through what is between; with the bell, which marks the window there."""
    between = way_to_clipboard(environment)
    if between == "tmux":
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\\a"
    if between == "screen":
        # Its own end would end the wrapped string: the sequence ends with a bell instead.
        return _wrapped_for_screen(sequence.removesuffix("\x1b\\") + "\a") + "\a"
    return sequence


def _coded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
