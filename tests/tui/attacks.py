"""What somebody may put into a text to make a terminal act: for the tests that look at what the terminal got."""

from __future__ import annotations

import re

# Every sequence carries 31337, so that it can be told from Textual's own.
ATTACKS = {
    "colour": "\x1b[31337m",
    "cursor": "\x1b[31337;1H",
    "clear": "\x1b[31337J",
    "mode": "\x1b[?31337h",
    "alternate screen": "\x1b[?1049;31337l",
    "report": "\x1b[31337n",
    "clipboard": "\x1b]52;c;31337=\x07",
    "clipboard, ST": "\x1b]52;c;31337=\x1b\\",
    "title": "\x1b]0;31337\x07",
    "link": "\x1b]8;;http://31337/\x1b\\link\x1b]8;;\x1b\\",
    "device control": "\x1bP31337\x1b\\",
    "application": "\x1b_31337\x1b\\",
    "privacy": "\x1b^31337\x1b\\",
    "reset": "\x1bc31337",
    "charset": "\x1b(031337",
    "open": "\x1b]31337",
    "C1 control": "\x9b31337m",
    "C1 command": "\x9d0;31337\x9c",
    "C1 device": "\x9031337\x9c",
    "bell and friends": "\x07\x08\x0b\x0c\x0e\x0f\x7f\x0031337",
    "carriage return": "seen\r31337",
    "right to left": "\u202e31337\u202c",
    "isolates": "\u2066\u206731337\u2069",
    "marks": "\u200e\u200f\u061c31337",
    "zero width": "z\u200be\u200cr\u200do\ufeff31337",
    "soft hyphen": "so\xadft31337",
    "tags": "\U000e0041\U000e007f31337",
    "variation": "v\ufe0f\ufe0e\U000e010031337",
    "zalgo": "Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307" * 3 + "31337",
    "separators": "a\u2028b\u2029c\x8531337",
    "fillers": "\u115f\u1160\u3164\uffa031337",
    "not a character": "\ufdd0\uffff\U0010ffff\ue00031337",
    "surrogate": "\ud800\udc0031337",
    "markup": "[red]31337[/red][@click=app.quit]go[/]",
    "closing markup": "[/usr/bin][/]31337",
}

# Sequences of a terminal: CSI, OSC and its like, two-character escapes.
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]


# What the program itself sends: colours, the cursor's place (also the question for it), the modes of a full screen
# with a mouse, the pointer.
OURS = re.compile(
    r"\x1b\[(?:[0-9]{1,3}(?:[;:][0-9]{1,3})*)?m|\x1b\[[0-9]{1,3}(?:;[0-9]{1,3})?H|\x1b\[[0-9]{0,3}[CGX]|\x1b\[6n"
    r"|\x1b\[\?(?:7|25|100[0346]|1015|1049|2004|2026)[hl]|\x1b\[\?(?:2026|2048)\$p|\x1b\[(?:>25|<)u"
    r"|\x1b\]22;[a-z-]+\x07"
)


def shape(sequence: str) -> str:
    return re.sub(r"\d+", "0", sequence) if not sequence.endswith("m") else "m"
