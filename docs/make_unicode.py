"""Writes agenteval_tui/core/unicode_classes.py: which characters are hidden, marks, or joined, by Unicode property.

python docs/make_unicode.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import regex

TARGET = Path(__file__).resolve().parents[1] / "agenteval_tui" / "core" / "unicode_classes.py"
# A terminal acts on it, shows nothing for it, or does not know it. Line feed and tab stay; so do no-break and
# ideographic spaces, which are seen, and the private use area of the first plane, which fonts fill with symbols.
HIDDEN = (
    r"[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}"
    r"\u1680\u2000-\u200a\u202f\u205f\U000f0000-\U0010ffff]"
)
MARK = r"\p{M}"
# What the rules for joiners ask about (RFC 5892, A.1 and A.2; Unicode's annex 29, GB11).
VIRAMA = r"\p{ccc=9}"
JOINS_NEXT = r"[\p{jt=L}\p{jt=D}]"
JOINS_LAST = r"[\p{jt=R}\p{jt=D}]"
PICTOGRAPH = r"(?!\p{Cn})\p{Extended_Pictographic}"


ASTRAL = 0x10000
BEYOND = 0x1F200  # behind the rare scripts: enclosed ideographs, emoji, more ideographs


def ranges(pattern: str, low: int, high: int) -> str:
    """The characters from `low` below `high` that match, as the inside of a character class of `re`."""
    matching = regex.compile(pattern)
    codes = [code for code in range(low, high) if chr(code) not in "\n\t" and matching.match(chr(code)) is not None]
    parts: list[str] = []
    first = last = -2
    for code in [*codes, -2]:
        if code == last + 1:
            last = code
            continue
        if first >= 0:
            parts.append(_one(first) if first == last else f"{_one(first)}-{_one(last)}")
        first = last = code
    return "".join(parts)


def _one(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def page() -> str:
    """The module's text."""
    lines = ['"""Classes of characters by Unicode property, made by docs/make_unicode.py. Do not edit."""', ""]
    top = sys.maxunicode + 1
    classes = {
        "HIDDEN": ranges(HIDDEN, 0, ASTRAL),
        "HIDDEN_ASTRAL": ranges(HIDDEN, ASTRAL, BEYOND),
        "HIDDEN_BEYOND": ranges(HIDDEN, BEYOND, top),
        "MARKS": ranges(MARK, 0, ASTRAL),
        "MARKS_ASTRAL": ranges(MARK, ASTRAL, BEYOND),
        "VIRAMA": ranges(VIRAMA, 0, top),
        "JOINS_NEXT": ranges(JOINS_NEXT, 0, top),
        "JOINS_LAST": ranges(JOINS_LAST, 0, top),
        "PICTOGRAPH": ranges(PICTOGRAPH, 0, top),
    }
    assert all(code < BEYOND or code >= 0xE0000 for code in range(top) if regex.match(MARK, chr(code)))
    for name, text in classes.items():
        lines.append(f"{name} = (")
        while text:
            cut = min(len(text), 100)
            while cut < len(text) and text[cut] != "\\":
                cut += 1
            if cut < len(text) and text[cut - 1] == "-":
                cut += 1
                while cut < len(text) and text[cut] != "\\":
                    cut += 1
            lines.append(f'    "{text[:cut]}"')
            text = text[cut:]
        lines.append(")")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
