"""Whether an object in a judge's reply is a quote of what the judge was asked to judge."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
# Quotation marks, escapes, emphasis and spaces differ between a text and its quote.
_LEFT_OUT = re.compile(r"""[\\\s"'`*_“”‘’«»„]+""")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_MARKS = re.compile(r"""[\\"'`*“”‘’«»„]+""")
_SIGNED = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_LONGEST_WORD = 40  # characters of a text that may be a verdict


def is_quoted(written: str, value: object, question: str, material: str) -> bool:
    """Whether an object repeats what was asked: `written` as the judge wrote it, `value` what it is.

    The object as a whole may be in the `question` (the form of the answer is), or any figure or verdict of it, with its
    name, in the `material`, however it is escaped there. A judge that chose the same figure by itself is asked again.
    """
    prompt = _plain(question)
    if _plain(written) in prompt or _plain(json.dumps(value, ensure_ascii=False)) in prompt:
        return True
    text = _plain(material)
    return any(_stands(name, scalar, text) for name, scalar in _scalars(value))


def figure_is_quoted(text: str, start: int, end: int, material: str) -> bool:
    """Whether the figure or word of a reply, `text[start:end]`, is in the material in the same words: behind the
    word before it ("Score: 4"), before what is attached to it ("4/10"), or, at the start of its line, alone.
    """
    figure, line = text[start:end].strip(), text[text.rfind("\n", 0, start) + 1 : start]
    label = _label_before(line)
    plain_material = _spaced(material)
    if label:
        after = rf"{re.escape(label)}[ :=\[(]*"
        if any(_same_figure(figure, plain_material, match.end()) for match in re.finditer(after, plain_material)):
            return True
    elif any(_same_figure(figure, row, 0) for row in map(_spaced, material.splitlines())):
        return True
    attached = _spaced(re.split(r"\s", text[end:], maxsplit=1)[0])
    if not any(char.isalnum() for char in attached):
        return False
    return re.search(rf"(?<![\w.]){re.escape(_spaced(figure) + attached)}(?!\w)", plain_material) is not None


def _label_before(line: str) -> str:
    """The last word of a line, with what follows it."""
    words = _spaced(line).rstrip(" :=[(").split(" ")
    for number in range(1, len(words) + 1):
        last = " ".join(words[-number:])
        if any(char.isalnum() for char in last):
            return last
    return ""


def _same_figure(figure: str, text: str, at: int) -> bool:
    """Whether the text has this figure at the character `at`: as a number of the same value, or the same word."""
    number = _SIGNED.match(text, at)
    if _SIGNED.fullmatch(figure):
        return number is not None and Decimal(number[0]) == Decimal(figure)
    word = _spaced(figure)
    return bool(word) and text.startswith(word, at) and not text[at + len(word) : at + len(word) + 1].isalnum()


def _spaced(text: str) -> str:
    """As `_plain`, with one space where there are any."""
    unescaped = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), html.unescape(text))
    return " ".join(_MARKS.sub("", unescaped).casefold().split())


def _stands(name: str, scalar: Any, text: str) -> bool:
    title = _plain(name)
    if not title:
        return False
    for place in re.finditer(re.escape(title) + "[:=]+", text):
        number = None if isinstance(scalar, bool | str) else _NUMBER.match(text, place.end())
        if number is not None:
            if Decimal(number[0]) == Decimal(str(scalar)):
                return True
        elif text.startswith(_plain(str(scalar)), place.end()):
            return True
    return False


def _scalars(value: object) -> Iterator[tuple[str, Any]]:
    """The figures and short words of an object with their names, also of objects inside it."""
    for name, held in value.items() if isinstance(value, Mapping) else ():
        if isinstance(held, Mapping):
            yield from _scalars(held)
        elif isinstance(held, bool | int | float) or (isinstance(held, str) and 0 < len(held) <= _LONGEST_WORD):
            yield name, held


def _plain(text: str) -> str:
    unescaped = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), html.unescape(text))
    return _LEFT_OUT.sub("", unescaped).casefold()
